//! Running what may end the process in a process of its own.
//!
//! llama.cpp aborts on some files and settings, and a driver can hang. What nobody can know beforehand is tried in a
//! *worker*: the program starts itself once more, gives the copy a job, and reads the answer. If the worker crashes or does
//! not answer in time, that is the answer, with the last lines it wrote.
//!
//! For this the program calls [`hook`] first in its `main`. In a worker it does the job and ends the process; otherwise it
//! returns at once.
//!
//! ```
//! llama_spec::isolate::hook(); // first in `main`, before arguments are read and threads are started
//! ```
//!
//! A worker is known by an environment variable with a value that is made for it, and by a message with the same value on
//! its standard input; it answers on its standard output, between whatever else is written there. It ends when the process
//! that started it does. A worker starts no workers.

mod child;
mod frame;
mod jobs;
mod lost;
mod process;
mod worker;

pub use lost::Lost;

pub(crate) use child::{assignment, has_begun};

pub(crate) use frame::{Nonce, Scanner, wrap};
pub(crate) use jobs::Job;
pub(crate) use lost::how;
pub(crate) use process::{Process, signal};

use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// Tells a worker that it is one. Its value is the [`frame::Nonce`] of the job.
const VARIABLE: &str = "LLAMA_SPEC_WORKER";

/// Does the job if this process was started as a worker, and ends the process; otherwise returns. To be called first in
/// `main`: what the program does before, every worker does too.
pub fn hook() {
    if let Some(assignment) = worker::assignment() {
        worker::work(assignment);
    }
}

/// The program that is started as a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// The one that runs. It must call [`hook`].
    #[default]
    Current,
    /// This one. It must call [`hook`] and be built with the same version of this library.
    At(PathBuf),
}

/// How jobs are isolated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// What is started.
    pub program: Program,
    /// How long a job may take, starting the worker included. Then the worker is killed.
    pub timeout: Duration,
}

impl Default for Isolation {
    /// The program that runs, for a minute.
    fn default() -> Self {
        Self { program: Program::Current, timeout: Duration::from_secs(60) }
    }
}

impl Isolation {
    /// Runs the job in a worker and waits for its answer.
    ///
    /// # Errors
    /// What became of the worker if it gave none. It is gone in any case.
    pub(crate) fn run(&self, job: &Job) -> Result<serde_json::Value, Lost> {
        child::run(&self.program.path()?, self.timeout, job)
    }
}

impl Program {
    /// Where it is.
    ///
    /// # Errors
    /// [`Lost::NotStarted`] when that is not known, and in a worker.
    pub(crate) fn path(&self) -> Result<PathBuf, Lost> {
        // A program that forgot the hook goes its usual way as a worker, and would come here again.
        if env::var_os(VARIABLE).is_some() {
            return Err(Lost::NotStarted {
                reason: format!("{VARIABLE} is set, so this process is a worker itself, or was started by one"),
            });
        }
        match self {
            Self::At(path) => Ok(path.clone()),
            Self::Current => env::current_exe().map_err(|why| Lost::NotStarted {
                reason: format!("the path of the program that runs is not known: {why}"),
            }),
        }
    }
}

/// What the integration tests need, since they see the library from outside.
#[doc(hidden)]
pub mod testing {
    use super::{Isolation, Job, Lost};

    /// Runs a job that is given as JSON, such as `"abort"` or `{"echo": 1}`.
    ///
    /// # Errors
    /// What became of the worker if it gave no answer. [`Lost::NotStarted`] for what is no job.
    pub fn run(isolation: &Isolation, job: serde_json::Value) -> Result<serde_json::Value, Lost> {
        let job: Job =
            serde_json::from_value(job).map_err(|why| Lost::NotStarted { reason: format!("no job: {why}") })?;
        isolation.run(&job)
    }
}
