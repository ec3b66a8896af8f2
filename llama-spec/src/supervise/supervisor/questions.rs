//! Questions that wait for their answers. Asking twice does no harm, so they outlive the worker that was asked.

use crate::supervise::task::{Problem, Question, Reply};
use crate::supervise::wire::{TaskId, ToWorker};
use async_channel::Sender;
use std::collections::BTreeMap;

/// Questions that may wait at a time.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<TaskId, Open>,
}

#[derive(Debug)]
struct Open {
    question: Question,
    reply: Sender<Result<Reply, Problem>>,
    sent: bool,
}

impl Questions {
    /// Whether no more are taken.
    pub(super) fn is_full(&mut self) -> bool {
        // Whoever waits no more has dropped the other end.
        self.open.retain(|_, open| !open.reply.is_closed());
        self.open.len() >= MOST
    }

    pub(super) fn take(&mut self, id: TaskId, question: Question, reply: Sender<Result<Reply, Problem>>) {
        self.open.insert(id, Open { question, reply, sent: false });
    }

    /// What to ask the worker that it was not asked yet.
    pub(super) fn unsent(&mut self) -> impl Iterator<Item = ToWorker> {
        let unsent = self.open.iter_mut().filter(|(_, open)| !open.sent);
        unsent.map(|(id, open)| {
            open.sent = true;
            ToWorker::Ask { id: *id, question: open.question.clone() }
        })
    }

    pub(super) fn answer(&mut self, id: TaskId, reply: Result<Reply, Problem>) {
        if let Some(open) = self.open.remove(&id) {
            drop(open.reply.try_send(reply));
        }
    }

    /// The worker is gone.
    pub(super) fn stand_still(&mut self) {
        self.open.values_mut().for_each(|open| open.sent = false);
    }

    pub(super) fn end_all(&mut self, why: &Problem) {
        std::mem::take(&mut self.open).into_values().for_each(|open| drop(open.reply.try_send(Err(why.clone()))));
    }
}
