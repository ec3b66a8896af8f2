//! Workers as threads of this process.

use super::service::Service;
use super::supervisor::link::{Launch, Link, Notice, Notify};
use super::wire::ToWorker;
use async_channel::{Receiver, Sender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How long an engine that is given up may take to end before the next one is made beside it.
const ENDING: Duration = Duration::from_secs(2);

/// Starts services in this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads;

#[derive(Debug)]
struct WorkerThread {
    messages: Sender<ToWorker>,
    grave: Arc<Grave>,
}

/// Tells of the end, once.
struct Grave {
    notify: Notify,
    told: AtomicBool,
    /// Signalled when the service has ended.
    ended: std::sync::Mutex<Option<mpsc::Receiver<()>>>,
}

impl Launch for Threads {
    fn launch(&self, notify: Notify) -> Result<Arc<dyn Link>, String> {
        let (messages, incoming) = async_channel::unbounded();
        let (ending, ended) = mpsc::channel();
        let grave = Arc::new(Grave {
            notify: Arc::clone(&notify),
            told: AtomicBool::new(false),
            ended: std::sync::Mutex::new(Some(ended)),
        });
        let digger = Arc::clone(&grave);
        let worker = thread::Builder::new().name("llama-spec-worker".into()).spawn(move || {
            serve(&notify, &incoming);
            drop(ending);
            digger.tell("the engine has ended");
        });
        worker.map_err(|why| format!("no thread could be started: {why}"))?;
        Ok(Arc::new(WorkerThread { messages, grave }))
    }
}

/// Runs a service until it is told to stop, or given up.
fn serve(notify: &Notify, incoming: &Receiver<ToWorker>) {
    let say = Arc::clone(notify);
    let service = match Service::new(move |said| say(Notice::Said(said))) {
        Ok(service) => service,
        Err(why) => return notify(Notice::Useless(format!("no thread could be started: {why}"))),
    };
    while let Ok(message) = incoming.recv_blocking() {
        let last = message == ToWorker::Stop;
        service.handle(message);
        if last {
            return;
        }
    }
}

impl Link for WorkerThread {
    fn send(&self, message: ToWorker) {
        // Who was given up is told nothing.
        drop(self.messages.try_send(message));
    }

    fn backlog(&self) -> usize {
        self.messages.len()
    }

    fn kill(&self) {
        self.messages.close();
        let grave = Arc::clone(&self.grave);
        // An engine that hangs never ends, and nobody is to wait for it.
        let told = thread::Builder::new().name("llama-spec-worker-end".into()).spawn(move || grave.wait_and_tell());
        if let Err(why) = told {
            tracing::error!(%why, "no thread to wait for the end of an engine");
        }
    }

    fn log(&self) -> Vec<String> {
        Vec::new()
    }

    fn process(&self) -> Option<u32> {
        None
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.messages.close();
    }
}

impl Grave {
    fn wait_and_tell(&self) {
        let ended = self.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(ended) = ended {
            _ = ended.recv_timeout(ENDING);
        }
        self.tell("the engine was given up");
    }

    fn tell(&self, what: &str) {
        if !self.told.swap(true, Ordering::AcqRel) {
            (self.notify)(Notice::Gone { what: what.into(), log: Vec::new() });
        }
    }
}

impl std::fmt::Debug for Grave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grave").field("told", &self.told).finish_non_exhaustive()
    }
}
