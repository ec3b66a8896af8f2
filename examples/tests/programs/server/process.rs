//! A running server, and what is sent to it.

use super::super::common::{Run, SERVER, command, file};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// A server, which ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    lines: Mutex<Receiver<String>>,
    said: Vec<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(text: &[u8]) -> Self {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self { status: status.unwrap(), head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// An error in the form of OpenAI's, with this status and code.
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let error = &self.json()["error"];
        assert_eq!(error["code"], code, "{self:?}");
        assert!(error["message"].is_string() && error["type"].is_string(), "{self:?}");
    }
}

/// The program, on a free port unless the arguments name one, in an environment that changes nothing.
pub(crate) fn server(args: &[&str]) -> Command {
    let target = file("chat");
    server_of(&[&["--model", &target], args].concat())
}

/// As [`server`], with the files that the arguments name.
pub(crate) fn server_of(args: &[&str]) -> Command {
    let mut command = command(SERVER, ["--threads", "1"].iter().chain(args));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LLAMA_SPEC_")) {
        command.env_remove(name);
    }
    command.env("LLAMA_SPEC_PORT", "0");
    command
}

impl Server {
    /// Starts one and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(server(args))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let nowhere = ([0, 0, 0, 0], 0).into();
        let mut server = Self { child: Some(child), address: nowhere, lines: Mutex::new(lines), said: Vec::new() };
        let line = server.wait_for("http://");
        let address = line.split("http://").nth(1).unwrap();
        let address = address.split(|c: char| !(c.is_ascii_digit() || ".:".contains(c))).next().unwrap();
        server.address = address.parse().unwrap();
        server
    }

    /// Waits for a line that contains this.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + LONG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.get_mut().unwrap().recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(why) => panic!("{part:?} is not said ({why}): {:#?}", self.said),
            }
        }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Sends this and reads until the server closes the connection.
    pub(crate) fn raw(&self, text: impl AsRef<[u8]>) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(text.as_ref()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    }

    /// A request without a body, with these headers.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.send("GET", path, headers, "")
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        headers.iter().for_each(|header| text += &format!("{header}\r\n"));
        if !body.is_empty() {
            text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        Answer::read(&self.raw(format!("{text}\r\n{body}")))
    }

    /// Asks until the answer is as wished.
    pub(crate) fn until(&self, path: &str, headers: &[&str], wished: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + LONG;
        loop {
            let answer = self.get(path, headers);
            if wished(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path} stays {answer:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal, such as `TERM`.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        self.kill(name, "");
    }

    /// Sends it to the group of processes that this one leads.
    #[cfg(unix)]
    pub(crate) fn signal_group(&self, name: &str) {
        self.kill(name, "-");
    }

    #[cfg(unix)]
    fn kill(&self, name: &str, group: &str) {
        let id = self.child.as_ref().unwrap().id();
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {group}{id}")).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Run {
        let mut child = self.child.take().unwrap();
        let deadline = Instant::now() + LONG;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:#?}", self.said);
            thread::sleep(Duration::from_millis(20));
        };
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        // Until the pipe is closed.
        self.said.extend(self.lines.get_mut().unwrap().iter());
        Run { status, stdout, stderr: self.said.join("\n") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
