//! What the user can ask for besides texts.

use super::registry::problem;
use crate::spec::SpecConfig;
use crate::supervise::load::Load;
use crate::supervise::policy::{Event, GivenUp};
use crate::supervise::task::{Problem, ProblemKind};
use crate::supervise::wire::RefusalKind;
use async_channel::Sender;
use std::path::PathBuf;

/// What becomes of the tasks that run when something else is to be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Running {
    /// They come to their end first. Should the engine break down meanwhile, they go on after it was loaded, if it is the same model.
    #[default]
    Finish,
    /// They end with [`ProblemKind::Unavailable`].
    Cancel,
}

/// Why nothing could be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refused {
    /// Who is to blame.
    pub kind: RefusalKind,
    /// Why, for the owner of the machine: it can name paths and hold lines of the worker's log.
    pub message: String,
}

impl Refused {
    pub(super) fn stopped() -> Self {
        Self { kind: RefusalKind::Trial, message: "it was ended before anything was loaded".into() }
    }
}

impl From<&GivenUp> for Refused {
    fn from(given_up: &GivenUp) -> Self {
        let GivenUp { reason, kind, message, log, .. } = given_up;
        let mut message = message.as_ref().unwrap_or(reason).clone();
        if kind.is_none() {
            log.iter().for_each(|line| message += &format!("\n{line}"));
        }
        Self { kind: kind.unwrap_or(RefusalKind::Trial), message }
    }
}

/// Something to be loaded or dropped.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Load(Box<Load>),
    Reload,
    Unload,
    SetDraft { draft: Option<PathBuf>, speculation: Option<Box<SpecConfig>> },
}

impl Command {
    /// As the policy takes it.
    pub(super) fn event(self) -> Event {
        match self {
            Self::Load(load) => Event::Load(load),
            Self::Reload => Event::Reload,
            Self::Unload => Event::Unload,
            Self::SetDraft { draft, speculation } => {
                Event::SetDraft { draft, speculation: speculation.map(|config| *config) }
            }
        }
    }
}

/// Where the outcome of a command goes.
pub(super) type Outcome = Sender<Result<(), Problem>>;

/// A command that waits for the running tasks to end.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) command: Command,
    pub(super) outcome: Outcome,
}

pub(super) fn stopping() -> Problem {
    problem(ProblemKind::Unavailable, "the server is being shut down")
}

pub(super) fn overtaken() -> Problem {
    problem(ProblemKind::Unavailable, "something else was asked for meanwhile")
}
