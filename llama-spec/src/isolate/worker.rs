//! The side of the worker.

use super::frame::{self, Nonce, Reply, Request};
use super::{Job, VARIABLE};
use crate::ffi::parent;
use crate::supervise::service;
use std::any::Any;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{env, process, thread};

/// What this worker is to do.
#[derive(Debug)]
pub(super) struct Assignment {
    nonce: Nonce,
    /// The [`Request`] as JSON.
    request: Vec<u8>,
}

/// The job of this process if it is a worker.
///
/// The variable alone does not make it one: whatever a worker starts has it as well.
pub(super) fn assignment() -> Option<Assignment> {
    let nonce = Nonce::parse(env::var(VARIABLE).ok()?.as_str())?;
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return None;
    }
    let request = frame::read(&nonce, stdin.lock()).ok()??;
    Some(Assignment { nonce, request })
}

/// Does the job, says how it went and ends the process.
pub(super) fn work(Assignment { nonce, request }: Assignment) -> ! {
    parent::die_with_it();
    let done = match read(&request) {
        Ok(Job::Serve) => serve(&nonce),
        Ok(job) => once(&nonce, job),
        Err(why) => say(&nonce, &Reply::Failed(why)),
    };
    process::exit(if done.is_ok() { 0 } else { 1 })
}

/// The job, if it is of this version.
fn read(request: &[u8]) -> Result<Job, String> {
    let ours = env!("CARGO_PKG_VERSION");
    let job = match serde_json::from_slice::<Request>(request) {
        Ok(request) if request.version != ours => {
            return Err(format!("the worker has llama-spec {ours}, not {}", request.version));
        }
        Ok(request) => serde_json::from_value::<Job>(request.job),
        Err(why) => Err(why),
    };
    job.map_err(|why| format!("not understood: {why}"))
}

/// A job with one answer.
fn once(nonce: &Nonce, job: Job) -> io::Result<()> {
    let begun = say(nonce, &Reply::Begun);
    // Without the thread the worker may outlive its parent, but it does its job.
    drop(thread::Builder::new().name("llama-spec-parent".into()).spawn(end_with_parent));
    begun?;
    match guarded(|| job.run()) {
        Ok(answer) => say(nonce, &Reply::Done(answer)),
        Err(why) => say(nonce, &Reply::Failed(why)),
    }
}

/// The job whose two sides go on talking, until it is told to stop.
fn serve(nonce: &Nonce) -> io::Result<()> {
    say(nonce, &Reply::Begun)?;
    match guarded(|| service::serve(nonce, io::stdin().lock(), io::stdout())) {
        service::End::Stopped => Ok(()),
        service::End::Gone => gone(),
    }
}

/// Does something whose panic ends the process.
fn guarded<T>(work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // Once more as the last line: a backtrace may stand behind the message of the panic itself.
        eprintln!("panicked: {}", message(panic.as_ref()));
        process::exit(101)
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "without a message",
    }
}

/// Writes a message, in one piece.
fn say(nonce: &Nonce, reply: &Reply) -> io::Result<()> {
    let frame = match frame::encode(nonce, reply) {
        Ok(frame) => frame,
        Err(why) => frame::encode(nonce, &Reply::Failed(why.to_string()))?,
    };
    let mut out = io::stdout().lock();
    out.write_all(&frame)?;
    out.flush()
}

/// Ends this process when its parent is gone: the parent holds the other end of the standard input, and writes nothing more.
fn end_with_parent() {
    let mut stdin = io::stdin().lock();
    while stdin.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
    gone()
}

/// Ends this process, whose parent is gone.
fn gone() -> ! {
    // Nobody is left to see how it ends, and code that runs at a usual exit could wait for the job that hangs.
    process::abort()
}
