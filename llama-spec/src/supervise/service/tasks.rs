//! The tasks that have not ended.

use super::claim::Claim;
use crate::engine::Canceller;
use crate::supervise::wire::TaskId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All tasks by their number.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<HashMap<TaskId, Task>>);

#[derive(Debug)]
enum Task {
    /// Not yet given to the engine. Whoever takes the claim says what becomes of these answers.
    Waiting { claim: Claim, answers: Vec<u32> },
    /// Being generated: so many answers are left.
    Running { cancellers: Vec<Canceller>, left: usize },
}

impl Tasks {
    /// A task has come. Nothing when there is one of this number.
    pub(super) fn begin(&self, id: TaskId, answers: Vec<u32>) -> Option<Claim> {
        let mut tasks = self.lock();
        if tasks.contains_key(&id) {
            return None;
        }
        let claim = Claim::default();
        tasks.insert(id, Task::Waiting { claim: claim.clone(), answers });
        Some(claim)
    }

    /// The engine has it. False when it was cancelled or refused meanwhile.
    pub(super) fn run(&self, id: TaskId, claim: &Claim, cancellers: Vec<Canceller>) -> bool {
        let mut tasks = self.lock();
        if !claim.take() {
            return false;
        }
        let left = cancellers.len();
        match left {
            0 => tasks.remove(&id),
            _ => tasks.insert(id, Task::Running { cancellers, left }),
        };
        true
    }

    /// It is not given to the engine: the answers that are to be told.
    pub(super) fn refuse(&self, id: TaskId) -> Vec<u32> {
        match self.lock().remove(&id) {
            Some(Task::Waiting { answers, .. }) => answers,
            _ => Vec::new(),
        }
    }

    /// Nobody wants it any more. The answers that are to be told of it, if the engine does not do that.
    pub(super) fn cancel(&self, id: TaskId) -> Vec<u32> {
        let mut tasks = self.lock();
        match tasks.get(&id) {
            Some(Task::Running { cancellers, .. }) => {
                cancellers.iter().for_each(Canceller::cancel);
                Vec::new()
            }
            Some(Task::Waiting { claim, .. }) if claim.take() => match tasks.remove(&id) {
                Some(Task::Waiting { answers, .. }) => answers,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// One of its answers has ended.
    pub(super) fn ended(&self, id: TaskId) {
        let mut tasks = self.lock();
        if let Some(Task::Running { left, .. }) = tasks.get_mut(&id) {
            *left -= 1;
            if *left == 0 {
                tasks.remove(&id);
            }
        }
    }

    /// Answers that the engine has and that have not ended.
    pub(super) fn running(&self) -> u64 {
        let left = |task: &Task| match task {
            Task::Running { left, .. } => *left as u64,
            Task::Waiting { .. } => 0,
        };
        self.lock().values().map(left).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
