//! The program `inspect`: what files are, whether they work together under given settings, and what to do if not. It
//! reads headers only, so it answers at once for files of any size.

mod args;
mod text;

pub use args::InspectArgs;

use crate::failure::{Failure, tell};
use llama_spec::compat::{Report, Verdict};
use llama_spec::file::{Description, ModelFile};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Looks at the files, and says what was found.
///
/// # Errors
/// [`Failure::Verdict`] when they do not work together, with the report already written.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    args.color.apply();
    let (target, draft) = (ModelFile::open(&args.target), args.draft.as_ref().map(ModelFile::open).transpose());
    let verdict = match (target, draft) {
        (Ok(target), Ok(draft)) => {
            let conditions = args.conditions();
            let config = args.spec.config(&target, draft.as_ref(), &conditions);
            let report = Report::new(&target, draft.as_ref(), Some(&config), &conditions);
            write(args, &report, |out| text::report(out, &report))?;
            report.verdict
        }
        (target, draft) => {
            let unreadable = Unreadable::new(args, target, draft);
            match args.json {
                true => write(args, &unreadable, |_| Ok(()))?,
                false => unreadable.reasons.iter().for_each(|reason| tell(reason)),
            }
            Verdict::Broken
        }
    };
    match verdict {
        Verdict::Works => Ok(()),
        Verdict::Incompatible => Err(Failure::Verdict(3)),
        Verdict::Broken => Err(Failure::Verdict(4)),
    }
}

/// Writes the report for people to standard output.
///
/// # Errors
/// When that cannot be written.
pub fn show(report: &Report) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    text::report(&mut out, report).and_then(|()| out.flush()).map_err(Failure::output)
}

fn write(
    args: &InspectArgs,
    json: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match args.json {
        true => serde_json::to_writer_pretty(&mut out, json).map_err(io::Error::from).and_then(|()| writeln!(out)),
        false => text(&mut out),
    };
    written.and_then(|()| out.flush()).map_err(Failure::output)
}

/// What can be said when a header cannot be read: the report without what depends on it.
#[derive(Debug, Serialize)]
struct Unreadable {
    verdict: Verdict,
    target: Side,
    draft: Option<Side>,
    requested: serde_json::Value,
    effective: [(); 0],
    reason: String,
    checks: [(); 0],
    #[serde(skip)]
    reasons: Vec<String>,
}

/// One of the files.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Side {
    Read(Box<Description>),
    Unreadable { path: PathBuf, error: String },
}

impl Unreadable {
    fn new(
        args: &InspectArgs,
        target: llama_spec::Result<ModelFile>,
        draft: llama_spec::Result<Option<ModelFile>>,
    ) -> Self {
        let mut reasons = Vec::new();
        let mut side = |path: &Path, file: llama_spec::Result<ModelFile>| match file {
            Ok(file) => Side::Read(Box::new(file.description().clone())),
            Err(error) => {
                reasons.push(error.to_string());
                Side::Unreadable { path: path.to_owned(), error: error.to_string() }
            }
        };
        let target = side(&args.target, target);
        let draft = args.draft.as_deref().and_then(|path| draft.transpose().map(|draft| side(path, draft)));
        let requested = match &args.spec.spec {
            Some(methods) => methods.0.iter().map(|method| method.name()).collect(),
            None => "auto".into(),
        };
        let reason = reasons.join("; ");
        Self { verdict: Verdict::Broken, target, draft, requested, effective: [], reason, checks: [], reasons }
    }
}
