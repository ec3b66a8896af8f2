//! How the worker is, told several times a second by a thread that never waits for the engine: all it looks at is kept state.

use super::check;
use super::stage::Stage;
use crate::engine::EngineStats;
use crate::supervise::wire::{FromWorker, Pulse};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often is looked.
pub(super) const TICK: Duration = Duration::from_millis(200);
/// How long nothing is said while nothing goes on.
const QUIET: Duration = Duration::from_secs(1);

/// The numbers of an engine that was given so many texts. An engine that hangs in one of its first steps has not told that it has
/// any.
pub(super) fn known(mut stats: EngineStats, running: u64) -> EngineStats {
    let slots = stats.slots.len() as u64;
    stats.running = stats.running.max(running.saturating_sub(stats.queued).min(slots));
    stats
}

/// What is kept between two looks.
#[derive(Debug, Default)]
pub(super) struct Signs(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Of the engine that is there now.
    steps: u64,
    last_decode: Option<(Instant, bool)>,
    told: Option<Instant>,
    /// It was told that the engine broke down.
    poisoned: bool,
    /// Checks that wait for real work to go on, and the numbers when they came.
    checks: Vec<EngineStats>,
}

impl Signs {
    /// Another engine is there, or none. Gives the number of checks that nobody answers now.
    pub(super) fn renew(&self) -> usize {
        std::mem::take(&mut *self.lock()).checks.len()
    }

    /// Something was decoded.
    pub(super) fn decoded(&self, well: bool) {
        self.lock().last_decode = Some((Instant::now(), well));
    }

    /// The engine broke down. False if that is known.
    pub(super) fn poisoned(&self) -> bool {
        !std::mem::replace(&mut self.lock().poisoned, true)
    }

    /// Real work is to show whether the engine works.
    pub(super) fn check_by_work(&self, now: EngineStats) {
        self.lock().checks.push(now);
    }

    /// Looks at the engine and gives what is to be said, and how many checks must be made after all: the work that was to take
    /// their place has ended without any.
    pub(super) fn look(&self, stage: &Stage, running: u64, is_preparing: bool) -> (Vec<FromWorker>, usize) {
        let Some(stats) = stage.look(|loaded| loaded.engine.stats()) else { return (Vec::new(), 0) };
        let stats = known(stats, running);
        let now = Instant::now();
        let mut kept = self.lock();
        if stats.steps != kept.steps {
            kept.steps = stats.steps;
            // A part of a prompt gives no numbers to look at; whether the last ones were good is known from before.
            let well = kept.last_decode.is_none_or(|(_, well)| well);
            kept.last_decode = Some((now, well));
        }
        let waiting = kept.checks.len();
        kept.checks.retain(|before| !check::has_worked(before, &stats));
        let mut said = vec![FromWorker::Checked(Ok(())); waiting - kept.checks.len()];
        let again = if check::is_needless(&stats) { 0 } else { std::mem::take(&mut kept.checks).len() };
        let busy = is_preparing || stats.running > 0 || stats.queued > 0;
        if busy || kept.told.is_none_or(|told| now - told >= QUIET) {
            kept.told = Some(now);
            let last_decode = kept.last_decode.map(|(at, well)| (now - at, well));
            said.push(FromWorker::Pulse(Box::new(Pulse { stats, last_decode })));
        }
        (said, again)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
