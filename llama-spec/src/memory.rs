//! The memory of a context: what each slot holds, taking tokens back, saving and restoring.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::ffi::status::Failed;
use crate::token::Slot;
use llama_sys as sys;
use serde::{Deserialize, Serialize};
use std::ops::{Bound, RangeBounds};

/// How tokens can be taken back out of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rollback {
    /// There is no memory, so nothing can be generated speculatively.
    None,
    /// Any suffix of a slot can be removed.
    Partial,
    /// Only whole slots: a checkpoint must be kept and the accepted tokens replayed.
    Checkpoint,
    /// A suffix of at most this many tokens of the last decode.
    Snapshots(u32),
}

impl Rollback {
    pub(crate) fn from_raw(kind: sys::lsys_rollback, snapshots: u32) -> Self {
        match kind {
            sys::LSYS_ROLLBACK_PARTIAL => Self::Partial,
            sys::LSYS_ROLLBACK_FULL => Self::Checkpoint,
            sys::LSYS_ROLLBACK_SNAPSHOTS => Self::Snapshots(snapshots),
            _ => Self::None,
        }
    }
}

/// The memory of a context, borrowed from it.
#[derive(Debug)]
pub struct Memory<'c> {
    context: &'c mut Context,
}

impl<'c> Memory<'c> {
    pub(crate) fn new(context: &'c mut Context) -> Self {
        Self { context }
    }

    /// Forgets everything, in all slots. After a failed decode this makes the context usable again.
    ///
    /// # Errors
    /// [`Error::Memory`] when the model has no memory.
    pub fn clear(&mut self) -> Result<()> {
        self.context.raw_mut().clear().map_err(refused("cannot clear"))?;
        self.context.forgive();
        Ok(())
    }

    /// Takes the tokens at these positions of a slot out of the memory.
    ///
    /// # Errors
    /// [`Error::Memory`] when the memory cannot remove a part; see [`Context::probe_rollback`].
    pub fn remove(&mut self, slot: Slot, positions: impl RangeBounds<u32>) -> Result<()> {
        let slot = self.context.check(slot)?;
        let (from, to) = bounds(&positions);
        self.context.raw_mut().remove(slot, from, to).map_err(refused("this memory cannot take these tokens back"))
    }

    /// Makes `to` hold what `from` holds; its own content is lost.
    ///
    /// # Errors
    /// [`Error::Memory`] when the memory cannot.
    pub fn copy(&mut self, from: Slot, to: Slot) -> Result<()> {
        let (from, to) = (self.context.check(from)?, self.context.check(to)?);
        if from == to {
            return Ok(());
        }
        let raw = self.context.raw_mut();
        raw.remove(to, -1, -1).and_then(|()| raw.copy(from, to)).map_err(refused("cannot copy"))
    }

    /// Forgets all other slots.
    ///
    /// # Errors
    /// [`Error::Memory`] when the memory cannot.
    pub fn keep(&mut self, slot: Slot) -> Result<()> {
        let slot = self.context.check(slot)?;
        self.context.raw_mut().keep(slot).map_err(refused("cannot forget the other slots"))
    }

    /// Moves the tokens at these positions of a slot by `by` positions.
    ///
    /// # Errors
    /// [`Error::Memory`] when the memory cannot shift; see [`Memory::can_shift`].
    pub fn shift(&mut self, slot: Slot, positions: impl RangeBounds<u32>, by: i32) -> Result<()> {
        let slot = self.context.check(slot)?;
        let (from, to) = bounds(&positions);
        self.context.raw_mut().shift(slot, from, to, by).map_err(refused("this memory cannot shift positions"))
    }

    /// Whether positions can be moved.
    pub fn can_shift(&self) -> bool {
        self.context.raw().can_shift()
    }

    /// The first and last position a slot holds, or nothing if it is empty.
    ///
    /// # Errors
    /// [`Error::Memory`] when the model has no memory.
    pub fn range(&self, slot: Slot) -> Result<Option<(u32, u32)>> {
        let slot = self.context.check(slot)?;
        let (min, max) = self.context.raw().range(slot).map_err(refused("cannot be read"))?;
        Ok(u32::try_from(min).ok().zip(u32::try_from(max).ok()))
    }

    /// Everything a slot holds, to be restored later, in this process or another, for the same model and options.
    ///
    /// # Errors
    /// [`Error::State`] when it cannot be saved.
    pub fn save(&mut self, slot: Slot) -> Result<Vec<u8>> {
        let slot = self.context.check(slot)?;
        let state = self.context.raw_mut().state(slot);
        state.map_err(|failed| Error::State { reason: failed.failure.to_string() })
    }

    /// Makes a slot hold what [`Memory::save`] saved; its own content is lost.
    ///
    /// # Errors
    /// [`Error::State`] when the bytes are not a state for this context. The slot is then empty.
    pub fn restore(&mut self, slot: Slot, state: &[u8]) -> Result<()> {
        let slot = self.context.check(slot)?;
        let raw = self.context.raw_mut();
        let restored = raw.remove(slot, -1, -1).and_then(|()| raw.set_state(slot, state));
        restored.map_err(|failed| {
            // Removing a whole slot never fails (llama.h), and the error below is the one that matters.
            let _ = self.context.raw_mut().remove(slot, -1, -1);
            Error::State { reason: format!("these bytes are not a state for this context: {}", failed.failure) }
        })
    }
}

impl Memory<'_> {
    /// Saves what [`Memory::remove`] cannot undo, in place of what was in `data`.
    pub(crate) fn checkpoint(&mut self, slot: Slot, data: &mut Vec<u8>) -> Result<()> {
        let slot = self.context.check(slot)?;
        let saved = self.context.raw_mut().checkpoint(slot, data);
        saved.map_err(|failed| Error::State { reason: failed.failure.to_string() })
    }

    /// Makes a slot hold what it held at the checkpoint, which was taken when it ended before position `end`.
    pub(crate) fn go_back(&mut self, slot: Slot, data: &[u8], end: u32) -> Result<()> {
        let slot = self.context.check(slot)?;
        let raw = self.context.raw_mut();
        let restored = raw.restore(slot, data).and_then(|()| raw.remove(slot, end as i32, -1));
        restored.map_err(|failed| Error::State { reason: failed.failure.to_string() })
    }
}

fn refused(what: &'static str) -> impl Fn(Failed) -> Error {
    move |failed| match failed.is_refusal() && failed.failure.message.is_empty() {
        true => Error::Memory { reason: what.to_owned() },
        false => Error::Memory { reason: format!("{what}: {}", failed.failure) },
    }
}

/// The half-open range that C understands; -1 as the end is "to the last".
fn bounds(positions: &impl RangeBounds<u32>) -> (i32, i32) {
    let number = |position: u32| i32::try_from(position).unwrap_or(i32::MAX);
    let from = match positions.start_bound() {
        Bound::Included(position) => number(*position),
        Bound::Excluded(position) => number(position.saturating_add(1)),
        Bound::Unbounded => 0,
    };
    let to = match positions.end_bound() {
        Bound::Included(position) => number(position.saturating_add(1)),
        Bound::Excluded(position) => number(*position),
        Bound::Unbounded => -1,
    };
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn ranges_become_half_open() {
        assert_eq!(bounds(&(..)), (0, -1));
        assert_eq!(bounds(&(3..)), (3, -1));
        assert_eq!(bounds(&(3..7)), (3, 7));
        assert_eq!(bounds(&(3..=7)), (3, 8));
        assert_eq!(bounds(&(..u32::MAX)), (0, i32::MAX));
    }
}
