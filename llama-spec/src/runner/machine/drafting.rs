//! What the drafters of a machine are asked and told: to follow the target, to draft, what became of a draft, to rest.

use super::{Call, Machine, words};
use crate::batch::Batch;
use crate::error::{Failure, Result};
use crate::ffi::speculation::{DraftRequest, Drafted, Side};
use crate::memory::Rollback;
use crate::runner::stepwise::{Resumed, Sides, Steer, Stepwise};
use crate::spec::Methods;
use crate::token::{Slot, Token};

impl Machine {
    /// Shows the drafters what was just decoded.
    pub(in crate::runner) fn follow(&mut self) -> Result<(), Failure> {
        self.faults.drafters(Call::Follow)?;
        self.show()?;
        self.copies.draft = false;
        self.faults.drafters(Call::Followed)
    }

    pub(super) fn show(&mut self) -> Result<(), Failure> {
        self.raw.follow()?;
        self.by_steps(|stepwise, sides, shown| stepwise.follow(sides, shown)).unwrap_or(Ok(()))
    }

    /// Calls something of our own loop, if there is one.
    pub(super) fn by_steps<T>(&mut self, run: impl FnOnce(&mut Stepwise, &mut Sides<'_>, &Batch) -> T) -> Option<T> {
        let Self { raw, stepwise: Some(stepwise), shown, .. } = self else { return None };
        let (target, draft) = raw.sides();
        Some(run(stepwise, &mut Sides { target, draft: draft? }, shown))
    }

    /// Gives the drafters the history of a slot, once the prompt is in the memories.
    pub(in crate::runner) fn begin(&mut self, slot: Slot, history: &[Token]) -> Result<(), Failure> {
        self.faults.drafters(Call::Begin)?;
        Ok(self.raw.begin(slot, history)?)
    }

    /// Adds tokens to the history of a slot.
    pub(in crate::runner) fn extend(&mut self, slot: Slot, tokens: &[Token]) -> Result<(), Failure> {
        self.faults.drafters(Call::Extend)?;
        Ok(self.raw.extend(slot, tokens)?)
    }

    /// Tells the drafters how many tokens were right of the draft that was verified, and how many of these were of the last draft
    /// that one of them made: `accepted` and `own`. They differ where somebody else had a part in it.
    pub(in crate::runner) fn accept(&mut self, slot: Slot, own: usize, accepted: usize) -> Result<(), Failure> {
        self.faults.drafters(Call::Accept)?;
        let theirs = match self.stepwise.as_ref().map(|stepwise| stepwise.open(slot)) {
            None => true,
            // Then it was the draft of a lookup, if it was one.
            Some(0) if !self.raw.is_plain() => true,
            Some(open) if own > open => {
                return Err(Failure::new(format!("{own} tokens cannot be accepted, {open} are open")));
            }
            Some(_) => false,
        };
        // Theirs are told one number, and those that read hidden states need that of all tokens.
        match theirs && own == accepted {
            true => self.raw.accept(slot, own)?,
            false => self.raw.accept_foreign(slot, accepted)?,
        }
        self.by_steps(|stepwise, sides, _| stepwise.accept(sides, slot, accepted)).unwrap_or(Ok(()))
    }

    /// Tells the drafters how many tokens were right of a draft that none of them made, once they were shown it.
    pub(in crate::runner) fn accept_foreign(&mut self, slot: Slot, accepted: usize) -> Result<(), Failure> {
        self.faults.drafters(Call::Accept)?;
        self.raw.accept_foreign(slot, accepted)?;
        self.by_steps(|stepwise, sides, _| stepwise.accept(sides, slot, accepted)).unwrap_or(Ok(()))
    }

    /// Drafts for several slots. The draft's memory holds nothing of what was guessed then: what the target accepts of it is
    /// computed again, behind the target's batch or with the next draft. After an error it may be out of step for all of these
    /// slots. Of a slot that is not `in_step` it is left alone, since there it is only looked up what may come.
    #[cfg(test)]
    pub(in crate::runner) fn draft(
        &mut self,
        requests: &[DraftRequest],
        drafted: &mut [Drafted],
        in_step: impl Fn(Slot) -> bool,
    ) -> Result<(), Failure> {
        self.draft_steered(requests, drafted, in_step, &mut |_, _, _| true)
    }

    /// The same, and `steer` ends the drafts of a method that [can be steered](Self::can_steer) early.
    pub(in crate::runner) fn draft_steered(
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
            let nobody = methods.is_empty() && !request.methods.is_empty() || !request.behind.is_empty();
            let limit = if nobody { 0 } else { request.limit };
            DraftRequest { methods, limit, ..request.clone() }
        });
        let lookups: Vec<DraftRequest> = lookups.collect();
        self.raw.draft(&lookups, drafted)?;
        self.by_steps(|stepwise, sides, _| stepwise.draft(sides, requests, drafted, steer)).unwrap_or(Ok(()))
    }
}

/// Drafting that can be steered and interrupted.
impl Machine {
    /// Whether the drafts of the model's method can be ended after any token.
    pub(in crate::runner) fn can_steer(&self) -> bool {
        self.stepwise.is_some()
    }

    /// Whether the model's method can go on behind the draft of somebody else.
    pub(in crate::runner) fn can_go_on(&self) -> bool {
        self.stepwise.as_ref().is_some_and(Stepwise::goes_on)
    }

    /// Whether the model's method can be paused. What goes back to checkpoints cannot.
    pub(in crate::runner) fn can_pause(&self) -> bool {
        self.stepwise.is_some() && self.draft_rollback != Rollback::Checkpoint
    }

    /// From now on the draft's memory is not shown what the target decodes in a slot. What it misses is kept, up to 1024 tokens.
    /// The slot gets no drafts by the model's method until [`resume`](Self::resume).
    pub(in crate::runner) fn pause(&mut self, slot: Slot) -> Result<(), Failure> {
        match self.stepwise.as_mut().filter(|_| self.draft_rollback != Rollback::Checkpoint) {
            Some(stepwise) => stepwise.pause(slot),
            None => Err(Failure::new("the drafter cannot be paused")),
        }
    }

    /// Tokens of a slot that the draft's memory missed in a pause; nothing when it was too long.
    pub(in crate::runner) fn missed(&self, slot: Slot) -> Option<usize> {
        self.stepwise.as_ref().map_or(Some(0), |stepwise| stepwise.missed(slot))
    }

    /// Batches that the draft's context decoded so far, where the loop is ours.
    pub(in crate::runner) fn draft_decodes(&self) -> u64 {
        self.stepwise.as_ref().map_or(0, Stepwise::decodes)
    }

    /// Ends a pause: the draft's memory is shown what it missed, in as few batches as can be. After too long a pause it must be
    /// emptied, and shown the text from its beginning. Does nothing without a pause.
    pub(in crate::runner) fn resume(&mut self, slot: Slot) -> Result<Resumed, Failure> {
        self.by_steps(|stepwise, sides, _| stepwise.resume(sides, slot)).unwrap_or(Ok(Resumed::CaughtUp))
    }
}
