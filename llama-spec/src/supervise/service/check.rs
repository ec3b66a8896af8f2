//! Generating a little, to see whether that works.

use super::answer::Said;
use crate::engine::{Engine, EngineStats, Priority, Request, Response};
use crate::error::Result;
use crate::generate::{Event, StopReason};
use crate::supervise::wire::FromWorker;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// What is continued. Every vocabulary has tokens for it.
const PROMPT: &str = "Hello";
const TOKENS: u32 = 2;
/// Other work may come before it. Then it must have shown by now whether the engine works.
const LONGEST: Duration = Duration::from_secs(120);

/// A check that is being made. A stream that ends with its outcome.
#[derive(Debug)]
pub(super) struct Check {
    response: Response,
    tokens: u32,
    failure: Option<String>,
    over: bool,
}

/// Whether the engine can be watched doing real work instead: all slots are in use.
pub(super) fn is_needless(stats: &EngineStats) -> bool {
    stats.queued > 0 || stats.running >= stats.slots.len() as u64
}

/// Whether real work went on between two looks.
pub(super) fn has_worked(before: &EngineStats, now: &EngineStats) -> bool {
    now.steps != before.steps
}

impl Check {
    pub(super) fn new(engine: &Engine) -> Result<Self> {
        let request = Request::prompt(PROMPT).greedy().max_tokens(TOKENS).logprobs(1);
        let response = engine.generate(request.priority(Priority::Low).deadline(LONGEST))?;
        Ok(Self { response, tokens: 0, failure: None, over: false })
    }

    /// What an event says of the outcome.
    fn outcome(&mut self, event: Result<Event>) -> Option<Result<(), String>> {
        match event {
            Ok(Event::Token { logprobs, .. }) => {
                self.tokens += 1;
                if logprobs.is_none_or(|logprobs| !logprobs.logprob.is_finite()) {
                    self.failure = Some("a token has no finite probability".into());
                }
                None
            }
            Ok(Event::Finished { reason, .. }) => Some(match (self.failure.take(), reason) {
                (Some(failure), _) => Err(failure),
                // It may have waited behind others all the time, which says nothing against the engine.
                (None, StopReason::Deadline) if self.tokens == 0 => Err("nothing was generated in time".into()),
                (None, _) => Ok(()),
            }),
            Ok(_) => None,
            Err(error) => Some(Err(error.to_string())),
        }
    }
}

impl Stream for Check {
    type Item = Said;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Said>> {
        while !self.over {
            let event = match Pin::new(&mut self.response).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => break,
                Poll::Ready(Some(event)) => event,
            };
            if let Some(outcome) = self.outcome(event) {
                self.over = true;
                return Poll::Ready(Some(Said::Message(Box::new(FromWorker::Checked(outcome)))));
            }
        }
        Poll::Ready(None)
    }
}
