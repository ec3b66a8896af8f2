//! The side of who gives a job: it always comes back, and leaves no process behind.

use super::frame::{self, Nonce, Reply, Request};
use super::process::{ENDING, Process, REST, STEP, signal};
use super::{Job, Lost};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take to call the hook; much of it can be loading of GPU libraries.
const BEGINNING: Duration = Duration::from_secs(30);

/// Runs the job in a process of this program.
///
/// # Errors
/// What became of the worker if it gave no answer.
pub(super) fn run(program: &Path, timeout: Duration, job: &Job) -> Result<Value, Lost> {
    let start = Instant::now();
    let not_started = |why: io::Error| Lost::NotStarted { reason: format!("{}: {why}", program.display()) };
    let nonce = Nonce::new();
    let request = assignment(&nonce, job).map_err(not_started)?;
    let mut worker = Worker::start(program, &nonce, request).map_err(not_started)?;
    loop {
        let limit = if worker.begun { timeout } else { timeout.min(BEGINNING) };
        let Some(left) = limit.checked_sub(start.elapsed()) else {
            return Err(worker.too_late(timeout, limit));
        };
        if let Some(answer) = worker.listen(left.min(STEP)) {
            worker.process.end(ENDING);
            return answer.map_err(|reason| Lost::Failed { reason, log: worker.process.last_words() });
        }
        if let Some(status) = worker.process.status() {
            // It may have answered just before it ended.
            let rest = Instant::now();
            while let Some(left) = REST.checked_sub(rest.elapsed()).filter(|_| !worker.silent) {
                if let Some(answer) = worker.listen(left) {
                    return answer.map_err(|reason| Lost::Failed { reason, log: worker.process.last_words() });
                }
            }
            return Err(worker.gone(status));
        }
    }
}

/// The message that tells a worker its job.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn assignment(nonce: &Nonce, job: &Job) -> io::Result<Vec<u8>> {
    let job = serde_json::to_value(job)?;
    frame::encode(nonce, &Request { version: env!("CARGO_PKG_VERSION").to_owned(), job })
}

/// What the first message of a worker means that is to go on talking.
///
/// # Errors
/// Why it does not work.
pub(crate) fn has_begun(message: &[u8]) -> Result<(), String> {
    match serde_json::from_slice(message) {
        Ok(Reply::Begun) => Ok(()),
        Ok(Reply::Failed(why)) => Err(why),
        Ok(Reply::Done(_)) | Err(_) => Err("it did not say first that it is a worker".into()),
    }
}

/// A process that does one job.
struct Worker {
    process: Process,
    /// What it says, or that it could not be understood.
    replies: Receiver<Result<Reply, String>>,
    /// It has said that it is a worker.
    begun: bool,
    /// It can say nothing more.
    silent: bool,
}

impl Worker {
    fn start(program: &Path, nonce: &Nonce, request: Vec<u8>) -> io::Result<Self> {
        let (sender, replies) = mpsc::channel();
        let process = Process::start(program, nonce, move |json| {
            let reply = serde_json::from_slice(&json).map_err(|why| format!("its answer was not understood: {why}"));
            // Who is gone has given the worker up.
            drop(sender.send(reply));
        })?;
        process.write(request);
        Ok(Self { process, replies, begun: false, silent: false })
    }

    /// Waits so long for what the worker says, and gives the answer if it is that.
    fn listen(&mut self, longest: Duration) -> Option<Result<Value, String>> {
        if self.silent {
            thread::sleep(longest);
            return None;
        }
        match self.replies.recv_timeout(longest) {
            Ok(Ok(Reply::Begun)) => self.begun = true,
            Ok(Ok(Reply::Done(answer))) => return Some(Ok(answer)),
            Ok(Ok(Reply::Failed(why)) | Err(why)) => return Some(Err(why)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.silent = true,
        }
        None
    }

    fn gone(&mut self, status: ExitStatus) -> Lost {
        let (signal, code, log) = (signal(status), status.code(), self.process.last_words());
        match self.begun || signal.is_some() {
            true => Lost::Crashed { signal, code, log },
            false => Lost::NotHooked { code, log },
        }
    }

    fn too_late(&mut self, timeout: Duration, limit: Duration) -> Lost {
        self.process.end(Duration::ZERO);
        let log = self.process.last_words();
        match self.begun || limit == timeout {
            true => Lost::TimedOut { after: timeout, begun: self.begun, log },
            false => Lost::NotHooked { code: None, log },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let lost = run(Path::new("/no/such/program"), Duration::from_secs(1), &Job::Abort).unwrap_err();
        assert!(matches!(&lost, Lost::NotStarted { reason } if reason.contains("/no/such/program")), "{lost:?}");
    }
}
