//! The settings that decide whether files work together.

use crate::context::ContextOptions;
use crate::options::{FlashAttention, KvType, Pooling, SplitMode};
use serde::{Deserialize, Serialize};

/// The settings under which a target and a draft are to work together. Every field has a setter of the same name.
///
/// The defaults are those of the rest of this crate: one slot, no split but by layers, text only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Room of each slot in tokens; 0 takes what the target was trained for. Default: 4096.
    pub context: u32,
    /// Room of each slot of the draft. Default: as the target's.
    pub draft_context: Option<u32>,
    /// Sequences side by side. Default: 1.
    pub slots: u32,
    /// The most tokens of one decode. Default: 2048.
    pub batch: u32,
    /// The most tokens computed at once. Default: 512.
    pub micro_batch: u32,
    /// The most tokens that the draft computes at once. Default: as the target.
    pub draft_micro_batch: Option<u32>,
    /// The type of K in the target's cache. Default: F16.
    pub kv_type_k: KvType,
    /// The type of V in the target's cache. Default: F16.
    pub kv_type_v: KvType,
    /// The type of K in the draft's cache. Default: F16.
    pub draft_kv_type_k: KvType,
    /// The type of V in the draft's cache. Default: F16.
    pub draft_kv_type_v: KvType,
    /// When the fused attention kernels are used.
    pub flash_attention: FlashAttention,
    /// Keep the whole context also in sliding-window layers. Default: on.
    pub full_sliding_window: bool,
    /// Snapshots for rolling a recurrent memory back. Default: as many as the longest draft needs.
    pub snapshots: Option<u32>,
    /// How the target is divided among GPUs.
    pub split_mode: SplitMode,
    /// Whether the target is computed on a GPU. Default: not known.
    pub gpu: Option<bool>,
    /// Whether the draft is computed on a GPU. Default: as the target.
    pub draft_gpu: Option<bool>,
    /// Names of the devices that hold the target; empty when not known.
    pub devices: Vec<String>,
    /// Names of the devices that hold the draft; empty for those of the target.
    pub draft_devices: Vec<String>,
    /// Give embeddings, pooled in this way. Default: no.
    pub embeddings: Option<Pooling>,
    /// Images or sound are part of prompts. Default: no.
    pub multimodal: bool,
    /// A LoRA adapter or control vectors are applied to the target. Default: no.
    pub adapters: bool,
    /// A full context drops its beginning and goes on. Default: no.
    pub context_shift: bool,
    /// Accept what usually works and can crash. Default: no.
    pub accept_risk: bool,
    /// Generation runs in a process of its own that is started again when it dies. Default: no.
    pub supervised: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            context: 4096,
            draft_context: None,
            slots: 1,
            batch: 2048,
            micro_batch: 512,
            draft_micro_batch: None,
            kv_type_k: KvType::default(),
            kv_type_v: KvType::default(),
            draft_kv_type_k: KvType::default(),
            draft_kv_type_v: KvType::default(),
            flash_attention: FlashAttention::default(),
            full_sliding_window: true,
            snapshots: None,
            split_mode: SplitMode::default(),
            gpu: None,
            draft_gpu: None,
            devices: Vec::new(),
            draft_devices: Vec::new(),
            embeddings: None,
            multimodal: false,
            adapters: false,
            context_shift: false,
            accept_risk: false,
            supervised: false,
        }
    }
}

macro_rules! setters {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("Sets [`Conditions::", stringify!($name), "`](field@Conditions::", stringify!($name), ").")]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}

impl Conditions {
    setters! {
        context: u32,
        draft_context: Option<u32>,
        slots: u32,
        batch: u32,
        micro_batch: u32,
        draft_micro_batch: Option<u32>,
        flash_attention: FlashAttention,
        full_sliding_window: bool,
        snapshots: Option<u32>,
        split_mode: SplitMode,
        gpu: Option<bool>,
        draft_gpu: Option<bool>,
        devices: Vec<String>,
        draft_devices: Vec<String>,
        embeddings: Option<Pooling>,
        multimodal: bool,
        adapters: bool,
        context_shift: bool,
        accept_risk: bool,
        supervised: bool,
    }

    /// Sets the types of K and V in the target's cache.
    pub fn kv_types(mut self, k: KvType, v: KvType) -> Self {
        (self.kv_type_k, self.kv_type_v) = (k, v);
        self
    }

    /// Sets the types of K and V in the draft's cache.
    pub fn draft_kv_types(mut self, k: KvType, v: KvType) -> Self {
        (self.draft_kv_type_k, self.draft_kv_type_v) = (k, v);
        self
    }

    /// The conditions that these contexts set. Without options of its own the draft's are the target's.
    pub(crate) fn of(target: &ContextOptions, draft: Option<&ContextOptions>) -> Self {
        let conditions = Self::from(target);
        match draft {
            Some(own) => conditions.draft_kv_types(own.kv_type_k, own.kv_type_v),
            None => conditions,
        }
    }

    /// Whether what is risky is allowed.
    pub(crate) fn allows_risk(&self) -> bool {
        self.accept_risk || self.supervised
    }

    /// The most tokens computed at once: no more than are decoded.
    pub(crate) fn effective_micro_batch(&self) -> u32 {
        self.micro_batch.min(self.batch)
    }
}

impl From<&ContextOptions> for Conditions {
    /// The conditions that a context of these options sets. The draft's context is taken to have the same options.
    fn from(options: &ContextOptions) -> Self {
        Self {
            context: options.length_per_slot,
            slots: options.slots,
            batch: options.batch,
            micro_batch: options.micro_batch,
            kv_type_k: options.kv_type_k,
            kv_type_v: options.kv_type_v,
            draft_kv_type_k: options.kv_type_k,
            draft_kv_type_v: options.kv_type_v,
            flash_attention: options.flash_attention,
            full_sliding_window: options.full_sliding_window,
            snapshots: Some(options.snapshots).filter(|count| *count > 0),
            embeddings: options.embeddings,
            ..Self::default()
        }
    }
}
