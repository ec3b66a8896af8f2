//! Cases that may end the process they run in, run in processes of their own.
//!
//! A test program starts itself again as a child that runs an ignored test, which goes through a list of cases. The child
//! says what it is doing ([`step`]) and how each case ended ([`end`]); where it dies, the parent notes the step and starts
//! another child behind that case.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

const LIST: &str = "LLAMA_SPEC_CASES";
/// A child that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// As the child said.
    Said(String),
    /// The child died in this step.
    Died {
        /// What it was doing.
        step: String,
        /// The signal or status.
        how: String,
    },
}

/// The list of a child; nothing in a test program that was not started by [`run`].
pub fn cases() -> Option<Vec<String>> {
    let list = fs::read_to_string(env::var_os(LIST)?).ok()?;
    Some(list.lines().map(str::to_owned).collect())
}

/// Says what the child does next.
pub fn step(what: &str) {
    println!("\nstep {what}");
}

/// Says how the case ended.
pub fn end(how: &str) {
    println!("\nend {how}");
}

/// Runs the cases, which are one line each, in children that run the ignored test `child`; `folder` is for lists.
///
/// # Errors
/// When a child cannot be started or ends before its first case.
pub fn run(child: &str, cases: &[String], folder: &Path) -> io::Result<Vec<End>> {
    let mut ends = Vec::new();
    while ends.len() < cases.len() {
        let list = folder.join(format!("cases-{}.txt", child.replace("::", "-")));
        fs::write(&list, cases[ends.len()..].join("\n"))?;
        let before = ends.len();
        run_some(child, &list, &mut ends)?;
        if ends.len() == before {
            return Err(io::Error::other(format!("the child {child} did not begin with {}", cases[before])));
        }
    }
    Ok(ends)
}

fn run_some(test: &str, list: &Path, ends: &mut Vec<End>) -> io::Result<()> {
    let mut child = Command::new(env::current_exe()?)
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(LIST, list)
        // llama.cpp asks a debugger for a backtrace before it aborts.
        .env("GGML_NO_BACKTRACE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(stdout) = child.stdout.take() else { return Err(io::Error::other("no pipe")) };
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        // A receiver that is gone has given the child up.
        BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    let mut at = None;
    let hangs = loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                if let Some(step) = line.strip_prefix("step ") {
                    at = Some(step.to_owned());
                } else if let Some(end) = line.strip_prefix("end ") {
                    ends.push(End::Said(end.to_owned()));
                    at = None;
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
        }
    };
    if hangs {
        child.kill()?;
    }
    let status = child.wait()?;
    drop(reader.join());
    if let Some(step) = at {
        ends.push(End::Died { step, how: if hangs { "hangs".into() } else { how(status) } });
    }
    Ok(())
}

fn how(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return match signal {
            6 => "abort".into(),
            11 => "segmentation fault".into(),
            8 => "arithmetic fault".into(),
            other => format!("signal {other}"),
        };
    }
    status.to_string()
}
