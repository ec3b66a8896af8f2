//! Which slot a text gets, and how much of what is there it can use.

use super::{Broken, DraftMemory, Job, Runner, Seat, slot};
use crate::error::{DecodeError, Error};
use crate::generate::StopReason;
use crate::token::Token;
use std::time::Instant;

/// A common beginning shorter than this is not worth what would be thrown away for it.
const WORTH_KEEPING: usize = 16;

impl Runner {
    /// Starts a job in the free slot that suits it best. If none is free, it is among those that [`Runner::take_returned`] gives.
    ///
    /// # Errors
    /// When the contexts broke down.
    pub(crate) fn start(&mut self, job: Job) -> Result<(), Broken> {
        match self.best_seat(&job.tokens) {
            Some((index, _)) => self.start_in(index, job),
            None => {
                self.returned.push(job);
                Ok(())
            }
        }
    }

    fn start_in(&mut self, index: usize, mut job: Job) -> Result<(), Broken> {
        self.note_start(&mut job);
        self.clock += 1;
        let seat = &mut self.slots[index];
        seat.used = self.clock;
        seat.begun = false;
        let restore = job.restore.take();
        // The last token is decoded in a round, since its logits are needed.
        let common = common(&seat.history, &job.tokens[..job.tokens.len() - 1]);
        let (held, draft_memory) = (seat.history.len(), seat.draft_memory);
        let length = job.tokens.len();
        seat.take(job);
        self.chooser.controller.begin(index, length);
        let needs_draft = self.wants_model(index);
        match () {
            () if restore.is_some() => self.restore(index, restore)?,
            () if needs_draft && draft_memory != DraftMemory::InStep => self.empty(index)?,
            () if common < held => self.cut(index, common)?,
            () => {}
        }
        if self.slots[index].history.len() < WORTH_KEEPING {
            self.borrow_beginning(index)?;
        }
        let cached = self.slots[index].history.len();
        if let Some(job) = &mut self.slots[index].job {
            if job.answer.generated() == 0 {
                job.stats.cached_tokens = cached as u64;
                self.total.cached_tokens += cached as u64;
            }
            if job.answer.budget() == 0 {
                self.finish(index, StopReason::MaxTokens);
            }
        }
        if !self.lacks(index) {
            // There is no prefill at whose end this would be done.
            self.share_prompt(index)?;
        }
        Ok(())
    }

    /// Notes that a job gets a slot, and tells its drafters.
    fn note_start(&mut self, job: &mut Job) {
        let first = job.times.started.is_none();
        job.note_start(Instant::now());
        if first {
            self.counts.queue_times.record(job.stats.queue);
            self.total.queue += job.stats.queue;
            self.total.prompt_tokens += job.stats.prompt_tokens;
        }
        let Job { drafting, tokens, .. } = job;
        drafting.begin(tokens);
    }

    /// How many tokens of a prompt need not be computed, as it is now.
    pub(crate) fn reusable(&self, prompt: &[Token]) -> usize {
        self.best_seat(prompt).map_or(0, |(_, kept)| kept)
    }

    /// Empties a slot without blaming its text.
    pub(super) fn empty(&mut self, index: usize) -> Result<(), Broken> {
        self.recompute(index)?;
        if let Some(job) = &mut self.slots[index].job {
            job.recomputed = 0;
        }
        Ok(())
    }

    /// Takes all but the first `common` tokens out of a slot.
    fn cut(&mut self, index: usize, common: usize) -> Result<(), Broken> {
        let seat = &mut self.slots[index];
        match self.machine.cut(slot(index), &seat.history, common) {
            Ok(0) => self.empty(index),
            Ok(left) => {
                seat.history.truncate(left);
                Ok(())
            }
            Err(error) => self.compute_again(index, &error),
        }
    }

    /// The memory of a slot could not be changed as it should: its text is computed again.
    pub(super) fn compute_again(&mut self, index: usize, error: &Error) -> Result<(), Broken> {
        tracing::warn!(slot = index, %error, "the text is computed again");
        match error {
            // Then so are the others.
            Error::Decode(DecodeError::Aborted) => self.restart(),
            Error::Decode(error @ (DecodeError::Fatal { .. } | DecodeError::Poisoned)) => {
                self.decode_failed(&[index], error)
            }
            _ => self.empty(index),
        }
    }

    /// Copies the beginning of a prompt from a slot that holds it and is in use.
    fn borrow_beginning(&mut self, index: usize) -> Result<(), Broken> {
        let needs_draft = self.wants_model(index);
        let Some(job) = &self.slots[index].job else { return Ok(()) };
        let wanted = &job.tokens[..job.tokens.len() - 1];
        let others = self
            .slots
            .iter()
            .enumerate()
            .filter(|(other, seat)| *other != index && (!needs_draft || seat.draft_memory == DraftMemory::InStep));
        let longest = others.map(|(other, seat)| (common(&seat.history, wanted), other)).max();
        let Some((length, other)) = longest.filter(|(length, _)| *length >= WORTH_KEEPING) else { return Ok(()) };
        if length < self.slots[other].history.len() && !self.machine.can_cut() {
            return Ok(());
        }
        self.copy(other, index)?;
        if length < self.slots[index].history.len() {
            self.cut(index, length)?;
        }
        Ok(())
    }

    /// Makes a slot hold what another one holds; if that cannot be done it is empty.
    pub(super) fn copy(&mut self, from: usize, to: usize) -> Result<(), Broken> {
        if let Err(error) = self.machine.copy(slot(from), slot(to)) {
            return self.compute_again(to, &error);
        }
        let (history, draft_memory) = (self.slots[from].history.clone(), self.slots[from].draft_memory);
        let seat = &mut self.slots[to];
        (seat.history, seat.draft_memory, seat.begun) = (history, draft_memory, false);
        Ok(())
    }

    /// Gives the prompt of a slot, which is in the memory now, to the other answers that were asked for.
    pub(super) fn share_prompt(&mut self, index: usize) -> Result<(), Broken> {
        let mut siblings = self.slots[index].job.as_mut().map(Job::take_siblings).unwrap_or_default();
        let history = &self.slots[index].history;
        if siblings.iter().any(|sibling| history[..] != sibling.tokens[..sibling.tokens.len() - 1]) {
            // It has gone on already: they begin as if they had come by themselves.
            self.returned.append(&mut siblings);
            return Ok(());
        }
        siblings.reverse();
        while let Some(mut sibling) = siblings.pop() {
            let free = (0..self.slots.len()).filter(|other| self.slots[*other].job.is_none());
            let Some(free) = free.min_by_key(|other| self.slots[*other].used) else {
                self.returned.push(sibling);
                continue;
            };
            self.note_start(&mut sibling);
            self.clock += 1;
            let seat = &mut self.slots[free];
            seat.used = self.clock;
            seat.take(sibling);
            self.chooser.controller.begin(free, self.slots[free].job.as_ref().map_or(0, |job| job.tokens.len()));
            if let Err(broken) = self.copy(index, free) {
                self.returned.append(&mut siblings);
                return Err(broken);
            }
            let cached = self.slots[free].history.len() as u64;
            if let Some(job) = &mut self.slots[free].job {
                job.stats.cached_tokens = cached;
                self.total.cached_tokens += cached;
                if job.answer.budget() == 0 {
                    self.finish(free, StopReason::MaxTokens);
                }
            }
        }
        Ok(())
    }

    /// The free slot for these tokens, and how much of what it holds can stay.
    fn best_seat(&self, tokens: &[Token]) -> Option<(usize, usize)> {
        let free = self.slots.iter().enumerate().filter(|(_, seat)| seat.job.is_none());
        let value = |seat: &Seat| {
            let common = common(&seat.history, &tokens[..tokens.len().saturating_sub(1)]);
            let keeps = common >= WORTH_KEEPING || common == seat.history.len();
            if keeps { common } else { 0 }
        };
        // Of equals, the one that was not used for the longest time: the others may be asked for again.
        let best = free.max_by_key(|(_, seat)| (value(seat), seat.history.is_empty(), std::cmp::Reverse(seat.used)));
        best.map(|(index, seat)| (index, value(seat)))
    }
}

/// How many tokens two texts begin with in common.
fn common(one: &[Token], other: &[Token]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
