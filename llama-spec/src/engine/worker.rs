//! The thread of an engine, and what it shares with those who ask.

use super::Priority;
use super::keeper::Keeper;
use super::queue::Queue;
use super::saved::SavedState;
use super::stats::{EngineStats, SlotStats};
use crate::error::{Error, Result};
use crate::generate::StopReason;
use crate::lookup::Store;
use crate::runner::{Broken, Job, Runner};
use crate::spec::Speculation;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// How old published numbers may be while the engine is busy.
const PUBLISH: Duration = Duration::from_millis(50);

/// How long an engine's thread may take to say why it ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The longest wait in one piece; not every system can wait for longer than it has existed.
const ONE_WAIT: Duration = Duration::from_secs(3600);

/// What an engine's thread shares with those who ask.
pub(super) struct Shared {
    /// Requests that may wait beside those for which there is a free slot.
    queue: usize,
    inbox: Mutex<Inbox>,
    /// Something came in, or a text ended.
    changed: Condvar,
    published: Mutex<EngineStats>,
    /// Where texts are kept for lookup.
    pub(super) store: Option<Store>,
    refused: AtomicU64,
    /// The engine's thread. It runs foreign code, too, and cannot wait for itself.
    thread: OnceLock<ThreadId>,
}

/// What waits for the engine's thread.
struct Inbox {
    waiting: Queue<Job>,
    saves: Vec<Save>,
    phase: Phase,
    /// Nothing runs and nothing waits.
    idle: bool,
}

struct Save {
    id: u64,
    reply: mpsc::Sender<Result<SavedState>>,
}

/// What an engine still does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// It finishes what it has.
    Draining,
    /// It gives up what it has.
    Stopping,
    /// Its thread is gone, for this reason.
    Failed(String),
    Stopped,
}

impl Shared {
    pub(super) fn new(queue: usize, store: Option<Store>, runner: &Runner, plain_token: Option<Duration>) -> Self {
        let free = runner.free_slots();
        let inbox = Inbox {
            waiting: Queue::new(queue.saturating_add(free)),
            saves: Vec::new(),
            phase: Phase::Running,
            idle: true,
        };
        let published = Mutex::new(snapshot(runner, plain_token));
        Self {
            queue,
            inbox: Mutex::new(inbox),
            changed: Condvar::new(),
            published,
            store,
            refused: AtomicU64::new(0),
            thread: OnceLock::new(),
        }
    }

    /// Whether this is the engine's own thread, as in a drafter of the user's.
    pub(super) fn is_own_thread(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    /// # Errors
    /// [`Error::State`] on the engine's own thread, which would wait for ever.
    pub(super) fn require_other_thread(&self) -> Result<()> {
        match self.is_own_thread() {
            true => {
                let reason =
                    "a drafter runs on the engine's own thread, which cannot wait for itself: ask from another";
                Err(Error::State { reason: reason.into() })
            }
            false => Ok(()),
        }
    }

    /// Puts a job into the queue.
    pub(super) fn submit(&self, job: Job, priority: Priority) -> Result<()> {
        let mut inbox = self.inbox();
        inbox.phase.require_running()?;
        let deadline = job.deadline;
        let pushed = inbox.waiting.push(job, priority, deadline, Instant::now());
        let waiting = inbox.waiting.len();
        if pushed.is_ok() {
            inbox.idle = false;
        }
        drop(inbox);
        self.changed.notify_all();
        pushed.map_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Error::Busy { waiting }
        })
    }

    /// Whether requests are taken.
    pub(super) fn check(&self) -> Result<()> {
        self.inbox().phase.require_running()
    }

    /// Asks the thread to save a text, and waits for it.
    pub(super) fn save(&self, id: u64) -> Result<SavedState> {
        self.require_other_thread()?;
        let (reply, answer) = mpsc::channel();
        let mut inbox = self.inbox();
        if matches!(inbox.phase, Phase::Failed(_) | Phase::Stopped) {
            // Nobody would answer.
            drop(inbox);
            return Err(self.why_gone());
        }
        inbox.saves.push(Save { id, reply });
        drop(inbox);
        self.changed.notify_all();
        answer.recv().unwrap_or_else(|_| Err(self.why_gone()))
    }

    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Lets the engine finish what it has, and waits for that. False if it takes longer than this.
    pub(super) fn drain(&self, longest: Duration) -> bool {
        // Without an end if that cannot be told as a time.
        let until = Instant::now().checked_add(longest);
        let mut inbox = self.inbox();
        if inbox.phase == Phase::Running {
            inbox.phase = Phase::Draining;
        }
        self.changed.notify_all();
        while !inbox.idle && matches!(inbox.phase, Phase::Draining) {
            if self.is_own_thread() {
                return false;
            }
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            inbox = self.changed.wait_timeout(inbox, left.min(ONE_WAIT)).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Lets the thread end soon.
    pub(super) fn stop(&self) {
        let mut inbox = self.inbox();
        if matches!(inbox.phase, Phase::Running | Phase::Draining) {
            inbox.phase = Phase::Stopping;
        }
        drop(inbox);
        self.changed.notify_all();
    }

    /// Why the engine does not answer any more.
    pub(super) fn why_gone(&self) -> Error {
        let working = |inbox: &mut Inbox| !matches!(inbox.phase, Phase::Failed(_) | Phase::Stopped);
        // A panic drops texts before the thread can say what happened.
        let inbox = self.changed.wait_timeout_while(self.inbox(), LAST_WORDS, working);
        match &inbox.unwrap_or_else(PoisonError::into_inner).0.phase {
            Phase::Failed(reason) => Error::EngineFailed { reason: reason.clone() },
            _ => Error::ShuttingDown,
        }
    }

    /// Why the engine has failed, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        match &self.inbox().phase {
            Phase::Failed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    pub(super) fn stats(&self) -> EngineStats {
        let mut stats = self.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        stats.refused = self.refused.load(Ordering::Relaxed);
        stats.queued = self.inbox().waiting.len() as u64;
        stats.store = self.store.as_ref().map(Store::stats);
        stats
    }

    pub(super) fn speculation(&self) -> Speculation {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).speculation.clone()
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, stats: EngineStats) {
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Phase {
    fn require_running(&self) -> Result<()> {
        match self {
            Self::Running => Ok(()),
            Self::Failed(reason) => Err(Error::EngineFailed { reason: reason.clone() }),
            Self::Draining | Self::Stopping | Self::Stopped => Err(Error::ShuttingDown),
        }
    }
}

/// The thread of an engine.
pub(super) struct Worker<'s> {
    pub(super) runner: Runner,
    pub(super) shared: &'s Shared,
    /// What the target alone takes for a token of one slot.
    pub(super) plain_token: Option<Duration>,
    /// If there is a store.
    pub(super) keeper: Option<Keeper>,
}

impl Worker<'_> {
    /// Works until the engine is stopped or breaks down. No text is left without an end or an error.
    pub(super) fn run(mut self) {
        _ = self.shared.thread.set(thread::current().id());
        // A panic here is a fault of this crate; those who wait must be told nevertheless.
        let end = catch_unwind(AssertUnwindSafe(|| self.work()));
        let (phase, error): (Phase, fn(&Phase) -> Error) = match end {
            Ok(Ok(())) => (Phase::Stopped, |_| Error::ShuttingDown),
            Ok(Err(broken)) => (Phase::Failed(broken.0.to_string()), failed),
            Err(panic) => (Phase::Failed(words(panic.as_ref())), failed),
        };
        if let Phase::Failed(reason) = &phase {
            tracing::error!(%reason, "the engine has failed: make a new one");
        }
        let mut inbox = self.shared.inbox();
        inbox.phase = phase.clone();
        let waiting = inbox.waiting.remove_if(|_| true);
        // Whoever waits for a state learns from the closed channel that there is none.
        inbox.saves.clear();
        inbox.idle = true;
        drop(inbox);
        self.runner.tell_ends();
        self.keep();
        let given_up = self.runner.take_jobs().into_iter().chain(waiting);
        for mut job in given_up {
            job.take_siblings().into_iter().for_each(|sibling| sibling.answer.fail(error(&phase)));
            job.answer.fail(error(&phase));
        }
        self.publish();
        self.shared.changed.notify_all();
    }

    fn work(&mut self) -> Result<(), Broken> {
        let mut published = Instant::now();
        while self.take_in()? {
            self.runner.step()?;
            let now = Instant::now();
            if self.runner.has_ends() || now - published >= PUBLISH {
                self.tell();
                published = now;
            }
        }
        Ok(())
    }

    /// Sees to what came in, and waits until there is something to generate. False at the end.
    fn take_in(&mut self) -> Result<bool, Broken> {
        let shared = self.shared;
        let mut inbox = shared.inbox();
        loop {
            let now = Instant::now();
            for job in self.runner.take_returned() {
                let (priority, deadline) = (job.priority, job.deadline);
                inbox.waiting.push_again(job, priority, deadline, now);
            }
            let late = inbox.waiting.expired(now);
            let unwanted = inbox.waiting.remove_if(Job::is_cancelled);
            let saves = std::mem::take(&mut inbox.saves);
            if !late.is_empty() || !unwanted.is_empty() || !saves.is_empty() {
                drop(inbox);
                late.into_iter().for_each(|job| self.runner.finish_waiting(job, StopReason::Deadline));
                unwanted.into_iter().for_each(|job| self.runner.finish_waiting(job, StopReason::Cancelled));
                self.tell();
                for save in saves {
                    let saved = self.save(save.id);
                    // Who asked may have gone.
                    let _ = save.reply.send(saved);
                }
                inbox = shared.inbox();
                continue;
            }
            if inbox.phase == Phase::Stopping {
                return Ok(false);
            }
            while self.runner.has_free_slot()
                && let Some(job) = inbox.waiting.pop(now)
            {
                inbox.idle = false;
                drop(inbox);
                self.runner.start(job)?;
                inbox = shared.inbox();
            }
            inbox.waiting.set_limit(self.limit());
            if !self.runner.is_idle() {
                return Ok(true);
            }
            if self.runner.has_ends() {
                drop(inbox);
                self.tell();
                inbox = shared.inbox();
                continue;
            }
            // A text that ends where it begins leaves the other answers to the same request.
            if !inbox.waiting.is_empty() || self.runner.has_returned() {
                continue;
            }
            inbox.idle = true;
            self.publish();
            shared.changed.notify_all();
            inbox = shared.changed.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn save(&mut self, id: u64) -> Result<SavedState> {
        let unknown =
            || Error::State { reason: "this text is not in a slot: it has ended, or is still waiting".into() };
        let model = self.runner.model().clone();
        let (job, memory) = self.runner.save(id).ok_or_else(unknown)?;
        SavedState::new(&model, job, memory?)
    }

    /// Publishes the numbers, then tells the owners of the texts that are over, which wakes them: the inbox must not be locked.
    fn tell(&mut self) {
        self.publish();
        // Whoever is told may ask for the next text at once.
        self.shared.inbox().waiting.set_limit(self.limit());
        self.runner.tell_ends();
        self.keep();
    }

    /// Sees to it that lookup finds the texts again.
    fn keep(&mut self) {
        for kept in self.runner.take_kept() {
            if let Some(keeper) = &self.keeper {
                keeper.keep(kept);
            }
        }
    }

    /// Requests that may wait now.
    fn limit(&self) -> usize {
        self.shared.queue.saturating_add(self.runner.free_slots())
    }

    fn publish(&self) {
        self.shared.publish(snapshot(&self.runner, self.plain_token));
    }
}

fn failed(phase: &Phase) -> Error {
    match phase {
        Phase::Failed(reason) => Error::EngineFailed { reason: reason.clone() },
        _ => Error::ShuttingDown,
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a fault in the engine: {}", text.as_deref().unwrap_or("panic"))
}

/// The numbers of a runner; those of the queue are added when somebody asks.
fn snapshot(runner: &Runner, plain_token: Option<Duration>) -> EngineStats {
    let counts = runner.counts();
    let slots = runner.seats().zip(runner.seat_totals()).map(|((busy, tokens, _), stats)| SlotStats {
        busy,
        tokens: tokens as u64,
        stats,
    });
    let (drafters, account) = runner.account();
    EngineStats {
        drafters,
        account,
        total: runner.total().clone(),
        slots: slots.collect(),
        running: runner.jobs().count() as u64,
        finished: counts.finished,
        cancelled: counts.cancelled,
        expired: counts.expired,
        failed: counts.failed,
        preempted: counts.preempted,
        decodes: counts.decodes,
        decoded_slots: counts.decoded_slots,
        steps: counts.steps,
        longest_step: counts.longest_step,
        queue_times: counts.queue_times.clone(),
        times_to_first_token: counts.times_to_first_token.clone(),
        plain_token,
        speculation: runner.speculation(),
        ..EngineStats::default()
    }
}
