//! Running the programs and looking at what they say.

use llama_spec_tests::vocab::{Kind, Special, Vocabulary};
use llama_spec_tests::zoo::{self, Llama};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

pub(crate) const GENERATE: &str = env!("CARGO_BIN_EXE_generate");
pub(crate) const CHAT: &str = env!("CARGO_BIN_EXE_chat");
pub(crate) const INSPECT: &str = env!("CARGO_BIN_EXE_inspect");
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_server");

/// What a program left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with these arguments, in an environment that changes nothing.
pub(crate) fn command(program: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["RUST_LOG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// Runs it to its end with this standard input.
pub(crate) fn run(program: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>, input: impl AsRef<[u8]>) -> Run {
    finish(start(command(program, args), input))
}

/// Starts it with this standard input, which is then closed.
pub(crate) fn start(mut command: Command, input: impl AsRef<[u8]>) -> Child {
    let mut child = command.spawn().unwrap();
    // A program that ends over its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    child
}

pub(crate) fn finish(child: Child) -> Run {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Run {
    /// It did its work.
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.status.code(), Some(0), "{self:?}");
        self
    }

    /// It ended with this status and one line, which says all of this; nothing on standard output.
    pub(crate) fn refused(&self, status: i32, said: &[&str]) {
        assert_eq!(self.status.code(), Some(status), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("error: ") && self.stderr.ends_with('\n'), "{self:?}");
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("RUST_BACKTRACE"), "{self:?}");
        for part in said {
            assert!(self.stderr.contains(part), "{part:?} is not said: {self:?}");
        }
    }

    /// Files and settings do not go together: a line that says so, and one for each rule, which say all of this.
    pub(crate) fn refused_by_rules(&self, said: &[&str]) {
        assert_eq!(self.status.code(), Some(3), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        let mut lines = self.stderr.lines();
        assert!(lines.next().is_some_and(|line| line.starts_with("error: speculation is not possible")), "{self:?}");
        assert!(lines.all(|line| line.starts_with("  ") && line.contains(": ") && line.contains("; ")), "{self:?}");
        for part in said {
            assert!(self.stderr.contains(part), "{part:?} is not said: {self:?}");
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The file of a model of the zoo, as an argument.
pub(crate) fn file(name: &str) -> String {
    path(zoo::file(name))
}

pub(crate) fn path(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}

/// The description of a model of the zoo, which knows what the model must answer.
pub(crate) fn model(name: &str) -> Llama {
    zoo::named().into_iter().find(|named| named.name == name).unwrap().llama().unwrap()
}

/// A target that puts no token before a prompt.
pub(crate) fn without_bos() -> String {
    let vocabulary = Vocabulary::new(Kind::ByteLevel).with_bos_added(false);
    path(Llama::target(1).with_vocabulary(vocabulary).cached().unwrap())
}

/// The tokens with which the model must continue the prompt.
pub(crate) fn continuation(model: &Llama, prompt: &str, n: usize) -> Vec<i64> {
    let vocabulary = model.vocabulary();
    let bos = vocabulary.adds_bos().then(|| vocabulary.special(Special::Bos));
    let prompt: Vec<u32> = bos.into_iter().chain(vocabulary.tokenize(prompt)).collect();
    model.continuation(&prompt, n).into_iter().map(i64::from).collect()
}

pub(crate) fn text(model: &Llama, tokens: &[i64]) -> String {
    let tokens: Vec<u32> = tokens.iter().map(|token| u32::try_from(*token).unwrap()).collect();
    String::from_utf8(model.vocabulary().bytes(&tokens)).unwrap()
}

pub(crate) fn tokens(json: &Value) -> Vec<i64> {
    json["tokens"].as_array().unwrap().iter().map(|token| token.as_i64().unwrap()).collect()
}
