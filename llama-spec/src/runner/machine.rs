//! The contexts and drafters of a runner, and how they are kept in step when tokens are taken back.
//!
//! All calls of llama.cpp that the loop makes go through here. Which calls keep two memories in step depends on what kind of
//! memory they are ([`Rollback`]) and on where the drafter can be continued ([`Resume`]); nobody else needs to know.

use super::Restore;
use super::fault::{Call, Faults};
use super::stepwise::{Resumed, Sides, Steer, Stepwise};
use crate::batch::Batch;
use crate::context::Context;
use crate::error::{DecodeError, Error, Failure, Result};
use crate::ffi::speculation::{DraftRequest, Drafted, RawSpeculation, Side};
use crate::memory::Rollback;
use crate::sample::{Candidate, Sampler};
use crate::spec::{Methods, SpecConfig};
use crate::token::{Slot, Token};

/// Where the memories of target and draft can be continued after their ends were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// Anywhere.
    Anywhere,
    /// One token earlier: the draft pairs a hidden state of the target with the token after it (EAGLE-3).
    Earlier,
    /// Behind any token that the target computes once more: the draft pairs a token with the hidden state before it (MTP).
    Seeded,
}

/// Tokens of one slot that are to be taken out of the memories after a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakeBack<'a> {
    pub(super) slot: Slot,
    /// Where the round began.
    pub(super) position: u32,
    /// The tokens of the round that stay.
    pub(super) kept: &'a [Token],
    /// The draft's memory has followed from the beginning.
    pub(super) in_step: bool,
}

/// The contexts and drafters of a runner.
#[derive(Debug)]
pub(crate) struct Machine {
    raw: RawSpeculation,
    /// Drafts by the model's method in a loop of ours; else the drafters of llama.cpp do.
    stepwise: Option<Stepwise>,
    /// What was decoded last, where a loop of ours follows it.
    shown: Batch,
    rollback: Rollback,
    /// As of the draft's memory; `Partial` when there is none.
    draft_rollback: Rollback,
    resume: Resume,
    /// What the memories held before the round, as far as it cannot be cut back, for each slot.
    checkpoints: Vec<Checkpoints>,
    /// Copies of slots that were asked for and may not have been carried out: llama.cpp does so when a context decodes next, after
    /// what else was written into it by then.
    copies: Copies,
    /// Tokens that are computed again.
    replay: Batch,
    pub(super) faults: Faults,
}

/// In which memories slots may still have to be copied.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    target: bool,
    draft: bool,
}

#[derive(Clone, Debug, Default)]
struct Checkpoints {
    target: Vec<u8>,
    draft: Vec<u8>,
}

impl Machine {
    /// A target that decodes alone.
    pub(super) fn plain(target: Context, rollback: Rollback) -> Self {
        Self::new(RawSpeculation::plain(target), None, rollback, Rollback::Partial, Resume::Anywhere)
    }

    pub(super) fn new(
        raw: RawSpeculation,
        stepwise: Option<Stepwise>,
        rollback: Rollback,
        draft_rollback: Rollback,
        resume: Resume,
    ) -> Self {
        let checkpoints = vec![Checkpoints::default(); raw.target().slots() as usize];
        Self {
            raw,
            stepwise,
            shown: Batch::default(),
            rollback,
            draft_rollback,
            resume,
            checkpoints,
            copies: Copies::default(),
            replay: Batch::default(),
            faults: Faults::default(),
        }
    }

    pub(crate) fn target(&self) -> &Context {
        self.raw.target()
    }

    /// Whether no method drafts.
    pub(super) fn is_plain(&self) -> bool {
        self.raw.is_plain() && self.stepwise.is_none()
    }

    /// How tokens are taken out of the target's memory.
    pub(crate) fn rollback(&self) -> Rollback {
        self.rollback
    }

    /// How tokens are taken out of the draft's memory.
    pub(crate) fn draft_rollback(&self) -> Rollback {
        self.draft_rollback
    }

    /// The longest draft that can be taken back.
    pub(super) fn longest_draft(&self) -> usize {
        match self.rollback {
            Rollback::Snapshots(snapshots) => snapshots as usize,
            Rollback::None => 0,
            _ => usize::MAX,
        }
    }

    /// Decodes on the target alone.
    pub(crate) fn decode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        self.faults.decode(Call::Decode)?;
        self.raw.decode(batch)?;
        self.copies.target = false;
        if self.stepwise.is_some() {
            self.shown.clone_from(batch);
        }
        Ok(())
    }

    /// Decodes what was decoded before.
    fn decode_again(&mut self) -> Result<(), DecodeError> {
        self.faults.decode(Call::Replay)?;
        self.raw.decode(&self.replay)?;
        self.copies.target = false;
        if self.stepwise.is_some() {
            self.shown.clone_from(&self.replay);
        }
        Ok(())
    }

    /// Shows the drafters what was just decoded.
    pub(crate) fn follow(&mut self) -> Result<(), Failure> {
        self.faults.drafters(Call::Follow)?;
        self.show()?;
        self.copies.draft = false;
        self.faults.drafters(Call::Followed)
    }

    fn show(&mut self) -> Result<(), Failure> {
        self.raw.follow()?;
        self.by_steps(|stepwise, sides, shown| stepwise.follow(sides, shown)).unwrap_or(Ok(()))
    }

    /// Calls something of our own loop, if there is one.
    fn by_steps<T>(&mut self, run: impl FnOnce(&mut Stepwise, &mut Sides<'_>, &Batch) -> T) -> Option<T> {
        let Self { raw, stepwise: Some(stepwise), shown, .. } = self else { return None };
        let (target, draft) = raw.sides();
        Some(run(stepwise, &mut Sides { target, draft: draft? }, shown))
    }

    /// Gives the drafters the history of a slot, once the prompt is in the memories.
    pub(super) fn begin(&mut self, slot: Slot, history: &[Token]) -> Result<(), Failure> {
        self.faults.drafters(Call::Begin)?;
        Ok(self.raw.begin(slot, history)?)
    }

    /// Adds tokens to the history of a slot.
    pub(super) fn extend(&mut self, slot: Slot, tokens: &[Token]) -> Result<(), Failure> {
        self.faults.drafters(Call::Extend)?;
        Ok(self.raw.extend(slot, tokens)?)
    }

    /// Tells the drafters how many tokens of the last draft were right.
    pub(super) fn accept(&mut self, slot: Slot, accepted: usize) -> Result<(), Failure> {
        self.faults.drafters(Call::Accept)?;
        match self.stepwise.as_ref().map(|stepwise| stepwise.open(slot)) {
            None => self.raw.accept(slot, accepted)?,
            // Then it was the draft of a lookup, if it was one.
            Some(0) if !self.raw.is_plain() => self.raw.accept(slot, accepted)?,
            Some(open) if accepted > open => {
                return Err(Failure::new(format!("{accepted} tokens cannot be accepted, {open} are open")));
            }
            Some(_) => self.raw.accept_foreign(slot, accepted)?,
        }
        self.by_steps(|stepwise, sides, _| stepwise.accept(sides, slot, accepted)).unwrap_or(Ok(()))
    }

    /// Tells the drafters how many tokens were right of a draft that none of them made, once they were shown it.
    pub(super) fn accept_foreign(&mut self, slot: Slot, accepted: usize) -> Result<(), Failure> {
        self.faults.drafters(Call::Accept)?;
        self.raw.accept_foreign(slot, accepted)?;
        self.by_steps(|stepwise, sides, _| stepwise.accept(sides, slot, accepted)).unwrap_or(Ok(()))
    }

    /// Drafts for several slots. The draft's memory is then as it was: what was guessed is computed again together with the
    /// target's batch. After an error it may be out of step for all of these slots. Of a slot that is not `in_step` it is left
    /// alone, since there it is only looked up what may come.
    #[cfg(test)]
    pub(crate) fn draft(
        &mut self,
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        in_step: impl Fn(Slot) -> bool,
    ) -> Result<(), Failure> {
        self.draft_steered(requests, drafted, in_step, &mut |_, _, _| true)
    }

    /// The same, and `steer` ends the drafts of a method that [can be steered](Self::can_steer) early.
    pub(crate) fn draft_steered(
        &mut self,
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        in_step: impl Fn(Slot) -> bool,
        steer: &mut Steer<'_>,
    ) -> Result<(), Failure> {
        self.faults.drafters(Call::Draft)?;
        let followed = || requests.iter().filter(|request| in_step(request.slot));
        if self.draft_rollback == Rollback::Checkpoint {
            for request in followed() {
                self.save(Side::Draft, request.slot, request.position).map_err(words)?;
            }
        }
        let made = self.make_drafts(requests, drafted, steer);
        self.faults.drafters(Call::Drafted)?;
        let left = self.faults.leaves_out(Call::LeaveDrafted);
        for request in followed().filter(|_| !left) {
            self.draft_back_to(request.slot, request.position, request.position).map_err(words)?;
        }
        made
    }

    /// The lookup methods are asked before a model.
    fn make_drafts(
        &mut self,
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        steer: &mut Steer<'_>,
    ) -> Result<(), Failure> {
        let Some(stepwise) = &self.stepwise else { return Ok(self.raw.draft(requests, drafted)?) };
        let model = Methods::of(&[stepwise.method()]);
        let lookups = requests.iter().map(|request| {
            let methods = request.methods.without(model);
            // Without methods everybody is asked, and without tokens nobody.
            let limit = if methods.is_empty() && !request.methods.is_empty() { 0 } else { request.limit };
            DraftRequest { methods, limit, ..*request }
        });
        let lookups: Vec<DraftRequest> = lookups.collect();
        self.raw.draft(&lookups, drafted)?;
        self.by_steps(|stepwise, sides, _| stepwise.draft(sides, requests, drafted, steer)).unwrap_or(Ok(()))
    }

    /// To be called before a draft is decoded, the memories ending before `position`. `foreign` says that the draft was not made
    /// by [`draft`](Self::draft), which sees to the draft's memory itself.
    pub(super) fn prepare(&mut self, slot: Slot, position: u32, foreign: bool) -> Result<()> {
        if foreign && self.draft_rollback == Rollback::Checkpoint {
            self.save(Side::Draft, slot, position)?;
        }
        match self.rollback {
            Rollback::Checkpoint => self.save(Side::Target, slot, position),
            _ => Ok(()),
        }
    }

    /// Takes what was decoded from each position on out of the target's memory, except the tokens kept, which come first.
    /// After an error, what these slots hold is unknown.
    pub(super) fn take_back(&mut self, slots: &[TakeBack<'_>]) -> Result<()> {
        if !self.replays() {
            return slots
                .iter()
                .try_for_each(|one| self.remove(Side::Target, one.slot, one.position + one.kept.len() as u32));
        }
        self.replay.clear();
        for one in slots {
            match self.rollback {
                Rollback::Checkpoint => self.go_back(Side::Target, one.slot, one.position)?,
                _ => self.remove(Side::Target, one.slot, one.position)?,
            }
            self.replay.push_prompt(one.kept, one.position, one.slot);
        }
        Ok(self.decode_again()?)
    }

    /// The same for the draft's memory, after the target's. Gives whether these slots still follow: where the draft goes back to
    /// checkpoints, those that are not in step have none, and are left as they are unless others are computed again.
    pub(super) fn take_back_draft(&mut self, slots: &[TakeBack<'_>]) -> Result<bool, Failure> {
        let by_checkpoint = self.draft_rollback == Rollback::Checkpoint;
        if by_checkpoint && slots.iter().all(|one| !one.in_step) {
            return Ok(false);
        }
        if self.faults.leaves_out(Call::LeaveRejected) {
            return Ok(true);
        }
        for one in slots {
            let end = one.position + one.kept.len() as u32;
            match by_checkpoint && !one.in_step {
                true => self.remove(Side::Draft, one.slot, 0),
                false => self.draft_back_to(one.slot, one.position, end),
            }
            .map_err(words)?;
        }
        if by_checkpoint {
            // The target has just computed the kept tokens again.
            self.faults.drafters(Call::Follow)?;
            self.show()?;
        }
        Ok(true)
    }

    /// Compares a draft with what the sampler chooses from these entries of the last batch. Without distributions a token is
    /// right if it is the one that was sampled.
    pub(super) fn verify(
        &self,
        sampler: &mut Sampler,
        entries: &[usize],
        draft: &[Token],
        distributions: &[Vec<Candidate>],
        verified: &mut Vec<Token>,
    ) -> Result<()> {
        verified.clear();
        self.faults.sampling()?;
        if distributions.len() != draft.len() || draft.is_empty() {
            return sampler.verify(self.target(), entries, draft, verified);
        }
        let distributions: Vec<&[Candidate]> = distributions.iter().map(Vec::as_slice).collect();
        sampler.verify_rejection(self.target(), entries, draft, &distributions, verified)
    }

    /// Empties a slot in both memories, and makes the drafters forget it.
    pub(super) fn clear_slot(&mut self, slot: Slot) -> Result<()> {
        self.faults.memory(Call::ClearSlot)?;
        self.forget(slot);
        self.raw.clear_slot(slot)
    }

    /// Ends a pause: the draft's memory is shown what it missed, in as few batches as can be. After too long a pause it must be
    /// emptied, and shown the text from its beginning. Does nothing without a pause.
    pub(super) fn resume(&mut self, slot: Slot) -> Result<Resumed, Failure> {
        self.by_steps(|stepwise, sides, _| stepwise.resume(sides, slot)).unwrap_or(Ok(Resumed::CaughtUp))
    }

    fn forget(&mut self, slot: Slot) {
        if let Some(stepwise) = &mut self.stepwise {
            stepwise.forget(slot);
        }
    }

    /// Empties a slot in the draft's memory only, and makes the drafters forget it.
    pub(super) fn clear_draft(&mut self, slot: Slot) -> Result<(), Failure> {
        self.faults.drafters(Call::ClearDraft)?;
        self.raw.remove(Side::Draft, slot, 0).map_err(words)?;
        self.forget(slot);
        Ok(self.raw.forget(slot)?)
    }

    /// Empties all memories; after a failure this makes the target usable again.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.faults.memory(Call::ClearAll)?;
        self.raw.clear()?;
        self.faults.cleared();
        (0..self.raw.target().slots()).for_each(|slot| {
            // Nothing can be refused here but the slot, and there are so many.
            let _ = self.raw.forget(Slot::new(slot));
            self.forget(Slot::new(slot));
        });
        Ok(())
    }

    /// Makes a slot hold what another one holds, in both memories and for the drafters. After an error it must be emptied.
    pub(super) fn copy(&mut self, from: Slot, to: Slot) -> Result<()> {
        self.clear_slot(to)?;
        self.faults.memory(Call::CopyMemory)?;
        self.catch_up(from)?;
        self.copies = Copies { target: true, draft: true };
        self.raw.copy_memory(Side::Target, from, to)?;
        self.raw.copy_memory(Side::Draft, from, to)?;
        self.faults.memory(Call::CopyDrafters)?;
        let memory = |failure: Failure| Error::Memory { reason: failure.to_string() };
        if let Some(stepwise) = &mut self.stepwise {
            stepwise.copy(from, to).map_err(memory)?;
        }
        self.raw.copy(from, to).map_err(|failed| memory(failed.failure))
    }

    /// Ends a pause of a slot, or is an error where it lasted too long: for what is done with the whole memory.
    fn catch_up(&mut self, slot: Slot) -> Result<()> {
        let memory = |reason: String| Error::Memory { reason };
        match self.resume(slot).map_err(|failure| memory(failure.to_string()))? {
            Resumed::CaughtUp => Ok(()),
            Resumed::TooLate => Err(memory("the draft's memory did not follow for too long".into())),
        }
    }

    /// What the memories of a slot hold, which are `tokens` tokens.
    ///
    /// # Errors
    /// [`Error::State`] when llama.cpp cannot save them.
    pub(super) fn save_slot(&mut self, slot: Slot, tokens: usize, with_draft: bool) -> Result<Restore> {
        self.faults.state(Call::Save)?;
        if self.copies.target {
            // What the slot should hold may not be there yet; it can be computed.
            return Ok(Restore { target: Vec::new(), draft: Vec::new(), drafter: Vec::new(), tokens: 0 });
        }
        let with_draft = with_draft && !self.copies.draft && self.catch_up(slot).is_ok();
        let target = self.raw.state(Side::Target, slot)?;
        let draft = if with_draft { self.raw.state(Side::Draft, slot)? } else { Vec::new() };
        let drafter = match &self.stepwise {
            _ if !with_draft => Vec::new(),
            Some(stepwise) => stepwise.state(slot).map_err(|failure| Error::State { reason: failure.to_string() })?,
            None => self.raw.drafter_state(slot)?,
        };
        Ok(Restore { target, draft, drafter, tokens })
    }

    /// Fills an empty slot with what was saved of `history`. Gives how many tokens it holds then, and whether the draft's memory
    /// holds them, too.
    ///
    /// # Errors
    /// [`Error::State`] when it is no state for these contexts; what the slot holds is unknown then.
    pub(super) fn restore_slot(&mut self, slot: Slot, saved: &Restore, history: &[Token]) -> Result<(usize, bool)> {
        self.faults.state(Call::RestoreTarget)?;
        if self.copies.target {
            let reason = "slots are still to be copied, and would be copied over it".into();
            return Err(Error::State { reason });
        }
        self.raw.set_state(Side::Target, slot, &saved.target)?;
        let end = self.end(Side::Target, slot)?;
        if end != history.len() {
            let reason = format!("the saved memory ends before position {end}, the text before {}", history.len());
            return Err(Error::State { reason });
        }
        let restored = if self.is_plain() { Ok(false) } else { self.restore_draft(slot, saved, history.len()) };
        // Whether all is known of hidden states that the drafter reads.
        let (with_draft, whole) = (restored.is_ok(), restored.unwrap_or(false));
        if whole || !with_draft || !self.can_cut() || self.resume == Resume::Anywhere {
            return Ok((history.len(), with_draft));
        }
        // What the drafter noted of hidden states is made again.
        let left = self.cut(slot, history, history.len())?;
        Ok((left, true))
    }

    fn restore_draft(&mut self, slot: Slot, saved: &Restore, tokens: usize) -> Result<bool> {
        self.faults.state(Call::RestoreDraft)?;
        if self.copies.draft {
            return Err(Error::State { reason: "slots of the draft are still to be copied".into() });
        }
        self.raw.set_state(Side::Draft, slot, &saved.draft)?;
        match &mut self.stepwise {
            Some(stepwise) => {
                let set = stepwise.set_state(slot, &saved.drafter, tokens);
                set.map_err(|failure| Error::State { reason: failure.to_string() })
            }
            None => self.raw.set_drafter_state(slot, &saved.drafter).map(|()| false),
        }
    }

    /// Whether a part of a slot can be kept when its end is cut off.
    pub(super) fn can_cut(&self) -> bool {
        self.rollback == Rollback::Partial && self.draft_rollback == Rollback::Partial
    }

    /// Takes all but the first `common` tokens of a slot's `history` out of the memories, or some more. Gives how many are
    /// left.
    ///
    /// # Errors
    /// After one, what the slot holds is unknown. [`Error::Decode`] when that is so for all of them.
    pub(super) fn cut(&mut self, slot: Slot, history: &[Token], common: usize) -> Result<usize> {
        if common >= 2 && self.can_cut() && self.catch_up(slot).is_ok() {
            match self.try_cut(slot, history, common) {
                Ok(left) => return Ok(left),
                Err(Error::Decode(error)) if breaks_off(&error) => return Err(error.into()),
                Err(error) => tracing::debug!(%error, "what could be kept is computed again"),
            }
        }
        self.clear_slot(slot)?;
        Ok(0)
    }

    fn try_cut(&mut self, slot: Slot, history: &[Token], common: usize) -> Result<usize> {
        let (left, target_end) = match self.resume {
            Resume::Anywhere => (common, common),
            Resume::Earlier => (common - 1, common - 1),
            Resume::Seeded => (common, common - 1),
        };
        self.remove(Side::Draft, slot, left as u32)?;
        self.remove(Side::Target, slot, target_end as u32)?;
        if self.resume == Resume::Seeded {
            self.replay.clear();
            self.replay.push_prompt(&history[target_end..common], target_end as u32, slot);
            self.decode_again()?;
            self.faults.memory(Call::Seed)?;
            let state = |failure: Failure| Error::State { reason: failure.to_string() };
            self.raw.seed(slot, 0).map_err(|failed| state(failed.failure))?;
            let seeded = self.by_steps(|stepwise, sides, _| stepwise.seed(sides.target, slot, 0, target_end as u32));
            seeded.unwrap_or(Ok(())).map_err(state)?;
        }
        Ok(left)
    }

    /// Whether kept tokens are computed again after a rejection.
    fn replays(&self) -> bool {
        self.rollback == Rollback::Checkpoint || self.draft_rollback == Rollback::Checkpoint
    }

    /// Takes the draft's memory back to `end`, or to the checkpoint before the round.
    fn draft_back_to(&mut self, slot: Slot, checkpoint: u32, end: u32) -> Result<()> {
        match self.draft_rollback {
            Rollback::Checkpoint => self.go_back(Side::Draft, slot, checkpoint),
            _ => self.remove(Side::Draft, slot, end),
        }
    }

    /// Whether the draft's memory of a slot ends where the target's does, or as much earlier as it should.
    pub(super) fn in_step(&mut self, slot: Slot) -> Result<(), Failure> {
        let ends = self.end(Side::Target, slot).ok().zip(self.end(Side::Draft, slot).ok());
        let Some((target, draft)) = ends else { return Ok(()) };
        let missed = self.missed(slot);
        // After too long a pause it is known to be out of step.
        let Some(target) = missed.map(|missed| target.saturating_sub(missed)) else { return Ok(()) };
        let expected = match self.resume {
            Resume::Earlier => target.saturating_sub(1),
            Resume::Anywhere | Resume::Seeded => target,
        };
        match draft == expected {
            true => Ok(()),
            false => {
                let words = format!("its memory ends before position {draft}, and should before {expected}");
                Err(Failure::new(words))
            }
        }
    }

    /// The position behind the last one that a memory holds of a slot.
    pub(super) fn end(&mut self, side: Side, slot: Slot) -> Result<usize> {
        Ok(self.raw.range(side, slot)?.map_or(0, |(_, last)| last as usize + 1))
    }

    fn remove(&mut self, side: Side, slot: Slot, from: u32) -> Result<()> {
        self.faults.memory(if side == Side::Target { Call::RemoveTarget } else { Call::RemoveDraft })?;
        self.raw.remove(side, slot, from)?;
        if let Some(stepwise) = self.stepwise.as_mut().filter(|_| side == Side::Draft) {
            stepwise.cut(slot, from);
        }
        Ok(())
    }

    /// Notes what a memory holds before `position`; an empty one has no state to save.
    fn save(&mut self, side: Side, slot: Slot, position: u32) -> Result<()> {
        self.faults.memory(Call::Checkpoint)?;
        let checkpoints = &mut self.checkpoints[slot.index() as usize];
        let data = if side == Side::Target { &mut checkpoints.target } else { &mut checkpoints.draft };
        if position == 0 { Ok(()) } else { self.raw.checkpoint(side, slot, data) }
    }

    fn go_back(&mut self, side: Side, slot: Slot, position: u32) -> Result<()> {
        self.faults.memory(Call::GoBack)?;
        let checkpoints = &self.checkpoints[slot.index() as usize];
        let data = if side == Side::Target { &checkpoints.target } else { &checkpoints.draft };
        match position {
            0 => self.raw.remove(side, slot, 0),
            position => self.raw.go_back(side, slot, data, position),
        }
    }
}

/// Drafting that can be steered and interrupted.
impl Machine {
    /// Whether the drafts of the model's method can be ended after any token.
    pub(super) fn can_steer(&self) -> bool {
        self.stepwise.is_some()
    }

    /// Whether the model's method can be paused. What goes back to checkpoints cannot.
    pub(super) fn can_pause(&self) -> bool {
        self.stepwise.is_some() && self.draft_rollback != Rollback::Checkpoint
    }

    /// From now on the draft's memory is not shown what the target decodes in a slot. What it misses is kept, up to 1024 tokens.
    /// The slot gets no drafts by the model's method until [`resume`](Self::resume).
    pub(super) fn pause(&mut self, slot: Slot) -> Result<(), Failure> {
        match self.stepwise.as_mut().filter(|_| self.draft_rollback != Rollback::Checkpoint) {
            Some(stepwise) => stepwise.pause(slot),
            None => Err(Failure::new("the drafter cannot be paused")),
        }
    }

    /// Tokens of a slot that the draft's memory missed in a pause; nothing when it was too long.
    pub(super) fn missed(&self, slot: Slot) -> Option<usize> {
        self.stepwise.as_ref().map_or(Some(0), |stepwise| stepwise.missed(slot))
    }

    /// Batches that the draft's context decoded so far, where the loop is ours.
    pub(super) fn draft_decodes(&self) -> u64 {
        self.stepwise.as_ref().map_or(0, Stepwise::decodes)
    }
}

/// Whether the target decodes nothing more before all memories are emptied.
pub(super) fn breaks_off(error: &DecodeError) -> bool {
    matches!(error, DecodeError::Aborted | DecodeError::Fatal { .. } | DecodeError::Poisoned)
}

/// For a probe.
impl Machine {
    /// Empties all memories and makes the drafters anew.
    pub(super) fn renew(&mut self, config: &SpecConfig) -> Result<()> {
        self.raw.clear()?;
        self.checkpoints.iter_mut().for_each(|checkpoints| *checkpoints = Checkpoints::default());
        if self.is_plain() {
            return Ok(());
        }
        let others = match &mut self.stepwise {
            Some(stepwise) => {
                stepwise.renew(config);
                Methods::of(&[stepwise.method()])
            }
            None => Methods::NONE,
        };
        let renewed = self.raw.renew(config, others);
        renewed.map_err(|failed| Error::Speculation { method: config.names(), reason: failed.failure.to_string() })
    }

    /// Whether a model drafts, or heads.
    pub(super) fn has_draft(&self) -> bool {
        self.raw.has_draft()
    }

    /// What the target holds of a slot, if its end cannot be cut off.
    pub(super) fn state_to_go_back(&mut self, slot: Slot) -> Result<Option<Vec<u8>>> {
        match self.rollback {
            Rollback::Partial => Ok(None),
            _ => self.raw.state(Side::Target, slot).map(Some),
        }
    }

    /// Makes the target hold this of a slot.
    pub(super) fn set_state(&mut self, slot: Slot, state: &[u8]) -> Result<()> {
        self.raw.set_state(Side::Target, slot, state)
    }

    /// Takes what the target holds of a slot from a position on out, where ends can be cut off.
    pub(super) fn go_to(&mut self, slot: Slot, position: u32) -> Result<()> {
        self.raw.remove(Side::Target, slot, position)
    }

    /// Makes the target hold of another slot what it holds of the first one.
    pub(super) fn copy_first(&mut self, slot: Slot) -> Result<()> {
        self.raw.remove(Side::Target, slot, 0)?;
        self.raw.copy_memory(Side::Target, Slot::FIRST, slot)
    }
}

fn words(error: Error) -> Failure {
    Failure::new(error.to_string())
}
