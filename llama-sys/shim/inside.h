// Facts that llama.cpp keeps to itself and that decide whether a call would abort. Read from its own headers, which are
// of the same source tree as the library.
#pragma once

#include "guard.h"

#include "llama-context.h"
#include "llama-model.h"

#include <cstdint>

namespace lsys {

inline const llama_cparams & settings(const llama_context * ctx) {
    return ctx->get_cparams();
}

inline const llama_hparams & shape(const llama_context * ctx) {
    return ctx->get_model().hparams;
}

inline std::string architecture(const llama_model * model) {
    return llama_arch_name(model->arch);
}

inline int32_t vocab_size(const llama_model * model) {
    return llama_vocab_n_tokens(llama_model_get_vocab(model));
}

// The memory of this context is that of another one (a gemma4 assistant reads and writes the cells of its target).
inline bool shares_memory(const llama_context * ctx) {
    return settings(ctx).ctx_type == LLAMA_CONTEXT_TYPE_MTP && settings(ctx).ctx_other != nullptr;
}

// The decoder of an EAGLE-3 draft reads a row beside each token, and its encoder rows alone.
inline bool is_eagle3(const llama_context * ctx) {
    return ctx->get_model().arch == LLM_ARCH_EAGLE3;
}

// The width of the row that this context reads beside each token when it decodes; 0: it reads tokens alone.
inline size_t row_width(const llama_context * ctx) {
    if (settings(ctx).ctx_type == LLAMA_CONTEXT_TYPE_MTP) {
        return shape(ctx).n_embd_out();
    }
    return is_eagle3(ctx) ? shape(ctx).n_embd_inp() : 0;
}

inline bool has_sequence(const llama_context * ctx, llama_seq_id seq) {
    return seq >= 0 && (uint32_t) seq < llama_n_seq_max(ctx);
}

// Whether the graph of this context gives the input of `layer`. Some architectures build that tensor, or the one after the
// last layer, only once it is asked for; of the others, the graph that was reserved last tells.
inline bool publishes_layer(const llama_context * ctx, uint32_t layer) {
    const uint32_t n_layer = shape(ctx).n_layer();
    switch (ctx->get_model().arch) {
        case LLM_ARCH_DEEPSEEK4:
        case LLM_ARCH_MIMO2:
        case LLM_ARCH_NEMOTRON_H:
        case LLM_ARCH_NEMOTRON_H_MOE: return layer <= n_layer;
        case LLM_ARCH_DEEPSEEK41:
        case LLM_ARCH_QWEN4EXP:       return layer < n_layer;
        default:                      break;
    }
    const llm_graph_result * const graph = layer <= n_layer ? ctx->get_gf_res_reserve() : nullptr;
    return graph != nullptr && graph->get_layer_inp((int) layer) != nullptr;
}

// ---- recurrent states that tokens are taken back with (cells.cpp) ----

// They are not safe where all sequences share one cache: drafts of one sequence can ruin the state of another.
bool moves_states(const llama_context * ctx);

// To be called before a sequence is decoded or restored, so that its state is never moved.
void claim_cell(const llama_context * ctx, llama_seq_id seq);

// The same for a sequence that has just become a copy.
void part_cells(llama_context * ctx, llama_seq_id from, llama_seq_id to);

// LSYS_INVALID when making a context of any model with these parameters would abort (context.cpp).
lsys_status check_context_params(const llama_context_params & params);

// ---- what the shim notes about contexts, because llama.cpp cannot be asked for it (context.cpp) ----

// Notes a successful decode and gives its number, counted over all contexts.
uint64_t count_decode(const llama_context * ctx);

// Notes that what the context extracts (layer inputs, hidden states) was switched.
void count_switch(const llama_context * ctx);

// A batch was decoded since the last switch, so that the buffers of extracted rows exist.
bool extracted(const llama_context * ctx);

// The part of a sequence's state that stays on the device belongs to exactly these bytes.
void remember_state(const llama_context * ctx, llama_seq_id seq, const uint8_t * data, size_t size);
bool remembers_state(const llama_context * ctx, const uint8_t * data, size_t size);

} // namespace lsys
