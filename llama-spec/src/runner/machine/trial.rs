//! What a probe does to a machine.

use super::{Checkpoints, Machine};
use crate::error::{Error, Result};
use crate::ffi::speculation::Side;
use crate::memory::Rollback;
use crate::spec::{Methods, SpecConfig};
use crate::token::Slot;

impl Machine {
    /// Empties all memories and makes the drafters anew.
    pub(in crate::runner) fn renew(&mut self, config: &SpecConfig) -> Result<()> {
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
    pub(in crate::runner) fn has_draft(&self) -> bool {
        self.raw.has_draft()
    }

    /// What the target holds of a slot, if its end cannot be cut off.
    pub(in crate::runner) fn state_to_go_back(&mut self, slot: Slot) -> Result<Option<Vec<u8>>> {
        match self.rollback {
            Rollback::Partial => Ok(None),
            _ => self.raw.state(Side::Target, slot).map(Some),
        }
    }

    /// Makes the target hold this of a slot.
    pub(in crate::runner) fn set_state(&mut self, slot: Slot, state: &[u8]) -> Result<()> {
        self.raw.set_state(Side::Target, slot, state)
    }

    /// Takes what the target holds of a slot from a position on out, where ends can be cut off.
    pub(in crate::runner) fn go_to(&mut self, slot: Slot, position: u32) -> Result<()> {
        self.raw.remove(Side::Target, slot, position)
    }

    /// Makes the target hold of another slot what it holds of the first one.
    pub(in crate::runner) fn copy_first(&mut self, slot: Slot) -> Result<()> {
        self.raw.remove(Side::Target, slot, 0)?;
        self.raw.copy_memory(Side::Target, Slot::FIRST, slot)
    }
}
