//! The contexts and drafters of a generator, and how they are kept in step when tokens are taken back.

use crate::batch::Batch;
use crate::context::Context;
use crate::error::{DecodeError, Failure, Result};
use crate::ffi::speculation::{DraftRequest, Drafted, Methods, RawSpeculation, Side};
use crate::memory::Rollback;
use crate::spec::Method;
use crate::token::{Slot, Token};

/// The one slot of a generator.
const SLOT: Slot = Slot::FIRST;

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

/// The contexts and drafters of a generator.
#[derive(Debug)]
pub(super) struct Engine {
    raw: RawSpeculation,
    rollback: Rollback,
    /// As of the draft's memory; `Partial` when there is none.
    draft_rollback: Rollback,
    resume: Resume,
    /// What the memories held before the round, as far as it cannot be cut back.
    checkpoints: Checkpoints,
    /// Tokens that are computed again.
    replay: Batch,
}

#[derive(Debug, Default)]
struct Checkpoints {
    target: Vec<u8>,
    draft: Vec<u8>,
}

impl Engine {
    /// A target that decodes alone.
    pub(super) fn plain(target: Context, rollback: Rollback) -> Self {
        Self::new(RawSpeculation::plain(target), rollback, Rollback::Partial, Resume::Anywhere)
    }

    pub(super) fn new(raw: RawSpeculation, rollback: Rollback, draft_rollback: Rollback, resume: Resume) -> Self {
        let (checkpoints, replay) = (Checkpoints::default(), Batch::default());
        Self { raw, rollback, draft_rollback, resume, checkpoints, replay }
    }

    pub(super) fn target(&self) -> &Context {
        self.raw.target()
    }

    pub(super) fn is_plain(&self) -> bool {
        self.raw.is_plain()
    }

    /// Gives drafting up: from now on the target decodes alone.
    pub(super) fn stop(&mut self) {
        self.raw.stop();
        self.draft_rollback = Rollback::Partial;
        self.resume = Resume::Anywhere;
    }

    /// The longest draft that can be taken back.
    pub(super) fn longest_draft(&self) -> usize {
        match self.rollback {
            Rollback::Snapshots(snapshots) => snapshots as usize,
            _ => usize::MAX,
        }
    }

    /// Decodes on the target alone.
    pub(super) fn decode(&mut self, batch: &Batch) -> Result<(), DecodeError> {
        self.raw.decode(batch)
    }

    /// Shows the drafters what was just decoded.
    pub(super) fn follow(&mut self) -> Result<(), Failure> {
        Ok(self.raw.follow()?)
    }

    /// Gives the drafters the history, once the prompt is in the memories.
    pub(super) fn begin(&mut self, history: &[Token]) -> Result<(), Failure> {
        Ok(self.raw.begin(SLOT, history)?)
    }

    /// Adds tokens to the history.
    pub(super) fn extend(&mut self, tokens: &[Token]) -> Result<(), Failure> {
        Ok(self.raw.extend(SLOT, tokens)?)
    }

    /// Tells the drafters how many tokens of the last draft were right.
    pub(super) fn accept(&mut self, accepted: usize) -> Result<(), Failure> {
        Ok(self.raw.accept(SLOT, accepted)?)
    }

    /// Drafts up to `limit` tokens after `last`, which will stand at `position`, into `draft`. The draft's memory is then as
    /// it was: what was guessed is computed again together with the target's batch.
    pub(super) fn draft(
        &mut self,
        position: u32,
        last: Token,
        limit: u32,
        draft: &mut Vec<Token>,
    ) -> Result<Option<Method>, Failure> {
        if self.draft_rollback == Rollback::Checkpoint {
            save(&mut self.raw, Side::Draft, position, &mut self.checkpoints.draft).map_err(words)?;
        }
        let (methods, distributions) = (Methods::NONE, None);
        let request = DraftRequest { slot: SLOT, position, last, limit, methods, distributions };
        let mut drafted = [Drafted { tokens: std::mem::take(draft), ..Drafted::default() }];
        let outcome = self.raw.draft(&[request], &mut drafted);
        let [Drafted { tokens, by, .. }] = drafted;
        *draft = tokens;
        outcome?;
        self.draft_back_to(position, position).map_err(words)?;
        Ok(by)
    }

    /// To be called before a draft is decoded, the target's memory ending before `position`.
    pub(super) fn prepare(&mut self, position: u32) -> Result<()> {
        match self.rollback {
            Rollback::Checkpoint => save(&mut self.raw, Side::Target, position, &mut self.checkpoints.target),
            _ => Ok(()),
        }
    }

    /// Takes what was decoded from `position` on out of the target's memory, except the tokens `kept`, which come first.
    pub(super) fn take_back(&mut self, position: u32, kept: &[Token]) -> Result<()> {
        if !self.replays() {
            return self.raw.remove(Side::Target, SLOT, position + kept.len() as u32);
        }
        match self.rollback {
            Rollback::Checkpoint => go_back(&mut self.raw, Side::Target, position, &self.checkpoints.target)?,
            _ => self.raw.remove(Side::Target, SLOT, position)?,
        }
        self.replay.clear();
        self.replay.push_prompt(kept, position, SLOT);
        Ok(self.raw.decode(&self.replay)?)
    }

    /// The same for the draft's memory, after the target's.
    pub(super) fn take_back_draft(&mut self, position: u32, kept: usize) -> Result<(), Failure> {
        self.draft_back_to(position, position + kept as u32).map_err(words)?;
        if self.draft_rollback == Rollback::Checkpoint {
            // The target has just computed the kept tokens again.
            self.raw.follow()?;
        }
        Ok(())
    }

    /// Whether kept tokens are computed again after a rejection.
    fn replays(&self) -> bool {
        self.rollback == Rollback::Checkpoint || self.draft_rollback == Rollback::Checkpoint
    }

    /// Takes the draft's memory back to `end`, or to the checkpoint before the round.
    fn draft_back_to(&mut self, checkpoint: u32, end: u32) -> Result<()> {
        match self.draft_rollback {
            Rollback::Checkpoint => go_back(&mut self.raw, Side::Draft, checkpoint, &self.checkpoints.draft),
            _ => self.raw.remove(Side::Draft, SLOT, end),
        }
    }

    /// Empties both memories; after a failure this makes the target usable again.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.raw.clear()?;
        // Nothing can be refused here but the slot, and there is one.
        let _ = self.raw.forget(SLOT);
        Ok(())
    }

    /// Takes all but the first `common` tokens of `history` out of the memories, or some more. Gives how many are left.
    pub(super) fn cut(&mut self, history: &[Token], common: usize) -> Result<usize> {
        if common >= 2 && self.rollback == Rollback::Partial && self.draft_rollback == Rollback::Partial {
            // What cannot be kept is computed again.
            if let Ok(left) = self.try_cut(history, common) {
                return Ok(left);
            }
        }
        self.clear()?;
        Ok(0)
    }

    fn try_cut(&mut self, history: &[Token], common: usize) -> Result<usize> {
        let (left, target_end) = match self.resume {
            Resume::Anywhere => (common, common),
            Resume::Earlier => (common - 1, common - 1),
            Resume::Seeded => (common, common - 1),
        };
        self.raw.remove(Side::Draft, SLOT, left as u32)?;
        self.raw.remove(Side::Target, SLOT, target_end as u32)?;
        if self.resume == Resume::Seeded {
            self.replay.clear();
            self.replay.push_prompt(&history[target_end..common], target_end as u32, SLOT);
            self.raw.decode(&self.replay)?;
            let seeded = self.raw.seed(SLOT, 0);
            seeded.map_err(|failed| crate::error::Error::State { reason: failed.failure.to_string() })?;
        }
        Ok(left)
    }
}

/// An empty memory has no state to save.
fn save(raw: &mut RawSpeculation, side: Side, position: u32, data: &mut Vec<u8>) -> Result<()> {
    if position == 0 { Ok(()) } else { raw.checkpoint(side, SLOT, data) }
}

fn go_back(raw: &mut RawSpeculation, side: Side, position: u32, data: &[u8]) -> Result<()> {
    match position {
        0 => raw.remove(side, SLOT, 0),
        position => raw.go_back(side, SLOT, data, position),
    }
}

fn words(error: crate::error::Error) -> Failure {
    Failure::new(error.to_string())
}
