//! The worker's side: an engine, and whoever it works for.
//!
//! A [`Service`] is told what to do by [`Service::handle`], which returns at once, and says what comes of it from its own
//! threads. [`serve`] is one in a process of its own; one in this process works the same way.
//!
//! | thread | what it does |
//! |---|---|
//! | of [`loader`] | loads and unloads, one after the other |
//! | of [`desk`], a few | prepares texts and answers questions; what takes too long is given up |
//! | of the engine | computes; it never waits for anybody |
//! | of [`pump`] | turns the engine's events into updates; it waits when their reader is slow |
//! | of [`pulse`] | says how things are, from kept state |

mod answer;
mod check;
mod claim;
mod desk;
mod loader;
mod message;
mod problem;
mod pulse;
mod pump;
mod question;
mod serve;
mod stage;
mod start;
mod tasks;
mod text;
mod texts;

#[cfg(test)]
mod tests;

pub(crate) use serve::{End, serve};

use super::task::{Finish, Problem, Question, Task, Update};
use super::wire::{FromWorker, Standing, TaskId, ToWorker, VERSION};
use crate::generate::StopReason;
use answer::Said;
use async_channel::Sender;
use check::Check;
use claim::Claim;
use desk::{Desk, Work};
use loader::{Errand, Loader};
use pulse::{Signs, TICK};
use pump::Told;
use stage::Stage;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};
use tasks::Tasks;

/// Says something to the supervisor. It may wait until that can take it.
pub(crate) type Say = Arc<dyn Fn(FromWorker) + Send + Sync>;

/// How long rendering, tokens and grammar of a request may take.
const LONGEST_PREPARATION: Duration = Duration::from_secs(10);

/// An engine that is told what to do and says what comes of it. Dropping it ends everything.
pub(crate) struct Service {
    shared: Arc<Shared>,
    loader: Loader,
    /// Nothing is heard from what still runs.
    is_over: Arc<AtomicBool>,
}

/// What the threads have in common.
struct Shared {
    say: Say,
    stage: Arc<Stage>,
    signs: Arc<Signs>,
    tasks: Tasks,
    desk: Desk,
    told: Sender<Told>,
}

impl Service {
    /// Starts the threads, and says hello.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub(crate) fn new(say: impl Fn(FromWorker) + Send + Sync + 'static) -> io::Result<Self> {
        Self::with_limit(say, LONGEST_PREPARATION)
    }

    fn with_limit(say: impl Fn(FromWorker) + Send + Sync + 'static, longest: Duration) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let say: Say = Arc::new(move |message| {
            if !over.load(Ordering::Acquire) {
                say(message);
            }
        });
        let (stage, signs) = (Arc::new(Stage::default()), Arc::new(Signs::default()));
        let loader = Loader::start(Arc::clone(&stage), Arc::clone(&signs), Arc::clone(&say))?;
        let (hear, heard) = mpsc::channel::<Weak<Shared>>();
        let mut shared: Option<Weak<Shared>> = None;
        let told = pump::start(move |said| {
            // Comes before anything is told.
            let shared = shared.get_or_insert_with(|| heard.recv().unwrap_or_default());
            if let Some(shared) = shared.upgrade() {
                shared.hear(said);
            }
        })?;
        let (tasks, desk) = (Tasks::default(), Desk::new(longest));
        let shared = Arc::new(Shared { say, stage, signs, tasks, desk, told });
        drop(hear.send(Arc::downgrade(&shared)));
        pulse(Arc::downgrade(&shared))?;
        (shared.say)(FromWorker::Hello { version: VERSION, library: env!("CARGO_PKG_VERSION").into() });
        Ok(Self { shared, loader, is_over })
    }

    /// Does what is said, or begins with it. Only [`ToWorker::Stop`] takes time.
    pub(crate) fn handle(&self, message: ToWorker) {
        let shared = &self.shared;
        match message {
            ToWorker::Load { load, restarts } => self.loader.post(Errand::Load { load, restarts }),
            ToWorker::Start { id, task, standing } => start(shared, id, *task, standing),
            ToWorker::Cancel { id } => shared.cancelled(id),
            ToWorker::Ask { id, question } => ask(shared, id, question),
            ToWorker::Check => check(shared),
            ToWorker::Stop => self.stop(),
        }
    }

    /// Ends what runs, drops the models, and waits for that. Nothing is loaded after it.
    pub(crate) fn stop(&self) {
        let (done, is_done) = mpsc::channel();
        self.loader.post(Errand::Stop(done));
        // It is dropped when all is over.
        _ = is_done.recv();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

impl Shared {
    fn hear(&self, said: Said) {
        match said {
            Said::Message(message) => (self.say)(*message),
            Said::Decoded { well } => self.signs.decoded(well),
            Said::Ended(id) => self.tasks.ended(id),
        }
    }

    fn poisoned(&self, reason: String) {
        if self.signs.poisoned() {
            (self.say)(FromWorker::Poisoned(reason));
        }
    }

    /// Has something said, without waiting until it can be.
    fn say_soon(&self, message: FromWorker) {
        // The receiver is there as long as the service.
        drop(self.told.try_send(Told::Once(Some(Box::new(message)))));
    }

    fn broken(&self, id: TaskId, answers: Vec<u32>, problem: &Problem) {
        for answer in answers {
            self.say_soon(FromWorker::Broken { id, answer, problem: problem.clone() });
        }
    }

    /// Cancels a task. The engine ends those that it has.
    fn cancelled(&self, id: TaskId) {
        let speculation = || self.stage.look(|loaded| loaded.engine.speculation()).unwrap_or_default();
        for answer in self.tasks.cancel(id) {
            let finish = Finish::of_nothing(StopReason::Cancelled, speculation());
            let update = Update::Finished(Box::new(finish));
            self.say_soon(FromWorker::Update { id, answer, update, sampler: None });
        }
    }

    /// Brings a task to the engine, on a thread that may take its time.
    fn prepare(&self, id: TaskId, task: Task, standing: Vec<Standing>, claim: &Claim) {
        let Some(loaded) = self.stage.now() else {
            return self.refuse(id, claim, &Problem::unavailable());
        };
        match start::start(&loaded, id, task, standing) {
            Err(problem) => self.refuse(id, claim, &problem),
            Ok(started) => {
                drop(loaded);
                // Otherwise it is not wanted any more, and dropping the answers cancels them.
                if self.tasks.run(id, claim, started.cancellers) {
                    for answer in started.answers {
                        // The receiver is there as long as the service.
                        drop(self.told.try_send(Told::Answer(Box::new(answer))));
                    }
                    for (answer, problem) in started.broken {
                        self.broken(id, vec![answer], &problem);
                    }
                }
            }
        }
    }

    fn refuse(&self, id: TaskId, claim: &Claim, problem: &Problem) {
        if claim.take() {
            self.broken(id, self.tasks.refuse(id), problem);
        }
    }

    fn make_check(&self) {
        let Some(loaded) = self.stage.now() else {
            return (self.say)(FromWorker::Checked(Err("no model is loaded".into())));
        };
        let stats = pulse::known(loaded.engine.stats(), self.tasks.running());
        if check::is_needless(&stats) {
            return self.signs.check_by_work(stats);
        }
        match Check::new(&loaded.engine) {
            Ok(check) => drop(self.told.try_send(Told::Check(check))),
            Err(error) => (self.say)(FromWorker::Checked(Err(error.to_string()))),
        }
    }

    /// Looks after everything. From time to time.
    fn look(&self) -> usize {
        if let Some(reason) = self.stage.look(|loaded| loaded.engine.failure()).flatten() {
            self.poisoned(reason);
        }
        if let Err(reason) = self.desk.watch() {
            self.poisoned(reason);
        }
        let (said, checks) = self.signs.look(&self.stage, self.tasks.running(), !self.desk.is_idle());
        said.into_iter().for_each(|message| (self.say)(message));
        checks
    }
}

fn start(shared: &Arc<Shared>, id: TaskId, task: Task, standing: Vec<Standing>) {
    let answers = match start::open_answers(&task, &standing) {
        Ok(answers) => answers,
        Err(problem) => return shared.broken(id, vec![0], &problem),
    };
    let Some(claim) = shared.tasks.begin(id, answers) else {
        return tracing::error!(id, "a task was started twice");
    };
    let (mine, theirs, own) = (Arc::clone(shared), Arc::clone(shared), claim.clone());
    let run = move || mine.prepare(id, task, standing, &own);
    // The claim was taken by whoever calls this.
    let refuse = move |problem| theirs.broken(id, theirs.tasks.refuse(id), &problem);
    shared.desk.post(Work { claim, run: Box::new(run), refuse: Box::new(refuse) });
}

fn ask(shared: &Arc<Shared>, id: TaskId, question: Question) {
    let (mine, theirs, claim) = (Arc::clone(shared), Arc::clone(shared), Claim::default());
    let own = claim.clone();
    let run = move || {
        let reply = match mine.stage.now() {
            Some(loaded) => question::answer(&loaded, question),
            None => Err(Problem::unavailable()),
        };
        if own.take() {
            (mine.say)(FromWorker::Reply { id, reply });
        }
    };
    let refuse = move |problem| (theirs.say)(FromWorker::Reply { id, reply: Err(problem) });
    shared.desk.post(Work { claim, run: Box::new(run), refuse: Box::new(refuse) });
}

fn check(shared: &Arc<Shared>) {
    let (mine, theirs, claim) = (Arc::clone(shared), Arc::clone(shared), Claim::default());
    let own = claim.clone();
    let run = move || {
        if own.take() {
            mine.make_check();
        }
    };
    let refuse = move |problem: Problem| (theirs.say)(FromWorker::Checked(Err(problem.message)));
    shared.desk.post(Work { claim, run: Box::new(run), refuse: Box::new(refuse) });
}

/// Starts the thread that looks after everything, for as long as that is there.
fn pulse(shared: Weak<Shared>) -> io::Result<()> {
    let thread = thread::Builder::new().name("llama-spec pulse".into());
    thread.spawn(move || {
        while let Some(shared) = shared.upgrade() {
            let looked = catch_unwind(AssertUnwindSafe(|| shared.look()));
            match looked {
                Ok(checks) => (0..checks).for_each(|_| check(&shared)),
                Err(_) => shared.poisoned("looking after the engine failed in a way it should not have".into()),
            }
            drop(shared);
            thread::sleep(TICK);
        }
    })?;
    Ok(())
}
