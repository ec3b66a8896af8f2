//! The messages between a supervisor and its worker.
//!
//! Each is MessagePack in a frame of [`isolate`](crate::isolate), which survives whatever else is written to the same stream.
//! The first message of a worker names its version; no other is understood.

use super::load::Load;
use super::status::Info;
use super::task::{Problem, Question, Reply, Task, Update};
use crate::engine::{EngineStats, Loading};
use crate::sample::SamplerState;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(crate) use crate::engine::Midway;

/// The version of these messages.
pub(crate) const VERSION: u32 = 1;

/// Which task a message is about.
pub(crate) type TaskId = u64;

/// What a supervisor says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Load this. What was loaded before is dropped, except models that are in both: a draft can come and go without the target
    /// being loaded again. Answered by [`FromWorker::Loaded`] or [`FromWorker::NotLoaded`].
    Load {
        load: Box<Load>,
        /// How many workers there were before this one.
        restarts: u64,
    },
    /// Drop the models. Answered by [`FromWorker::Unloaded`].
    Unload,
    /// Generate. For a task that an earlier worker began, where each answer stands; else empty.
    Start { id: TaskId, task: Box<Task>, standing: Vec<Standing> },
    /// Nobody wants this task any more.
    Cancel { id: TaskId },
    /// Answer this.
    Ask { id: TaskId, question: Question },
    /// Generate a little, to see whether that works. Answered by [`FromWorker::Checked`].
    Check,
    /// End.
    Stop,
}

/// Where an answer stands that an earlier worker began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// It has not begun.
    Fresh,
    /// It has ended, and its updates were delivered.
    Ended,
    /// It was under way.
    Begun(Box<Midway>),
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// It is one. Comes first.
    Hello { version: u32, library: String },
    /// How far loading is.
    Progress(Loading),
    /// It can generate: it was tried, unless that was not wanted.
    Loaded(Box<Info>),
    /// It could not be loaded. The worker waits for another load.
    NotLoaded(Refusal),
    /// Nothing is loaded.
    Unloaded,
    /// A step of an answer. `sampler` comes with the last tokens of each round.
    Update { id: TaskId, answer: u32, update: Update, sampler: Option<SamplerState> },
    /// An answer broke off, or the whole task was refused (then for each of its answers).
    Broken { id: TaskId, answer: u32, problem: Problem },
    /// The answer to a question.
    Reply { id: TaskId, reply: Result<Reply, Problem> },
    /// How it is, several times a second.
    Pulse(Box<Pulse>),
    /// How the check went.
    Checked(Result<(), String>),
    /// The engine broke down for this reason; the worker is of no more use.
    Poisoned(String),
}

/// How a worker is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pulse {
    /// Its numbers.
    pub(crate) stats: EngineStats,
    /// How long ago the last decode ended, and whether it gave finite numbers; nothing before the first.
    pub(crate) last_decode: Option<(Duration, bool)>,
    /// The longest step of the engine so far: how long its silence can be.
    pub(crate) longest_step: Duration,
}

/// Why something was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    /// For the owner of the machine: it can name paths.
    pub(crate) message: String,
}

/// Who is to blame when something was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RefusalKind {
    /// Files and settings do not go together: no other attempt helps.
    Pair,
    /// A file is missing, broken or no model.
    File,
    /// A setting is wrong.
    Setting,
    /// The engine did not work when it was tried, or a context could not be made: with less it may.
    Trial,
}
