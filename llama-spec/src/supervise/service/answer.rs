//! One answer: the events of the engine become updates.

use super::message::{MessageReader, Read};
use super::problem::problem;
use super::stage::Loaded;
use super::text::TextTracker;
use crate::engine::{Canceller, Response};
use crate::error::{Error, Result};
use crate::generate::{Event, StopReason};
use crate::model::Model;
use crate::sample::{Logprobs, SamplerState};
use crate::spec::Stats;
use crate::supervise::task::{Finish, Problem, TokenLogprob, TokenUpdate, Update};
use crate::supervise::wire::{FromWorker, TaskId};
use futures_core::Stream;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

/// What an answer says, and what the service is to know of it.
#[derive(Debug)]
pub(super) enum Said {
    /// To the supervisor.
    Message(Box<FromWorker>),
    /// A decode went well, or gave no numbers.
    Decoded { well: bool },
    /// It has ended.
    Ended(TaskId),
}

/// An answer that is being generated. A stream of what it says.
#[derive(Debug)]
pub(super) struct Answer {
    id: TaskId,
    answer: u32,
    response: Response,
    model: Model,
    loaded: Weak<Loaded>,
    text: TextTracker,
    message: Option<MessageReader>,
    /// The tokens of the round that goes on.
    round: Vec<TokenUpdate>,
    said: VecDeque<Said>,
    over: bool,
}

impl Answer {
    pub(super) fn new(
        (id, answer): (TaskId, u32),
        response: Response,
        (loaded, model): (Weak<Loaded>, Model),
        text: TextTracker,
        message: Option<MessageReader>,
    ) -> Self {
        let (round, said) = (Vec::new(), VecDeque::new());
        Self { id, answer, response, model, loaded, text, message, round, said, over: false }
    }

    pub(super) fn canceller(&self) -> Canceller {
        self.response.canceller()
    }

    /// Says first that it has begun.
    pub(super) fn begun(mut self) -> Self {
        let prompt = self.response.prompt().to_vec();
        self.say(Update::Begun { prompt }, None);
        self
    }

    fn say(&mut self, update: Update, sampler: Option<SamplerState>) {
        let (id, answer) = (self.id, self.answer);
        self.said.push_back(Said::Message(Box::new(FromWorker::Update { id, answer, update, sampler })));
    }

    fn end(&mut self, last: FromWorker) {
        // Whoever hears the last of it may use its number again.
        self.said.push_back(Said::Ended(self.id));
        self.said.push_back(Said::Message(Box::new(last)));
        self.over = true;
    }

    fn take(&mut self, event: Result<Event>) {
        match event {
            Ok(Event::Prefill { done, total }) => self.say(Update::Prefill { done, total }, None),
            Ok(Event::Token { token, text, source, logprobs }) => {
                let bytes = self.text.push(self.model.vocab(), token, &text);
                let logprob = logprobs.map(|logprobs| self.logprob(logprobs));
                let deltas = self.message.as_mut().map(|message| message.push(&text)).unwrap_or_default();
                self.round.push(TokenUpdate { token, bytes, text, source, logprob, deltas });
            }
            Ok(Event::Checkpoint(sampler)) => {
                self.said.push_back(Said::Decoded { well: true });
                self.end_round(sampler.map(|sampler| *sampler));
            }
            Ok(Event::Shifted { dropped }) => {
                self.end_round(None);
                self.say(Update::Shifted { dropped }, None);
            }
            Ok(Event::Finished { reason, text, stats }) => {
                self.end_round(None);
                self.finish(reason, text, stats);
            }
            Err(error) => self.fail(&error),
        }
    }

    fn end_round(&mut self, sampler: Option<SamplerState>) {
        if !self.round.is_empty() {
            let tokens = std::mem::take(&mut self.round);
            self.say(Update::Tokens(tokens), sampler);
        }
    }

    fn finish(&mut self, reason: StopReason, text: String, stats: Box<Stats>) {
        let stop = self.text.stop(&text).filter(|_| reason == StopReason::StopString);
        let read = self.message.take().map(|message| message.finish(&text));
        let (deltas, message, malformed) = match read {
            Some(Read { deltas, message, malformed }) => (deltas, Some(message), malformed),
            None => (Vec::new(), None, None),
        };
        let speculation = self.loaded.upgrade().map(|loaded| loaded.engine.speculation()).unwrap_or_default();
        let finish = Finish { reason, stop, text, deltas, message, malformed, stats, speculation };
        let update = Update::Finished(Box::new(finish));
        self.end(FromWorker::Update { id: self.id, answer: self.answer, update, sampler: None });
    }

    fn fail(&mut self, error: &Error) {
        if let Error::EngineFailed { .. } = error {
            // The breakdown is told for all texts together; they go on elsewhere.
            self.said.push_back(Said::Ended(self.id));
            self.over = true;
            return;
        }
        if let Error::NotFinite { .. } = error {
            self.said.push_back(Said::Decoded { well: false });
        }
        tracing::warn!(task = self.id, answer = self.answer, %error, "a text ended early");
        self.end_round(None);
        self.broken(problem(error));
    }

    fn broken(&mut self, problem: Problem) {
        self.end(FromWorker::Broken { id: self.id, answer: self.answer, problem });
    }

    fn logprob(&self, logprobs: Logprobs) -> TokenLogprob {
        let vocab = self.model.vocab();
        let top = logprobs.top.into_iter();
        let top = top.map(|(token, logprob)| (token, vocab.bytes_with_special(token).unwrap_or_default(), logprob));
        TokenLogprob { logprob: logprobs.logprob, top: top.collect() }
    }
}

impl Stream for Answer {
    type Item = Said;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Said>> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Poll::Ready(Some(said));
            }
            if self.over {
                return Poll::Ready(None);
            }
            match Pin::new(&mut self.response).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(event)) => {
                    // One text that cannot be told must not take the others with it.
                    if catch_unwind(AssertUnwindSafe(|| self.take(event))).is_err() {
                        self.round.clear();
                        self.broken(Problem::failed("telling this text failed in a way it should not have"));
                    }
                }
                Poll::Ready(None) => self.broken(Problem::failed("the text has no end")),
            }
        }
    }
}
