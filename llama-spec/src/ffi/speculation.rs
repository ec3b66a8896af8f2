//! The drafters of llama.cpp, together with the contexts whose addresses they keep.

use super::status::{Failed, c_string, call};
use crate::batch::Batch;
use crate::context::Context;
use crate::error::{DecodeError, Failure};
use crate::spec::{Method, SpecConfig};
use crate::token::{Slot, Token};
use llama_sys as sys;
use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;

#[derive(Debug)]
struct Handle(NonNull<sys::lsys_spec>);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_spec_new and is freed only here; both contexts are declared after it in
        // RawSpeculation, so they are still alive.
        unsafe { sys::lsys_spec_free(self.0.as_ptr()) }
    }
}

// SAFETY: the handle has no ties to a thread, and RawSpeculation is not Sync.
unsafe impl Send for Handle {}

/// One of the two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Target,
    Draft,
}

/// Fields drop in this order: the handle keeps the addresses of both contexts, and the draft's context may use weights and
/// memory of the target's.
#[derive(Debug)]
pub(crate) struct RawSpeculation {
    /// Nothing when the target decodes alone; then there is no draft either.
    handle: Option<Handle>,
    draft: Option<Context>,
    target: Context,
}

impl RawSpeculation {
    /// A target that decodes alone.
    pub(crate) fn plain(target: Context) -> Self {
        Self { handle: None, draft: None, target }
    }

    pub(crate) fn new(target: Context, draft: Option<Context>, config: &SpecConfig) -> Result<Self, Failed> {
        let types: Vec<_> = config.methods.iter().map(|method| method.raw()).collect();
        let limit = config.draft_max;
        let map = |settings: crate::spec::NgramMapSettings| sys::lsys_ngram_map_params {
            size_n: settings.lookup,
            size_m: settings.draft,
            min_hits: settings.hits_min,
        };
        let caches = [&config.ngram_cache.fixed, &config.ngram_cache.learned];
        let [fixed, learned] = caches.map(|path| path.as_deref().map(c_path).transpose());
        let (fixed, learned) = (fixed?, learned?);
        let pointer = |path: &Option<CString>| path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
        let mut params = sys::lsys_spec_params::default();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the parameters point to live arrays and contexts; the contexts are stored beside the handle and outlive it.
        unsafe {
            sys::lsys_spec_defaults(&mut params);
            params.types = types.as_ptr();
            params.n_types = types.len();
            params.ctx_target = target.raw().as_ptr();
            params.ctx_draft = draft.as_ref().map_or(std::ptr::null_mut(), |draft| draft.raw().as_ptr());
            params.n_seq = target.slots();
            params.draft_n_max = config.draft_model.max.min(limit) as i32;
            params.draft_n_min = config.draft_model.min.min(limit) as i32;
            params.draft_p_min = config.draft_model.probability_min;
            params.draft_probabilistic = config.draft_model.probabilistic;
            params.draft_backend_sampling = config.draft_model.sample_on_device;
            params.ngram_cache_static = pointer(&fixed);
            params.ngram_cache_dynamic = pointer(&learned);
            params.ngram_mod_match = config.ngram_mod.lookup.into();
            params.ngram_mod_min = config.ngram_mod.min.into();
            params.ngram_mod_max = config.ngram_mod.max.into();
            params.ngram_simple = map(config.ngram_simple);
            params.ngram_map_k = map(config.ngram_map_k);
            params.ngram_map_k4v = map(config.ngram_map_k4v);
            call(|| sys::lsys_spec_new(&params, &mut handle))?;
        }
        let handle = Handle(NonNull::new(handle).expect("shim.h: a handle is made when the status is LSYS_OK"));
        Ok(Self { handle: Some(handle), draft, target })
    }

    /// Gives drafting up: from now on the target decodes alone.
    pub(crate) fn stop(&mut self) {
        self.handle = None;
        self.draft = None;
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.handle.is_none()
    }

    pub(crate) fn target(&self) -> &Context {
        &self.target
    }

    /// Decodes on the target alone.
    pub(crate) fn decode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        self.target.decode(batch)
    }

    /// Runs a call on the drafters; does nothing when there are none.
    fn with(&self, function: impl FnOnce(*mut sys::lsys_spec) -> sys::lsys_status) -> Result<(), Failed> {
        self.handle.as_ref().map_or(Ok(()), |handle| call(|| function(handle.0.as_ptr())))
    }

    /// Shows the drafters what was just decoded.
    pub(crate) fn follow(&mut self) -> Result<(), Failed> {
        let batch = self.target.raw().batch_ptr();
        // SAFETY: handle, contexts and the target's batch are alive; the batch is the one decoded last.
        self.with(|handle| unsafe { sys::lsys_spec_process(handle, batch) })
    }

    /// The history of a slot: what is in the target's memory.
    pub(crate) fn begin(&mut self, slot: Slot, history: &[Token]) -> Result<(), Failed> {
        let (seq, tokens) = (slot.index() as i32, ids(history));
        // SAFETY: tokens are given with their number; the shim checks the slot.
        self.with(|handle| unsafe { sys::lsys_spec_begin(handle, seq, tokens, history.len()) })
    }

    /// Adds tokens to the history of a slot.
    pub(crate) fn extend(&mut self, slot: Slot, tokens: &[Token]) -> Result<(), Failed> {
        // SAFETY: as in `begin`.
        self.with(|handle| unsafe { sys::lsys_spec_extend(handle, slot.index() as i32, ids(tokens), tokens.len()) })
    }

    /// Drafts up to `limit` tokens after `last`, which will stand at `position`, into `draft`.
    pub(crate) fn draft(
        &mut self,
        slot: Slot,
        position: u32,
        last: Token,
        limit: u32,
        draft: &mut Vec<Token>,
    ) -> Result<Option<Method>, Failed> {
        draft.clear();
        let seq = slot.index() as i32;
        let request = sys::lsys_draft_request {
            seq,
            n_max: limit as i32,
            pos: position as i32,
            last: last.id(),
            ..Default::default()
        };
        let (mut tokens, mut from) = (sys::lsys_tokens::default(), sys::LSYS_SPEC_NONE);
        // SAFETY: handle and contexts are alive; the result lives until the next call on the handle and is copied.
        unsafe {
            self.with(|handle| sys::lsys_spec_draft(handle, &request, 1))?;
            self.with(|handle| sys::lsys_spec_result(handle, seq, &mut tokens, &mut from))?;
            if tokens.size > 0 {
                draft.extend(std::slice::from_raw_parts(tokens.data, tokens.size).iter().map(|id| Token::new(*id)));
            }
        }
        Ok(Method::from_raw(from).filter(|_| !draft.is_empty()))
    }

    /// Tells the drafters how many tokens of the last draft were right.
    pub(crate) fn accept(&mut self, slot: Slot, accepted: usize) -> Result<(), Failed> {
        // SAFETY: the handle is alive; the shim checks slot and number.
        self.with(|handle| unsafe { sys::lsys_spec_accept(handle, slot.index() as i32, accepted) })
    }

    /// Forgets what the drafters noted of a slot whose memories are emptied.
    pub(crate) fn forget(&mut self, slot: Slot) -> Result<(), Failed> {
        // SAFETY: the handle is alive; the shim checks the slot.
        self.with(|handle| unsafe { sys::lsys_spec_truncate(handle, slot.index() as i32, 0) })
    }

    /// Gives next-token heads the hidden state of the entry of the last batch that both memories end with.
    pub(crate) fn seed(&mut self, slot: Slot, entry: usize) -> Result<(), Failed> {
        let index = i32::try_from(entry).unwrap_or(i32::MAX);
        // SAFETY: handle and target are alive; the shim checks slot and entry.
        self.with(|handle| unsafe { sys::lsys_spec_seed(handle, slot.index() as i32, index) })
    }

    /// Takes everything from a position on out of a memory, if there is that side.
    pub(crate) fn remove(&mut self, side: Side, slot: Slot, from: u32) -> crate::error::Result<()> {
        self.side(side).map_or(Ok(()), |context| context.memory().remove(slot, from..))
    }

    /// Saves what `remove` cannot undo.
    pub(crate) fn checkpoint(&mut self, side: Side, slot: Slot, data: &mut Vec<u8>) -> crate::error::Result<()> {
        self.side(side).map_or(Ok(()), |context| context.memory().checkpoint(slot, data))
    }

    /// Makes a slot hold what it held at the checkpoint, which was taken when it ended before position `end`.
    pub(crate) fn go_back(&mut self, side: Side, slot: Slot, data: &[u8], end: u32) -> crate::error::Result<()> {
        self.side(side).map_or(Ok(()), |context| context.memory().go_back(slot, data, end))
    }

    /// Empties both memories; after a failure this makes the target usable again.
    pub(crate) fn clear(&mut self) -> crate::error::Result<()> {
        self.target.memory().clear()?;
        match self.draft.as_mut().filter(|draft| !draft.raw().shares_memory()) {
            Some(draft) => draft.memory().clear(),
            None => Ok(()),
        }
    }

    fn side(&mut self, side: Side) -> Option<&mut Context> {
        match side {
            Side::Target => Some(&mut self.target),
            Side::Draft => self.draft.as_mut(),
        }
    }
}

fn ids(tokens: &[Token]) -> *const sys::llama_token {
    // `Token` is a transparent i32, which is what llama_token is.
    tokens.as_ptr().cast()
}

/// A path as the shim takes it.
fn c_path(path: &Path) -> Result<CString, Failed> {
    let text = path.to_str().ok_or_else(|| Failure::new(format!("{} is not valid Unicode", path.display())));
    let text = text.and_then(c_string);
    text.map_err(|failure| Failed { status: sys::LSYS_INVALID, failure })
}
