//! The committed bindings agree with the library that was linked: same layout of every struct that crosses the border,
//! same values of every constant in use, same version.

use llama_sys::*;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::mem::{align_of, offset_of, size_of};

type Facts = BTreeMap<String, i64>;

/// As the C++ compiler sees it.
fn linked() -> Facts {
    let mut n = 0;
    // SAFETY: shim.h: a table of `n` facts that lives as long as the program.
    let facts = unsafe { std::slice::from_raw_parts(lsys_abi_facts(&mut n), n) };
    facts
        .iter()
        .map(|fact| {
            // SAFETY: shim.h: each name is a NUL-terminated text that lives as long as the program.
            let name = unsafe { CStr::from_ptr(fact.name) };
            (name.to_str().expect("names are ASCII").to_owned(), fact.value)
        })
        .collect()
}

macro_rules! structs {
    ($facts:ident: $($type:ident { $($field:ident $(= $name:literal)?),* $(,)? })*) => {$(
        $facts.insert(concat!("sizeof ", stringify!($type)).into(), size_of::<$type>() as i64);
        $facts.insert(concat!("alignof ", stringify!($type)).into(), align_of::<$type>() as i64);
        $($facts.insert(
            concat!("offset ", stringify!($type), ".", structs!(@name $field $($name)?)).into(),
            offset_of!($type, $field) as i64,
        );)*
    )*};
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}

macro_rules! values {
    ($facts:ident: $($name:ident)*) => {$($facts.insert(stringify!($name).into(), $name as i64);)*};
}

/// As the Rust compiler sees it.
fn bound() -> Facts {
    let mut facts = Facts::new();
    structs! { facts:
        llama_model_params {
            devices, tensor_buft_overrides, n_gpu_layers, split_mode, load_mode, lazy_mode, main_gpu, tensor_split,
            progress_callback, progress_callback_user_data, kv_overrides, vocab_only, check_tensors,
            use_extra_bufts, no_host, no_alloc, load_mtp,
        }
        llama_context_params {
            n_ctx, n_batch, n_ubatch, n_seq_max, n_rs_seq, n_outputs_max, n_outputs_max_per_seq, n_threads,
            n_threads_batch, ctx_type, rope_scaling_type, pooling_type, attention_type, flash_attn_type,
            rope_freq_base, rope_freq_scale, yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow,
            yarn_orig_ctx, defrag_thold, cb_eval, cb_eval_user_data, type_k, type_v, moe_cache_size,
            abort_callback, abort_callback_data, embeddings, offload_kqv, no_perf, op_offload, swa_full,
            kv_unified, samplers, n_samplers, ctx_other,
        }
        llama_sampler_seq_config { seq_id, sampler }
        llama_batch { n_tokens, token, embd, pos, n_seq_id, seq_id, logits }
        llama_embd { data, n_rows, n_embd }
        llama_token_data { id, logit, p }
        llama_token_data_array { data, size, selected, sorted }
        llama_logit_bias { token, bias }
        llama_model_kv_override { tag, key, __bindgen_anon_1 = "val_i64" }
        llama_model_tensor_buft_override { pattern, buft }
        llama_chat_message { role, content }
        llama_sampler_chain_params { no_perf }
        llama_perf_context_data {
            t_start_ms, t_load_ms, t_p_eval_ms, t_eval_ms, n_p_eval, n_eval, n_reused, n_reallocs_same,
            n_reallocs_diff,
        }
        llama_perf_sampler_data { t_sample_ms, n_sample }
        lsys_trigger { kind, value, token }
        lsys_tokens { data, size }
        lsys_sampler_params {
            seed, n_prev, n_probs, min_keep, top_k, top_p, min_p, xtc_probability, xtc_threshold, typical_p,
            temperature, dynatemp_range, dynatemp_exponent, penalty_last_n, penalty_repeat, penalty_frequency,
            penalty_presence, dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, adaptive_target,
            adaptive_decay, mirostat, mirostat_tau, mirostat_eta, top_n_sigma, ignore_eos, grammar_lazy, stages,
            n_stages, dry_breakers, n_dry_breakers, logit_bias, n_logit_bias, grammar_kind, grammar, triggers,
            n_triggers, preserved_tokens, n_preserved_tokens, generation_prompt, reasoning_budget, reasoning_start,
            reasoning_ends, n_reasoning_ends, reasoning_forced, min_tokens,
        }
        lsys_sampler_counts { draws, rejection_steps, prompt, generated, in_order }
        lsys_candidates { data, size }
        lsys_ngram_map_params { size_n, size_m, min_hits }
        lsys_spec_params {
            types, n_types, ctx_target, ctx_draft, n_seq, draft_n_max, draft_n_min, draft_p_min,
            draft_backend_sampling, draft_probabilistic, ngram_mod_match, ngram_mod_min, ngram_mod_max,
            ngram_simple, ngram_map_k, ngram_map_k4v, ngram_cache_static, ngram_cache_dynamic,
        }
        lsys_draft_request { seq, n_max, pos, last, want_candidates, temperature, seed }
        lsys_spec_stats {
            type_ = "type", calls_begin, calls_draft, calls_accept, drafts, drafts_accepted, tokens,
            tokens_accepted, us_begin, us_draft, us_accept,
        }
        lsys_fit_extra { path, model, context, shares_model }
        lsys_memory_row { kind, name, total, free, model, context, compute }
        lsys_abi_fact { name, value }
    }
    values! { facts:
        LLAMA_DEFAULT_SEED LLAMA_TOKEN_NULL LLAMA_STATE_SEQ_FLAGS_NONE LLAMA_STATE_SEQ_FLAGS_SWA_ONLY
        LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY LLAMA_STATE_SEQ_FLAGS_ON_DEVICE
        LLAMA_VOCAB_TYPE_NONE LLAMA_VOCAB_TYPE_SPM LLAMA_VOCAB_TYPE_BPE LLAMA_VOCAB_TYPE_WPM LLAMA_VOCAB_TYPE_UGM
        LLAMA_VOCAB_TYPE_RWKV LLAMA_VOCAB_TYPE_PLAMO2 LLAMA_VOCAB_TYPE_TEST LLAMA_VOCAB_TYPE_PLAMO3
        LLAMA_ROPE_TYPE_NONE LLAMA_ROPE_TYPE_NORM LLAMA_ROPE_TYPE_NEOX LLAMA_ROPE_TYPE_MROPE LLAMA_ROPE_TYPE_IMROPE
        LLAMA_ROPE_TYPE_VISION
        LLAMA_TOKEN_ATTR_UNDEFINED LLAMA_TOKEN_ATTR_UNKNOWN LLAMA_TOKEN_ATTR_UNUSED LLAMA_TOKEN_ATTR_NORMAL
        LLAMA_TOKEN_ATTR_CONTROL LLAMA_TOKEN_ATTR_USER_DEFINED LLAMA_TOKEN_ATTR_BYTE LLAMA_TOKEN_ATTR_NORMALIZED
        LLAMA_TOKEN_ATTR_LSTRIP LLAMA_TOKEN_ATTR_RSTRIP LLAMA_TOKEN_ATTR_SINGLE_WORD
        LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED LLAMA_ROPE_SCALING_TYPE_NONE LLAMA_ROPE_SCALING_TYPE_LINEAR
        LLAMA_ROPE_SCALING_TYPE_YARN LLAMA_ROPE_SCALING_TYPE_LONGROPE LLAMA_ROPE_SCALING_TYPE_MAX_VALUE
        LLAMA_POOLING_TYPE_UNSPECIFIED LLAMA_POOLING_TYPE_NONE LLAMA_POOLING_TYPE_MEAN LLAMA_POOLING_TYPE_CLS
        LLAMA_POOLING_TYPE_LAST LLAMA_POOLING_TYPE_RANK
        LLAMA_ATTENTION_TYPE_UNSPECIFIED LLAMA_ATTENTION_TYPE_CAUSAL LLAMA_ATTENTION_TYPE_NON_CAUSAL
        LLAMA_FLASH_ATTN_TYPE_AUTO LLAMA_FLASH_ATTN_TYPE_DISABLED LLAMA_FLASH_ATTN_TYPE_ENABLED
        LLAMA_SPLIT_MODE_NONE LLAMA_SPLIT_MODE_LAYER LLAMA_SPLIT_MODE_ROW LLAMA_SPLIT_MODE_TENSOR
        LLAMA_LOAD_MODE_AUTO LLAMA_LOAD_MODE_NONE LLAMA_LOAD_MODE_MMAP LLAMA_LOAD_MODE_MLOCK
        LLAMA_LOAD_MODE_MMAP_MLOCK LLAMA_LOAD_MODE_DIRECT_IO
        LLAMA_LAZY_MODE_OFF LLAMA_LAZY_MODE_AUTO LLAMA_LAZY_MODE_ON
        LLAMA_CONTEXT_TYPE_DEFAULT LLAMA_CONTEXT_TYPE_MTP
        LLAMA_KV_OVERRIDE_TYPE_INT LLAMA_KV_OVERRIDE_TYPE_FLOAT LLAMA_KV_OVERRIDE_TYPE_BOOL
        LLAMA_KV_OVERRIDE_TYPE_STR
        LLAMA_PROCESS_TYPE_ENCODE LLAMA_PROCESS_TYPE_DECODE
        GGML_LOG_LEVEL_NONE GGML_LOG_LEVEL_DEBUG GGML_LOG_LEVEL_INFO GGML_LOG_LEVEL_WARN GGML_LOG_LEVEL_ERROR
        GGML_LOG_LEVEL_CONT
        GGML_BACKEND_DEVICE_TYPE_CPU GGML_BACKEND_DEVICE_TYPE_GPU GGML_BACKEND_DEVICE_TYPE_IGPU
        GGML_BACKEND_DEVICE_TYPE_ACCEL GGML_BACKEND_DEVICE_TYPE_META
        GGML_TYPE_F32 GGML_TYPE_F16 GGML_TYPE_Q4_0 GGML_TYPE_Q4_1 GGML_TYPE_Q5_0 GGML_TYPE_Q5_1 GGML_TYPE_Q8_0
        GGML_TYPE_IQ4_NL GGML_TYPE_BF16 GGML_TYPE_COUNT
        LSYS_OK LSYS_INVALID LSYS_EXCEPTION LSYS_FAILED LSYS_NO_MEMORY LSYS_NOT_FINITE
        LSYS_ROLLBACK_NONE LSYS_ROLLBACK_PARTIAL LSYS_ROLLBACK_FULL LSYS_ROLLBACK_SNAPSHOTS
        LSYS_STAGE_DRY LSYS_STAGE_TOP_K LSYS_STAGE_TOP_P LSYS_STAGE_MIN_P LSYS_STAGE_TYPICAL_P
        LSYS_STAGE_TEMPERATURE LSYS_STAGE_XTC LSYS_STAGE_INFILL LSYS_STAGE_PENALTIES LSYS_STAGE_TOP_N_SIGMA
        LSYS_STAGE_ADAPTIVE_P
        LSYS_GRAMMAR_NONE LSYS_GRAMMAR_USER LSYS_GRAMMAR_OUTPUT_FORMAT LSYS_GRAMMAR_TOOL_CALLS
        LSYS_TRIGGER_TOKEN LSYS_TRIGGER_WORD LSYS_TRIGGER_PATTERN LSYS_TRIGGER_PATTERN_FULL
        LSYS_SPEC_NONE LSYS_SPEC_DRAFT_SIMPLE LSYS_SPEC_DRAFT_EAGLE3 LSYS_SPEC_DRAFT_MTP LSYS_SPEC_DRAFT_DFLASH
        LSYS_SPEC_DRAFT_DSPARK LSYS_SPEC_NGRAM_SIMPLE LSYS_SPEC_NGRAM_MAP_K LSYS_SPEC_NGRAM_MAP_K4V
        LSYS_SPEC_NGRAM_MOD LSYS_SPEC_NGRAM_CACHE
        LSYS_FIT_OK LSYS_FIT_TOO_LARGE LSYS_FIT_ERROR
        LSYS_MEMORY_DEVICE LSYS_MEMORY_HOST LSYS_MEMORY_BUFFER
    }
    facts
}

#[test]
fn layouts_and_values_are_those_of_the_linked_library() {
    let (linked, bound) = (linked(), bound());
    let differing: Vec<_> = linked
        .keys()
        .chain(bound.keys())
        .filter(|name| linked.get(*name) != bound.get(*name))
        .map(|name| format!("{name}: linked {:?}, bound {:?}", linked.get(name), bound.get(name)))
        .collect();
    assert!(differing.is_empty(), "regenerate the bindings (cargo xtask bindings):\n{}", differing.join("\n"));
    assert!(linked.len() > 300, "the table of facts has only {} entries", linked.len());
}

#[test]
fn version_is_the_one_the_bindings_were_made_for() {
    // SAFETY: llama.h: a constant text.
    let version = unsafe { CStr::from_ptr(llama_version()) };
    assert_eq!(version.to_str(), Ok(LLAMA_CPP_VERSION));
}

#[test]
fn library_answers() {
    // SAFETY: llama.h: both take nothing and return a number.
    let (devices, overrides) = unsafe { (llama_max_devices(), llama_max_tensor_buft_overrides()) };
    assert!(devices >= 1 && overrides >= 1, "{devices} devices, {overrides} overrides");
}
