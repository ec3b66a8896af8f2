//! The events of a request, as they come.

use super::saved::SavedState;
use super::worker::Shared;
use crate::error::Result;
use crate::generate::{Event, StopReason};
use crate::sample::Logprobs;
use crate::spec::{Source, Stats};
use crate::token::Token;
use async_channel::{Receiver, TryRecvError};
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// The answer to a request: an iterator of events, and a [`Stream`] of the same for asynchronous programs. Dropping it cancels
/// the request.
///
/// The last event is [`Event::Finished`], or an error. What was not fetched yet is kept; a slow reader does not hold up others.
///
/// ```
/// # use llama_spec::{Engine, Event, ModelFile, Request};
/// # use std::time::Duration;
/// # let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
/// # let engine = Engine::builder(target).context_per_slot(512).build()?;
/// let response = engine.generate(Request::prompt("Hello").greedy().max_tokens(12).deadline(Duration::from_secs(60)))?;
/// let canceller = response.canceller(); // for a button elsewhere
/// for event in response {
///     match event? {
///         Event::Token { text, .. } => print!("{text}"),
///         Event::Finished { reason, stats, .. } => println!("\n{reason}: {stats}"),
///         _ => {}
///     }
/// }
/// # canceller.cancel();
/// # Ok::<_, llama_spec::Error>(())
/// ```
#[derive(Debug)]
pub struct Response {
    id: u64,
    prompt: Vec<Token>,
    events: Pin<Box<Receiver<Result<Event>>>>,
    cancelled: Arc<AtomicBool>,
    shared: Arc<Shared>,
    done: bool,
}

impl Response {
    pub(super) fn new(
        id: u64,
        prompt: Vec<Token>,
        events: Receiver<Result<Event>>,
        cancelled: Arc<AtomicBool>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { id, prompt, events: Box::pin(events), cancelled, shared, done: false }
    }

    /// A number that no other request of this engine has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The prompt in tokens.
    pub fn prompt(&self) -> &[Token] {
        &self.prompt
    }

    /// Something that cancels this request from elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller { cancelled: Arc::clone(&self.cancelled), shared: Arc::clone(&self.shared) }
    }

    /// Saves the text as it is now, so that [`Engine::resume`](crate::Engine::resume) goes on with it here or in another process. The request goes
    /// on meanwhile; events up to this point may still be waiting in this response.
    ///
    /// # Errors
    /// [`Error::State`](crate::Error::State) when it has ended or is waiting for a slot, or its sampler cannot be saved.
    pub fn save(&self) -> Result<SavedState> {
        self.shared.save(self.id)
    }

    /// Waits for the end and collects everything.
    ///
    /// # Errors
    /// Whatever ended the text early.
    pub fn output(self) -> Result<Output> {
        let mut output = Output::default();
        for event in self {
            output.add(event?);
        }
        Ok(output)
    }

    /// What a closed channel means: nothing after the end, else the engine is gone.
    fn closed(&mut self) -> Option<Result<Event>> {
        if std::mem::replace(&mut self.done, true) {
            return None;
        }
        Some(Err(self.shared.why_gone()))
    }

    fn note(&mut self, event: Result<Event>) -> Option<Result<Event>> {
        self.done |= matches!(event, Err(_) | Ok(Event::Finished { .. }));
        Some(event)
    }
}

impl Iterator for Response {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let event = match self.shared.require_other_thread() {
            Ok(()) => self.events.recv_blocking(),
            Err(error) => match self.events.try_recv() {
                Err(TryRecvError::Empty) => return self.note(Err(error)),
                Err(TryRecvError::Closed) => return self.closed(),
                Ok(event) => Ok(event),
            },
        };
        match event {
            Ok(event) => self.note(event),
            Err(_) => self.closed(),
        }
    }
}

impl Stream for Response {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        match self.events.as_mut().poll_next(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(event)) => Poll::Ready(self.note(event)),
            Poll::Ready(None) => Poll::Ready(self.closed()),
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        // Whoever waits in the queue is noticed without waiting for its turn.
        self.cancelled.store(true, Ordering::Relaxed);
        if !self.done {
            self.shared.wake();
        }
    }
}

/// Cancels a request: it ends with [`StopReason::Cancelled`].
#[derive(Clone, Debug)]
pub struct Canceller {
    cancelled: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

impl Canceller {
    /// Cancels; does nothing to a request that has ended.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.shared.wake();
    }
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Output {
    /// The text.
    pub text: String,
    /// The tokens.
    pub tokens: Vec<Token>,
    /// Where each token came from.
    pub sources: Vec<Source>,
    /// The log-probabilities of each token, if they were asked for.
    pub logprobs: Vec<Logprobs>,
    /// Why it ended.
    pub reason: Option<StopReason>,
    /// Its numbers.
    pub stats: Stats,
}

impl Output {
    /// Adds an event.
    pub fn add(&mut self, event: Event) {
        self.text += event.text();
        match event {
            Event::Token { token, source, logprobs, .. } => {
                self.tokens.push(token);
                self.sources.push(source);
                self.logprobs.extend(logprobs);
            }
            Event::Finished { reason, stats, .. } => {
                self.reason = Some(reason);
                self.stats = *stats;
            }
            _ => {}
        }
    }
}
