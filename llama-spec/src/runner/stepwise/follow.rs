//! Showing the draft what the target decoded.

use super::notes::{Pause, Span};
use super::reads::Reads;
use super::{Heads, Sides, Stepwise};
use crate::batch::{Batch, Entry};
use crate::context::Context;
use crate::error::Failure;
use crate::token::Slot;
use std::ops::Range;

impl Stepwise {
    /// Shows the draft what the target has just decoded. What the draft's memory holds of it already must have been removed.
    pub(in super::super) fn follow(&mut self, sides: &mut Sides<'_>, batch: &Batch) -> Result<(), Failure> {
        let done = self.collect(sides, batch).and_then(|()| self.flush(sides));
        done.inspect_err(|_| self.feed.clear())
    }

    fn collect(&mut self, sides: &mut Sides<'_>, batch: &Batch) -> Result<(), Failure> {
        let mut read = std::mem::take(&mut self.read);
        read.clear();
        self.read_all(sides.target, batch, &mut read)?;
        let rows = self.encode(sides, read)?;
        self.absorb_all(sides, batch, &rows)?;
        self.read = rows;
        Ok(())
    }

    /// Reads the hidden states of all slots that are followed. Those of the others are put aside.
    fn read_all(&mut self, target: &Context, batch: &Batch, read: &mut Vec<f32>) -> Result<(), Failure> {
        let mut aside = Vec::new();
        for part in parts(batch) {
            let reads = &self.reads;
            match &self.notes(part.slot)?.pause {
                Pause::No => reads.read(target, part.entries, read)?,
                Pause::TooLong => {}
                Pause::Since(_) => {
                    aside.clear();
                    reads.read(target, part.entries, &mut aside)?;
                    self.notes_mut(part.slot)?.miss(part.tokens, part.position, &aside);
                }
            }
        }
        Ok(())
    }

    fn absorb_all(&mut self, sides: &mut Sides<'_>, batch: &Batch, mut rows: &[f32]) -> Result<(), Failure> {
        for part in parts(batch) {
            if self.is_paused(part.slot) {
                continue;
            }
            if self.owes {
                if self.notes_mut(part.slot)?.owe(part.tokens, part.position) {
                    continue;
                }
                let owed = std::mem::take(&mut self.notes_mut(part.slot)?.owed);
                self.absorb(sides, part.slot, owed.position, &owed.entries(part.slot), &[])?;
            }
            let (own, others) = rows.split_at_checked(part.tokens.len() * self.width).ok_or_else(too_few)?;
            rows = others;
            self.absorb(sides, part.slot, part.position, part.tokens, own)?;
        }
        Ok(())
    }

    /// Shows the draft what it missed of a slot.
    pub(super) fn absorb_missed(&mut self, sides: &mut Sides<'_>, slot: Slot, missed: Span) -> Result<(), Failure> {
        let tokens = missed.entries(slot);
        let rows = self.encode(sides, missed.rows)?;
        let done = self.absorb(sides, slot, missed.position, &tokens, &rows).and_then(|()| self.flush(sides));
        // Nothing of it can be rejected any more.
        self.notes_mut(slot)?.last.rows.clear();
        done.inspect_err(|_| self.feed.clear())
    }

    /// Makes rows that are read beside tokens of what was read of the target.
    fn encode(&mut self, sides: &mut Sides<'_>, read: Vec<f32>) -> Result<Vec<f32>, Failure> {
        if read.is_empty() || !matches!(self.reads, Reads::Layers(_)) {
            return Ok(read);
        }
        self.decodes += 1;
        self.reads.encode(sides, &read).map_err(|error| self.failed(sides.draft, error))
    }

    /// Adds the pairs of a part of a text to the batch, and notes what waits for the token after it. [`flush`](Self::flush) must
    /// come after the last part. There are as many `rows` as tokens, if any are read.
    fn absorb(
        &mut self,
        sides: &mut Sides<'_>,
        slot: Slot,
        position: u32,
        tokens: &[Entry],
        rows: &[f32],
    ) -> Result<(), Failure> {
        if tokens.is_empty() {
            return Ok(());
        }
        let (width, shift) = (self.width, self.reads.shift());
        let waiting = self.notes_mut(slot)?.pending.take();
        let first = match &self.reads {
            Reads::Nothing => Some(Vec::new()),
            // The beginning of a text has nothing before it. Heads read zeros there.
            Reads::Hidden => Some(waiting.map_or_else(|| vec![0.0; width], |pending| pending.row)),
            Reads::Layers(_) => {
                let end = sides.draft.memory().range(slot).map_err(super::words)?.map_or(0, |(_, last)| last + 1);
                let fits = waiting.filter(|pending| pending.position + 1 == position && pending.position >= end);
                fits.map(|pending| pending.row)
            }
        };
        let shown = if self.heads == Heads::Shared { &[] } else { tokens };
        for (number, token) in shown.iter().enumerate() {
            let row = match number.checked_sub(1) {
                None => first.as_deref(),
                Some(before) => Some(rows.get(before * width..(before + 1) * width).ok_or_else(too_few)?),
            };
            let Some(row) = row else { continue };
            self.feed.push(token.token, token.position.saturating_sub(shift), slot, false, row);
            if self.feed.len() >= sides.draft.batch_size() as usize {
                self.flush(sides)?;
            }
        }
        let notes = self.notes_mut(slot)?;
        notes.last.position = position;
        notes.last.rows.clear();
        notes.last.rows.extend_from_slice(rows);
        notes.settle(usize::MAX, width);
        Ok(())
    }

    /// Decodes what was collected, once for each head that has layers of its own.
    pub(super) fn flush(&mut self, sides: &mut Sides<'_>) -> Result<(), Failure> {
        let done = match self.feed.is_empty() {
            true => Ok(()),
            false => self.decode_for_all_heads(sides),
        };
        self.feed.clear();
        done
    }

    fn decode_for_all_heads(&mut self, sides: &mut Sides<'_>) -> Result<(), Failure> {
        let Heads::Chain(heads) = self.heads else { return self.decode(sides) };
        let done = (0..heads).try_for_each(|head| {
            for part in parts(self.feed.batch()) {
                sides.draft.memory().remove(part.slot, part.position..).map_err(super::words)?;
            }
            sides.draft.set_head(head)?;
            self.decode(sides)
        });
        sides.draft.set_head(0)?;
        done
    }

    fn decode(&mut self, sides: &mut Sides<'_>) -> Result<(), Failure> {
        self.decodes += 1;
        self.feed.decode(sides.draft).map_err(|error| self.failed(sides.draft, error))
    }
}

/// The tokens of one slot in a batch, which follow each other there.
struct Part<'b> {
    slot: Slot,
    /// Where the first of them stands.
    position: u32,
    tokens: &'b [Entry],
    /// Their numbers in the batch.
    entries: Range<usize>,
}

fn parts(batch: &Batch) -> impl Iterator<Item = Part<'_>> {
    let mut from = 0;
    batch.entries().chunk_by(|one, next| one.slot == next.slot).filter_map(move |tokens| {
        let entries = from..from + tokens.len();
        from = entries.end;
        let first = tokens.first()?;
        Some(Part { slot: first.slot, position: first.position, tokens, entries })
    })
}

fn too_few() -> Failure {
    Failure::new("the target gave too few hidden states")
}
