//! Drafting token by token with a small model, with heads for multi-token prediction or with an EAGLE-3 draft, in loops of our own:
//! whoever controls them ends a draft after any token, so that what is not wanted is not computed, and a drafter can rest for a
//! while and catch up later with what it missed in one batch.
//!
//! llama.cpp's own loops compute the full length and cut it afterwards. They stay for the other methods, and as the oracle of the
//! tests.
//!
//! One batch of a step has a token of each slot that is drafting. The memories are kept in step by [`Machine`](super::machine):
//! here is only what must be noted of hidden states, since a draft reads that of the token before ([`reads`]).

mod draft;
mod feed;
mod follow;
mod notes;
mod reads;

use crate::context::Context;
use crate::error::{DecodeError, Failure};
use crate::ffi::status::Failed;
use crate::sample::Candidate;
use crate::spec::{Method, SpecConfig};
use crate::token::Slot;
use draft::Course;
pub(super) use draft::Steer;
use feed::Feed;
use notes::{Notes, Pause};
use reads::Reads;

/// Drafts for all slots of a target.
#[derive(Debug)]
pub(super) struct Stepwise {
    method: Method,
    reads: Reads,
    heads: Heads,
    /// The values of a row beside a token; 0 when there is none.
    width: usize,
    settings: Settings,
    /// What the target decodes is computed with the next step of a draft, where that can be.
    owes: bool,
    slots: Vec<Notes>,
    feed: Feed,
    courses: Vec<Course>,
    read: Vec<f32>,
    candidates: Vec<Candidate>,
    /// Batches that the draft's context decoded or encoded.
    decodes: u64,
}

/// The two contexts.
#[derive(Debug)]
pub(super) struct Sides<'a> {
    pub(super) target: &'a Context,
    pub(super) draft: &'a mut Context,
}

/// Which weights compute the tokens of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heads {
    /// The same for each, in a memory of their own.
    One,
    /// So many, one for each token. They have layers of their own, so each computes what was drafted so far again.
    Chain(u32),
    /// The same for each, in the target's memory. All tokens are computed as if they stood at the same position.
    Shared,
}

/// How long drafts are.
#[derive(Clone, Copy, Debug)]
struct Settings {
    max: u32,
    min: u32,
    probability_min: f32,
    probabilistic: bool,
}

impl Settings {
    fn of(config: &SpecConfig) -> Self {
        let (settings, limit) = (config.draft_model, config.draft_max);
        Self {
            max: settings.max.min(limit),
            min: settings.min.min(limit),
            probability_min: settings.probability_min,
            probabilistic: settings.probabilistic,
        }
    }
}

/// What became of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// The draft's memory has what it missed.
    CaughtUp,
    /// It missed more than was kept: it must be emptied and be shown the text from its beginning.
    TooLate,
}

impl Stepwise {
    /// Whether there is a loop for this method here.
    pub(super) fn knows(method: Method) -> bool {
        matches!(method, Method::DraftSimple | Method::DraftMtp | Method::DraftEagle3)
    }

    /// The contexts must have been checked to fit the method.
    pub(super) fn new(
        method: Method,
        config: &SpecConfig,
        target: &mut Context,
        draft: &mut Context,
    ) -> Result<Self, Failed> {
        let reads = Reads::switch_on(method, target, draft)?;
        let heads = match method {
            Method::DraftMtp if draft.raw().shares_memory() => Heads::Shared,
            Method::DraftMtp if draft.model().mtp_layers() > 1 => Heads::Chain(draft.model().mtp_layers()),
            _ => Heads::One,
        };
        Ok(Self {
            method,
            heads,
            width: reads.width(draft),
            reads,
            settings: Settings::of(config),
            owes: false,
            slots: vec![Notes::default(); target.slots() as usize],
            feed: Feed::default(),
            courses: Vec::new(),
            read: Vec::new(),
            candidates: Vec::new(),
            decodes: 0,
        })
    }

    /// Lets it compute what the target decoded with the next step of a draft, if its memory `can_cut`: then its memory may end
    /// anywhere before that step. What reads hidden states follows each batch while they are there.
    pub(super) fn owing(self, can_cut: bool) -> Self {
        Self { owes: can_cut && self.goes_on(), ..self }
    }

    /// Whether it can go on behind tokens that the target has not computed yet. Heads read its hidden states of the tokens before,
    /// which there are none of then.
    pub(super) fn goes_on(&self) -> bool {
        self.reads == Reads::Nothing && self.heads == Heads::One
    }

    pub(super) fn method(&self) -> Method {
        self.method
    }

    /// Batches that the draft's context decoded so far.
    pub(super) fn decodes(&self) -> u64 {
        self.decodes
    }

    /// Makes it what it was when it was made, with these settings. The memories must be empty.
    pub(super) fn renew(&mut self, config: &SpecConfig) {
        self.settings = Settings::of(config);
        self.slots.iter_mut().for_each(|notes| *notes = Notes::default());
    }

    /// Tells it how many tokens of the last draft were right, or of another one that it was shown.
    pub(super) fn accept(&mut self, sides: &mut Sides<'_>, slot: Slot, accepted: usize) -> Result<(), Failure> {
        let width = self.width;
        let notes = self.notes_mut(slot)?;
        notes.open = 0;
        notes.settle(accepted, width);
        if let (Reads::Layers(_), Some(pending)) = (&self.reads, &self.notes(slot)?.pending) {
            // The last token that stays was paired with one that was rejected.
            sides.draft.memory().remove(slot, pending.position..).map_err(words)?;
        }
        Ok(())
    }

    /// Tokens of the last draft of a slot whose outcome it was not told.
    pub(super) fn open(&self, slot: Slot) -> usize {
        self.notes(slot).map_or(0, |notes| notes.open)
    }

    /// Forgets a slot whose memories are emptied. That also ends a pause.
    pub(super) fn forget(&mut self, slot: Slot) {
        if let Ok(notes) = self.notes_mut(slot) {
            *notes = Notes::default();
        }
    }

    /// `to` goes on as `from` would: for memories that are copied.
    pub(super) fn copy(&mut self, from: Slot, to: Slot) -> Result<(), Failure> {
        let notes = Notes { open: 0, ..self.notes(from)?.clone() };
        *self.notes_mut(to)? = notes;
        Ok(())
    }

    /// Heads are given the hidden state of this entry of the target's last batch, of the token that both memories end with.
    pub(super) fn seed(&mut self, target: &Context, slot: Slot, entry: usize, position: u32) -> Result<(), Failure> {
        if self.reads != Reads::Hidden {
            return Ok(());
        }
        let row = target.hidden(entry)?.to_vec();
        let notes = self.notes_mut(slot)?;
        notes.last.rows.clear();
        notes.pending = Some(notes::Pending { position, row });
        Ok(())
    }

    /// What it keeps of a slot, to be given to [`set_state`](Self::set_state) when the memories hold the same again.
    pub(super) fn state(&self, slot: Slot) -> Result<Vec<u8>, Failure> {
        Ok(self.notes(slot)?.to_bytes(self.tag()))
    }

    /// Puts back what [`state`](Self::state) gave for a slot that holds so many tokens. Gives whether that is all there is to
    /// know: nothing may have been kept.
    pub(super) fn set_state(&mut self, slot: Slot, state: &[u8], tokens: usize) -> Result<bool, Failure> {
        let notes = Notes::from_bytes(state, self.tag(), self.width)?;
        let whole = match &notes.pending {
            Some(pending) if pending.position as usize + 1 != tokens => {
                return Err(Failure::new(format!(
                    "the hidden state is that of another token than the last of {tokens}"
                )));
            }
            pending => self.reads == Reads::Nothing || pending.is_some(),
        };
        *self.notes_mut(slot)? = notes;
        Ok(whole)
    }

    /// From now on the slot is not followed; what the target decodes is kept, up to a limit. Does nothing in a pause.
    pub(super) fn pause(&mut self, slot: Slot) -> Result<(), Failure> {
        let notes = self.notes_mut(slot)?;
        if matches!(notes.pause, Pause::No) {
            notes.pause = Pause::Since(std::mem::take(&mut notes.owed));
        }
        Ok(())
    }

    /// Computes what is owed of a slot, so that the draft's memory holds all that it should.
    pub(super) fn pay(&mut self, sides: &mut Sides<'_>, slot: Slot) -> Result<(), Failure> {
        let owed = std::mem::take(&mut self.notes_mut(slot)?.owed);
        if owed.tokens.is_empty() { Ok(()) } else { self.absorb_missed(sides, slot, owed) }
    }

    /// Ends a pause: the draft's memory is shown what it missed, in as few batches as can be. Does nothing without one.
    pub(super) fn resume(&mut self, sides: &mut Sides<'_>, slot: Slot) -> Result<Resumed, Failure> {
        match std::mem::take(&mut self.notes_mut(slot)?.pause) {
            Pause::No => Ok(Resumed::CaughtUp),
            Pause::TooLong => Ok(Resumed::TooLate),
            Pause::Since(missed) => self.absorb_missed(sides, slot, missed).map(|()| Resumed::CaughtUp),
        }
    }

    pub(super) fn is_paused(&self, slot: Slot) -> bool {
        self.notes(slot).is_ok_and(|notes| !matches!(notes.pause, Pause::No))
    }

    /// How many tokens less than the target's memory the draft's holds of a slot; nothing when that is unknown.
    pub(super) fn lacks(&self, slot: Slot) -> Option<usize> {
        Some(self.missed(slot)? + self.notes(slot).ok()?.owed.tokens.len())
    }

    /// How many tokens a slot missed in a pause; nothing when that is unknown.
    pub(super) fn missed(&self, slot: Slot) -> Option<usize> {
        if self.heads == Heads::Shared {
            // It is the same memory.
            return Some(0);
        }
        let notes = self.notes(slot).ok()?;
        (!matches!(notes.pause, Pause::TooLong)).then(|| notes.missed())
    }

    /// Everything from a position on was taken out of the memories of a slot.
    pub(super) fn cut(&mut self, slot: Slot, from: u32) {
        if let Ok(notes) = self.notes_mut(slot) {
            notes.cut(from);
        }
    }

    fn notes(&self, slot: Slot) -> Result<&Notes, Failure> {
        self.slots.get(slot.index() as usize).ok_or_else(|| unknown(slot))
    }

    fn notes_mut(&mut self, slot: Slot) -> Result<&mut Notes, Failure> {
        self.slots.get_mut(slot.index() as usize).ok_or_else(|| unknown(slot))
    }

    /// Says in saved bytes whose they are.
    fn tag(&self) -> u8 {
        self.method.raw().unwrap_or_default() as u8
    }

    /// A decode of the draft's context failed. If it broke down, its memory is emptied so that it can be used again: whoever
    /// compares the memories finds that out.
    fn failed(&mut self, draft: &mut Context, error: DecodeError) -> Failure {
        if super::machine::breaks_off(&error) {
            match draft.raw().shares_memory() {
                true => draft.forgive(),
                false => {
                    if let Err(error) = draft.memory().clear() {
                        tracing::warn!(%error, "the draft's memory could not be emptied");
                    }
                }
            }
            self.slots.iter_mut().for_each(|notes| *notes = Notes::default());
        }
        Failure::new(format!("the draft's context could not decode: {error}"))
    }
}

fn unknown(slot: Slot) -> Failure {
    Failure::new(format!("there is no slot {}", slot.index()))
}

fn words(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}
