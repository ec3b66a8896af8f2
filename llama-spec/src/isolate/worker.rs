//! The side of the worker.

use super::frame::{self, Nonce, Reply, Request};
use super::{Job, VARIABLE};
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
    let begun = say(&nonce, &Reply::Begun);
    // Without the thread the worker may outlive its parent, but it does its job.
    drop(thread::Builder::new().name("llama-spec-parent".into()).spawn(end_with_parent));
    let done = begun.and_then(|()| match catch_unwind(AssertUnwindSafe(|| answer(&request))) {
        Ok(reply) => say(&nonce, &reply),
        Err(panic) => {
            // Once more as the last line: a backtrace may stand behind the message of the panic itself.
            eprintln!("panicked: {}", message(panic.as_ref()));
            process::exit(101)
        }
    });
    process::exit(if done.is_ok() { 0 } else { 1 })
}

fn answer(request: &[u8]) -> Reply {
    let ours = env!("CARGO_PKG_VERSION");
    let job = match serde_json::from_slice::<Request>(request) {
        Ok(request) if request.version != ours => {
            return Reply::Failed(format!("the worker has llama-spec {ours}, not {}", request.version));
        }
        Ok(request) => serde_json::from_value::<Job>(request.job),
        Err(why) => Err(why),
    };
    match job.map_err(|why| format!("not understood: {why}")).and_then(Job::run) {
        Ok(answer) => Reply::Done(answer),
        Err(why) => Reply::Failed(why),
    }
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
    // Nobody is left to see how it ends, and code that runs at a usual exit could wait for the job that hangs.
    process::abort();
}
