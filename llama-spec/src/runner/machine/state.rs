//! Saving what the memories of a slot hold, and filling a slot with it.

use super::{Call, Machine, Resume};
use crate::error::{Error, Result};
use crate::ffi::speculation::Side;
use crate::runner::Restore;
use crate::runner::stepwise::Resumed;
use crate::token::{Slot, Token};

impl Machine {
    /// Ends a pause of a slot and computes what is owed of it, or is an error where the pause lasted too long: for what is done with
    /// the whole memory.
    pub(super) fn catch_up(&mut self, slot: Slot) -> Result<()> {
        let memory = |reason: String| Error::Memory { reason };
        match self.resume(slot).map_err(|failure| memory(failure.to_string()))? {
            Resumed::CaughtUp => {
                let paid = self.by_steps(|stepwise, sides, _| stepwise.pay(sides, slot)).unwrap_or(Ok(()));
                paid.map_err(|failure| memory(failure.to_string()))
            }
            Resumed::TooLate => Err(memory("the draft's memory did not follow for too long".into())),
        }
    }

    /// What the memories of a slot hold, which are `tokens` tokens.
    ///
    /// # Errors
    /// [`Error::State`] when llama.cpp cannot save them.
    pub(in crate::runner) fn save_slot(&mut self, slot: Slot, tokens: usize, with_draft: bool) -> Result<Restore> {
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
    pub(in crate::runner) fn restore_slot(
        &mut self,
        slot: Slot,
        saved: &Restore,
        history: &[Token],
    ) -> Result<(usize, bool)> {
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
}
