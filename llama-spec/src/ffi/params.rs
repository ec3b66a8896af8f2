//! From the options of this crate to the C structs, which live for one call only.

use super::backend::RawDevice;
use crate::context::{ContextOptions, Role};
use crate::options::{FlashAttention, KvType, LoadMode, MetadataValue, Pooling, RopeScaling, SplitMode};
use llama_sys as sys;
use std::ffi::{CString, c_char};

impl SplitMode {
    pub(crate) fn raw(self) -> sys::llama_split_mode {
        match self {
            Self::None => sys::LLAMA_SPLIT_MODE_NONE,
            Self::Layer => sys::LLAMA_SPLIT_MODE_LAYER,
            Self::Row => sys::LLAMA_SPLIT_MODE_ROW,
            Self::Tensor => sys::LLAMA_SPLIT_MODE_TENSOR,
        }
    }
}

impl LoadMode {
    pub(crate) fn raw(self) -> sys::llama_load_mode {
        match self {
            Self::Auto => sys::LLAMA_LOAD_MODE_AUTO,
            Self::Read => sys::LLAMA_LOAD_MODE_NONE,
            Self::Mmap => sys::LLAMA_LOAD_MODE_MMAP,
            Self::Mlock => sys::LLAMA_LOAD_MODE_MLOCK,
            Self::MmapMlock => sys::LLAMA_LOAD_MODE_MMAP_MLOCK,
            Self::DirectIo => sys::LLAMA_LOAD_MODE_DIRECT_IO,
        }
    }
}

impl FlashAttention {
    fn raw(self) -> sys::llama_flash_attn_type {
        match self {
            Self::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
            Self::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
            Self::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
        }
    }
}

impl KvType {
    fn raw(self) -> sys::ggml_type {
        match self {
            Self::F32 => sys::GGML_TYPE_F32,
            Self::F16 => sys::GGML_TYPE_F16,
            Self::Bf16 => sys::GGML_TYPE_BF16,
            Self::Q8_0 => sys::GGML_TYPE_Q8_0,
            Self::Q5_1 => sys::GGML_TYPE_Q5_1,
            Self::Q5_0 => sys::GGML_TYPE_Q5_0,
            Self::Q4_1 => sys::GGML_TYPE_Q4_1,
            Self::Q4_0 => sys::GGML_TYPE_Q4_0,
            Self::Iq4Nl => sys::GGML_TYPE_IQ4_NL,
        }
    }
}

impl RopeScaling {
    fn raw(self) -> sys::llama_rope_scaling_type {
        match self {
            Self::FromModel => sys::LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED,
            Self::None => sys::LLAMA_ROPE_SCALING_TYPE_NONE,
            Self::Linear => sys::LLAMA_ROPE_SCALING_TYPE_LINEAR,
            Self::Yarn => sys::LLAMA_ROPE_SCALING_TYPE_YARN,
            Self::LongRope => sys::LLAMA_ROPE_SCALING_TYPE_LONGROPE,
        }
    }
}

impl Pooling {
    fn raw(self) -> sys::llama_pooling_type {
        match self {
            Self::FromModel => sys::LLAMA_POOLING_TYPE_UNSPECIFIED,
            Self::None => sys::LLAMA_POOLING_TYPE_NONE,
            Self::Mean => sys::LLAMA_POOLING_TYPE_MEAN,
            Self::Cls => sys::LLAMA_POOLING_TYPE_CLS,
            Self::Last => sys::LLAMA_POOLING_TYPE_LAST,
            Self::Rank => sys::LLAMA_POOLING_TYPE_RANK,
        }
    }
}

/// llama.cpp's own choices for loading a model.
pub(crate) fn model_defaults() -> sys::llama_model_params {
    // SAFETY: returns a struct of constants.
    unsafe { sys::llama_model_default_params() }
}

/// The most devices a model can be divided among.
pub(crate) fn max_devices() -> usize {
    // SAFETY: reads a constant of the build.
    unsafe { sys::llama_max_devices() }
}

/// The arrays a `llama_model_params` points into, each ended as C expects it.
#[derive(Default)]
pub(crate) struct ModelArrays {
    pub(crate) devices: Vec<sys::ggml_backend_dev_t>,
    pub(crate) tensor_split: Vec<f32>,
    pub(crate) overrides: Vec<sys::llama_model_kv_override>,
    pub(crate) buffers: Vec<sys::llama_model_tensor_buft_override>,
    /// Keeps alive what `buffers` points to.
    pub(crate) patterns: Vec<CString>,
}

impl ModelArrays {
    /// Writes the pointers into `params`, which must not outlive `self`.
    pub(crate) fn apply(&mut self, params: &mut sys::llama_model_params) {
        if !self.devices.is_empty() {
            self.devices.push(std::ptr::null_mut());
            params.devices = self.devices.as_mut_ptr();
        }
        if !self.tensor_split.is_empty() {
            self.tensor_split.resize(max_devices(), 0.0);
            params.tensor_split = self.tensor_split.as_ptr();
        }
        if !self.overrides.is_empty() {
            self.overrides.push(sys::llama_model_kv_override::default());
            params.kv_overrides = self.overrides.as_ptr();
        }
        if !self.buffers.is_empty() {
            self.buffers
                .push(sys::llama_model_tensor_buft_override { pattern: std::ptr::null(), buft: std::ptr::null_mut() });
            params.tensor_buft_overrides = self.buffers.as_ptr();
        }
    }

    /// Tensors whose name matches `pattern` go to the memory of `device`.
    pub(crate) fn push_buffer(&mut self, pattern: CString, device: RawDevice) {
        // SAFETY: `device` is a registered device, which lives as long as the process.
        let buft = unsafe { sys::ggml_backend_dev_buffer_type(device.0.as_ptr()) };
        // The text of a CString stays where it is when the CString moves into the vector.
        self.buffers.push(sys::llama_model_tensor_buft_override { pattern: pattern.as_ptr(), buft });
        self.patterns.push(pattern);
    }
}

/// The longest key and text of a metadata override, without the NUL.
pub(crate) const OVERRIDE_LENGTH: usize = 127;

/// `key` and a text value are at most `OVERRIDE_LENGTH` bytes long.
pub(crate) fn kv_override(key: &str, value: &MetadataValue) -> sys::llama_model_kv_override {
    let mut raw = sys::llama_model_kv_override::default();
    copy_text(&mut raw.key, key);
    match value {
        MetadataValue::Bool(value) => {
            raw.tag = sys::LLAMA_KV_OVERRIDE_TYPE_BOOL;
            raw.__bindgen_anon_1.val_bool = *value;
        }
        MetadataValue::Int(value) => {
            raw.tag = sys::LLAMA_KV_OVERRIDE_TYPE_INT;
            raw.__bindgen_anon_1.val_i64 = *value;
        }
        MetadataValue::Float(value) => {
            raw.tag = sys::LLAMA_KV_OVERRIDE_TYPE_FLOAT;
            raw.__bindgen_anon_1.val_f64 = *value;
        }
        MetadataValue::Text(value) => {
            raw.tag = sys::LLAMA_KV_OVERRIDE_TYPE_STR;
            let mut text = [0; OVERRIDE_LENGTH + 1];
            copy_text(&mut text, value);
            raw.__bindgen_anon_1.val_str = text;
        }
    }
    raw
}

fn copy_text(to: &mut [c_char; OVERRIDE_LENGTH + 1], from: &str) {
    for (to, from) in to.iter_mut().take(OVERRIDE_LENGTH).zip(from.bytes()) {
        *to = from as c_char;
    }
}

/// The parameters of a context; the caller has validated the options.
pub(crate) fn context(options: &ContextOptions, role: &Role<'_>) -> sys::llama_context_params {
    // SAFETY: returns a struct of constants.
    let mut raw = unsafe { sys::llama_context_default_params() };
    raw.n_ctx = options.length_per_slot.saturating_mul(options.slots);
    raw.n_batch = options.batch;
    raw.n_ubatch = options.micro_batch.min(options.batch);
    raw.n_seq_max = options.slots;
    raw.n_rs_seq = options.snapshots;
    // Unless it is known better, every entry of a batch may ask for logits.
    let outputs = if role.outputs == 0 { options.batch } else { role.outputs.min(options.batch) };
    raw.n_outputs_max = outputs.saturating_mul(options.slots).min(options.batch);
    raw.n_outputs_max_per_seq = outputs;
    raw.ctx_type = if role.heads { sys::LLAMA_CONTEXT_TYPE_MTP } else { sys::LLAMA_CONTEXT_TYPE_DEFAULT };
    raw.ctx_other = role.target.map_or(std::ptr::null_mut(), |target| target.raw().as_ptr());
    raw.n_threads = options.threads as i32;
    raw.n_threads_batch = options.batch_threads as i32;
    raw.rope_scaling_type = options.rope_scaling.raw();
    raw.rope_freq_base = options.rope_frequency_base.unwrap_or(0.0);
    raw.rope_freq_scale = options.rope_frequency_scale.unwrap_or(0.0);
    raw.flash_attn_type = options.flash_attention.raw();
    raw.type_k = options.kv_type_k.raw();
    raw.type_v = options.kv_type_v.raw();
    raw.kv_unified = options.unified_kv;
    raw.offload_kqv = options.offload_kv;
    raw.swa_full = options.full_sliding_window;
    raw.embeddings = options.embeddings.is_some();
    raw.pooling_type = options.embeddings.map_or(sys::LLAMA_POOLING_TYPE_UNSPECIFIED, Pooling::raw);
    raw.no_perf = true;
    raw
}
