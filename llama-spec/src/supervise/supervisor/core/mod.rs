//! Everything that is decided, under one lock: what was asked for, which worker there is, and what it was given.
//!
//! Nothing in here waits. What is to be done about failures is decided by [`Recovery`]; this carries it out.

mod act;
mod ask;
mod hear;
mod tell;
mod time;

use super::command::{self, Outcome, Pending, Refused};
use super::link::{Launch, Link, Notify};
use super::questions::Questions;
use super::registry::{Registry, problem};
use super::report::Report;
use super::totals::Totals;
use crate::supervise::policy::{Policy, Recovery};
use crate::supervise::status::{Info, State};
use crate::supervise::task::{Problem, ProblemKind};
use crate::supervise::vitals::Vitals;
use crate::supervise::watch::Watch;
use crate::supervise::wire::TaskId;
use async_channel::Sender;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The clock ticks at least so often.
const TICK: Duration = Duration::from_secs(1);
/// And at most so often.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// Messages a worker may have before it that it has not read; then it gets no more tasks.
const BACKLOG: usize = 1024;
/// When it is tried again after it could not.
const NEXT_TRIAL: Duration = Duration::from_secs(1);
/// What stands for times that no clock holds: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a supervisor is set.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) policy: Policy,
    pub(super) patience: Duration,
    pub(super) check_every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let half_a_minute = Duration::from_secs(30);
        Self { policy: Policy::default(), patience: half_a_minute, check_every: half_a_minute }
    }
}

type Listen = Box<dyn Fn(u64) -> Notify + Send>;

pub(super) struct Core {
    settings: Settings,
    launch: Box<dyn Launch>,
    /// Makes the ear for a worker.
    listen: Listen,
    recovery: Recovery,
    worker: Option<Worker>,
    /// Workers that are told to end, or were killed.
    leaving: BTreeMap<u64, Arc<dyn Link>>,
    registry: Registry,
    questions: Questions,
    /// The last number that was given to a worker with something.
    numbers: TaskId,
    pending: Option<Pending>,
    outcomes: Vec<Outcome>,
    first: First,
    report: Report,
    /// The model that texts were begun with: where it is, and what tells it from another in its place.
    model: Option<(PathBuf, u64)>,
    totals: Totals,
    vitals: Vitals,
    ending: Option<Ending>,
    closed: bool,
}

/// The worker that counts.
#[derive(Debug)]
struct Worker {
    number: u64,
    link: Arc<dyn Link>,
    /// It has said that it is one.
    known: bool,
    serving: bool,
    /// It was told to see whether it can generate.
    checking: bool,
    /// When it was started.
    since: Instant,
    watch: Watch,
}

/// What came of the first load, or who waits for that.
#[derive(Debug)]
enum First {
    Open(Vec<Sender<Result<Info, Refused>>>),
    Known(Box<Result<Info, Refused>>),
}

/// It is to come to an end.
#[derive(Debug)]
struct Ending {
    /// When tasks that still run are ended, and after that the worker.
    deadline: Instant,
    stopped: bool,
    /// Dropped when all is over.
    waiting: Vec<Sender<()>>,
}

impl Core {
    pub(super) fn new(launch: Box<dyn Launch>, listen: Listen, settings: Settings) -> Self {
        Self {
            recovery: Recovery::new(settings.policy.clone()),
            settings,
            launch,
            listen,
            worker: None,
            leaving: BTreeMap::new(),
            registry: Registry::default(),
            questions: Questions::default(),
            numbers: 0,
            pending: None,
            outcomes: Vec::new(),
            first: First::Open(Vec::new()),
            report: Report::default(),
            model: None,
            totals: Totals::default(),
            vitals: Vitals::default(),
            ending: None,
            closed: false,
        }
    }

    /// Whether tasks are taken.
    fn takes(&self) -> Result<(), Problem> {
        if self.ending.is_some() {
            return Err(command::stopping());
        }
        let why = match self.recovery.state() {
            State::Ready | State::Degraded { .. } | State::Recovering { .. } => return Ok(()),
            State::Starting { .. } => "the model is being loaded; try again later",
            State::Unloaded => "no model is loaded",
            State::Failed { .. } => "the engine has failed",
            State::Stopping => return Err(command::stopping()),
        };
        Err(problem(ProblemKind::Unavailable, why))
    }

    /// Tasks that run or wait at a time.
    fn capacity(&self) -> usize {
        let load = self.recovery.effective().or(self.recovery.requested());
        load.map_or(0, |load| load.queue.saturating_add(load.context.slots as usize))
    }

    fn number(&mut self) -> TaskId {
        self.numbers += 1;
        self.numbers
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recovery, worker, leaving, registry, .. } = self;
        let parts = f.debug_struct("Core");
        let mut parts = parts;
        parts.field("recovery", recovery).field("worker", worker).field("leaving", leaving);
        parts.field("registry", registry).finish_non_exhaustive()
    }
}
