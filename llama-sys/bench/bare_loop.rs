//! Greedy decoding with nothing but llama.cpp's own calls: what the library's overhead is measured against.
//!
//! The benches include this file; it is here because unsafe code is only in this package and in `llama-spec/src/ffi`.

use llama_sys as sys;
use std::ffi::CString;
use std::path::Path;

/// A model and a context of it, used through the raw symbols.
#[derive(Debug)]
pub struct BareLoop {
    model: *mut sys::llama_model,
    context: *mut sys::llama_context,
    threads: sys::ggml_threadpool_t,
    vocab: usize,
}

impl BareLoop {
    /// Loads a model that is known to be good.
    pub fn new(path: &Path, length: u32, threads: i32) -> Self {
        let path = CString::new(path.to_str().expect("a path in Unicode")).expect("a path without NUL");
        // SAFETY: llama.h: the backend is started first, the parameters are defaults with plain numbers changed, and null
        // results are caught below.
        unsafe {
            sys::llama_backend_init();
            let model = sys::llama_model_load_from_file(path.as_ptr(), sys::llama_model_default_params());
            assert!(!model.is_null(), "the model loads");
            let mut params = sys::llama_context_default_params();
            (params.n_ctx, params.n_threads, params.n_threads_batch) = (length, threads, threads);
            let context = sys::llama_init_from_model(model, params);
            assert!(!context.is_null(), "the context is made");
            let vocab = sys::llama_vocab_n_tokens(sys::llama_model_get_vocab(model)) as usize;
            // As llama-server does; without them each batch starts threads of its own.
            let mut kept = std::ptr::null_mut();
            assert_eq!(sys::lsys_threads_new(threads, &mut kept), sys::LSYS_OK);
            sys::llama_attach_threadpool(context, kept, kept);
            Self { model, context, threads: kept, vocab }
        }
    }

    /// Decodes `count` tokens after the prompt greedily, one by one, and gives the last one. As the generator does, it keeps
    /// the prompt between two calls: all of them must have the same.
    pub fn generate(&mut self, prompt: &[i32], count: usize) -> i32 {
        let (mut token, before) = (prompt[prompt.len() - 1], &mut prompt[..prompt.len() - 1].to_vec()[..]);
        // SAFETY: llama.h: the batches point to live tokens, and the logits of the last entry (index -1) are n_vocab floats
        // that live until the next decode.
        unsafe {
            let memory = sys::llama_get_memory(self.context);
            if sys::llama_memory_seq_pos_max(memory, 0) < 0 {
                let batch = sys::llama_batch_get_one(before.as_mut_ptr(), before.len() as i32);
                assert_eq!(sys::llama_decode(self.context, batch), 0);
            }
            assert!(sys::llama_memory_seq_rm(memory, 0, before.len() as i32, -1));
            for _ in 0..count {
                assert_eq!(sys::llama_decode(self.context, sys::llama_batch_get_one(&mut token, 1)), 0);
                token = argmax(std::slice::from_raw_parts(sys::llama_get_logits_ith(self.context, -1), self.vocab));
            }
            token
        }
    }
}

impl Drop for BareLoop {
    fn drop(&mut self) {
        // SAFETY: all were made by `new`, are freed once, and the context before its threads and its model.
        unsafe {
            sys::llama_free(self.context);
            sys::lsys_threads_free(self.threads);
            sys::llama_model_free(self.model);
        }
    }
}

fn argmax(logits: &[f32]) -> i32 {
    let mut best = 0;
    for (index, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = index;
        }
    }
    best as i32
}
