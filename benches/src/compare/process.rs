//! Servers as processes: started on a free port, waited for, looked at, and always ended.

use super::client::Client;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// Lines of the log that are shown when a server fails.
const TAIL: usize = 15;
/// How long a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// A server that runs. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Server {
    name: String,
    child: Child,
    url: String,
    log: NamedTempFile,
}

impl Server {
    /// Starts a program with these words, and `--host` and `--port` after them.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(name: &str, program: &Path, words: &[OsString]) -> Result<Self> {
        let port = free_port()?;
        let log = NamedTempFile::new().context("no room for a log")?;
        let end = || File::options().append(true).open(log.path()).context("no room for a log");
        let child = Command::new(program)
            .args(words)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(end()?)
            .stderr(end()?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { name: name.to_owned(), child, url: format!("http://127.0.0.1:{port}"), log })
    }

    /// Where it is reached.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Waits until it answers `path` with status 200.
    ///
    /// # Errors
    /// When it ends, or takes longer than `patience`: with the end of its log.
    pub(super) fn wait(&mut self, client: &Client, path: &str, patience: Duration) -> Result<()> {
        let start = Instant::now();
        let url = format!("{}{path}", self.url);
        while !client.is_ok(&url) {
            self.check()?;
            if start.elapsed() > patience {
                bail!("{} is not ready after {} s\n{}", self.name, patience.as_secs(), self.tail());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Whether it runs.
    ///
    /// # Errors
    /// When it has ended: with the end of its log.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot look at a process")? {
            None => Ok(()),
            Some(status) => bail!("{} has ended ({status})\n{}", self.name, self.tail()),
        }
    }

    /// The last lines that it wrote.
    pub(super) fn tail(&self) -> String {
        let text = fs::read(self.log.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default();
        format!("the end of its log:\n    {}", last.join("\n    "))
    }

    /// The most memory that it and its children have had resident, in bytes, files that they map included. Nothing where the
    /// system does not tell.
    pub(super) fn peak_memory(&self) -> Option<u64> {
        let tree = descendants(self.child.id(), &parents());
        let peaks: Option<Vec<u64>> = tree.into_iter().map(peak).collect();
        peaks.map(|peaks| peaks.iter().sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Asked first, since a server may have processes of its own to end.
        #[cfg(unix)]
        if Command::new("kill").arg(self.child.id().to_string()).status().is_ok_and(|status| status.success()) {
            let start = Instant::now();
            while start.elapsed() < GRACE {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr().context("no port is free")?.port())
}

/// The parents of all processes; empty where the system does not tell.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    processes.filter_map(|process| Some((process, status(process, "PPid:")?.try_into().ok()?))).collect()
}

/// A process, and those that it started, and those that these started.
fn descendants(process: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut tree = vec![process];
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        tree.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(child, _)| *child));
        next += 1;
    }
    tree
}

fn peak(process: u32) -> Option<u64> {
    Some(status(process, "VmHWM:")? * 1024)
}

/// A number that the system tells of a process.
fn status(process: u32, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_children_of_children() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 1), (5, 9)]);
        let mut tree = descendants(1, &parents);
        tree.sort_unstable();
        assert_eq!(tree, [1, 2, 3, 4]);
        assert_eq!(descendants(5, &parents), [5]);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Server::start("theirs", Path::new("no-such-server"), &[]).unwrap_err().to_string();
        assert_eq!(error, "cannot start no-such-server");
    }

    #[cfg(unix)]
    #[test]
    fn a_server_that_dies_is_told_with_its_log() {
        let script = ["-c", "echo something is wrong >&2; exit 3", "sh"].map(OsString::from);
        let mut server = Server::start("theirs", Path::new("sh"), &script).unwrap();
        let error = server.wait(&Client::new(Duration::from_secs(1)), "/health", Duration::from_secs(30)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("theirs has ended (exit status: 3)"), "{error}");
        assert!(error.ends_with("something is wrong"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_server_that_is_never_ready_is_not_waited_for() {
        let mut server = Server::start("ours", Path::new("sh"), &["-c", "sleep 60", "sh"].map(OsString::from)).unwrap();
        let error = server.wait(&Client::new(Duration::from_secs(1)), "/ready", Duration::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("ours is not ready after 0 s"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_dropped_server_is_gone_and_had_memory_before() {
        let server = Server::start("ours", Path::new("sh"), &["-c", "sleep 60", "sh"].map(OsString::from)).unwrap();
        let process = server.child.id();
        assert!(server.peak_memory().is_some_and(|bytes| bytes > 0));
        drop(server);
        assert_eq!(peak(process), None);
    }
}
