//! llama.cpp below the safe library, so that an error there does not look like one in a file. Nothing is freed before the
//! process ends.
//!
//! It is here because unsafe code is only in this package and in `llama-spec/src/ffi`; the tests include it.

use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr,
};

use llama_sys as sys;

pub(crate) fn ok(status: sys::lsys_status) {
    // SAFETY: the text is never null and lives until the next call of this thread.
    let error = unsafe { CStr::from_ptr(sys::lsys_last_error()) };
    assert_eq!(status, sys::LSYS_OK, "{}", error.to_string_lossy());
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// Loads a model, without messages.
pub(crate) fn load(path: &Path) -> *mut sys::llama_model {
    load_by(path, |_| {})
}

/// The same with its MTP heads.
pub(crate) fn load_with_mtp(path: &Path) -> *mut sys::llama_model {
    load_by(path, |params| params.load_mtp = true)
}

fn load_by(path: &Path, edit: impl FnOnce(&mut sys::llama_model_params)) -> *mut sys::llama_model {
    let path = c_path(path);
    let mut model = ptr::null_mut();
    // SAFETY: null drops all messages; the path is a C string, and all else is llama.cpp's own default.
    unsafe {
        sys::lsys_log_set(None, ptr::null_mut(), false);
        let mut params = sys::llama_model_default_params();
        edit(&mut params);
        ok(sys::lsys_model_load(&mut path.as_ptr(), 1, &params, &mut model));
    }
    model
}

/// A context on one thread with room for 1024 tokens, and what `edit` makes of it.
pub(crate) fn context(
    model: *mut sys::llama_model,
    edit: impl FnOnce(&mut sys::llama_context_params),
) -> *mut sys::llama_context {
    let mut context = ptr::null_mut();
    // SAFETY: the model is one of `load` and never freed.
    unsafe {
        let mut params = sys::llama_context_default_params();
        (params.n_ctx, params.n_batch, params.n_ubatch) = (1024, 512, 512);
        (params.n_threads, params.n_threads_batch) = (1, 1);
        (params.n_outputs_max, params.n_outputs_max_per_seq) = (64, 64);
        edit(&mut params);
        ok(sys::lsys_context_new(model, &params, &mut context));
    }
    context
}

/// A batch of `tokens` of the first sequence from `position` on, all with output.
pub(crate) fn batch(context: *mut sys::llama_context, tokens: &[u32], position: usize) -> *mut sys::lsys_batch {
    let mut batch = ptr::null_mut();
    // SAFETY: the context is one of `context` and never freed.
    unsafe { ok(sys::lsys_batch_new(context, &mut batch)) };
    fill(batch, tokens, position);
    batch
}

pub(crate) fn fill(batch: *mut sys::lsys_batch, tokens: &[u32], position: usize) {
    // SAFETY: the batch is one of `batch`; what is added is checked.
    unsafe {
        sys::lsys_batch_clear(batch);
        for (index, token) in tokens.iter().enumerate() {
            ok(sys::lsys_batch_add(batch, *token as i32, (position + index) as i32, 0, true));
        }
    }
}

/// The logits of entry `index` of the last batch, which must be finite or minus infinity.
pub(crate) fn logits(context: *mut sys::llama_context, index: usize) -> Vec<f32> {
    let mut logits = ptr::null();
    // SAFETY: the context is alive; the logits are as many as the vocabulary has tokens, and copied before the next call.
    let logits = unsafe {
        ok(sys::lsys_logits(context, index as i32, &mut logits));
        let size = sys::llama_vocab_n_tokens(sys::llama_model_get_vocab(sys::llama_get_model(context)));
        std::slice::from_raw_parts(logits, size as usize).to_vec()
    };
    assert!(logits.iter().all(|logit| !logit.is_nan() && *logit < f32::INFINITY));
    logits
}

pub(crate) fn argmax(logits: &[f32]) -> u32 {
    logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as u32
}

/// The pooled embedding of a text. Not by the shim, which knows no encoder with a memory.
pub(crate) fn embedding(context: *mut sys::llama_context, text: &[i32], decode: bool) -> Vec<f32> {
    let (mut text, mut embedding, mut n) = (text.to_vec(), ptr::null(), 0);
    // SAFETY: the context is one of `context` and never freed; the embedding is copied before the next call.
    unsafe {
        let run = if decode { sys::llama_decode } else { sys::llama_encode };
        assert_eq!(run(context, sys::llama_batch_get_one(text.as_mut_ptr(), text.len() as i32)), 0);
        ok(sys::lsys_embeddings_sequence(context, 0, &mut embedding, &mut n));
        std::slice::from_raw_parts(embedding, n).to_vec()
    }
}

/// The logits of an encoder-decoder after a text and the first token of the answer. The shim has no way to do this.
pub(crate) fn encode_and_decode(context: *mut sys::llama_context, text: &[i32], start: i32) -> Vec<f32> {
    let (mut text, mut start) = (text.to_vec(), [start]);
    // SAFETY: the context is one of `context` and never freed; tokens are given with their number.
    unsafe {
        assert_eq!(sys::llama_encode(context, sys::llama_batch_get_one(text.as_mut_ptr(), text.len() as i32)), 0);
        assert_eq!(sys::llama_decode(context, sys::llama_batch_get_one(start.as_mut_ptr(), 1)), 0);
    }
    logits(context, 0)
}

/// Computes all positions of a text at once.
pub(crate) fn encode(context: *mut sys::llama_context, tokens: &[u32]) {
    let (batch, mut code) = (batch(context, tokens, 0), 0);
    // SAFETY: the context is one of `context` and never freed.
    unsafe { ok(sys::lsys_encode(context, batch, &mut code)) };
    assert_eq!(code, 0);
}

/// Whether a LoRA adapter can be applied to a model.
pub(crate) fn adapter_fits(model: *mut sys::llama_model, path: &Path) -> bool {
    let path = c_path(path);
    // SAFETY: the model is one of `load` and never freed, and neither is the adapter.
    !unsafe { sys::llama_adapter_lora_init(model, path.as_ptr()) }.is_null()
}

/// A step of [`attempt`].
pub(crate) const MAKING_A_CONTEXT: &str = "making a context";
/// A step of [`attempt`].
pub(crate) const DECODING: &str = "decoding";

/// Loads a file, makes a context and decodes a token; tells `step` what comes next, since each may end the process.
pub(crate) fn attempt(path: &Path, step: impl Fn(&str)) -> &'static str {
    let path = c_path(path);
    let (mut model, mut context) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the path is a C string; model and context are used when they were made, and freed once at the end.
    unsafe {
        sys::lsys_log_set(None, ptr::null_mut(), false);
        if sys::lsys_model_load(&mut path.as_ptr(), 1, &sys::llama_model_default_params(), &mut model) != sys::LSYS_OK {
            return "not loaded";
        }
        step(MAKING_A_CONTEXT);
        let mut params = sys::llama_context_default_params();
        (params.n_ctx, params.n_batch, params.n_ubatch) = (64, 64, 64);
        (params.n_threads, params.n_threads_batch) = (1, 1);
        let status = sys::lsys_context_new(model, &params, &mut context);
        let mut outcome = if status == sys::LSYS_OK { "works" } else { "no context" };
        if status == sys::LSYS_OK && !sys::llama_model_has_encoder(model) {
            step(DECODING);
            if sys::llama_decode(context, sys::llama_batch_get_one(&mut 97, 1)) != 0 {
                outcome = "not decoded";
            }
        }
        sys::llama_free(context);
        sys::llama_model_free(model);
        outcome
    }
}
