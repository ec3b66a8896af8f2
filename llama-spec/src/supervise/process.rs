//! Workers as processes of their own.

use super::supervisor::link::{Launch, Link, Notice, Notify};
use super::wire::{self, ToWorker};
use crate::isolate::{Job, Nonce, Process, Program, assignment, has_begun, how, signal, wrap};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How often it is looked whether a process has ended whose output somebody else holds open.
const LOOK: Duration = Duration::from_millis(500);
/// How long a process that says nothing more may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// How long a program may take to call the hook; much of it can be loading of GPU libraries.
const BEGINNING: Duration = Duration::from_secs(30);
/// How long to wait for what is in the pipes of a process that has ended.
const REST: Duration = Duration::from_millis(500);
const NO_HOOK: &str = "the program did not become a worker: call `llama_spec::isolate::hook()` first in its `main`";

/// Starts a program as a worker.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    pub(super) program: Program,
}

/// A worker in a process. Dropping it ends the process.
#[derive(Debug)]
struct WorkerProcess {
    id: u32,
    nonce: Nonce,
    process: Arc<Mutex<Process>>,
}

impl Launch for Processes {
    fn launch(&self, notify: Notify) -> Result<Arc<dyn Link>, String> {
        match WorkerProcess::start(&self.program, notify) {
            Ok(worker) => Ok(Arc::new(worker)),
            Err(why) => {
                // Names the program, which not everybody is to know.
                tracing::error!(%why, "no worker");
                Err("the worker could not be started".into())
            }
        }
    }
}

impl WorkerProcess {
    fn start(program: &Program, notify: Notify) -> Result<Self, String> {
        let program = program.path().map_err(|lost| lost.to_string())?;
        let told = |why: io::Error| format!("{}: {why}", program.display());
        let nonce = Nonce::new();
        let job = assignment(&nonce, &Job::Serve).map_err(told)?;
        // Disconnected when it can say nothing more.
        let (hearing, silence) = mpsc::channel::<()>();
        let (ear, begun) = (Arc::clone(&notify), Arc::new(AtomicBool::new(false)));
        let has_said = Arc::clone(&begun);
        let process = Process::start(&program, &nonce, move |message| {
            let _open = &hearing;
            let notice = match has_said.swap(true, Ordering::AcqRel) {
                true => wire::decode(&message).map(Notice::Said).map_err(|why| why.to_string()),
                false => match has_begun(&message) {
                    Ok(()) => return,
                    Err(why) => Err(why),
                },
            };
            ear(notice.unwrap_or_else(|why| Notice::Useless(format!("the worker is of no use: {why}"))));
        });
        let process = process.map_err(told)?;
        process.write(job);
        let (id, process) = (process.id(), Arc::new(Mutex::new(process)));
        let watched = Arc::clone(&process);
        let watch = thread::Builder::new().name("llama-spec-worker-watch".into());
        // If that fails, dropping the process ends it.
        watch.spawn(move || notify(outcome(&watched, &begun, &silence))).map_err(told)?;
        Ok(Self { id, nonce, process })
    }
}

impl Link for WorkerProcess {
    fn send(&self, message: ToWorker) {
        match wire::encode(&message).and_then(|bytes| wrap(&self.nonce, &bytes)) {
            Ok(frame) => lock(&self.process).write(frame),
            Err(why) => tracing::error!(%why, "a message could not be written"),
        }
    }

    fn backlog(&self) -> usize {
        lock(&self.process).unwritten()
    }

    fn kill(&self) {
        lock(&self.process).kill();
    }

    fn log(&self) -> Vec<String> {
        lock(&self.process).log()
    }

    fn process(&self) -> Option<u32> {
        Some(self.id)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for the end of a process, and sees to it that it comes when there is nothing more to expect.
fn outcome(process: &Mutex<Process>, begun: &AtomicBool, silence: &Receiver<()>) -> Notice {
    let start = Instant::now();
    let has_begun = || begun.load(Ordering::Acquire);
    let mut status = loop {
        match silence.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Disconnected) => break ended(process),
            Ok(()) | Err(RecvTimeoutError::Timeout) => {
                let status = lock(process).status();
                if status.is_some() {
                    break status;
                }
                if !has_begun() && start.elapsed() > BEGINNING {
                    lock(process).kill();
                }
            }
        }
    };
    while status.is_none() {
        lock(process).kill();
        status = ended(process);
    }
    // What it said last comes before the news of its end; somebody else may hold its outputs open.
    _ = silence.recv_timeout(REST);
    wait_until(REST, || lock(process).is_mute());
    let log = lock(process).log();
    let (signal, code) = (status.and_then(signal), status.and_then(|status| status.code()));
    let what = match signal {
        None if !has_begun() => NO_HOOK.to_owned(),
        _ => format!("the worker died{}", how(signal, code)),
    };
    Notice::Gone { what, log }
}

/// Waits for the end of a process that says nothing more.
fn ended(process: &Mutex<Process>) -> Option<ExitStatus> {
    let mut status = None;
    wait_until(ENDING, || {
        status = lock(process).status();
        status.is_some()
    });
    status
}

/// Waits until something is so, but not longer than this. Nobody is held up by that.
fn wait_until(longest: Duration, mut is_so: impl FnMut() -> bool) {
    let (start, mut step) = (Instant::now(), Duration::from_millis(1));
    while !is_so() && start.elapsed() < longest {
        thread::sleep(step);
        step = (step * 2).min(Duration::from_millis(20));
    }
}

fn lock(process: &Mutex<Process>) -> MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}
