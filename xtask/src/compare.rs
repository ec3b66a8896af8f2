//! Compares our server and engine with a llama-server: builds what that needs and hands over.

#[path = "../../benches/src/compare/options.rs"]
#[expect(unreachable_pub, reason = "the benches have the same file as part of a library")]
mod options;

pub(crate) use options::Options;

use crate::model;
use crate::programs;
use crate::run::{Run, say};
use crate::tools::{self, Origin};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Builds our server and the program that compares, gets the model, and runs the comparison.
pub(crate) fn compare(options: Options, origin: Origin) -> Result<()> {
    let mut options = absolute(options)?;
    let variables = tools::native(origin)?;
    say("building in release mode: the first time about six minutes on two cores, most of it llama.cpp");
    let programs = programs::build(&variables, &["-p", "llama-spec-benches", "-p", "llama-spec-examples"])?;
    if options.model.is_none() {
        options.model = Some(model::smollm2()?);
    }
    say("comparing; other work on this machine would spoil the figures");
    Run::new(programs.named("compare")?).arg("--server").arg(programs.named("server")?).args(options.words()).show()
}

/// Relative names are relative to where the user is, whereas programs run in the root of the repository.
fn absolute(mut options: Options) -> Result<Options> {
    options.llama_server = existing(&options.llama_server)?;
    for file in [&mut options.model, &mut options.draft].into_iter().flatten() {
        *file = existing(file)?;
    }
    for file in [&mut options.json, &mut options.svg].into_iter().flatten() {
        *file = absolute_path(file)?;
    }
    Ok(options)
}

fn existing(file: &Path) -> Result<PathBuf> {
    ensure!(file.is_file(), "there is no file {}", file.display());
    absolute_path(file)
}

fn absolute_path(file: &Path) -> Result<PathBuf> {
    std::path::absolute(file).with_context(|| format!("cannot tell where {} is", file.display()))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_missing_file_is_named_before_anything_is_built() {
        let error = existing(Path::new("no/such/llama-server")).unwrap_err().to_string();
        assert_eq!(error, "there is no file no/such/llama-server");
    }

    #[test]
    fn files_are_named_from_the_root() {
        assert!(existing(Path::new("Cargo.toml")).unwrap().is_absolute());
    }
}
