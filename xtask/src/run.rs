//! Runs other programs: shows the command first, and turns a failure into words.

use anyhow::{Context, Result, anyhow, bail};
use console::style;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program to run.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    cure: Option<String>,
}

impl Run {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root());
        Self { command, cure: None }
    }

    /// The Cargo that runs this program.
    pub(crate) fn cargo() -> Self {
        Self::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn envs(mut self, variables: &Variables) -> Self {
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    /// What to do if the program is missing or fails.
    pub(crate) fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }

    /// Shows the command and runs it on this terminal; what it prints on standard output goes to standard error, so
    /// that our own results stay apart.
    pub(crate) fn run(mut self) -> Result<()> {
        self.command.stdout(std::io::stderr());
        self.show()
    }

    /// Shows the command and runs it on this terminal; what it prints are the results.
    pub(crate) fn show(mut self) -> Result<()> {
        eprintln!("{}", style(format!("$ {}", self.shown())).dim());
        let status = self.command.status().map_err(|why| self.not_started(&why))?;
        if !status.success() {
            bail!("`{}` failed ({status}){}", self.name(), self.advice());
        }
        Ok(())
    }

    /// Shows the command, runs it with its standard error on this terminal, and returns its standard output.
    pub(crate) fn run_and_read(mut self) -> Result<String> {
        eprintln!("{}", style(format!("$ {}", self.shown())).dim());
        let output = self.command.stderr(Stdio::inherit()).output().map_err(|why| self.not_started(&why))?;
        if !output.status.success() {
            bail!("`{}` failed ({}){}", self.name(), output.status, self.advice());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs silently and returns everything, whatever the status.
    pub(crate) fn output(mut self) -> Result<Output> {
        self.command.stdin(Stdio::null()).output().map_err(|why| self.not_started(&why))
    }

    /// Runs silently; its standard output if it succeeded, else what it complained about.
    pub(crate) fn read(self) -> Result<String> {
        let (name, advice) = (self.name(), self.advice());
        let output = self.output()?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            bail!("`{name}` failed ({}){advice}\n{complaint}", output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Whether it starts and succeeds.
    pub(crate) fn succeeds(self) -> bool {
        self.output().is_ok_and(|output| output.status.success())
    }

    /// The program and its verb, such as `cargo build` or `pip install`.
    fn name(&self) -> String {
        let program = Path::new(self.command.get_program()).file_stem().unwrap_or_default().to_string_lossy();
        let mut words: Vec<_> =
            std::iter::once(program).chain(self.command.get_args().map(OsStr::to_string_lossy)).collect();
        if let Some(module) = words.iter().position(|word| word == "-m") {
            words.drain(..=module); // `python3 -m pip` is pip
        }
        words.truncate(if words.get(1).is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase())) {
            2
        } else {
            1
        });
        words.join(" ")
    }

    fn shown(&self) -> String {
        let quoted = |text: &OsStr| {
            let text = text.to_string_lossy();
            if text.is_empty() || text.contains([' ', '\n', '"', '$']) {
                format!("{text:?}")
            } else {
                text.into_owned()
            }
        };
        let variables = self
            .command
            .get_envs()
            // pip's manners are of no interest to somebody who copies the command.
            .filter(|(name, _)| !name.to_string_lossy().starts_with("PIP_"))
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
        let program = Path::new(self.command.get_program()).file_name().unwrap_or_default();
        let words = std::iter::once(program).chain(self.command.get_args()).map(quoted);
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    fn advice(&self) -> String {
        self.cure.as_ref().map(|cure| format!(": {cure}")).unwrap_or_default()
    }

    fn not_started(&self, why: &std::io::Error) -> anyhow::Error {
        let program = self.command.get_program().to_string_lossy();
        match why.kind() {
            ErrorKind::NotFound => anyhow!("`{program}` is not installed or not on the path{}", self.advice()),
            _ => anyhow!("cannot start `{program}`: {why}{}", self.advice()),
        }
    }
}

/// Environment variables for a program.
pub(crate) type Variables = Vec<(String, OsString)>;

/// A variable that puts folders in front of what a list such as `PATH` already holds.
pub(crate) fn prepended(name: &str, folders: &[PathBuf]) -> Result<(String, OsString)> {
    let present = std::env::var_os(name).unwrap_or_default();
    let present = std::env::split_paths(&present).filter(|folder| !folder.as_os_str().is_empty());
    let joined = std::env::join_paths(folders.iter().cloned().chain(present))
        .with_context(|| format!("cannot put a folder into {name}"))?;
    Ok((name.to_owned(), joined))
}

/// Says what is being done; on standard error, as results go to standard output.
pub(crate) fn say(message: impl AsRef<str>) {
    eprintln!("{} {}", style("==>").cyan().bold(), message.as_ref());
}

/// Says something that the user should not miss.
pub(crate) fn warn(message: impl AsRef<str>) {
    eprintln!("{} {}", style("==> note:").yellow().bold(), message.as_ref());
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Where tools, models and the builds of the single commands are kept.
pub(crate) fn target(folder: &str) -> PathBuf {
    root().join("target").join(folder)
}

pub(crate) fn create_dir(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Removes a folder, a file or a link; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    let removed = if found.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_cure() {
        let error = Run::new("no-such-program-here").cure("install it").read().unwrap_err().to_string();
        assert_eq!(error, "`no-such-program-here` is not installed or not on the path: install it");
    }

    #[test]
    fn a_failure_names_the_command_and_keeps_its_complaint() {
        let error = Run::new("rustc").args(["--no-such-option"]).read().unwrap_err().to_string();
        assert!(error.starts_with("`rustc` failed (exit"), "{error}");
        assert!(error.contains("no-such-option"), "{error}");
    }

    #[test]
    fn a_name_has_the_verb_but_no_options_or_files() {
        assert_eq!(Run::new("/usr/bin/cargo").args(["build", "--release"]).name(), "cargo build");
        assert_eq!(Run::new("python3").args(["-m", "pip", "install", "x"]).name(), "pip install");
        assert_eq!(Run::new("generate").args(["--model", "a.gguf"]).name(), "generate");
        assert_eq!(Run::new("nvcc").args(["/a/main.cu"]).name(), "nvcc");
    }

    #[test]
    fn a_shown_command_can_be_copied() {
        let run = Run::new("/usr/bin/cmake").args(["-S", "two words"]).env("CC", "gcc");
        assert_eq!(run.shown(), "CC=gcc cmake -S \"two words\"");
    }

    #[test]
    fn folders_go_in_front() {
        let (name, value) = prepended("PATH", &[PathBuf::from("first")]).unwrap();
        assert_eq!(name, "PATH");
        let mut folders = std::env::split_paths(&value);
        assert_eq!(folders.next(), Some(PathBuf::from("first")));
        assert!(folders.next().is_some(), "the present PATH is kept");
    }
}
