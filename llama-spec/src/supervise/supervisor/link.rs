//! What a supervisor needs of a worker, wherever it runs.

use crate::supervise::wire::{FromWorker, ToWorker};
use std::fmt::Debug;
use std::sync::Arc;

/// Something that starts workers.
pub(crate) trait Launch: Debug + Send + Sync {
    /// Starts one. What it says goes to `notify`, in order, from a thread of its own, [`Notice::Gone`] last; never from within this
    /// call nor those of [`Link`], since the caller holds a lock.
    ///
    /// # Errors
    /// What happened, without paths.
    fn launch(&self, notify: Notify) -> Result<Arc<dyn Link>, String>;
}

/// A worker that was started. None of these waits.
pub(crate) trait Link: Debug + Send + Sync {
    /// Tells it this, soon. Who is gone is told nothing.
    fn send(&self, message: ToWorker);
    /// Messages that it has not taken yet.
    fn backlog(&self) -> usize;
    /// Ends it by force.
    fn kill(&self);
    /// The last lines it wrote to its standard error so far, oldest first.
    fn log(&self) -> Vec<String>;
    /// Its process, if it has one of its own.
    fn process(&self) -> Option<u32>;
}

/// Where the notices of one worker go.
pub(crate) type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

/// What is heard of a worker.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// It says this.
    Said(FromWorker),
    /// It cannot be understood, or is none, for this reason: no other of its kind can be used.
    Useless(String),
    /// It has ended.
    Gone {
        /// What happened, without paths.
        what: String,
        /// Its last lines.
        log: Vec<String>,
    },
}
