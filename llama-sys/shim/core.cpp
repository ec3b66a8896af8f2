// Batches, decoding and what comes out of it.
#include "batch.h"

#include <array>

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

// common's entries only point to their rows, which have moved when others were added behind them.
void point_to_rows(lsys_batch & batch) {
    auto & entries = batch.entries.tokens;
    for (size_t i = 0; batch.width > 0 && i < entries.size(); ++i) {
        const llama_embd row = { batch.rows.data() + i * batch.width, 1, batch.width };
        const bool       state = !batch.features && lsys::settings(batch.ctx).ctx_type == LLAMA_CONTEXT_TYPE_MTP;
        (state ? entries[i].state : entries[i].embd) = row;
    }
}

lsys_status run(llama_context * ctx, lsys_batch * batch, enum llama_process_type type, int32_t * code) {
    batch->decoded = 0;
    point_to_rows(*batch);
    *code          = llama_process(ctx, type, batch->entries.get());
    if (*code == 0) {
        batch->decoded = lsys::count_decode(ctx);
    }
    return LSYS_OK;
}

// What llama.cpp asserts on when an entry is added, and that all entries are of one kind.
lsys_status check_entry(const lsys_batch * batch, llama_token token, llama_pos pos, llama_seq_id seq, size_t width) {
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
    if (!entries.empty() && (batch->features || batch->width != width)) {
        return lsys::refuse("tokens alone, tokens with rows and features do not go into one batch");
    }
    return LSYS_OK;
}

// To be called before its entry is added, which may have failed the last time.
void add_row(lsys_batch & batch, const float * row, size_t width) {
    batch.rows.resize(batch.entries.tokens.size() * width);
    batch.rows.insert(batch.rows.end(), row, row + width);
    batch.width = width;
}

void add(lsys_batch & batch, llama_token token, llama_pos pos, llama_seq_id seq, bool output) {
    batch.entries.add(token, pos, seq, output);
    batch.seen[seq] = true;
    batch.n_outputs += output;
    batch.decoded = 0;
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
        const lsys_status status = check_entry(batch, token, pos, seq, 0);
        if (status == LSYS_OK) {
            add(*batch, token, pos, seq, output);
        }
        return status;
    });
}

lsys_status lsys_batch_add_row(lsys_batch * batch, llama_token token, llama_pos pos, llama_seq_id seq, bool output, const float * row,
                               size_t n_row) {
    return lsys::guard([&]() -> lsys_status {
        const size_t width = batch != nullptr ? lsys::row_width(batch->ctx) : 0;
        if (row == nullptr || width == 0 || n_row != width) {
            return lsys::refuse("a row of %zu values beside a token, this context reads %zu", row != nullptr ? n_row : 0, width);
        }
        const lsys_status status = check_entry(batch, token, pos, seq, width);
        if (status == LSYS_OK) {
            add_row(*batch, row, width);
            add(*batch, token, pos, seq, output);
        }
        return status;
    });
}

lsys_status lsys_batch_add_features(lsys_batch * batch, const float * row, size_t n_row) {
    return lsys::guard([&]() -> lsys_status {
        if (batch == nullptr || !lsys::is_eagle3(batch->ctx)) {
            return lsys::refuse("there is no batch, or its model has no encoder of features");
        }
        const size_t width = lsys::shape(batch->ctx).n_embd_inp_enc();
        const auto & entries = batch->entries.tokens;
        if (row == nullptr || n_row != width) {
            return lsys::refuse("features of %zu values, this model reads %zu", row != nullptr ? n_row : 0, width);
        }
        if (entries.size() >= std::min<size_t>(batch->capacity, llama_n_ubatch(batch->ctx))) {
            return lsys::refuse("the batch already holds %zu entries, and features must fit n_batch and n_ubatch", entries.size());
        }
        if (!entries.empty() && !batch->features) {
            return lsys::refuse("tokens and features do not go into one batch");
        }
        add_row(*batch, row, width);
        batch->features = true;
        // Where it stands is seen to when it is encoded.
        const std::array<llama_pos, GGML_MROPE_SECTIONS> nowhere = {};
        batch->entries.add_embd({ row, 1, width }, nowhere.data(), 0, true);
        batch->seen[0] = true;
        batch->n_outputs += 1;
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
        if (lsys::shape(ctx).lilicorr_candidate_topk > 0) {
            return lsys::refuse("this context takes hidden states besides tokens, so only its drafter can decode with it");
        }
        if (batch->features || batch->width != lsys::row_width(ctx)) {
            return lsys::refuse("this context reads a row of %zu values beside each token, the batch has %zu", lsys::row_width(ctx),
                                batch->features ? 0 : batch->width);
        }
        // Its graph gives the rows of all tokens, whichever were asked for.
        if (lsys::is_eagle3(ctx) && batch->n_outputs > 0 && batch->n_outputs < batch->entries.tokens.size()) {
            return lsys::refuse("an EAGLE-3 draft gives outputs for all entries of a batch or for none");
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
        if (!batch->features && llama_get_memory(ctx) != nullptr && model.arch != LLM_ARCH_T5) {
            return lsys::refuse("this model has no encoder; decode the batch");
        }
        if (!batch->features && batch->width > 0) {
            return lsys::refuse("an encoder reads features or tokens, not both");
        }
        if (batch->entries.tokens.size() > llama_n_ubatch(ctx)) {
            return lsys::refuse("a batch to encode must fit a micro-batch: %d entries, n_ubatch is %u", batch->entries.size(), llama_n_ubatch(ctx));
        }
        if (batch->features) {
            // The encoder reads no positions, but they are checked against what the memory holds.
            llama_pos pos = llama_memory_seq_pos_max(llama_get_memory(ctx), 0);
            for (auto & entry : batch->entries.tokens) {
                entry.pos.fill(++pos);
            }
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
