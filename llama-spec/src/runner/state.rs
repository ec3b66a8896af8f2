//! What the memories of a slot hold, taken out and put back.

use super::{Broken, DraftMemory, Job, Restore, Runner, slot};
use crate::error::Result;

impl Runner {
    /// What is needed to go on with a text somewhere else: its job, and what the memories hold of it. Nothing if there is no
    /// such text in a slot.
    ///
    /// # Errors
    /// When llama.cpp cannot save.
    pub(crate) fn save(&mut self, id: u64) -> Option<(&Job, Result<Restore>)> {
        let index = self.slots.iter().position(|seat| seat.job.as_ref().is_some_and(|job| job.id == id))?;
        let seat = &self.slots[index];
        let with_draft = seat.draft_memory == DraftMemory::InStep;
        let saved = match seat.history.len() {
            0 => Ok(Restore { target: Vec::new(), draft: Vec::new(), drafter: Vec::new(), tokens: 0 }),
            tokens => self.machine.save_slot(slot(index), tokens, with_draft),
        };
        self.slots[index].job.as_ref().map(|job| (job, saved))
    }

    /// Fills a slot with what was saved; what cannot be restored is computed again.
    pub(super) fn restore(&mut self, index: usize, saved: Option<Restore>) -> std::result::Result<(), Broken> {
        self.empty(index)?;
        let Some(saved) = saved.filter(|saved| saved.tokens > 0) else { return Ok(()) };
        let Some(job) = &self.slots[index].job else { return Ok(()) };
        if saved.tokens >= job.tokens.len() {
            return Ok(());
        }
        let history = job.tokens[..saved.tokens].to_vec();
        match self.machine.restore_slot(slot(index), &saved, &history) {
            Ok((left, with_draft)) => {
                let seat = &mut self.slots[index];
                seat.history = history;
                seat.history.truncate(left);
                seat.draft_memory = if with_draft { DraftMemory::InStep } else { DraftMemory::Behind };
                Ok(())
            }
            Err(error) => self.compute_again(index, &error),
        }
    }
}
