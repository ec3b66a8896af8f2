//! A process that works for this one: its pipes are always served, and it is gone when its owner is.

use super::VARIABLE;
use super::frame::{Nonce, Scanner};
use async_channel::{Receiver, Sender};
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{env, thread};

/// Given to a worker so that it is known in lists of processes, and so that most programs which forgot the hook refuse to
/// start. Nothing is read from it.
const ARGUMENT: &str = "--llama-spec-worker";
/// How often it is looked whether a process that is waited for still runs.
pub(super) const STEP: Duration = Duration::from_millis(20);
/// How long a process that was killed may take to be gone.
pub(super) const ENDING: Duration = Duration::from_secs(2);
/// How long to wait for what is in the pipes of a process that has ended. Another process may hold them open.
pub(super) const REST: Duration = Duration::from_millis(500);
/// How much of the end of the standard error is kept: in bytes, and of these in lines.
const LOG_BYTES: usize = 8 << 10;
const LOG_LINES: usize = 20;

/// A process that is a worker, or is to become one. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Process {
    id: u32,
    /// Gone once it has been waited for.
    child: Option<Child>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when all of the standard error was read.
    stderr_end: mpsc::Receiver<()>,
    /// What is to be written to its standard input, which ends when this is dropped.
    stdin: Sender<Vec<u8>>,
}

impl Process {
    /// Starts the program. What it says in frames goes to `hear`, which is dropped when it can say nothing more.
    ///
    /// # Errors
    /// When it cannot be started; no process is left then.
    pub(crate) fn start(program: &Path, nonce: &Nonce, hear: impl FnMut(Vec<u8>) + Send + 'static) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(ARGUMENT).env(VARIABLE, nonce.as_str());
        if env::var_os("GGML_NO_BACKTRACE").is_none() {
            // llama.cpp asks a debugger for a backtrace before it aborts, which takes seconds.
            command.env("GGML_NO_BACKTRACE", "1");
        }
        // Ctrl-C in a terminal goes to all processes of a group. What becomes of a worker then is its owner's business.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (stdin, frames) = async_channel::unbounded();
        let (end_sender, stderr_end) = mpsc::channel();
        let mut child = start(command, frames)?;
        let pipes = (child.stdout.take(), child.stderr.take());
        // From here on the process is ended if anything fails.
        let process = Self { id: child.id(), child: Some(child), stderr: Arc::default(), stderr_end, stdin };
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("no pipes"));
        };
        let (nonce, kept) = (nonce.clone(), process.stderr.clone());
        spawn("llama-spec-worker-out", move || listen_to(stdout, &nonce, hear))?;
        spawn("llama-spec-worker-err", move || {
            keep_end(stderr, &kept);
            drop(end_sender);
        })?;
        Ok(process)
    }

    /// Its number in the system.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Writes this to its standard input, soon: it is not waited for the process to read it.
    pub(crate) fn write(&self, bytes: Vec<u8>) {
        // Whoever reads no more has ended, or will be found to be stuck.
        drop(self.stdin.try_send(bytes));
    }

    /// Pieces that it was not ready to read yet.
    pub(crate) fn unwritten(&self) -> usize {
        self.stdin.len()
    }

    /// How it ended, if it has. To be asked until it answers.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status)
    }

    /// Waits so long for its end.
    pub(crate) fn wait(&mut self, longest: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        let mut step = Duration::from_millis(1);
        while self.child.is_some() {
            if let Some(status) = self.status() {
                return Some(status);
            }
            if start.elapsed() >= longest {
                return None;
            }
            thread::sleep(step);
            step = STEP.min(step * 2);
        }
        None
    }

    /// Ends the process by force, and does not wait for that.
    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // It fails if the process has just ended.
            drop(child.kill());
        }
    }

    /// Ends the process: by itself within this time, else by force.
    pub(crate) fn end(&mut self, by_itself: Duration) {
        self.wait(by_itself);
        self.kill();
        self.wait(ENDING);
        if let Some(mut child) = self.child.take() {
            // A process that waits for a device ends when the device lets it go. Somebody must wait for it until then, but
            // not the caller.
            drop(spawn("llama-spec-worker-end", move || drop(child.wait())));
        }
    }

    /// The last lines of its standard error so far.
    pub(crate) fn log(&self) -> Vec<String> {
        last_lines(&lock(&self.stderr))
    }

    /// Whether it can write nothing more to its standard error.
    pub(crate) fn is_mute(&self) -> bool {
        matches!(self.stderr_end.try_recv(), Err(mpsc::TryRecvError::Disconnected))
    }

    /// The last lines of its standard error, of a process that has ended.
    pub(crate) fn last_words(&self) -> Vec<String> {
        _ = self.stderr_end.recv_timeout(REST);
        self.log()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// The signal that ended a process, where there are signals.
#[cfg(unix)]
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// The signal that ended a process, where there are signals.
#[cfg(not(unix))]
pub(crate) fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Starts a process on the thread that then writes to it. On Linux a worker ends with the thread that started it, so this must not
/// be one that ends before its owner lets go of it.
fn start(mut command: Command, frames: Receiver<Vec<u8>>) -> io::Result<Child> {
    let (sender, started) = mpsc::channel();
    spawn("llama-spec-worker-in", move || {
        let mut child = command.spawn();
        let stdin = child.as_mut().ok().and_then(|child| child.stdin.take());
        // The receiver waits.
        drop(sender.send(child));
        if let Some(stdin) = stdin {
            write_all(stdin, &frames);
        }
    })?;
    started.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it has ended")))
}

/// Writes what comes until nobody sends any more. What nobody reads is dropped.
fn write_all(mut stdin: ChildStdin, pieces: &Receiver<Vec<u8>>) {
    let mut is_read = true;
    while let Ok(piece) = pieces.recv_blocking() {
        is_read = is_read && stdin.write_all(&piece).and_then(|()| stdin.flush()).is_ok();
    }
}

/// Passes on what the worker says, and reads over everything else, so that the worker never waits to be read.
fn listen_to(mut stdout: impl Read, nonce: &Nonce, mut hear: impl FnMut(Vec<u8>)) {
    let mut scanner = Scanner::new(nonce);
    read_all(&mut stdout, |bytes| {
        scanner.push(bytes);
        while let Some(payload) = scanner.next_frame() {
            hear(payload);
        }
    });
}

fn keep_end(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
    read_all(&mut stderr, |bytes| {
        let mut kept = lock(kept);
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

fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
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
}
