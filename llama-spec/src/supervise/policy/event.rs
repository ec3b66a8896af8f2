//! What a recovery is told, and what it says is to be done.

use crate::spec::{SpecConfig, Speculation};
use crate::supervise::{Load, RefusalKind};
use std::path::PathBuf;

/// Something that has happened.
///
/// Events of workers carry the number from [`Action::Start`]. What is told of a worker that does not count any more is ignored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The user wants this to be loaded.
    Load(Box<Load>),
    /// The user wants nothing to be loaded.
    Unload,
    /// The user wants what was asked for last to be loaded anew, also after it was unloaded. Nothing happens if that is nothing.
    Reload,
    /// The user wants another draft for the same target. Nothing happens if nothing was asked for before.
    SetDraft {
        /// As [`Load::draft`].
        draft: Option<PathBuf>,
        /// As [`Load::speculation`].
        speculation: Option<SpecConfig>,
    },
    /// It is the end: nothing is started from now on.
    Stop,
    /// A worker has loaded what it should, and can generate.
    Loaded {
        /// Which worker.
        worker: u64,
        /// What speculation came to, as the worker tells it.
        speculation: Speculation,
    },
    /// A worker has not loaded what it should. It waits for another load.
    Refused {
        /// Which worker.
        worker: u64,
        /// Who is to blame.
        kind: RefusalKind,
        /// Why, for the owner of the machine: it can name paths.
        message: String,
    },
    /// A worker could not be started.
    NotStarted {
        /// Which worker.
        worker: u64,
        /// What happened, without paths: `the worker was not started: ...`.
        what: String,
    },
    /// A worker is there and of no more use: it makes no progress, has broken down, or gives nothing sensible.
    Broken {
        /// Which worker.
        worker: u64,
        /// What happened, without paths: `the worker made no progress for 30 s`.
        what: String,
        /// The last lines it wrote to its standard error, oldest first.
        log: Vec<String>,
    },
    /// A worker has ended, whether it was told to or not.
    Gone {
        /// Which worker.
        worker: u64,
        /// What happened, without paths: `the worker died (signal 6: abort)`.
        what: String,
        /// The last lines it wrote to its standard error, oldest first.
        log: Vec<String>,
    },
    /// Time has passed. Due at [`Recovery::wake_at`](super::Recovery::wake_at), and whenever the worker has nothing more to do;
    /// more often does no harm.
    Tick {
        /// Whether requests run or wait.
        busy: bool,
    },
}

/// Something that is to be done, in the order given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Start a worker and make it load this. Answered by [`Event::Loaded`], [`Event::Refused`], [`Event::NotStarted`],
    /// [`Event::Broken`] or [`Event::Gone`].
    Start {
        /// The number of the new worker.
        worker: u64,
        /// What it loads.
        load: Box<Load>,
        /// Workers that were started in place of others that broke down, this one included.
        restarts: u64,
    },
    /// Make the worker that serves load this instead. Texts that run cannot go on in its present engine: they stand still as after
    /// a breakdown. Answered as [`Action::Start`].
    Load {
        /// The number of the worker.
        worker: u64,
        /// What it loads.
        load: Box<Load>,
        /// As in [`Action::Start`].
        restarts: u64,
    },
    /// The worker is loaded: let texts begin, and go on where they stood.
    Serve {
        /// The number of the worker.
        worker: u64,
    },
    /// The worker is not needed any more: let it end by itself. Answered by [`Event::Gone`]; if that takes too long,
    /// [`Action::Kill`] follows, except after [`Event::Stop`], when the caller decides how long it waits.
    End {
        /// The number of the worker.
        worker: u64,
    },
    /// End the worker at once, and believe nothing it says. Answered by [`Event::Gone`].
    Kill {
        /// The number of the worker.
        worker: u64,
    },
    /// What the user asked for last cannot be had, and is not asked for any more. What was loaded before is loaded again.
    Reject(Box<GivenUp>),
    /// Nothing more is tried until the user asks for something: texts that wait cannot go on.
    GiveUp(Box<GivenUp>),
    /// What happened and what is done, in one sentence without paths, to be kept for the user.
    Record(String),
}

/// Why something is not tried any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenUp {
    /// What happened, without paths.
    pub reason: String,
    /// Who is to blame if the last attempt was refused; nothing if a worker broke down.
    pub kind: Option<RefusalKind>,
    /// What the worker said when it refused, for the owner of the machine: it can name paths.
    pub message: Option<String>,
    /// The last lines that the worker wrote to its standard error, oldest first. They can name paths.
    pub log: Vec<String>,
}
