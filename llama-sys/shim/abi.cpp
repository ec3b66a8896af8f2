// Sizes, alignments, offsets and values as the C++ compiler sees them. tests/abi.rs compares them with the bindings.
#include "guard.h"

#include "../common/common.h"
#include "../common/fit.h"

#include <cstddef>
#include <deque>

// The values of shim.h that mirror those of common, which are cast into each other.
#define SAME(ours, theirs) static_assert((int) (ours) == (int) (theirs), #ours " is not " #theirs)

SAME(LSYS_SPEC_NONE, COMMON_SPECULATIVE_TYPE_NONE);
SAME(LSYS_SPEC_DRAFT_SIMPLE, COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE);
SAME(LSYS_SPEC_DRAFT_EAGLE3, COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3);
SAME(LSYS_SPEC_DRAFT_MTP, COMMON_SPECULATIVE_TYPE_DRAFT_MTP);
SAME(LSYS_SPEC_DRAFT_DFLASH, COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH);
SAME(LSYS_SPEC_DRAFT_DSPARK, COMMON_SPECULATIVE_TYPE_DRAFT_DSPARK);
SAME(LSYS_SPEC_NGRAM_SIMPLE, COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE);
SAME(LSYS_SPEC_NGRAM_MAP_K, COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K);
SAME(LSYS_SPEC_NGRAM_MAP_K4V, COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K4V);
SAME(LSYS_SPEC_NGRAM_MOD, COMMON_SPECULATIVE_TYPE_NGRAM_MOD);
SAME(LSYS_SPEC_NGRAM_CACHE, COMMON_SPECULATIVE_TYPE_NGRAM_CACHE);
SAME(LSYS_STAGE_DRY, COMMON_SAMPLER_TYPE_DRY);
SAME(LSYS_STAGE_TOP_K, COMMON_SAMPLER_TYPE_TOP_K);
SAME(LSYS_STAGE_TOP_P, COMMON_SAMPLER_TYPE_TOP_P);
SAME(LSYS_STAGE_MIN_P, COMMON_SAMPLER_TYPE_MIN_P);
SAME(LSYS_STAGE_TYPICAL_P, COMMON_SAMPLER_TYPE_TYPICAL_P);
SAME(LSYS_STAGE_TEMPERATURE, COMMON_SAMPLER_TYPE_TEMPERATURE);
SAME(LSYS_STAGE_XTC, COMMON_SAMPLER_TYPE_XTC);
SAME(LSYS_STAGE_INFILL, COMMON_SAMPLER_TYPE_INFILL);
SAME(LSYS_STAGE_PENALTIES, COMMON_SAMPLER_TYPE_PENALTIES);
SAME(LSYS_STAGE_TOP_N_SIGMA, COMMON_SAMPLER_TYPE_TOP_N_SIGMA);
SAME(LSYS_STAGE_ADAPTIVE_P, COMMON_SAMPLER_TYPE_ADAPTIVE_P);
SAME(LSYS_GRAMMAR_NONE, COMMON_GRAMMAR_TYPE_NONE);
SAME(LSYS_GRAMMAR_USER, COMMON_GRAMMAR_TYPE_USER);
SAME(LSYS_GRAMMAR_OUTPUT_FORMAT, COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT);
SAME(LSYS_GRAMMAR_TOOL_CALLS, COMMON_GRAMMAR_TYPE_TOOL_CALLS);
SAME(LSYS_TRIGGER_TOKEN, COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN);
SAME(LSYS_TRIGGER_WORD, COMMON_GRAMMAR_TRIGGER_TYPE_WORD);
SAME(LSYS_TRIGGER_PATTERN, COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN);
SAME(LSYS_TRIGGER_PATTERN_FULL, COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL);
SAME(LSYS_ROLLBACK_NONE, COMMON_CONTEXT_SEQ_RM_TYPE_NO);
SAME(LSYS_ROLLBACK_PARTIAL, COMMON_CONTEXT_SEQ_RM_TYPE_PART);
SAME(LSYS_ROLLBACK_FULL, COMMON_CONTEXT_SEQ_RM_TYPE_FULL);
SAME(LSYS_ROLLBACK_SNAPSHOTS, COMMON_CONTEXT_SEQ_RM_TYPE_RS);
SAME(LSYS_FIT_OK, COMMON_PARAMS_FIT_STATUS_SUCCESS);
SAME(LSYS_FIT_TOO_LARGE, COMMON_PARAMS_FIT_STATUS_FAILURE);
SAME(LSYS_FIT_ERROR, COMMON_PARAMS_FIT_STATUS_ERROR);
static_assert((int) COMMON_SPECULATIVE_TYPE_COUNT == (int) LSYS_SPEC_NGRAM_CACHE + 1, "a type of drafter is missing in shim.h");

namespace {

class facts {
  public:
    facts();

    const std::vector<lsys_abi_fact> & all() const { return table; }

  private:
    // A deque does not move its elements, so that their texts stay where the table points.
    std::deque<std::string>    names;
    std::vector<lsys_abi_fact> table;

    void add(std::string name, int64_t value) {
        names.push_back(std::move(name));
        table.push_back({ names.back().c_str(), value });
    }
};

#define STRUCT(T, fields)                         \
    {                                             \
        using S                  = T;                \
        const std::string prefix = "offset " #T "."; \
        add("sizeof " #T, (int64_t) sizeof(S));   \
        add("alignof " #T, (int64_t) alignof(S)); \
        fields                                    \
    }
#define F(field) add(prefix + #field, (int64_t) offsetof(S, field));
#define V(name) add(#name, (int64_t) name);

facts::facts() {
    STRUCT(llama_model_params,
           F(devices) F(tensor_buft_overrides) F(n_gpu_layers) F(split_mode) F(load_mode) F(lazy_mode) F(main_gpu) F(tensor_split)
           F(progress_callback) F(progress_callback_user_data) F(kv_overrides) F(vocab_only) F(check_tensors) F(use_extra_bufts) F(no_host)
           F(no_alloc) F(load_mtp))
    STRUCT(llama_context_params,
           F(n_ctx) F(n_batch) F(n_ubatch) F(n_seq_max) F(n_rs_seq) F(n_outputs_max) F(n_outputs_max_per_seq) F(n_threads) F(n_threads_batch)
           F(ctx_type) F(rope_scaling_type) F(pooling_type) F(attention_type) F(flash_attn_type) F(rope_freq_base) F(rope_freq_scale)
           F(yarn_ext_factor) F(yarn_attn_factor) F(yarn_beta_fast) F(yarn_beta_slow) F(yarn_orig_ctx) F(defrag_thold) F(cb_eval)
           F(cb_eval_user_data) F(type_k) F(type_v) F(moe_cache_size) F(abort_callback) F(abort_callback_data) F(embeddings) F(offload_kqv)
           F(no_perf) F(op_offload) F(swa_full) F(kv_unified) F(samplers) F(n_samplers) F(ctx_other))
    STRUCT(llama_sampler_seq_config, F(seq_id) F(sampler))
    STRUCT(llama_batch, F(n_tokens) F(token) F(embd) F(pos) F(n_seq_id) F(seq_id) F(logits))
    STRUCT(llama_embd, F(data) F(n_rows) F(n_embd))
    STRUCT(llama_token_data, F(id) F(logit) F(p))
    STRUCT(llama_token_data_array, F(data) F(size) F(selected) F(sorted))
    STRUCT(llama_logit_bias, F(token) F(bias))
    STRUCT(llama_model_kv_override, F(tag) F(key) F(val_i64))
    STRUCT(llama_model_tensor_buft_override, F(pattern) F(buft))
    STRUCT(llama_chat_message, F(role) F(content))
    STRUCT(llama_sampler_chain_params, F(no_perf))
    STRUCT(llama_perf_context_data,
           F(t_start_ms) F(t_load_ms) F(t_p_eval_ms) F(t_eval_ms) F(n_p_eval) F(n_eval) F(n_reused) F(n_reallocs_same) F(n_reallocs_diff))
    STRUCT(llama_perf_sampler_data, F(t_sample_ms) F(n_sample))
    STRUCT(lsys_trigger, F(kind) F(value) F(token))
    STRUCT(lsys_tokens, F(data) F(size))
    STRUCT(lsys_sampler_params,
           F(seed) F(n_prev) F(n_probs) F(min_keep) F(top_k) F(top_p) F(min_p) F(xtc_probability) F(xtc_threshold) F(typical_p) F(temperature)
           F(dynatemp_range) F(dynatemp_exponent) F(penalty_last_n) F(penalty_repeat) F(penalty_frequency) F(penalty_presence) F(dry_multiplier)
           F(dry_base) F(dry_allowed_length) F(dry_penalty_last_n) F(adaptive_target) F(adaptive_decay) F(mirostat) F(mirostat_tau) F(mirostat_eta)
           F(top_n_sigma) F(ignore_eos) F(grammar_lazy) F(stages) F(n_stages) F(dry_breakers) F(n_dry_breakers) F(logit_bias) F(n_logit_bias)
           F(grammar_kind) F(grammar) F(triggers) F(n_triggers) F(preserved_tokens) F(n_preserved_tokens) F(generation_prompt) F(reasoning_budget)
           F(reasoning_start) F(reasoning_ends) F(n_reasoning_ends) F(reasoning_forced) F(min_tokens))
    STRUCT(lsys_sampler_counts, F(draws) F(rejection_steps) F(prompt) F(generated) F(in_order))
    STRUCT(lsys_candidates, F(data) F(size))
    STRUCT(lsys_ngram_map_params, F(size_n) F(size_m) F(min_hits))
    STRUCT(lsys_spec_params,
           F(types) F(n_types) F(ctx_target) F(ctx_draft) F(n_seq) F(draft_n_max) F(draft_n_min) F(draft_p_min) F(draft_backend_sampling)
           F(draft_probabilistic) F(ngram_mod_match) F(ngram_mod_min) F(ngram_mod_max) F(ngram_simple) F(ngram_map_k) F(ngram_map_k4v)
           F(ngram_cache_static) F(ngram_cache_dynamic))
    STRUCT(lsys_draft_request, F(seq) F(n_max) F(pos) F(last) F(want_candidates) F(temperature) F(seed))
    STRUCT(lsys_spec_stats,
           F(type) F(calls_begin) F(calls_draft) F(calls_accept) F(drafts) F(drafts_accepted) F(tokens) F(tokens_accepted) F(us_begin) F(us_draft)
           F(us_accept))
    STRUCT(lsys_fit_extra, F(path) F(model) F(context) F(shares_model))
    STRUCT(lsys_memory_row, F(kind) F(name) F(total) F(free) F(model) F(context) F(compute))
    STRUCT(lsys_abi_fact, F(name) F(value))

    V(LLAMA_DEFAULT_SEED) V(LLAMA_TOKEN_NULL) V(LLAMA_STATE_SEQ_FLAGS_NONE) V(LLAMA_STATE_SEQ_FLAGS_SWA_ONLY) V(LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)
    V(LLAMA_STATE_SEQ_FLAGS_ON_DEVICE)
    V(LLAMA_VOCAB_TYPE_NONE) V(LLAMA_VOCAB_TYPE_SPM) V(LLAMA_VOCAB_TYPE_BPE) V(LLAMA_VOCAB_TYPE_WPM) V(LLAMA_VOCAB_TYPE_UGM) V(LLAMA_VOCAB_TYPE_RWKV)
    V(LLAMA_VOCAB_TYPE_PLAMO2) V(LLAMA_VOCAB_TYPE_TEST) V(LLAMA_VOCAB_TYPE_PLAMO3)
    V(LLAMA_ROPE_TYPE_NONE) V(LLAMA_ROPE_TYPE_NORM) V(LLAMA_ROPE_TYPE_NEOX) V(LLAMA_ROPE_TYPE_MROPE) V(LLAMA_ROPE_TYPE_IMROPE)
    V(LLAMA_ROPE_TYPE_VISION)
    V(LLAMA_TOKEN_ATTR_UNDEFINED) V(LLAMA_TOKEN_ATTR_UNKNOWN) V(LLAMA_TOKEN_ATTR_UNUSED) V(LLAMA_TOKEN_ATTR_NORMAL) V(LLAMA_TOKEN_ATTR_CONTROL)
    V(LLAMA_TOKEN_ATTR_USER_DEFINED) V(LLAMA_TOKEN_ATTR_BYTE) V(LLAMA_TOKEN_ATTR_NORMALIZED) V(LLAMA_TOKEN_ATTR_LSTRIP) V(LLAMA_TOKEN_ATTR_RSTRIP)
    V(LLAMA_TOKEN_ATTR_SINGLE_WORD)
    V(LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED) V(LLAMA_ROPE_SCALING_TYPE_NONE) V(LLAMA_ROPE_SCALING_TYPE_LINEAR) V(LLAMA_ROPE_SCALING_TYPE_YARN)
    V(LLAMA_ROPE_SCALING_TYPE_LONGROPE) V(LLAMA_ROPE_SCALING_TYPE_MAX_VALUE)
    V(LLAMA_POOLING_TYPE_UNSPECIFIED) V(LLAMA_POOLING_TYPE_NONE) V(LLAMA_POOLING_TYPE_MEAN) V(LLAMA_POOLING_TYPE_CLS) V(LLAMA_POOLING_TYPE_LAST)
    V(LLAMA_POOLING_TYPE_RANK)
    V(LLAMA_ATTENTION_TYPE_UNSPECIFIED) V(LLAMA_ATTENTION_TYPE_CAUSAL) V(LLAMA_ATTENTION_TYPE_NON_CAUSAL)
    V(LLAMA_FLASH_ATTN_TYPE_AUTO) V(LLAMA_FLASH_ATTN_TYPE_DISABLED) V(LLAMA_FLASH_ATTN_TYPE_ENABLED)
    V(LLAMA_SPLIT_MODE_NONE) V(LLAMA_SPLIT_MODE_LAYER) V(LLAMA_SPLIT_MODE_ROW) V(LLAMA_SPLIT_MODE_TENSOR)
    V(LLAMA_LOAD_MODE_AUTO) V(LLAMA_LOAD_MODE_NONE) V(LLAMA_LOAD_MODE_MMAP) V(LLAMA_LOAD_MODE_MLOCK) V(LLAMA_LOAD_MODE_MMAP_MLOCK)
    V(LLAMA_LOAD_MODE_DIRECT_IO)
    V(LLAMA_LAZY_MODE_OFF) V(LLAMA_LAZY_MODE_AUTO) V(LLAMA_LAZY_MODE_ON)
    V(LLAMA_CONTEXT_TYPE_DEFAULT) V(LLAMA_CONTEXT_TYPE_MTP)
    V(LLAMA_KV_OVERRIDE_TYPE_INT) V(LLAMA_KV_OVERRIDE_TYPE_FLOAT) V(LLAMA_KV_OVERRIDE_TYPE_BOOL) V(LLAMA_KV_OVERRIDE_TYPE_STR)
    V(LLAMA_PROCESS_TYPE_ENCODE) V(LLAMA_PROCESS_TYPE_DECODE)
    V(GGML_LOG_LEVEL_NONE) V(GGML_LOG_LEVEL_DEBUG) V(GGML_LOG_LEVEL_INFO) V(GGML_LOG_LEVEL_WARN) V(GGML_LOG_LEVEL_ERROR) V(GGML_LOG_LEVEL_CONT)
    V(GGML_BACKEND_DEVICE_TYPE_CPU) V(GGML_BACKEND_DEVICE_TYPE_GPU) V(GGML_BACKEND_DEVICE_TYPE_IGPU) V(GGML_BACKEND_DEVICE_TYPE_ACCEL)
    V(GGML_BACKEND_DEVICE_TYPE_META)
    V(GGML_TYPE_F32) V(GGML_TYPE_F16) V(GGML_TYPE_Q4_0) V(GGML_TYPE_Q4_1) V(GGML_TYPE_Q5_0) V(GGML_TYPE_Q5_1) V(GGML_TYPE_Q8_0) V(GGML_TYPE_IQ4_NL)
    V(GGML_TYPE_BF16) V(GGML_TYPE_COUNT)
    V(LSYS_OK) V(LSYS_INVALID) V(LSYS_EXCEPTION) V(LSYS_FAILED) V(LSYS_NO_MEMORY) V(LSYS_NOT_FINITE)
    V(LSYS_ROLLBACK_NONE) V(LSYS_ROLLBACK_PARTIAL) V(LSYS_ROLLBACK_FULL) V(LSYS_ROLLBACK_SNAPSHOTS)
    V(LSYS_STAGE_DRY) V(LSYS_STAGE_TOP_K) V(LSYS_STAGE_TOP_P) V(LSYS_STAGE_MIN_P) V(LSYS_STAGE_TYPICAL_P) V(LSYS_STAGE_TEMPERATURE) V(LSYS_STAGE_XTC)
    V(LSYS_STAGE_INFILL) V(LSYS_STAGE_PENALTIES) V(LSYS_STAGE_TOP_N_SIGMA) V(LSYS_STAGE_ADAPTIVE_P)
    V(LSYS_GRAMMAR_NONE) V(LSYS_GRAMMAR_USER) V(LSYS_GRAMMAR_OUTPUT_FORMAT) V(LSYS_GRAMMAR_TOOL_CALLS)
    V(LSYS_TRIGGER_TOKEN) V(LSYS_TRIGGER_WORD) V(LSYS_TRIGGER_PATTERN) V(LSYS_TRIGGER_PATTERN_FULL)
    V(LSYS_SPEC_NONE) V(LSYS_SPEC_DRAFT_SIMPLE) V(LSYS_SPEC_DRAFT_EAGLE3) V(LSYS_SPEC_DRAFT_MTP) V(LSYS_SPEC_DRAFT_DFLASH) V(LSYS_SPEC_DRAFT_DSPARK)
    V(LSYS_SPEC_NGRAM_SIMPLE) V(LSYS_SPEC_NGRAM_MAP_K) V(LSYS_SPEC_NGRAM_MAP_K4V) V(LSYS_SPEC_NGRAM_MOD) V(LSYS_SPEC_NGRAM_CACHE)
    V(LSYS_FIT_OK) V(LSYS_FIT_TOO_LARGE) V(LSYS_FIT_ERROR)
    V(LSYS_MEMORY_DEVICE) V(LSYS_MEMORY_HOST) V(LSYS_MEMORY_BUFFER)
}

} // namespace

const lsys_abi_fact * lsys_abi_facts(size_t * n_out) {
    size_t                unused = 0;
    size_t &              n      = n_out != nullptr ? *n_out : unused;
    const lsys_abi_fact * first  = nullptr;
    n                            = 0;
    lsys::guard([&] {
        static const facts made;
        n     = made.all().size();
        first = made.all().data();
        return LSYS_OK;
    });
    return first;
}
