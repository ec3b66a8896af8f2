// Batches, decoding and what comes out of it.
#include "batch.h"

namespace {

// The sizes that llama.cpp asserts on.
lsys_status check_batch(const llama_context * ctx, const lsys_batch * batch, bool all_output) {
    if (ctx == nullptr || batch == nullptr || batch->ctx != ctx) {
        return lsys::refuse("a context and a batch that was made for it are needed");
    }
    const auto & settings = lsys::settings(ctx);
    const size_t size     = batch->entries.tokens.size();
    if (size == 0) {
        return lsys::refuse("the batch is empty");
    }
    if (size > batch->capacity) {
        return lsys::refuse("the batch holds %zu entries, n_batch is %zu", size, batch->capacity);
    }
    const size_t outputs = std::max<size_t>(all_output ? size : batch->n_outputs, settings.n_seq_max);
    if (outputs > settings.n_outputs_max) {
        return lsys::refuse("%zu outputs are wanted, n_outputs_max is %u", outputs, settings.n_outputs_max);
    }
    if (!settings.causal_attn && size > settings.n_ubatch) {
        return lsys::refuse("without causal attention a batch must fit a micro-batch: %zu entries, n_ubatch is %u", size, settings.n_ubatch);
    }
    return LSYS_OK;
}

lsys_status check_index(const llama_context * ctx, int32_t index) {
    if (ctx == nullptr || index < 0 || (uint32_t) index >= llama_n_batch(ctx)) {
        return lsys::refuse("entry %d is outside the batch", index);
    }
    return LSYS_OK;
}

lsys_status run(llama_context * ctx, lsys_batch * batch, enum llama_process_type type, int32_t * code) {
    batch->decoded = 0;
    *code          = llama_process(ctx, type, batch->entries.get());
    if (*code == 0) {
        batch->decoded = lsys::count_decode(ctx);
    }
    return LSYS_OK;
}

} // namespace

lsys_status lsys_batch_new(llama_context * ctx, lsys_batch ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || out == nullptr) {
            return lsys::refuse("a context and a place for the batch are needed");
        }
        *out = nullptr;
        *out = new lsys_batch(ctx);
        return LSYS_OK;
    });
}

void lsys_batch_free(lsys_batch * batch) {
    delete batch;
}

void lsys_batch_clear(lsys_batch * batch) {
    if (batch != nullptr) {
        batch->clear();
    }
}

size_t lsys_batch_size(const lsys_batch * batch) {
    return batch != nullptr ? batch->entries.tokens.size() : 0;
}

lsys_status lsys_batch_add(lsys_batch * batch, llama_token token, llama_pos pos, llama_seq_id seq, bool output) {
    return lsys::guard([&]() -> lsys_status {
        if (batch == nullptr) {
            return lsys::refuse("there is no batch");
        }
        const auto & entries = batch->entries.tokens;
        if (token < 0 || token >= batch->n_vocab) {
            return lsys::refuse("token %d is outside the vocabulary of %d", token, batch->n_vocab);
        }
        if (seq < 0 || (size_t) seq >= batch->seen.size()) {
            return lsys::refuse("sequence %d is outside the context's %zu", seq, batch->seen.size());
        }
        if (pos < 0) {
            return lsys::refuse("position %d is negative", pos);
        }
        if (entries.size() >= batch->capacity) {
            return lsys::refuse("the batch already holds n_batch = %zu entries", batch->capacity);
        }
        if (batch->seen[seq] && entries.back().seq_id != seq) {
            return lsys::refuse("the entries of sequence %d do not follow each other", seq);
        }
        batch->entries.add(token, pos, seq, output);
        batch->seen[seq] = true;
        batch->n_outputs += output;
        batch->decoded = 0;
        return LSYS_OK;
    });
}

lsys_status lsys_decode(llama_context * ctx, lsys_batch * batch, int32_t * code) {
    return lsys::guard([&]() -> lsys_status {
        if (code == nullptr) {
            return lsys::refuse("there is no place for the code");
        }
        const lsys_status status = check_batch(ctx, batch, ctx != nullptr && lsys::settings(ctx).embeddings);
        if (status != LSYS_OK) {
            return status;
        }
        const auto & settings = lsys::settings(ctx);
        const auto & model    = ctx->get_model();
        if (llama_get_memory(ctx) == nullptr) {
            return lsys::refuse("this model has no memory to decode into; encode the batch");
        }
        if (model.arch == LLM_ARCH_T5) {
            return lsys::refuse("decoders that need an encoder's result are not supported");
        }
        if (settings.ctx_type == LLAMA_CONTEXT_TYPE_MTP || lsys::shape(ctx).lilicorr_candidate_topk > 0) {
            return lsys::refuse("this context takes hidden states besides tokens, so only its drafter can decode with it");
        }
        // Recurrent memories keep the last tokens of a sequence together in one micro-batch.
        if (settings.n_rs_seq > 0 && settings.n_ubatch <= settings.n_rs_seq + 1) {
            return lsys::refuse("n_ubatch is %u, but must be above n_rs_seq + 1 = %u", settings.n_ubatch, settings.n_rs_seq + 1);
        }
        for (size_t seq = 0; seq < batch->seen.size(); ++seq) {
            if (batch->seen[seq]) {
                lsys::claim_cell(ctx, (llama_seq_id) seq);
            }
        }
        return run(ctx, batch, LLAMA_PROCESS_TYPE_DECODE, code);
    });
}

lsys_status lsys_encode(llama_context * ctx, lsys_batch * batch, int32_t * code) {
    return lsys::guard([&]() -> lsys_status {
        if (code == nullptr) {
            return lsys::refuse("there is no place for the code");
        }
        const lsys_status status =
            check_batch(ctx, batch, ctx != nullptr && (llama_get_memory(ctx) != nullptr || lsys::settings(ctx).embeddings));
        if (status != LSYS_OK) {
            return status;
        }
        const auto & model = ctx->get_model();
        if (llama_get_memory(ctx) != nullptr && model.arch != LLM_ARCH_T5) {
            return lsys::refuse("this model has no encoder; decode the batch");
        }
        if (batch->entries.tokens.size() > llama_n_ubatch(ctx)) {
            return lsys::refuse("a batch to encode must fit a micro-batch: %d entries, n_ubatch is %u", batch->entries.size(), llama_n_ubatch(ctx));
        }
        return run(ctx, batch, LLAMA_PROCESS_TYPE_ENCODE, code);
    });
}

lsys_status lsys_synchronize(llama_context * ctx) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr) {
            return lsys::refuse("there is no context");
        }
        llama_synchronize(ctx);
        return LSYS_OK;
    });
}

lsys_status lsys_logits(llama_context * ctx, int32_t index, const float ** out) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr) {
            return lsys::refuse("there is no place for the logits");
        }
        *out                     = nullptr;
        const lsys_status status = check_index(ctx, index);
        if (status != LSYS_OK) {
            return status;
        }
        *out = llama_get_logits_ith(ctx, index);
        return *out ? LSYS_OK : lsys::refuse("entry %d of the last batch has no logits", index);
    });
}

lsys_status lsys_embeddings_entry(llama_context * ctx, int32_t index, const float ** out, size_t * n) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr || n == nullptr) {
            return lsys::refuse("there is no place for the embedding");
        }
        *out                     = nullptr;
        *n                       = 0;
        const lsys_status status = check_index(ctx, index);
        if (status != LSYS_OK) {
            return status;
        }
        if (!lsys::settings(ctx).embeddings || llama_pooling_type(ctx) != LLAMA_POOLING_TYPE_NONE) {
            return lsys::refuse("the context gives no embedding for each entry: embeddings must be on and the pooling type none");
        }
        *out = llama_get_embeddings_ith(ctx, index);
        if (*out == nullptr) {
            return lsys::refuse("entry %d of the last batch has no embedding", index);
        }
        *n = llama_model_n_embd_out(llama_get_model(ctx));
        return LSYS_OK;
    });
}

lsys_status lsys_embeddings_sequence(llama_context * ctx, llama_seq_id seq, const float ** out, size_t * n) {
    return lsys::guard([&]() -> lsys_status {
        if (out == nullptr || n == nullptr) {
            return lsys::refuse("there is no place for the embedding");
        }
        *out = nullptr;
        *n   = 0;
        if (ctx == nullptr || !lsys::has_sequence(ctx, seq)) {
            return lsys::refuse("sequence %d is outside the context", seq);
        }
        *out = llama_get_embeddings_seq(ctx, seq);
        if (*out == nullptr) {
            return lsys::refuse("the last batch gave no embedding for sequence %d: embeddings must be on, with a pooling type", seq);
        }
        const llama_model * const model = llama_get_model(ctx);
        *n = llama_pooling_type(ctx) == LLAMA_POOLING_TYPE_RANK ? llama_model_n_cls_out(model) : llama_model_n_embd_out(model);
        return LSYS_OK;
    });
}
