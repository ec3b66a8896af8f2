//! From tokens to what is reported: whole characters, stop strings, the end.

use super::stop::StopFinder;
use crate::error::{Error, Result};
use crate::generate::{Event, StopReason};
use crate::sample::{Logprobs, Sampler};
use crate::spec::{Source, Stats};
use crate::text::Utf8Stream;
use crate::token::Token;
use crate::vocab::Vocab;
use async_channel::Sender;

/// The receiving end of a job: what becomes of its tokens.
#[derive(Debug)]
pub(crate) struct Answer {
    events: Sender<Result<Event>>,
    /// Tokens that may still be generated.
    budget: usize,
    generated: usize,
    utf8: Utf8Stream,
    stops: StopFinder,
    /// Control tokens whose text is shown.
    visible: Vec<Token>,
    /// How many of the most probable tokens are reported with each; none for no logprobs at all.
    logprobs: Option<usize>,
    /// Whether it is reported where the sampler stands.
    checkpoints: bool,
}

impl Answer {
    pub(crate) fn new(events: Sender<Result<Event>>, max_tokens: Option<u32>, stop: &[String]) -> Self {
        Self {
            events,
            budget: max_tokens.map_or(usize::MAX, |tokens| tokens as usize),
            generated: 0,
            utf8: Utf8Stream::default(),
            stops: StopFinder::new(stop),
            visible: Vec::new(),
            logprobs: None,
            checkpoints: false,
        }
    }

    pub(crate) fn with_visible(mut self, tokens: Vec<Token>) -> Self {
        self.visible = tokens;
        self
    }

    pub(crate) fn with_logprobs(mut self, top: Option<u32>) -> Self {
        self.logprobs = top.map(|top| top as usize);
        self
    }

    pub(crate) fn with_checkpoints(mut self, checkpoints: bool) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// Tokens that may still be generated.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// Tokens generated so far.
    pub(crate) fn generated(&self) -> usize {
        self.generated
    }

    pub(super) fn logprobs(&self) -> Option<usize> {
        self.logprobs
    }

    /// Whether the receiver was dropped.
    pub(super) fn is_unheard(&self) -> bool {
        self.events.is_closed()
    }

    /// Reports something that is no token.
    pub(super) fn report(&self, event: Event) {
        // A receiver that is gone is noticed before the next round.
        let _ = self.events.try_send(Ok(event));
    }

    /// Reports where the sampler stands after the tokens of a round.
    pub(super) fn checkpoint(&self, sampler: &Sampler) {
        if self.checkpoints {
            self.report(Event::Checkpoint(sampler.save().ok().map(Box::new)));
        }
    }

    /// Reports a token; gives the reason if the text ends with it, or before it.
    pub(super) fn push(
        &mut self,
        vocab: Vocab<'_>,
        token: Token,
        source: Source,
        logprobs: Option<Logprobs>,
    ) -> Option<StopReason> {
        if vocab.is_end_of_generation(token) {
            return Some(StopReason::EndOfText);
        }
        let (text, stopped) = self.text(vocab, token);
        self.report(Event::Token { token, text, source, logprobs });
        match () {
            () if stopped => Some(StopReason::StopString),
            () if self.budget == 0 => Some(StopReason::MaxTokens),
            () => None,
        }
    }

    /// Takes tokens in that were reported before, elsewhere. Whether there is a stop string in them.
    pub(crate) fn replay(&mut self, vocab: Vocab<'_>, tokens: &[Token]) -> bool {
        tokens.iter().any(|token| self.text(vocab, *token).1)
    }

    /// The text that a token completes, and whether that ends with a stop string.
    fn text(&mut self, vocab: Vocab<'_>, token: Token) -> (String, bool) {
        // A token of the target's own vocabulary always has bytes; control tokens have none to show unless asked for.
        let bytes = if self.visible.contains(&token) { vocab.bytes_with_special(token) } else { vocab.bytes(token) };
        self.generated += 1;
        self.budget = self.budget.saturating_sub(1);
        self.stops.push(&self.utf8.push(&bytes.unwrap_or_default()))
    }

    /// Ends the text, with what was held back.
    pub(crate) fn finish(mut self, reason: StopReason, stats: Stats) {
        let (mut text, stopped) = match reason {
            // All from the stop string on is not shown.
            StopReason::StopString => (String::new(), true),
            _ => self.stops.push(&self.utf8.finish()),
        };
        if !stopped {
            text += &self.stops.finish();
        }
        let reason = if stopped { StopReason::StopString } else { reason };
        self.report(Event::Finished { reason, text, stats: Box::new(stats) });
    }

    /// Ends the text with a failure.
    pub(crate) fn fail(self, error: Error) {
        let _ = self.events.try_send(Err(error));
    }
}
