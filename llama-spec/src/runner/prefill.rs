//! Computing prompts, one piece of one prompt at a time.

use super::{Broken, Runner, slot};
use crate::error::{DecodeError, Failure};
use crate::generate::{Event, StopReason};
use std::time::Instant;

/// A text whose memory had to be computed anew so often without a new token is given up.
const RECOMPUTED: u32 = 8;

impl Runner {
    /// Computes the next piece of the prompt whose turn it is, if there is one.
    pub(super) fn prefill(&mut self) -> Result<(), Broken> {
        let count = self.slots.len();
        let turns = (1..=count).map(|offset| (self.turn + offset) % count);
        let Some(index) = turns.into_iter().find(|index| self.lacks(*index)) else { return Ok(()) };
        self.turn = index;
        let _span = tracing::trace_span!("prefill", slot = index).entered();
        let mut most = self.target().micro_batch_size() as usize;
        loop {
            match self.prefill_piece(index, most) {
                Ok(()) => break,
                Err(DecodeError::NoRoom { entries }) => {
                    let smaller = most.min(entries.max(1)) / 2;
                    match smaller {
                        0 if !self.make_room(index)? => return self.no_room_at_all(index),
                        // It may have been preempted itself.
                        0 if self.slots[index].job.is_none() => return Ok(()),
                        0 => {}
                        smaller => most = smaller,
                    }
                }
                Err(error) => return self.decode_failed(&[index], &error),
            }
        }
        self.follow(&[index]);
        if !self.lacks(index) {
            self.share_prompt(index)?;
        }
        Ok(())
    }

    /// Whether a part of its text is missing in a slot, the last token aside.
    pub(super) fn lacks(&self, index: usize) -> bool {
        let seat = &self.slots[index];
        seat.job.as_ref().is_some_and(|job| seat.history.len() + 1 < job.tokens.len())
    }

    fn prefill_piece(&mut self, index: usize, most: usize) -> Result<(), DecodeError> {
        let start = Instant::now();
        let seat = &mut self.slots[index];
        let Some(job) = &mut seat.job else { return Ok(()) };
        if job.recomputed > RECOMPUTED {
            let message = "its memory had to be computed anew again and again";
            return Err(DecodeError::Refused { failure: Failure::new(message) });
        }
        let first = seat.history.len();
        let part = first..(job.tokens.len() - 1).min(first + most);
        let batch = &mut self.buffers.batch;
        batch.clear();
        for position in part.clone() {
            batch.push(job.tokens[position], position as u32, slot(index), false);
        }
        let entries = batch.len();
        self.machine.decode(batch).map_err(|error| match error {
            DecodeError::NoRoom { .. } => DecodeError::NoRoom { entries },
            other => other,
        })?;
        seat.history.extend_from_slice(&job.tokens[part.clone()]);
        let elapsed = start.elapsed();
        self.total.prefill += elapsed;
        job.stats.prefill += elapsed;
        if job.answer.generated() == 0 {
            job.answer.report(Event::Prefill { done: part.end + 1, total: job.tokens.len() });
        }
        Ok(())
    }

    /// The memory cannot hold this text even alone.
    fn no_room_at_all(&mut self, index: usize) -> Result<(), Broken> {
        self.finish(index, StopReason::ContextFull);
        self.recompute(index)
    }
}
