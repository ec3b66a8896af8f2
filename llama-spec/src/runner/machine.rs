//! The contexts and drafters of a runner, and how they are kept in step when tokens are taken back.
//!
//! All calls of llama.cpp that the loop makes go through here. Which calls keep two memories in step depends on what kind of
//! memory they are ([`Rollback`]) and on where the drafter can be continued ([`Resume`]); nobody else needs to know.

mod drafting;
mod state;
mod trial;

use super::fault::{Call, Faults};
use super::stepwise::Stepwise;
use crate::batch::Batch;
use crate::context::Context;
use crate::error::{DecodeError, Error, Failure, Result};
use crate::ffi::speculation::{RawSpeculation, Side};
use crate::memory::Rollback;
use crate::sample::{Candidate, Sampler};
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
        let stepwise = stepwise.map(|stepwise| stepwise.owing(draft_rollback == Rollback::Partial));
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
        // After too long a pause it is known to be out of step.
        let missed = self.stepwise.as_ref().map_or(Some(0), |stepwise| stepwise.lacks(slot));
        let Some(missed) = missed else { return Ok(()) };
        let target = target.saturating_sub(missed);
        let expected = match self.resume {
            // Where a pause began behind a cut, the draft had the pair of the last token that was left.
            Resume::Earlier if missed > 0 && draft == target => draft,
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

/// Whether the target decodes nothing more before all memories are emptied.
pub(super) fn breaks_off(error: &DecodeError) -> bool {
    matches!(error, DecodeError::Aborted | DecodeError::Fatal { .. } | DecodeError::Poisoned)
}

fn words(error: Error) -> Failure {
    Failure::new(error.to_string())
}
