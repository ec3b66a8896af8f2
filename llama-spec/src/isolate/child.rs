//! The side of who starts a worker: it always comes back, and leaves no process behind.

use super::frame::{self, Nonce, Reply, Request, Scanner};
use super::{Job, Lost, VARIABLE};
use serde_json::Value;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, mem, thread};

/// Given to a worker so that it is known in lists of processes, and so that most programs which forgot the hook refuse to
/// start. Nothing is read from it.
const ARGUMENT: &str = "--llama-spec-worker";
/// How often it is looked whether the worker still runs.
const STEP: Duration = Duration::from_millis(20);
/// How long a program may take to call the hook; much of it can be loading of GPU libraries.
const BEGINNING: Duration = Duration::from_secs(30);
/// How long a worker that has answered may take to end by itself, and one that was killed to be gone.
const ENDING: Duration = Duration::from_secs(2);
/// How long to wait for what is in the pipes of a process that has ended. Another process may hold them open.
const REST: Duration = Duration::from_millis(500);
/// How much of the end of the standard error is kept: in bytes, and of these in lines.
const LOG_BYTES: usize = 8 << 10;
const LOG_LINES: usize = 20;

/// Runs the job in a process of this program.
///
/// # Errors
/// What became of the worker if it gave no answer.
pub(super) fn run(program: &Path, timeout: Duration, job: &Job) -> Result<Value, Lost> {
    let start = Instant::now();
    let not_started = |why: io::Error| Lost::NotStarted { reason: format!("{}: {why}", program.display()) };
    let nonce = Nonce::new();
    let job = serde_json::to_value(job).map_err(|why| not_started(why.into()))?;
    let request = Request { version: env!("CARGO_PKG_VERSION").to_owned(), job };
    let request = frame::encode(&nonce, &request).map_err(not_started)?;
    let mut worker = Worker::start(program, &nonce, request).map_err(not_started)?;
    loop {
        let limit = if worker.begun { timeout } else { timeout.min(BEGINNING) };
        let Some(left) = limit.checked_sub(start.elapsed()) else {
            return Err(worker.too_late(timeout, limit));
        };
        if let Some(answer) = worker.listen(left.min(STEP)) {
            worker.end(ENDING);
            return answer.map_err(|reason| Lost::Failed { reason, log: worker.log() });
        }
        if let Some(status) = worker.status() {
            // It may have answered just before it ended.
            let rest = Instant::now();
            while let Some(left) = REST.checked_sub(rest.elapsed()).filter(|_| !worker.silent) {
                if let Some(answer) = worker.listen(left) {
                    return answer.map_err(|reason| Lost::Failed { reason, log: worker.log() });
                }
            }
            return Err(worker.gone(status));
        }
    }
}

/// A process that is a worker, or is to become one. Dropping it ends the process.
struct Worker {
    /// Gone once it has been waited for.
    child: Option<Child>,
    /// What it says, or that it could not be understood.
    replies: Receiver<Result<Reply, String>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when all of the standard error was read.
    stderr_end: Receiver<()>,
    /// Holds the standard input of the worker open, which ends when it is closed. After `child`, and never sent to.
    _stdin: Sender<()>,
    /// It has said that it is a worker.
    begun: bool,
    /// It can say nothing more.
    silent: bool,
}

impl Worker {
    fn start(program: &Path, nonce: &Nonce, request: Vec<u8>) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(ARGUMENT).env(VARIABLE, nonce.as_str());
        if env::var_os("GGML_NO_BACKTRACE").is_none() {
            // llama.cpp asks a debugger for a backtrace before it aborts, which takes seconds.
            command.env("GGML_NO_BACKTRACE", "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (reply_sender, replies) = mpsc::channel();
        let (end_sender, stderr_end) = mpsc::channel();
        let (hold, held) = mpsc::channel::<()>();
        // From here on the process is ended if anything fails.
        let worker = Self {
            child: Some(child),
            replies,
            stderr: Arc::default(),
            stderr_end,
            _stdin: hold,
            begun: false,
            silent: false,
        };
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("no pipes"));
        };
        let (nonce, kept) = (nonce.clone(), worker.stderr.clone());
        spawn("llama-spec-worker-in", move || {
            // It may not be read, if the program is no worker or has ended; then there is no reply either.
            drop(stdin.write_all(&request).and_then(|()| stdin.flush()));
            _ = held.recv();
        })?;
        spawn("llama-spec-worker-out", move || listen_to(stdout, &nonce, &reply_sender))?;
        spawn("llama-spec-worker-err", move || {
            keep_end(stderr, &kept);
            drop(end_sender);
        })?;
        Ok(worker)
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

    /// How it ended, if it has.
    fn status(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status)
    }

    fn gone(&mut self, status: ExitStatus) -> Lost {
        let (signal, code, log) = (signal(status), status.code(), self.log());
        match self.begun || signal.is_some() {
            true => Lost::Crashed { signal, code, log },
            false => Lost::NotHooked { code, log },
        }
    }

    fn too_late(&mut self, timeout: Duration, limit: Duration) -> Lost {
        self.end(Duration::ZERO);
        let log = self.log();
        match self.begun || limit == timeout {
            true => Lost::TimedOut { after: timeout, begun: self.begun, log },
            false => Lost::NotHooked { code: None, log },
        }
    }

    /// Ends the process: by itself within this time, else by force.
    fn end(&mut self, by_itself: Duration) {
        self.wait(by_itself);
        let Some(child) = &mut self.child else { return };
        // It fails if the process has just ended.
        drop(child.kill());
        self.wait(ENDING);
        if let Some(mut child) = self.child.take() {
            // A process that waits for a device ends when the device lets it go. Somebody must wait for it until then, but
            // not the caller.
            drop(spawn("llama-spec-worker-end", move || drop(child.wait())));
        }
    }

    fn wait(&mut self, longest: Duration) {
        let start = Instant::now();
        let mut step = Duration::from_millis(1);
        while self.child.is_some() && self.status().is_none() && start.elapsed() < longest {
            thread::sleep(step);
            step = STEP.min(step * 2);
        }
    }

    /// The last lines of its standard error. To be asked when the process has ended.
    fn log(&self) -> Vec<String> {
        _ = self.stderr_end.recv_timeout(REST);
        let bytes = mem::take(&mut *self.stderr.lock().unwrap_or_else(PoisonError::into_inner));
        last_lines(&bytes)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Passes on what the worker says, and reads over everything else, so that the worker never waits to be read.
fn listen_to(mut stdout: impl Read, nonce: &Nonce, replies: &Sender<Result<Reply, String>>) {
    let mut scanner = Scanner::new(nonce);
    read_all(&mut stdout, |bytes| {
        scanner.push(bytes);
        while let Some(json) = scanner.next_frame() {
            let reply = serde_json::from_slice(&json).map_err(|why| format!("its answer was not understood: {why}"));
            // Who is gone has given the worker up.
            drop(replies.send(reply));
        }
    });
}

fn keep_end(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
    read_all(&mut stderr, |bytes| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let too_many = kept.len().saturating_sub(LOG_BYTES);
        kept.drain(..too_many);
    });
}

/// Reads to the end; an error is one.
fn read_all(from: &mut impl Read, mut take: impl FnMut(&[u8])) {
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => take(&buffer[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The last lines of a text whose beginning may be cut off.
fn last_lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_log_is_kept() {
        let written: String = (0..10_000).map(|line| format!("line {line}\r\n\n")).collect();
        let kept = Mutex::default();
        keep_end(written.as_bytes(), &kept);
        let kept = kept.into_inner().unwrap();
        assert_eq!(kept.len(), LOG_BYTES);
        let lines = last_lines(&kept);
        assert_eq!((lines.len(), lines[19].as_str()), (LOG_LINES, "line 9999"));
        assert_eq!(last_lines(b"\xff one"), ["\u{fffd} one"]);
        assert!(last_lines(b"").is_empty());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let lost = run(Path::new("/no/such/program"), Duration::from_secs(1), &Job::Abort).unwrap_err();
        assert!(matches!(&lost, Lost::NotStarted { reason } if reason.contains("/no/such/program")), "{lost}");
    }
}
