//! What a probe does to a runner before it serves: looking into its memories, decoding by hand, and making it new afterwards.

use super::trouble::Trouble;
use super::{Counts, DraftMemory, Runner, Seat, slot};
use crate::control::Costs;
use crate::error::{Error, Failure, Result};
use crate::ffi::speculation::Side;
use crate::memory::Rollback;
use crate::spec::{SpecConfig, Stats};
use crate::token::{Slot, Token};
use std::time::{Duration, Instant};

/// How a text goes on when the target decodes it alone, token by token, in the first slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alone {
    /// The last token of the text, and those that follow; one more than there are rows.
    pub(crate) tokens: Vec<Token>,
    /// The logits after each of the tokens but the last.
    pub(crate) rows: Vec<Vec<f32>>,
    /// How long each took.
    pub(crate) times: Vec<Duration>,
    /// Where the first of the tokens stands.
    position: u32,
    /// What the memory holds before it, where the end of a memory cannot be cut off.
    state: Option<Vec<u8>>,
}

impl Runner {
    /// Makes it what it was when it was made: memories and numbers are empty, and the drafters know nothing.
    ///
    /// # Errors
    /// [`Error::Speculation`] when the drafters cannot be made with this configuration, [`Error::Memory`] when the memories cannot
    /// be cleared; it cannot be used then.
    pub(crate) fn renew(&mut self, config: SpecConfig) -> Result<()> {
        drop(self.take_jobs());
        self.ended.clear();
        self.machine.renew(&config)?;
        self.slots.iter_mut().for_each(|seat| *seat = Seat::new(&config));
        self.chooser.renew(Costs::unknown());
        self.trouble = Trouble::new(&config, self.trouble.clock().clone());
        self.config = config;
        (self.turn, self.clock) = (0, 0);
        (self.total, self.counts) = (Stats::default(), Counts::default());
        Ok(())
    }

    /// What is wrong with the first memory that does not end where the text of its slot does.
    pub(crate) fn out_of_step(&mut self) -> Option<String> {
        (0..self.slots.len()).find_map(|index| {
            let held = self.slots[index].history.len();
            let end = match self.machine.end(Side::Target, slot(index)) {
                Ok(end) => end,
                Err(error) => return Some(error.to_string()),
            };
            if end != held {
                return Some(format!("slot {index} of the target's memory ends at {end}, its text at {held}"));
            }
            let in_step = self.slots[index].draft_memory == DraftMemory::InStep;
            if !in_step || !self.machine.has_draft() {
                return None;
            }
            self.machine.in_step(slot(index)).err().map(|failure| format!("the draft in slot {index}: {failure}"))
        })
    }

    /// Why a drafter failed last, if that is not long ago.
    pub(crate) fn complaint(&self) -> Option<&str> {
        self.trouble.complaint()
    }

    /// The longest draft of a slot, in tokens.
    pub(crate) fn longest_draft_of_slot(&self) -> usize {
        self.outputs_per_slot().saturating_sub(1).min(self.machine.longest_draft())
    }

    /// The most tokens of a slot after which logits can be had from one batch.
    pub(crate) fn outputs_per_slot(&self) -> usize {
        (self.outputs as usize).min(self.target().batch_size() as usize)
    }

    /// How tokens are taken out of the memories of target and draft.
    pub(crate) fn rollbacks(&self) -> (Rollback, Rollback) {
        (self.machine.rollback(), self.machine.draft_rollback())
    }

    /// Whether the end of what a slot holds can be taken out, however long it is.
    pub(crate) fn can_cut(&self) -> bool {
        self.machine.can_cut()
    }

    /// How long the target takes for these tokens in one batch. The first slot must be empty, and is.
    ///
    /// # Errors
    /// [`Error::Decode`].
    pub(crate) fn time_tokens(&mut self, tokens: &[Token]) -> Result<Duration> {
        let batch = &mut self.buffers.batch;
        batch.clear();
        batch.push_prompt(tokens, 0, Slot::FIRST);
        let start = Instant::now();
        self.machine.decode(batch)?;
        // Some devices are waited for only when somebody reads what came of it.
        self.target().logits(tokens.len() - 1)?;
        let time = start.elapsed();
        self.machine.clear_slot(Slot::FIRST)?;
        Ok(time)
    }

    /// Decodes a text in the first slot, as far as the slot does not hold it, and then up to `count` tokens, each the most
    /// probable one that does not end the text; fewer when it is late. No text may be running; drafters do not follow.
    ///
    /// # Errors
    /// [`Error::Decode`]; [`Error::NotFinite`] for a row of logits that are no numbers.
    pub(crate) fn alone(&mut self, text: &[Token], count: usize, late: impl Fn() -> bool) -> Result<Alone> {
        let Some((&last, before)) = text.split_last() else { return Err(Error::EmptyPrompt) };
        let first = &mut self.slots[0];
        let common = first.history.iter().zip(before).take_while(|(one, other)| one == other).count();
        let left = match common == first.history.len() {
            true => common,
            false => self.machine.cut(Slot::FIRST, &first.history, common)?,
        };
        first.history.truncate(left);
        (first.draft_memory, first.begun) = (DraftMemory::Behind, false);
        let most = self.target().micro_batch_size() as usize;
        for piece in before[left..].chunks(most) {
            let position = self.slots[0].history.len();
            let batch = &mut self.buffers.batch;
            batch.clear();
            for (offset, token) in piece.iter().enumerate() {
                batch.push(*token, (position + offset) as u32, Slot::FIRST, false);
            }
            self.machine.decode(batch)?;
            self.slots[0].history.extend_from_slice(piece);
        }
        let state = self.machine.state_to_go_back(Slot::FIRST)?;
        let mut alone = Alone { tokens: vec![last], position: before.len() as u32, state, ..Alone::default() };
        while alone.rows.len() < count && !late() {
            let (token, position) = (alone.tokens[alone.rows.len()], alone.position + alone.rows.len() as u32);
            let batch = &mut self.buffers.batch;
            batch.clear();
            batch.push(token, position, Slot::FIRST, true);
            let start = Instant::now();
            self.machine.decode(batch)?;
            let row = self.target().logits(0)?.to_vec();
            alone.times.push(start.elapsed());
            self.slots[0].history.push(token);
            alone.tokens.push(self.most_probable(&row)?);
            alone.rows.push(row);
        }
        Ok(alone)
    }

    /// The most probable token that does not end a text, the one with the smaller number when two are equally probable.
    fn most_probable(&self, row: &[f32]) -> Result<Token> {
        let nothing = |why: &str| Error::NotFinite { failure: Failure::new(why) };
        if row.iter().any(|logit| logit.is_nan() || *logit == f32::INFINITY) {
            return Err(nothing("a token that was decoded alone"));
        }
        let vocab = self.model().vocab();
        let mut best = (None, f32::NEG_INFINITY);
        for (id, logit) in row.iter().enumerate() {
            let token = Token::new(id as i32);
            if *logit > best.1 && !vocab.is_end_of_generation(token) {
                best = (Some(token), *logit);
            }
        }
        best.0.ok_or_else(|| nothing("no token has a probability"))
    }

    /// Lets so many slots hold the text before the tokens that were decoded alone. What else they hold is lost.
    ///
    /// # Errors
    /// [`Error::Memory`] or [`Error::State`] when a memory cannot be copied.
    pub(crate) fn spread(&mut self, alone: &Alone, slots: usize) -> Result<()> {
        self.back_to_text(alone, 1)?;
        (1..slots).filter(|_| alone.state.is_none()).try_for_each(|index| self.machine.copy_first(slot(index)))
    }

    fn back_to_text(&mut self, alone: &Alone, slots: usize) -> Result<()> {
        (0..slots).try_for_each(|index| match &alone.state {
            Some(state) => self.machine.set_state(slot(index), state),
            None => self.machine.go_to(slot(index), alone.position),
        })
    }

    /// Decodes the first `each` tokens that were decoded alone once more, in one batch with the same in so many slots. Calls
    /// `see` with the number of each token and the logits after it, and gives the time of the batch. The slots must have been
    /// given the text by [`Runner::spread`].
    ///
    /// # Errors
    /// [`Error::Decode`]; [`Error::Memory`] or [`Error::State`] when the slots cannot be brought to where the tokens stand.
    pub(crate) fn decode_together(
        &mut self,
        alone: &Alone,
        slots: usize,
        each: usize,
        mut see: impl FnMut(usize, &[f32]),
    ) -> Result<Duration> {
        self.back_to_text(alone, slots)?;
        let batch = &mut self.buffers.batch;
        batch.clear();
        for index in 0..slots {
            for (offset, token) in alone.tokens[..each].iter().enumerate() {
                batch.push(*token, alone.position + offset as u32, slot(index), true);
            }
        }
        let entries = batch.len();
        let start = Instant::now();
        self.machine.decode(batch)?;
        self.target().logits(entries - 1)?;
        let time = start.elapsed();
        for entry in 0..entries {
            see(entry % each, self.target().logits(entry)?);
        }
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Setup;
    use super::super::fault::{Call, Fault, Faults};
    use crate::context::ContextOptions;
    use crate::engine::tried;
    use crate::model::Model;
    use crate::probe::{Outcome, Terms};
    use crate::spec::{Method, SpecConfig};
    use llama_spec_tests::zoo;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// How a probe ends when one call in `every` fails.
    fn outcome(call: Call, fault: Fault, every: u32) -> Outcome {
        let target = Model::load(zoo::file("target")).unwrap();
        let mut setup = Setup::new(&target);
        setup.draft = Some(Model::load(zoo::file("draft-0.8")).unwrap());
        setup.config = Some(SpecConfig::new([Method::DraftSimple]));
        setup.context = ContextOptions::default().length_per_slot(256).slots(2).micro_batch(64).batch(128).threads(1);
        let calls = Arc::new(AtomicU32::new(0));
        setup.faults = Faults::new(move |at| {
            let number = if at == call { calls.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
            (number > 0 && number % every == 0).then_some(fault)
        });
        let terms = Terms { budget: Duration::from_secs(60), quantized_cache: false };
        tried(&setup, terms).unwrap().1.outcome
    }

    #[test]
    fn whatever_fails_is_found() {
        for call in [
            Call::Follow,
            Call::Followed,
            Call::Begin,
            Call::Extend,
            Call::Draft,
            Call::Drafted,
            Call::Accept,
            Call::RemoveDraft,
            Call::Verify,
        ] {
            let Outcome::Failed { reason } = outcome(call, Fault::Fails, 3) else { panic!("{call:?} was not found") };
            assert!(reason.contains("made to fail by a test"), "{call:?}: {reason}");
        }
        for fault in [Fault::Fails, Fault::Aborted, Fault::Fatal] {
            let outcome = outcome(Call::Decode, fault, 20);
            assert!(matches!(outcome, Outcome::Failed { .. }), "{fault:?}: {outcome}");
        }
        assert_eq!(outcome(Call::Decode, Fault::Fails, u32::MAX), Outcome::Worked);
    }

    #[test]
    fn memories_that_are_out_of_step_are_found() {
        let target = Model::load(zoo::file("target")).unwrap();
        let mut setup = Setup::new(&target);
        setup.draft = Some(Model::load(zoo::file("draft-0.8")).unwrap());
        setup.config = Some(SpecConfig::new([Method::DraftSimple]));
        setup.context = ContextOptions::default().length_per_slot(256).threads(1);
        let mut runner = setup.build().unwrap();
        let prompt = target.vocab().tokenize("The quick brown fox").unwrap();
        assert_eq!(runner.out_of_step(), None);
        // Only the target knows of these.
        runner.alone(&prompt, 3, || false).unwrap();
        assert_eq!(runner.out_of_step(), None);
        runner.slots[0].draft_memory = super::DraftMemory::InStep;
        let wrong = runner.out_of_step().unwrap();
        assert!(wrong.contains("the draft in slot 0: its memory ends before position 0"), "{wrong}");
        runner.slots[0].history.pop();
        let wrong = runner.out_of_step().unwrap();
        assert!(wrong.contains("target's memory ends at"), "{wrong}");
        let config = runner.config().clone();
        runner.renew(config).unwrap();
        assert_eq!(runner.out_of_step(), None);
    }
}
