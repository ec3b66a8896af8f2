//! Contexts: the working memory of a model, and decoding.

use crate::batch::Batch;
use crate::error::{DecodeError, Error, Failure, Result};
use crate::ffi::context::{EmbeddingsOf, Facts, RawContext};
use crate::ffi::params;
use crate::ffi::status::Failed;
use crate::memory::{Memory, Rollback};
use crate::model::Model;
use crate::options::{FlashAttention, KvType, Pooling, RopeScaling};
use crate::token::Slot;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most slots one context can have (llama.cpp's LLAMA_MAX_SEQ).
pub const MAX_SLOTS: u32 = 256;

/// How a context is made. Every field has a setter of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextOptions {
    /// Room of each slot in tokens; 0 takes the length the model was trained for. Default: 4096.
    pub length_per_slot: u32,
    /// Sequences held side by side, 1 to [`MAX_SLOTS`]. Default: 1.
    pub slots: u32,
    /// The most tokens of one [`Context::decode`]. Default: 2048.
    pub batch: u32,
    /// The most tokens computed at once; larger is faster for prompts and takes more memory. Default: 512.
    pub micro_batch: u32,
    /// Threads for decoding single tokens. Default: the number of processors, at most 16.
    pub threads: u32,
    /// Threads for prompts and batches. Default: as `threads`.
    pub batch_threads: u32,
    /// When the fused attention kernels are used.
    pub flash_attention: FlashAttention,
    /// The type of K in the cache. Default: F16.
    pub kv_type_k: KvType,
    /// The type of V in the cache; a quantized one needs flash attention. Default: F16.
    pub kv_type_v: KvType,
    /// One cache for all slots instead of a share for each. Default: off.
    pub unified_kv: bool,
    /// Keep the cache on the GPU together with the layers. Default: on.
    pub offload_kv: bool,
    /// Keep the whole context also in sliding-window layers, so that any suffix can be removed. Default: on.
    pub full_sliding_window: bool,
    /// Snapshots for rolling a recurrent memory back: the longest draft. Default: 0.
    pub snapshots: u32,
    /// How positions beyond the trained length are scaled.
    pub rope_scaling: RopeScaling,
    /// Base frequency of the rotary embedding; from the model if not given.
    pub rope_frequency_base: Option<f32>,
    /// Factor on the frequencies; from the model if not given.
    pub rope_frequency_scale: Option<f32>,
    /// Give embeddings, pooled in this way, instead of only logits. Default: no.
    pub embeddings: Option<Pooling>,
}

impl Default for ContextOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(4, |count| count.get().min(16)) as u32;
        Self {
            length_per_slot: 4096,
            slots: 1,
            batch: 2048,
            micro_batch: 512,
            threads,
            batch_threads: threads,
            flash_attention: FlashAttention::default(),
            kv_type_k: KvType::default(),
            kv_type_v: KvType::default(),
            unified_kv: false,
            offload_kv: true,
            full_sliding_window: true,
            snapshots: 0,
            rope_scaling: RopeScaling::default(),
            rope_frequency_base: None,
            rope_frequency_scale: None,
            embeddings: None,
        }
    }
}

macro_rules! setters {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("Sets [`ContextOptions::", stringify!($name), "`](field@ContextOptions::", stringify!($name), ").")]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}

impl ContextOptions {
    setters! {
        length_per_slot: u32,
        slots: u32,
        batch: u32,
        micro_batch: u32,
        batch_threads: u32,
        flash_attention: FlashAttention,
        unified_kv: bool,
        offload_kv: bool,
        full_sliding_window: bool,
        snapshots: u32,
        rope_scaling: RopeScaling,
        rope_frequency_base: Option<f32>,
        rope_frequency_scale: Option<f32>,
        embeddings: Option<Pooling>,
    }

    /// Sets the threads, for single tokens and for batches.
    pub fn threads(mut self, threads: u32) -> Self {
        (self.threads, self.batch_threads) = (threads, threads);
        self
    }

    /// Sets the types of K and V in the cache.
    pub fn kv_types(mut self, k: KvType, v: KvType) -> Self {
        (self.kv_type_k, self.kv_type_v) = (k, v);
        self
    }

    /// Checks what can be checked without a model.
    ///
    /// # Errors
    /// [`Error::Setting`] for the first setting that cannot work.
    pub fn validate(&self) -> Result<()> {
        let require = |holds: bool, setting: &'static str, value: u64, expected: &str| match holds {
            true => Ok(()),
            false => Err(Error::Setting { setting, value: value.to_string(), expected: expected.to_owned() }),
        };
        let total = u64::from(self.length_per_slot) * u64::from(self.slots);
        require((1..=MAX_SLOTS).contains(&self.slots), "slots", self.slots.into(), "1 to 256")?;
        require(total <= i32::MAX as u64, "length_per_slot", total, "at most 2147483647 tokens over all slots")?;
        require((1..=1 << 20).contains(&self.batch), "batch", self.batch.into(), "1 to 1048576 tokens")?;
        require(self.micro_batch >= 1, "micro_batch", self.micro_batch.into(), "at least 1 token")?;
        require((1..=512).contains(&self.threads), "threads", self.threads.into(), "1 to 512")?;
        require((1..=512).contains(&self.batch_threads), "batch_threads", self.batch_threads.into(), "1 to 512")?;
        // llama.cpp aborts when a micro-batch cannot hold the tokens its snapshots are for.
        let room = u64::from(self.micro_batch.min(self.batch)) > u64::from(self.snapshots) + 1;
        require(
            self.snapshots == 0 || room,
            "snapshots",
            self.snapshots.into(),
            "less than the micro-batch by two or more",
        )?;
        for (setting, value) in
            [("rope_frequency_base", self.rope_frequency_base), ("rope_frequency_scale", self.rope_frequency_scale)]
        {
            if value.is_some_and(|value| !value.is_finite() || value <= 0.0) {
                return Err(Error::Setting {
                    setting,
                    value: format!("{value:?}"),
                    expected: "a number above 0".into(),
                });
            }
        }
        if self.kv_type_v.is_quantized() && self.flash_attention == FlashAttention::Off {
            let expected = "an unquantized type, or flash attention not switched off".into();
            return Err(Error::Setting { setting: "kv_type_v", value: format!("{:?}", self.kv_type_v), expected });
        }
        Ok(())
    }
}

/// What a context is for in speculation, beyond what its options say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Role<'c> {
    /// The target's context, for drafts that borrow its weights or its memory; it must outlive this one.
    pub(crate) target: Option<&'c Context>,
    /// It runs the heads of multi-token prediction and not the model itself.
    pub(crate) heads: bool,
    /// The most entries of a slot with output in one batch; 0 for all of them. Fewer take less memory.
    pub(crate) outputs: u32,
}

/// The working memory of a model: the KV cache of its slots, and the scratch space to decode.
///
/// It can be moved to another thread and not be shared by two:
///
/// ```
/// fn movable<T: Send>() {}
/// movable::<llama_spec::Context>();
/// ```
pub struct Context {
    raw: RawContext,
    facts: Facts,
    gives_embeddings: Option<Pooling>,
    /// Entries of the last batch; 0 when there are no results to read.
    decoded: usize,
    /// A decode failed and left the memory in an unknown state.
    poisoned: bool,
}

impl Context {
    pub(crate) fn new(model: &Model, options: &ContextOptions) -> Result<Self> {
        Self::with_role(model, options, &Role::default())
    }

    /// The caller keeps the target of the role alive as long as this context.
    pub(crate) fn with_role(model: &Model, options: &ContextOptions, role: &Role<'_>) -> Result<Self> {
        let mut options = options.clone();
        if options.length_per_slot == 0 {
            // llama.cpp would share the trained length among the slots.
            options.length_per_slot = model.trained_context();
        }
        options.validate()?;
        if options.embeddings.is_none() && !model.has_decoder() {
            let message = "the model is an encoder and generates no text; ask for embeddings";
            return Err(Error::Context { failure: Failure::new(message) });
        }
        let raw = RawContext::new(model, &params::context(&options, role))
            .map_err(|failed| Error::Context { failure: failed.into() })?;
        let facts = raw.facts();
        Ok(Self { raw, facts, gives_embeddings: options.embeddings, decoded: 0, poisoned: false })
    }

    /// The model it belongs to.
    pub fn model(&self) -> &Model {
        self.raw.model()
    }

    /// Room of each slot in tokens, as it became.
    pub fn length_per_slot(&self) -> u32 {
        self.facts.length_per_slot
    }

    /// The most tokens of one decode.
    pub fn batch_size(&self) -> u32 {
        self.facts.batch
    }

    /// The most tokens computed at once.
    pub fn micro_batch_size(&self) -> u32 {
        self.facts.micro_batch
    }

    /// Slots it has.
    pub fn slots(&self) -> u32 {
        self.facts.slots
    }

    /// Snapshots of a recurrent memory it keeps; 0 where the model cannot.
    pub fn snapshots(&self) -> u32 {
        self.facts.snapshots
    }

    /// Decodes a batch. Its results can then be read by the index of the entry.
    ///
    /// # Errors
    /// See [`DecodeError`] for each case and what the memory then holds.
    pub fn decode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        let by_decoder = self.model().has_decoder();
        self.run(batch.len(), |raw| raw.fill_batch(batch.entries()), by_decoder)
    }

    /// Fills the batch on the C side and runs it, by the decoder or by the encoder.
    pub(crate) fn run(
        &mut self,
        entries: usize,
        fill: impl FnOnce(&mut RawContext) -> Result<(), Failed>,
        by_decoder: bool,
    ) -> Result<(), DecodeError> {
        self.decoded = 0;
        if self.poisoned {
            return Err(DecodeError::Poisoned);
        }
        let refused = |failed: Failed| DecodeError::Refused { failure: failed.into() };
        if entries == 0 {
            return Err(DecodeError::Refused { failure: Failure::new("the batch is empty") });
        }
        fill(&mut self.raw).map_err(refused)?;
        let code = if by_decoder { self.raw.decode() } else { self.raw.encode() };
        match code {
            Ok(0) => self.decoded = entries,
            Ok(1) => return Err(DecodeError::NoRoom { entries }),
            Ok(2) => {
                self.poisoned = true;
                return Err(DecodeError::Aborted);
            }
            Ok(-1) => return Err(DecodeError::Refused { failure: Failure::new("llama.cpp found the batch invalid") }),
            Ok(code) => {
                self.poisoned = true;
                return Err(DecodeError::Fatal { failure: Failure::new(format!("code {code}")) });
            }
            Err(failed) if failed.is_before_the_call() => return Err(refused(failed)),
            Err(failed) => {
                self.poisoned = true;
                return Err(DecodeError::Fatal { failure: failed.into() });
            }
        }
        Ok(())
    }

    /// The logits after entry `entry` of the last batch: one for each token of the vocabulary.
    ///
    /// # Errors
    /// [`Error::Decode`] when there was no such entry or it had no output.
    pub fn logits(&self, entry: usize) -> Result<&[f32]> {
        self.require_results()?;
        self.raw.logits(entry).map_err(|failed| DecodeError::Refused { failure: failed.into() }.into())
    }

    /// The embedding of entry `entry` of the last batch.
    ///
    /// # Errors
    /// [`Error::Embeddings`] when the context was not made for embeddings of single tokens.
    pub fn embeddings(&self, entry: usize) -> Result<&[f32]> {
        self.embeddings_of(EmbeddingsOf::Entry(entry))
    }

    /// The pooled embedding of a slot in the last batch.
    ///
    /// # Errors
    /// [`Error::Embeddings`] when the context was not made for pooled embeddings.
    pub fn slot_embeddings(&self, slot: Slot) -> Result<&[f32]> {
        self.embeddings_of(EmbeddingsOf::Slot(self.check(slot)?))
    }

    fn embeddings_of(&self, of: EmbeddingsOf) -> Result<&[f32]> {
        if self.gives_embeddings.is_none() {
            let reason = "the context was made for generating; set `embeddings` in its options".into();
            return Err(Error::Embeddings { reason });
        }
        self.require_results()?;
        self.raw.embeddings(of).map_err(|failed| Error::Embeddings { reason: failed.failure.to_string() })
    }

    /// What each slot holds, and ways to change it.
    pub fn memory(&mut self) -> Memory<'_> {
        Memory::new(self)
    }

    /// How tokens can be taken back. Found by trying, which clears the memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when the trial fails.
    pub fn probe_rollback(&mut self) -> Result<Rollback> {
        self.decoded = 0;
        let kind = self.raw.rollback_kind().map_err(|failed| Error::Memory { reason: failed.failure.to_string() })?;
        Ok(Rollback::from_raw(kind, self.facts.snapshots))
    }

    /// Sets the threads, for single tokens and for batches; at least one each.
    pub fn set_threads(&mut self, threads: u32, batch_threads: u32) {
        self.raw.set_threads(threads.clamp(1, 512), batch_threads.clamp(1, 512));
    }

    /// What it holds, by device or buffer: (name, bytes of weights, of memory, of scratch space).
    ///
    /// # Errors
    /// [`Error::Memory`] when llama.cpp cannot tell.
    pub fn memory_breakdown(&self) -> Result<Vec<(String, u64, u64, u64)>> {
        self.raw.memory_breakdown().map_err(|failed| Error::Memory { reason: failed.failure.to_string() })
    }

    pub(crate) fn raw(&self) -> &RawContext {
        &self.raw
    }

    /// For changes of the memory: whatever was decoded is no longer what the memory holds.
    pub(crate) fn raw_mut(&mut self) -> &mut RawContext {
        &mut self.raw
    }

    pub(crate) fn forgive(&mut self) {
        self.poisoned = false;
    }

    /// The slot as C numbers it.
    pub(crate) fn check(&self, slot: Slot) -> Result<i32> {
        if slot.index() < self.facts.slots {
            return Ok(slot.index() as i32);
        }
        let expected = format!("0 to {}: the context has {} slots", self.facts.slots - 1, self.facts.slots);
        Err(Error::Setting { setting: "slot", value: slot.index().to_string(), expected })
    }

    /// Entries of the last batch; 0 when there are no results to read.
    pub(crate) fn decoded(&self) -> usize {
        self.decoded
    }

    pub(crate) fn require_results(&self) -> Result<()> {
        match self.decoded {
            0 => Err(DecodeError::Refused {
                failure: Failure::new("nothing was decoded yet, or the last decode failed"),
            }
            .into()),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("model", &self.model().path())
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}
