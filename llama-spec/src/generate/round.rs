//! The loop: draft, decode, verify, roll back.

use super::event::{Event, StopReason};
use super::stop::StopFinder;
use super::{GenerateOptions, Generator};
use crate::batch::Batch;
use crate::error::Result;
use crate::sample::Sampler;
use crate::spec::{Source, Speculation, Stats};
use crate::text::Utf8Stream;
use crate::token::{Slot, Token};
use std::collections::VecDeque;
use std::time::Instant;

/// A running generation: an iterator of events. Dropping it cancels; the generator can then be used for the next request.
#[derive(Debug)]
pub struct Generation<'g> {
    generator: &'g mut Generator,
    prompt: Vec<Token>,
    /// Prompt tokens that are in the memory; the last one goes with the first round.
    prefilled: usize,
    /// Sampled last, and not yet in the memory.
    last: Token,
    sampler: Sampler,
    /// Tokens that may still be generated.
    budget: usize,
    utf8: Utf8Stream,
    stops: StopFinder,
    /// Control tokens whose text is shown.
    visible: Vec<Token>,
    /// Events of a round that were not asked for yet.
    queue: VecDeque<Event>,
    /// The history was given to the drafters.
    begun: bool,
    done: bool,
    stats: Stats,
    buffers: Buffers,
}

/// What a round needs, kept so that it allocates nothing.
#[derive(Debug, Default)]
struct Buffers {
    batch: Batch,
    rows: Vec<usize>,
    draft: Vec<Token>,
    verified: Vec<Token>,
    /// What stays in the memories when tokens are taken back.
    kept: Vec<Token>,
}

impl<'g> Generation<'g> {
    pub(super) fn new(
        generator: &'g mut Generator,
        prompt: Vec<Token>,
        sampler: Sampler,
        options: &GenerateOptions,
    ) -> Self {
        let prefilled = generator.history.len();
        let last = prompt[prompt.len() - 1];
        let stats = Stats { prompt_tokens: prompt.len() as u64, cached_tokens: prefilled as u64, ..Stats::default() };
        Self {
            generator,
            prompt,
            prefilled,
            last,
            sampler,
            budget: options.max_tokens.map_or(usize::MAX, |tokens| tokens as usize),
            utf8: Utf8Stream::default(),
            stops: StopFinder::new(&options.stop),
            visible: options.visible.clone(),
            queue: VecDeque::new(),
            begun: false,
            done: false,
            stats,
            buffers: Buffers::default(),
        }
    }

    /// The numbers of this generation so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What speculation came to, as it is now.
    pub fn speculation(&self) -> &Speculation {
        &self.generator.speculation
    }

    /// The prompt in tokens.
    pub fn prompt(&self) -> &[Token] {
        &self.prompt
    }

    fn advance(&mut self) -> Result<()> {
        if self.budget == 0 {
            self.finish(StopReason::MaxTokens);
            return Ok(());
        }
        if self.prefilled + 1 < self.prompt.len() {
            return self.prefill();
        }
        self.begin();
        match self.generator.history.len() < self.generator.context_length() as usize {
            true => self.round(),
            false => {
                self.finish(StopReason::ContextFull);
                Ok(())
            }
        }
    }

    /// Computes the next part of the prompt, one micro-batch, so that progress is seen and cancelling is quick.
    fn prefill(&mut self) -> Result<()> {
        let start = Instant::now();
        let end = self.prompt.len() - 1;
        let step = self.generator.target().micro_batch_size() as usize;
        let part = self.prefilled..end.min(self.prefilled + step);
        let batch = &mut self.buffers.batch;
        batch.clear();
        for position in part.clone() {
            batch.push(self.prompt[position], position as u32, Slot::FIRST, false);
        }
        self.generator.dirty = true;
        self.generator.engine.decode(batch)?;
        self.follow();
        self.generator.history.extend_from_slice(&self.prompt[part.clone()]);
        self.generator.dirty = false;
        self.prefilled = part.end;
        self.stats.prefill += start.elapsed();
        self.queue.push_back(Event::Prefill { done: self.prefilled + 1, total: self.prompt.len() });
        Ok(())
    }

    /// Gives the drafters the history, once the prompt is in the memory.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) || self.generator.engine.is_plain() {
            return;
        }
        let begun = self.generator.engine.begin(&self.generator.history);
        begun.unwrap_or_else(|failure| self.generator.stop_speculating("the drafter refused the prompt", &failure));
    }

    /// Shows the drafters what the target has decoded.
    fn follow(&mut self) {
        let followed = self.generator.engine.follow();
        followed.unwrap_or_else(|failure| {
            self.generator.stop_speculating("the drafter could not follow the target", &failure)
        });
    }

    fn round(&mut self) -> Result<()> {
        let round = Instant::now();
        let position = self.generator.history.len();
        let by = self.draft(position);
        let drafted = self.buffers.draft.len();
        self.generator.dirty = true;

        let drafting = round.elapsed();
        if drafted > 0 {
            self.generator.engine.prepare(position as u32)?;
        }
        let Buffers { batch, rows, draft, .. } = &mut self.buffers;
        batch.clear();
        rows.clear();
        for (offset, token) in std::iter::once(&self.last).chain(draft.iter()).enumerate() {
            rows.push(batch.push(*token, (position + offset) as u32, Slot::FIRST, true));
        }
        self.generator.engine.decode(batch)?;
        let decoding = round.elapsed();
        self.follow();
        let following = round.elapsed();

        let Buffers { rows, draft, verified, .. } = &mut self.buffers;
        self.sampler.verify(self.generator.engine.target(), rows, draft, verified)?;
        let accepted = verified.len() - 1;
        let sampling = round.elapsed();

        if let Some(method) = by {
            self.stats.count_draft(Source::Drafted(method), drafted, accepted);
            let told = self.generator.engine.accept(accepted);
            told.unwrap_or_else(|failure| self.generator.stop_speculating("the drafter refused the outcome", &failure));
        }
        if accepted < drafted {
            self.take_back(position as u32, accepted)?;
        }
        self.remember(accepted);
        self.generator.dirty = false;
        let ending = round.elapsed();

        self.emit(accepted, by.map_or(Source::Target, Source::Drafted));
        let stats = &mut self.stats;
        stats.rounds += 1;
        stats.draft += drafting + (following - decoding);
        stats.verify += decoding - drafting;
        stats.sample += sampling - following;
        stats.rollback += ending - sampling;
        stats.generation += round.elapsed();
        Ok(())
    }

    /// Drafts into the buffer, as far as context and budget reach: what cannot be used is not drafted.
    fn draft(&mut self, position: usize) -> Option<crate::spec::Method> {
        self.buffers.draft.clear();
        let generator = &mut *self.generator;
        if generator.engine.is_plain() {
            return None;
        }
        let (target, longest) = (generator.engine.target(), generator.engine.longest_draft());
        let room = (target.length_per_slot() as usize).saturating_sub(position + 1);
        let fits = target.batch_size() as usize - 1;
        let limit = (generator.config.draft_max as usize).min(room).min(self.budget - 1).min(fits).min(longest);
        if limit == 0 {
            return None;
        }
        let draft = &mut self.buffers.draft;
        match generator.engine.draft(position as u32, self.last, limit as u32, draft) {
            Ok(method) => method,
            Err(failure) => {
                generator.stop_speculating("the drafter failed", &failure);
                self.buffers.draft.clear();
                None
            }
        }
    }

    /// Takes the rejected tokens of the draft out of the memories.
    fn take_back(&mut self, position: u32, accepted: usize) -> Result<()> {
        let Buffers { draft, kept, .. } = &mut self.buffers;
        kept.clear();
        kept.push(self.last);
        kept.extend_from_slice(&draft[..accepted]);
        let generator = &mut *self.generator;
        generator.engine.take_back(position, kept)?;
        if let Err(failure) = generator.engine.take_back_draft(position, kept.len()) {
            generator.stop_speculating("the draft's memory is out of step", &failure);
        }
        Ok(())
    }

    /// Takes what is in the memories now into the history.
    fn remember(&mut self, accepted: usize) {
        let history = &mut self.generator.history;
        let before = history.len();
        history.push(self.last);
        history.extend_from_slice(&self.buffers.draft[..accepted]);
        self.last = self.buffers.verified[accepted];
        let extended = self.generator.engine.extend(&self.generator.history[before..]);
        extended.unwrap_or_else(|failure| self.generator.stop_speculating("the drafter refused the tokens", &failure));
    }

    /// Turns the verified tokens into events, up to the one that ends the text.
    fn emit(&mut self, accepted: usize, drafted: Source) {
        let verified = std::mem::take(&mut self.buffers.verified);
        for (index, token) in verified.iter().enumerate() {
            let vocab = self.generator.model().vocab();
            if vocab.is_end_of_generation(*token) {
                self.finish(StopReason::EndOfText);
                break;
            }
            // A token of the target's own vocabulary always has bytes; control tokens have none to show unless asked for.
            let bytes =
                if self.visible.contains(token) { vocab.bytes_with_special(*token) } else { vocab.bytes(*token) };
            let bytes = bytes.unwrap_or_default();
            let (text, stopped) = self.stops.push(&self.utf8.push(&bytes));
            let source = if index < accepted { drafted } else { Source::Target };
            self.queue.push_back(Event::Token { token: *token, text, source });
            self.stats.generated_tokens += 1;
            self.budget -= 1;
            if stopped {
                self.stop_now(StopReason::StopString, String::new());
                break;
            }
        }
        self.buffers.verified = verified;
    }

    /// Ends the text, with what was held back.
    fn finish(&mut self, reason: StopReason) {
        let rest = self.utf8.finish();
        let (mut text, stopped) = self.stops.push(&rest);
        if !stopped {
            text += &self.stops.finish();
        }
        self.stop_now(if stopped { StopReason::StopString } else { reason }, text);
    }

    fn stop_now(&mut self, reason: StopReason, text: String) {
        self.done = true;
        self.queue.push_back(Event::Finished { reason, text });
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(Ok(event));
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.advance() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        self.generator.stats.add(&self.stats);
        tracing::debug!(
            generated = self.stats.generated_tokens,
            drafted = self.stats.drafted,
            accepted = self.stats.accepted,
            seconds = self.stats.generation.as_secs_f64(),
            "generation"
        );
    }
}
