//! The side that stays: it keeps what was asked for, and sees to it that a worker does it.

mod answers;
mod builder;
mod command;
mod core;
mod counted;
pub(super) mod link;
mod questions;
mod registry;
mod report;
#[cfg(test)]
mod tests;
mod totals;

pub use answers::{Answers, Canceller};
pub use builder::SupervisorBuilder;
pub use command::{Refused, Running};

use self::core::Core;
use super::load::Load;
use super::status::{Info, Status};
use super::task::{Problem, Question, Reply, Task};
use crate::spec::SpecConfig;
use command::Command;
use link::{Launch, Notice, Notify};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long the last one who leaves waits for the worker to be gone.
const FAREWELL: Duration = Duration::from_secs(2);

/// An engine in a worker, which is started again when it breaks down. It can be cloned and shared; dropping the last one ends the
/// worker.
///
/// Nothing here waits for the worker, but for what is `async`; these can be awaited in any runtime.
///
/// ```
/// use llama_spec::supervise::{Load, Supervisor, Task, Update};
/// use llama_spec::Request;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let target = llama_spec_tests::zoo::file("target");
/// // A program of its own calls `llama_spec::isolate::hook()` first in its `main`, and leaves `in_process` out.
/// let supervisor = Supervisor::builder(Load::new(target)).in_process().start()?;
/// let info = pollster::block_on(supervisor.first_load())?;
/// let mut text = String::new();
/// for (_answer, step) in supervisor.submit(Task::text(Request::prompt("Hello").greedy().max_tokens(20)))? {
///     if let Update::Tokens(tokens) = step? {
///         tokens.iter().for_each(|token| text += &token.text);
///     }
/// }
/// println!("{}: {text} ({})", info.description, supervisor.status().state.name());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Supervisor {
    handle: Arc<Handle>,
}

impl Supervisor {
    /// Options for an engine that is made of this.
    pub fn builder(load: Load) -> SupervisorBuilder {
        SupervisorBuilder::new(load)
    }

    /// Everything that is known of the engine. It answers at once, whatever the worker does.
    pub fn status(&self) -> Status {
        self.shared().core().status(Instant::now())
    }

    /// Waits until the first load has ended, in one way or another.
    ///
    /// # Errors
    /// Why nothing could be loaded.
    pub async fn first_load(&self) -> Result<Info, Refused> {
        let first = self.shared().core().first_load();
        first.recv().await.unwrap_or_else(|_| Err(Refused::stopped()))
    }

    /// Gives it a task. It never waits: while the engine is being started again, tasks are kept for it.
    ///
    /// # Errors
    /// [`ProblemKind::Busy`](super::ProblemKind::Busy) when as many wait as are taken,
    /// [`ProblemKind::Unavailable`](super::ProblemKind::Unavailable) when there is no engine, and
    /// [`ProblemKind::Invalid`](super::ProblemKind::Invalid) for a number of answers that is not 1 to 1024. Everything else that is
    /// wrong with a task is told by its answers.
    pub fn submit(&self, task: Task) -> Result<Answers, Problem> {
        let (ticket, steps) = self.shared().core().submit(task, Instant::now())?;
        self.shared().wake();
        Ok(Answers::new(ticket, steps, Arc::clone(self.shared())))
    }

    /// Asks something that needs no generating.
    ///
    /// # Errors
    /// As [`Supervisor::submit`], and what is wrong with the question.
    pub async fn ask(&self, question: Question) -> Result<Reply, Problem> {
        let reply = self.shared().core().ask(question)?;
        self.shared().wake();
        reply.recv().await.unwrap_or_else(|_| Err(command::stopping()))
    }

    /// Loads this in place of what is loaded, and waits until that can generate. A recovery that is under way is given up for it.
    /// If it cannot be loaded, what was there before is loaded again.
    ///
    /// # Errors
    /// [`ProblemKind::Unavailable`](super::ProblemKind::Unavailable) when it cannot be loaded, or something else was asked for
    /// meanwhile; the [status](Supervisor::status) tells why.
    pub async fn load(&self, load: Load, running: Running) -> Result<(), Problem> {
        self.command(Command::Load(Box::new(load)), running).await
    }

    /// Loads anew what was asked for last, also after it was unloaded, with everything that was left out since because it failed.
    ///
    /// # Errors
    /// As [`Supervisor::load`]; [`ProblemKind::Invalid`](super::ProblemKind::Invalid) when nothing was asked for.
    pub async fn reload(&self, running: Running) -> Result<(), Problem> {
        self.command(Command::Reload, running).await
    }

    /// Drops the models, and waits until their memory is free.
    ///
    /// # Errors
    /// [`ProblemKind::Unavailable`](super::ProblemKind::Unavailable) when something else was asked for meanwhile.
    pub async fn unload(&self, running: Running) -> Result<(), Problem> {
        self.command(Command::Unload, running).await
    }

    /// Changes what drafts; the target is not loaded again. With `None` for `speculation`, the files decide. If that cannot be
    /// had, what was loaded before is loaded again.
    ///
    /// # Errors
    /// As [`Supervisor::reload`].
    pub async fn set_draft(
        &self,
        draft: Option<PathBuf>,
        speculation: Option<SpecConfig>,
        running: Running,
    ) -> Result<(), Problem> {
        self.command(Command::SetDraft { draft, speculation: speculation.map(Box::new) }, running).await
    }

    /// Takes no more tasks, lets those that run end within this time, ends the worker, and waits until it is gone.
    pub async fn shutdown(&self, grace: Duration) {
        let ended = self.shared().core().shut_down(grace, Instant::now());
        self.shared().wake();
        // Closed when there is nothing left to end.
        _ = ended.recv().await;
    }

    async fn command(&self, command: Command, running: Running) -> Result<(), Problem> {
        let outcome = self.shared().core().command(command, running, Instant::now())?;
        self.shared().wake();
        outcome.recv().await.unwrap_or_else(|_| Err(command::stopping()))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.0
    }
}

/// Ends everything when it is dropped.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close(FAREWELL);
    }
}

/// What all threads have in common. All that happens is decided under one lock, which is never held for long.
#[derive(Debug)]
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Something has changed that the clock must know of, or a worker has ended.
    changed: Condvar,
}

impl Shared {
    fn new(launch: Box<dyn Launch>, settings: self::core::Settings) -> Arc<Self> {
        Arc::new_cyclic(|shared: &Weak<Self>| {
            let shared = shared.clone();
            let listen = Box::new(move |worker| -> Notify {
                let shared = shared.clone();
                Arc::new(move |notice| {
                    if let Some(shared) = shared.upgrade() {
                        shared.hear(worker, notice);
                    }
                })
            });
            Self { core: Mutex::new(Core::new(launch, listen, settings)), changed: Condvar::new() }
        })
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, worker: u64, notice: Notice) {
        let urgent = self.core().hear(worker, notice, Instant::now());
        if urgent {
            self.wake();
        }
    }

    /// Lets the clock look at its alarm again.
    fn wake(&self) {
        self.changed.notify_all();
    }

    /// The clock: what happens because time passes. Runs until everything has ended.
    fn run(&self) {
        let mut core = self.core();
        while !core.is_closed() {
            let now = Instant::now();
            core.tick(now);
            let wait = core.next_tick(now).saturating_duration_since(now);
            core = self.changed.wait_timeout(core, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn close(&self, longest: Duration) {
        let mut core = self.core();
        core.close(Instant::now());
        self.wake();
        let left = |core: &mut Core| core.has_processes();
        drop(self.changed.wait_timeout_while(core, longest, left));
    }
}
