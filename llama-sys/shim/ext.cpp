// What llama-ext.h offers.
#include "inside.h"

lsys_status lsys_set_embeddings_nextn(llama_context * ctx, bool on, bool masked) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr) {
            return lsys::refuse("there is no context");
        }
        llama_set_embeddings_nextn(ctx, on, masked);
        lsys::count_switch(ctx);
        return LSYS_OK;
    });
}

lsys_status lsys_embeddings_nextn(llama_context * ctx, int32_t index, const float ** out, size_t * n) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || out == nullptr || n == nullptr || index < 0 || (uint32_t) index >= llama_n_batch(ctx)) {
            return lsys::refuse("entry %d is outside the batch, or there is no place for its row", index);
        }
        *n   = 0;
        *out = lsys::extracted(ctx) ? llama_get_embeddings_nextn_ith(ctx, index) : nullptr;
        if (*out == nullptr) {
            return lsys::fail("entry %d of the last batch has no hidden states", index);
        }
        *n = llama_model_n_embd_out(llama_get_model(ctx));
        return LSYS_OK;
    });
}

lsys_status lsys_set_nextn_head(llama_context * ctx, int32_t head) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || head < 0 || head >= std::max(1, llama_model_n_layer_nextn(llama_get_model(ctx)))) {
            return lsys::refuse("the model has no next-token head %d", head);
        }
        llama_set_nextn_layer_offset(ctx, head);
        return LSYS_OK;
    });
}

lsys_status lsys_set_layer_input(llama_context * ctx, uint32_t layer, bool on) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || layer >= lsys::settings(ctx).embeddings_layer_inp.size()) {
            return lsys::refuse("the model has no layer %u", layer);
        }
        if (on && !lsys::publishes_layer(ctx, layer)) {
            return lsys::refuse("the architecture %s does not give the input of layer %u", lsys::architecture(llama_get_model(ctx)).c_str(), layer);
        }
        llama_set_embeddings_layer_inp(ctx, layer, on);
        lsys::count_switch(ctx);
        return LSYS_OK;
    });
}

lsys_status lsys_layer_input(llama_context * ctx, uint32_t layer, const float ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || out == nullptr || layer >= lsys::settings(ctx).embeddings_layer_inp.size()) {
            return lsys::refuse("the model has no layer %u, or there is no place for its input", layer);
        }
        *out = nullptr;
        if (!lsys::settings(ctx).embeddings_layer_inp[layer] || !lsys::extracted(ctx)) {
            return lsys::refuse("the input of layer %u was not switched on before the last batch", layer);
        }
        *out = llama_get_embeddings_layer_inp(ctx, layer);
        return LSYS_OK;
    });
}

llama_context * lsys_context_other(llama_context * ctx) {
    return ctx != nullptr ? lsys::settings(ctx).ctx_other : nullptr;
}

lsys_status lsys_target_layers(const llama_model * model, int32_t * layers, size_t capacity, size_t * n_out) {
    return lsys::guard([&]() -> lsys_status {
        if (model == nullptr || n_out == nullptr || (layers == nullptr && capacity > 0)) {
            return lsys::refuse("a model and places for the layers and their number are needed");
        }
        const uint32_t        n    = llama_model_target_layer_ids_n(model);
        const int32_t * const from = llama_model_target_layer_ids(model);
        return lsys::give(n > 0 ? std::vector<int32_t>(from, from + n) : std::vector<int32_t>(), layers, capacity, n_out);
    });
}

int32_t lsys_dflash_selector_top_k(const llama_model * model) {
    return model != nullptr ? llama_model_dflash_selector_top_k(model) : 0;
}

int32_t lsys_model_n_devices(const llama_model * model) {
    return model != nullptr ? llama_model_n_devices(model) : 0;
}

ggml_backend_dev_t lsys_model_device(const llama_model * model, int32_t index) {
    return index >= 0 && index < lsys_model_n_devices(model) ? llama_model_get_device(model, index) : nullptr;
}
