//! The answers to a task, as they come.

use super::Shared;
use super::registry::{Step, Ticket};
use async_channel::Receiver;
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The answers to a [`Task`](crate::supervise::Task): an iterator of steps, each with the number of its answer from 0, and a
/// [`Stream`] of the same for asynchronous programs. Dropping it cancels the task.
///
/// The last step of an answer is [`Update::Finished`](crate::supervise::Update::Finished) or a
/// [`Problem`](crate::supervise::Problem); it ends when all answers have. What was not fetched yet is kept, up to 65,536 steps.
#[derive(Debug)]
pub struct Answers {
    ticket: Ticket,
    steps: Pin<Box<Receiver<Step>>>,
    shared: Arc<Shared>,
}

impl Answers {
    pub(super) fn new(ticket: Ticket, steps: Receiver<Step>, shared: Arc<Shared>) -> Self {
        Self { ticket, steps: Box::pin(steps), shared }
    }

    /// Something that cancels the task from elsewhere.
    pub fn canceller(&self) -> Canceller {
        Canceller { ticket: self.ticket, shared: Arc::clone(&self.shared) }
    }
}

impl Iterator for Answers {
    type Item = Step;

    fn next(&mut self) -> Option<Self::Item> {
        // Closed means that all has been told.
        self.steps.recv_blocking().ok()
    }
}

impl Stream for Answers {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.steps.as_mut().poll_next(context)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.shared.core().leave(self.ticket);
    }
}

/// Cancels a task: its answers end with [`StopReason::Cancelled`](crate::StopReason::Cancelled).
#[derive(Clone, Debug)]
pub struct Canceller {
    ticket: Ticket,
    shared: Arc<Shared>,
}

impl Canceller {
    /// Cancels; does nothing to a task that has ended.
    pub fn cancel(&self) {
        self.shared.core().cancel(self.ticket);
    }
}
