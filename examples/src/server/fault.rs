//! Breaking on purpose, to try how the server recovers: `--inject-fault`, described in CONTRIBUTING.

use crate::failure::Failure;
use llama_spec::compat::Conditions;
use llama_spec::file::ModelFile;
use llama_spec::spec::{Draft, Drafter, SpecConfig};
use llama_spec::supervise::Load;
use llama_spec::{EngineBuilder, Token};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fmt, io, process, thread};

/// By this the workers know of it, and it is the variable of the flag like that of any other.
pub const VARIABLE: &str = "LLAMA_SPEC_INJECT_FAULT";

/// What breaks, and when: `KIND@N`, or `KIND@NxK` for the first K workers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: Kind,
    /// At which time the drafters of a worker are asked, from 1.
    pub at: u64,
    /// How many workers do so, the first ones; the others work. Default: all.
    pub workers: Option<u64>,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The worker aborts, if it drafts with a model or with heads.
    AbortInDraft,
    /// The worker hangs, if it drafts with a model or with heads.
    HangInDraft,
    /// The worker aborts.
    Abort,
    /// The worker hangs.
    Hang,
    /// The worker ends with a status.
    Exit,
    /// The worker aborts when it is to load something: the first N workers.
    AbortAtLoad,
}

const KINDS: [(&str, Kind); 6] = [
    ("abort-in-draft", Kind::AbortInDraft),
    ("hang-in-draft", Kind::HangInDraft),
    ("abort", Kind::Abort),
    ("hang", Kind::Hang),
    ("exit", Kind::Exit),
    ("abort-at-load", Kind::AbortAtLoad),
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        write!(f, "{name}@{}", self.at)?;
        self.workers.map_or(Ok(()), |workers| write!(f, "x{workers}"))
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || {
            "expected abort-in-draft@N, hang-in-draft@N, abort@N, hang@N, exit@N, each with xK after it for the first K \
             workers only, or abort-at-load@K"
                .to_owned()
        };
        let (kind, rest) = text.split_once('@').ok_or_else(expected)?;
        let kind = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind).ok_or_else(expected)?;
        let (at, workers) = match rest.split_once('x') {
            Some((at, workers)) if kind != Kind::AbortAtLoad => (at, Some(workers)),
            Some(_) => return Err(expected()),
            None => (rest, None),
        };
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0).ok_or_else(expected);
        let (at, workers) = (number(at)?, workers.map(number).transpose()?);
        Ok(Self { kind, at, workers })
    }
}

/// Makes a fault known to the workers, which inherit the environment: since a program cannot safely change its own, it starts
/// itself again with another one.
///
/// # Errors
/// When that is not possible.
pub fn announce(fault: Option<Fault>) -> Result<(), Failure> {
    let Some(fault) = fault.map(|fault| fault.to_string()) else { return Ok(()) };
    if env::var(VARIABLE).is_ok_and(|known| known == fault) {
        return Ok(());
    }
    let again = env::current_exe().map(|program| {
        let mut command = process::Command::new(program);
        command.args(env::args_os().skip(1)).env(VARIABLE, &fault);
        command
    });
    let why = again.map(replace).unwrap_or_else(|why| why);
    Err(Failure::Other(format!("cannot start again with {VARIABLE}={fault}: {why}")))
}

/// Returns only when it fails.
#[cfg(unix)]
fn replace(mut command: process::Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(&mut command)
}

#[cfg(not(unix))]
fn replace(_: process::Command) -> io::Error {
    io::Error::other("set the variable yourself")
}

/// What a worker does to its engine: nothing, unless [`VARIABLE`] asks for a fault.
pub fn customise(builder: EngineBuilder, load: &Load, restarts: u64) -> EngineBuilder {
    match env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) {
        Some(fault) => inject(fault, builder, load, restarts),
        None => builder,
    }
}

fn inject(fault: Fault, builder: EngineBuilder, load: &Load, restarts: u64) -> EngineBuilder {
    if fault.kind == Kind::AbortAtLoad {
        if restarts < fault.at {
            process::abort();
        }
        return builder;
    }
    let config = speculation(load);
    let model = config.as_ref().is_some_and(SpecConfig::needs_draft);
    let drafting = matches!(fault.kind, Kind::AbortInDraft | Kind::HangInDraft);
    if fault.workers.is_some_and(|workers| restarts >= workers) || (drafting && !model) {
        return builder;
    }
    // With a drafter of one's own, what the files are made for is only taken when it is asked for.
    let builder = match config {
        Some(config) => builder.speculation(config),
        None => builder,
    };
    let asked = Arc::new(AtomicU64::new(0));
    builder.drafter(move || Hostile { fault, asked: asked.clone() })
}

/// What the load drafts with; nothing when its files cannot be read, which the engine will say.
fn speculation(load: &Load) -> Option<SpecConfig> {
    if let Some(config) = &load.speculation {
        return Some(config.clone());
    }
    let target = ModelFile::open(&load.model).ok()?;
    let draft = load.draft.as_ref().map(ModelFile::open).transpose().ok()?;
    Some(SpecConfig::choose(&target, draft.as_ref(), &Conditions::from(&load.context)))
}

/// Never drafts, and breaks the worker when its time has come.
#[derive(Debug)]
struct Hostile {
    fault: Fault,
    /// How often the drafters of this worker were asked.
    asked: Arc<AtomicU64>,
}

impl Drafter for Hostile {
    fn begin(&mut self, _text: &[Token]) {}

    fn extend(&mut self, _tokens: &[Token]) {}

    fn propose(&mut self, _limit: usize, _draft: &mut Draft) {
        if self.asked.fetch_add(1, Ordering::SeqCst) + 1 != self.fault.at {
            return;
        }
        match self.fault.kind {
            Kind::AbortInDraft | Kind::Abort => process::abort(),
            Kind::Exit => process::exit(1),
            Kind::HangInDraft | Kind::Hang => loop {
                thread::park();
            },
            Kind::AbortAtLoad => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read() {
        let read = |text: &str| text.parse::<Fault>();
        assert_eq!(read("abort-in-draft@7"), Ok(Fault { kind: Kind::AbortInDraft, at: 7, workers: None }));
        assert_eq!(read("hang@1x2"), Ok(Fault { kind: Kind::Hang, at: 1, workers: Some(2) }));
        assert_eq!(read("abort-at-load@3"), Ok(Fault { kind: Kind::AbortAtLoad, at: 3, workers: None }));
        for text in ["abort-in-draft@7", "hang-in-draft@1x2", "abort@3", "hang@4", "exit@5x1", "abort-at-load@2"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for wrong in
            ["", "abort", "abort@", "abort@0", "abort@-1", "abort@1x", "abort@1x0", "abort-at-load@1x1", "burn@1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
