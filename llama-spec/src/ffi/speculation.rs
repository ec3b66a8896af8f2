//! The drafters of llama.cpp, together with the contexts whose addresses they keep, and what is asked of any drafter.

use super::status::{Failed, c_string, call, take_text};
use crate::batch::Batch;
use crate::context::Context;
use crate::error::{DecodeError, Failure};
use crate::sample::Candidate;
use crate::sample::confidence::Confidence;
use crate::spec::{Method, Methods, SpecConfig};
use crate::token::{Slot, Token};
use llama_sys as sys;
use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;

#[derive(Debug)]
struct Handle(NonNull<sys::lsys_spec>);

impl Handle {
    /// Drafters for these methods. The caller keeps both contexts alive as long as the handle.
    fn new(target: &Context, draft: Option<&Context>, config: &SpecConfig, methods: &[Method]) -> Result<Self, Failed> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the caller stores the contexts beside the handle, so that they outlive it.
        Self::with_params(target, draft, config, methods, |params| unsafe { sys::lsys_spec_new(params, &mut handle) })?;
        Ok(Self(NonNull::new(handle).expect("shim.h: a handle is made when the status is LSYS_OK")))
    }

    /// Calls a function with the parameters of drafters for these methods.
    fn with_params(
        target: &Context,
        draft: Option<&Context>,
        config: &SpecConfig,
        methods: &[Method],
        function: impl FnOnce(&sys::lsys_spec_params) -> sys::lsys_status,
    ) -> Result<(), Failed> {
        let types: Vec<_> = methods.iter().copied().filter_map(Method::raw).collect();
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
        // SAFETY: it writes constants.
        unsafe { sys::lsys_spec_defaults(&mut params) };
        params.types = types.as_ptr();
        params.n_types = types.len();
        params.ctx_target = target.raw().as_ptr();
        params.ctx_draft = draft.map_or(std::ptr::null_mut(), |draft| draft.raw().as_ptr());
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
        // What the parameters point to lives until here.
        call(|| function(&params))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from lsys_spec_new and is freed only here; both contexts are declared after it in
        // RawSpeculation, so they are still alive.
        unsafe { sys::lsys_spec_free(self.0.as_ptr()) }
    }
}

// SAFETY: the handle has no ties to a thread, and RawSpeculation is not Sync.
unsafe impl Send for Handle {}

/// Whether the contexts fit all methods of a configuration, whoever drafts by them.
pub(crate) fn check(target: &Context, draft: Option<&Context>, config: &SpecConfig) -> Result<(), Failed> {
    // SAFETY: reads the parameters, which point to live contexts.
    Handle::with_params(target, draft, config, &config.methods, |params| unsafe { sys::lsys_spec_check(params) })
}

/// One of the two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Target,
    Draft,
}

/// What one slot asks for.
#[derive(Clone, Debug)]
pub(crate) struct DraftRequest {
    pub(crate) slot: Slot,
    /// Where `last` will stand.
    pub(crate) position: u32,
    /// The token chosen last, which is in no memory yet.
    pub(crate) last: Token,
    /// Tokens of somebody else's draft, behind which this one goes on. The drafters of llama.cpp cannot.
    pub(crate) behind: Vec<Token>,
    /// The longest draft, in tokens; 0: none.
    pub(crate) limit: u32,
    /// Who may draft; empty: everybody.
    pub(crate) methods: Methods,
    /// Give the distributions the tokens were drawn from: the temperature of the target, and a seed.
    pub(crate) distributions: Option<(f32, u32)>,
}

impl DraftRequest {
    fn raw(&self) -> sys::lsys_draft_request {
        let (temperature, seed) = self.distributions.unwrap_or_default();
        sys::lsys_draft_request {
            seq: i32::try_from(self.slot.index()).unwrap_or(-1),
            n_max: i32::try_from(self.limit).unwrap_or(i32::MAX),
            pos: i32::try_from(self.position).unwrap_or(-1),
            last: self.last.id(),
            want_candidates: self.distributions.is_some(),
            temperature,
            seed,
            types: self.methods.bits(),
        }
    }
}

/// What was drafted for a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drafted {
    pub(crate) tokens: Vec<Token>,
    /// For each token what it was drawn from, or empty when they were not asked for or the drafter has none.
    pub(crate) distributions: Vec<Vec<Candidate>>,
    /// For each token how sure the draft was of it, or empty when the drafter cannot tell.
    pub(crate) confidences: Vec<Confidence>,
    /// Who drafted, if somebody did.
    pub(crate) by: Option<Method>,
}

impl Drafted {
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.distributions.clear();
        self.confidences.clear();
        self.by = None;
    }
}

/// Fields drop in this order: the handle keeps the addresses of both contexts, and the draft's context may use weights and
/// memory of the target's.
#[derive(Debug)]
pub(crate) struct RawSpeculation {
    /// Nothing when no drafter of llama.cpp is at work.
    handle: Option<Handle>,
    /// The handle keeps the address of the draft's context.
    draft_is_lent: bool,
    draft: Option<Context>,
    target: Context,
}

impl RawSpeculation {
    /// A target that decodes alone.
    pub(crate) fn plain(target: Context) -> Self {
        Self { handle: None, draft_is_lent: false, draft: None, target }
    }

    /// Drafters of llama.cpp for all methods of the configuration but those of `others`.
    pub(crate) fn new(
        target: Context,
        draft: Option<Context>,
        config: &SpecConfig,
        others: Methods,
    ) -> Result<Self, Failed> {
        let mut made = Self { handle: None, draft_is_lent: false, draft, target };
        made.renew(config, others)?;
        Ok(made)
    }

    /// Drafters made anew, with these settings and nothing of what the others knew. Both memories must be empty. After an error
    /// there are none.
    pub(crate) fn renew(&mut self, config: &SpecConfig, others: Methods) -> Result<(), Failed> {
        self.handle = None;
        let theirs = |method: &Method| method.raw().is_some() && !others.contains(*method);
        let methods: Vec<_> = config.methods.iter().copied().filter(theirs).collect();
        if !methods.is_empty() {
            self.draft_is_lent = methods.iter().any(|method| !method.is_lookup());
            let draft = self.draft.as_ref().filter(|_| self.draft_is_lent);
            self.handle = Some(Handle::new(&self.target, draft, config, &methods)?);
        }
        Ok(())
    }

    /// The contexts, for a drafter of ours. Without a draft when there is none, or when a drafter of llama.cpp works with it.
    pub(crate) fn sides(&mut self) -> (&Context, Option<&mut Context>) {
        (&self.target, self.draft.as_mut().filter(|_| !self.draft_is_lent))
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.handle.is_none()
    }

    /// Whether there is a context that drafts.
    pub(crate) fn has_draft(&self) -> bool {
        self.draft.is_some()
    }

    pub(crate) fn target(&self) -> &Context {
        &self.target
    }

    /// Decodes on the target alone.
    pub(crate) fn decode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        self.target.decode(batch)
    }

    /// Runs a call on the drafters of llama.cpp; does nothing when there are none.
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

    /// Drafts for all slots of the requests at once, each of which may be there once; `drafted` has a place for each request,
    /// in their order. A draft model leaves what it drafted in its memory, from the position of the request on.
    pub(crate) fn draft(&mut self, requests: &[DraftRequest], drafted: &mut [Drafted]) -> Result<(), Failed> {
        drafted.iter_mut().for_each(Drafted::clear);
        if requests.len() != drafted.len() {
            let message = format!("{} drafts are asked for, there is room for {}", requests.len(), drafted.len());
            return Err(Failed { status: sys::LSYS_INVALID, failure: Failure::new(message) });
        }
        let raw: Vec<_> = requests.iter().map(DraftRequest::raw).collect();
        // SAFETY: handle and contexts are alive; requests are given with their number.
        self.with(|handle| unsafe { sys::lsys_spec_draft(handle, raw.as_ptr(), raw.len()) })?;
        requests.iter().zip(drafted).try_for_each(|(request, drafted)| self.read(request, drafted))
    }

    /// Copies out what was drafted last for a slot.
    fn read(&self, request: &DraftRequest, drafted: &mut Drafted) -> Result<(), Failed> {
        let seq = request.slot.index() as i32;
        let (mut tokens, mut from) = (sys::lsys_tokens::default(), sys::LSYS_SPEC_NONE);
        // SAFETY: handle and results are alive; the tokens live until the next call that changes the handle and are copied.
        unsafe {
            self.with(|handle| sys::lsys_spec_result(handle, seq, &mut tokens, &mut from))?;
            if tokens.size > 0 {
                drafted.tokens.extend(std::slice::from_raw_parts(tokens.data.cast::<Token>(), tokens.size));
                drafted.by = Method::from_raw(from);
            }
        }
        for index in 0..drafted.tokens.len() {
            let mut candidates = sys::lsys_candidates::default();
            // SAFETY: as above; `Candidate` is laid out as llama_token_data (sample/candidate.rs).
            unsafe {
                self.with(|handle| sys::lsys_spec_candidates(handle, seq, index, &mut candidates))?;
                if candidates.size > 0 {
                    let all = std::slice::from_raw_parts(candidates.data.cast::<Candidate>(), candidates.size);
                    drafted.distributions.push(all.to_vec());
                }
            }
        }
        if drafted.distributions.len() < drafted.tokens.len() {
            drafted.distributions.clear();
        }
        Ok(())
    }

    /// Tells the drafters how many tokens of the last draft were right.
    pub(crate) fn accept(&mut self, slot: Slot, accepted: usize) -> Result<(), Failed> {
        // SAFETY: the handle is alive; the shim checks slot and number.
        self.with(|handle| unsafe { sys::lsys_spec_accept(handle, slot.index() as i32, accepted) })
    }

    /// Tells the drafters how many tokens were right of a draft that none of them made.
    pub(crate) fn accept_foreign(&mut self, slot: Slot, accepted: usize) -> Result<(), Failed> {
        // SAFETY: as in `accept`.
        self.with(|handle| unsafe { sys::lsys_spec_accept_foreign(handle, slot.index() as i32, accepted) })
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

    /// Takes everything from a position on out of a memory, if there is that side. What a draft's context shares with the
    /// target is taken out there.
    pub(crate) fn remove(&mut self, side: Side, slot: Slot, from: u32) -> crate::error::Result<()> {
        self.own(side).map_or(Ok(()), |context| context.memory().remove(slot, from..))
    }

    /// Saves what `remove` cannot undo.
    pub(crate) fn checkpoint(&mut self, side: Side, slot: Slot, data: &mut Vec<u8>) -> crate::error::Result<()> {
        self.own(side).map_or(Ok(()), |context| context.memory().checkpoint(slot, data))
    }

    /// Makes a slot hold what it held at the checkpoint, which was taken when it ended before position `end`.
    pub(crate) fn go_back(&mut self, side: Side, slot: Slot, data: &[u8], end: u32) -> crate::error::Result<()> {
        self.own(side).map_or(Ok(()), |context| context.memory().go_back(slot, data, end))
    }

    /// Empties both memories; after a failure this makes the target usable again.
    pub(crate) fn clear(&mut self) -> crate::error::Result<()> {
        [Side::Target, Side::Draft].into_iter().try_for_each(|side| match self.own(side) {
            Some(context) => context.memory().clear(),
            None => Ok(()),
        })
    }

    /// A side whose memory is its own.
    fn own(&mut self, side: Side) -> Option<&mut Context> {
        match side {
            Side::Target => Some(&mut self.target),
            Side::Draft => self.draft.as_mut().filter(|draft| !draft.raw().shares_memory()),
        }
    }
}

/// Many slots side by side.
impl RawSpeculation {
    /// `to` goes on as `from` would, as far as the drafters are concerned: for memories that are copied.
    pub(crate) fn copy(&mut self, from: Slot, to: Slot) -> Result<(), Failed> {
        // SAFETY: the handle is alive; the shim checks both slots.
        self.with(|handle| unsafe { sys::lsys_spec_copy(handle, from.index() as i32, to.index() as i32) })
    }

    /// Makes `to` hold what `from` holds. There is nothing to do for a draft that shares the target's memory.
    pub(crate) fn copy_memory(&mut self, side: Side, from: Slot, to: Slot) -> crate::error::Result<()> {
        self.own(side).map_or(Ok(()), |context| context.memory().copy(from, to))
    }

    /// Empties both memories of a slot, and the drafters forget it.
    pub(crate) fn clear_slot(&mut self, slot: Slot) -> crate::error::Result<()> {
        self.remove(Side::Target, slot, 0)?;
        self.remove(Side::Draft, slot, 0)?;
        // Nothing but the slot can be refused here, and the target knows it.
        let _ = self.forget(slot);
        Ok(())
    }

    /// What one side holds of a slot; nothing where it has no memory of its own.
    pub(crate) fn state(&mut self, side: Side, slot: Slot) -> crate::error::Result<Vec<u8>> {
        self.own(side).map_or(Ok(Vec::new()), |context| context.memory().save(slot))
    }

    /// Makes one side hold what `state` gave.
    pub(crate) fn set_state(&mut self, side: Side, slot: Slot, state: &[u8]) -> crate::error::Result<()> {
        self.own(side).map_or(Ok(()), |context| context.memory().restore(slot, state))
    }

    /// What the drafters themselves keep of a slot; empty when that cannot be saved.
    pub(crate) fn drafter_state(&mut self, slot: Slot) -> crate::error::Result<Vec<u8>> {
        let Some(handle) = &self.handle else { return Ok(Vec::new()) };
        // SAFETY: the handle is alive; the shim checks the slot.
        let state = take_text(|text| unsafe { sys::lsys_spec_state_get(handle.0.as_ptr(), slot.index() as i32, text) });
        state.map_err(|failed| crate::error::Error::State { reason: failed.failure.to_string() })
    }

    /// Puts back what `drafter_state` gave.
    pub(crate) fn set_drafter_state(&mut self, slot: Slot, state: &[u8]) -> crate::error::Result<()> {
        // SAFETY: the bytes are given with their number; the shim checks slot and size.
        let set = self.with(|handle| unsafe {
            sys::lsys_spec_state_set(handle, slot.index() as i32, state.as_ptr(), state.len())
        });
        set.map_err(|failed| crate::error::Error::State { reason: failed.failure.to_string() })
    }

    /// The first and last position a slot holds, or nothing if it is empty or there is no such side.
    pub(crate) fn range(&mut self, side: Side, slot: Slot) -> crate::error::Result<Option<(u32, u32)>> {
        let context = match side {
            Side::Target => Some(&mut self.target),
            Side::Draft => self.draft.as_mut(),
        };
        context.map_or(Ok(None), |context| context.memory().range(slot))
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
