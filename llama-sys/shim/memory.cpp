// The memory of a context (KV cache or recurrent state) and saved states.
#include "inside.h"

#include "../common/common.h"

#include "llama-kv-cache-iswa.h"
#include "llama-kv-cache.h"

#include <climits>

namespace {

lsys_status check_memory(const llama_context * ctx, llama_seq_id seq = 0) {
    if (ctx == nullptr) {
        return lsys::refuse("there is no context");
    }
    if (llama_get_memory(ctx) == nullptr) {
        return lsys::refuse("this model has no memory");
    }
    if (!lsys::has_sequence(ctx, seq)) {
        return lsys::refuse("sequence %d is outside the context's %u", seq, llama_n_seq_max(ctx));
    }
    return LSYS_OK;
}

bool everything(llama_pos p0, llama_pos p1) {
    return p0 <= 0 && p1 < 0;
}

// Copies of a part are only possible where all sequences share one stream of cells.
bool copies_parts(const llama_context * ctx) {
    llama_memory_i * const memory = llama_get_memory(ctx);
    return (lsys::settings(ctx).kv_unified || llama_n_seq_max(ctx) == 1) &&
           (dynamic_cast<llama_kv_cache *>(memory) != nullptr || dynamic_cast<llama_kv_cache_iswa *>(memory) != nullptr);
}

constexpr llama_state_seq_flags KNOWN_FLAGS = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY | LLAMA_STATE_SEQ_FLAGS_ON_DEVICE;

lsys_status check_state(const llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags) {
    if (ctx == nullptr) {
        return lsys::refuse("there is no context");
    }
    if ((flags & ~KNOWN_FLAGS) != 0 || (seq == -1 && flags != 0)) {
        return lsys::refuse("state flags %u are unknown, or given for a whole context", (unsigned) flags);
    }
    if (lsys::shares_memory(ctx)) {
        return lsys::refuse("the memory belongs to another context: save the state there");
    }
    return seq == -1 ? LSYS_OK : check_memory(ctx, seq);
}

size_t state_size(llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags) {
    return seq == -1 ? llama_state_get_size(ctx) : llama_state_seq_get_size_ext(ctx, seq, flags);
}

} // namespace

lsys_status lsys_rollback_kind(llama_context * ctx, lsys_rollback * out) {
    return lsys::guard([&]() -> lsys_status {
        if (ctx == nullptr || out == nullptr) {
            return lsys::refuse("a context and a place for the answer are needed");
        }
        *out                   = LSYS_ROLLBACK_NONE;
        const auto & settings  = lsys::settings(ctx);
        const bool   undecided = llama_get_memory(ctx) != nullptr && llama_n_rs_seq(ctx) == 0;
        if (lsys::shares_memory(ctx)) {
            // A trial would wipe the other context's cells, and removing is left to that context anyway.
            *out = LSYS_ROLLBACK_PARTIAL;
            return LSYS_OK;
        }
        if (undecided && (ctx->get_model().arch == LLM_ARCH_T5 || lsys::shape(ctx).lilicorr_candidate_topk > 0)) {
            return lsys::refuse("this model does not decode tokens alone, so the trial is impossible");
        }
        if (undecided && (settings.n_batch < 2 || settings.n_outputs_max < (settings.embeddings ? 2u : 1u) ||
                          (!settings.causal_attn && settings.n_ubatch < 2))) {
            return lsys::refuse("the trial decodes two tokens, which do not fit: n_batch is %u, n_ubatch %u, n_outputs_max %u", settings.n_batch,
                                settings.n_ubatch, settings.n_outputs_max);
        }
        *out = (lsys_rollback) common_context_can_seq_rm(ctx);
        return LSYS_OK;
    });
}

lsys_status lsys_memory_clear(llama_context * ctx, bool data) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_memory(ctx);
        if (status != LSYS_OK) {
            return status;
        }
        if (lsys::shares_memory(ctx)) {
            return lsys::refuse("the memory belongs to another context: clear it there");
        }
        llama_memory_clear(llama_get_memory(ctx), data);
        return LSYS_OK;
    });
}

lsys_status lsys_memory_remove(llama_context * ctx, llama_seq_id seq, llama_pos p0, llama_pos p1) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_memory(ctx, seq);
        if (status != LSYS_OK) {
            return status;
        }
        return llama_memory_seq_rm(llama_get_memory(ctx), seq, p0, p1)
                   ? LSYS_OK
                   : lsys::fail("positions %d to %d of sequence %d cannot be removed from this kind of memory", p0, p1, seq);
    });
}

lsys_status lsys_memory_copy(llama_context * ctx, llama_seq_id from, llama_seq_id to, llama_pos p0, llama_pos p1) {
    return lsys::guard([&]() -> lsys_status {
        lsys_status status = check_memory(ctx, from);
        if (status == LSYS_OK) {
            status = check_memory(ctx, to);
        }
        if (status != LSYS_OK || from == to) {
            return status;
        }
        llama_memory_t memory = llama_get_memory(ctx);
        if (everything(p0, p1)) {
            // Cells that the sequence already has would be counted twice.
            if (!llama_memory_seq_rm(memory, to, -1, -1)) {
                return lsys::fail("sequence %d cannot be emptied", to);
            }
        } else if (!copies_parts(ctx)) {
            return lsys::refuse("this memory can only copy whole sequences");
        } else if (llama_memory_seq_pos_max(memory, to) >= 0) {
            return lsys::refuse("sequence %d is not empty", to);
        }
        llama_memory_seq_cp(memory, from, to, p0, p1);
        lsys::part_cells(ctx, from, to);
        return LSYS_OK;
    });
}

lsys_status lsys_memory_keep(llama_context * ctx, llama_seq_id seq) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_memory(ctx, seq);
        if (status != LSYS_OK) {
            return status;
        }
        // One by one: llama_memory_seq_keep() leaves the other streams of a memory that is not unified as they are.
        for (llama_seq_id other = 0; lsys::has_sequence(ctx, other); ++other) {
            if (other != seq && !llama_memory_seq_rm(llama_get_memory(ctx), other, -1, -1)) {
                return lsys::fail("sequence %d cannot be removed", other);
            }
        }
        return LSYS_OK;
    });
}

lsys_status lsys_memory_shift(llama_context * ctx, llama_seq_id seq, llama_pos p0, llama_pos p1, llama_pos delta) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_memory(ctx, seq);
        if (status != LSYS_OK) {
            return status;
        }
        llama_memory_t memory = llama_get_memory(ctx);
        if (!llama_memory_can_shift(memory)) {
            return lsys::fail("positions cannot be shifted in this kind of memory");
        }
        const int64_t last = llama_memory_seq_pos_max(memory, seq);
        if (last + delta > INT_MAX || delta == INT_MIN) {
            return lsys::refuse("a shift by %d leaves the range of positions", delta);
        }
        llama_memory_seq_add(memory, seq, p0, p1, delta);
        return LSYS_OK;
    });
}

lsys_status lsys_memory_range(llama_context * ctx, llama_seq_id seq, llama_pos * min, llama_pos * max) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_memory(ctx, seq);
        if (status != LSYS_OK) {
            return status;
        }
        if (min == nullptr || max == nullptr) {
            return lsys::refuse("places for both positions are needed");
        }
        *min = llama_memory_seq_pos_min(llama_get_memory(ctx), seq);
        *max = llama_memory_seq_pos_max(llama_get_memory(ctx), seq);
        return LSYS_OK;
    });
}

bool lsys_memory_can_shift(llama_context * ctx) {
    return lsys::guard_or(false, [&] { return ctx != nullptr && llama_memory_can_shift(llama_get_memory(ctx)); });
}

bool lsys_shares_memory(const llama_context * ctx) {
    return ctx != nullptr && lsys::shares_memory(ctx);
}

lsys_status lsys_state_size(llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags, size_t * out) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_state(ctx, seq, flags);
        if (status != LSYS_OK) {
            return status;
        }
        if (out == nullptr) {
            return lsys::refuse("there is no place for the size");
        }
        llama_synchronize(ctx);
        *out = state_size(ctx, seq, flags);
        return *out > 0 ? LSYS_OK : lsys::fail("the state cannot be saved");
    });
}

lsys_status lsys_state_get(llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags, uint8_t * data, size_t size, size_t * written) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_state(ctx, seq, flags);
        if (status != LSYS_OK) {
            return status;
        }
        if (data == nullptr || written == nullptr) {
            return lsys::refuse("places for the state and its size are needed");
        }
        *written = 0;
        llama_synchronize(ctx);
        const size_t needed = state_size(ctx, seq, flags);
        if (needed > size) {
            return lsys::refuse("the state takes %zu bytes, there is room for %zu", needed, size);
        }
        *written = seq == -1 ? llama_state_get_data(ctx, data, size) : llama_state_seq_get_data_ext(ctx, data, size, seq, flags);
        if (*written == 0) {
            return lsys::fail("the state could not be saved");
        }
        if ((flags & LLAMA_STATE_SEQ_FLAGS_ON_DEVICE) != 0) {
            lsys::remember_state(ctx, seq, data, *written);
        }
        return LSYS_OK;
    });
}

lsys_status lsys_state_set(llama_context * ctx, llama_seq_id seq, llama_state_seq_flags flags, const uint8_t * data, size_t size) {
    return lsys::guard([&]() -> lsys_status {
        const lsys_status status = check_state(ctx, seq, flags);
        if (status != LSYS_OK) {
            return status;
        }
        if (data == nullptr || size == 0) {
            return lsys::refuse("there is no state");
        }
        // Half of such a state lies on the device; llama.cpp aborts when the two halves do not belong together.
        if ((flags & LLAMA_STATE_SEQ_FLAGS_ON_DEVICE) != 0 && !lsys::remembers_state(ctx, data, size)) {
            return lsys::refuse("the state is not the last one that this context left on its device");
        }
        if (seq != -1) {
            lsys::claim_cell(ctx, seq);
        }
        const size_t read = seq == -1 ? llama_state_set_data(ctx, data, size) : llama_state_seq_set_data_ext(ctx, data, size, seq, flags);
        return read == size ? LSYS_OK : lsys::fail("the state does not fit: %zu of its %zu bytes were read", read, size);
    });
}
