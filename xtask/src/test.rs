//! Everything that must hold before a change lands; continuous integration runs exactly this.

use crate::run::{Run, Variables, root, say, target, warn};
use crate::table::{self, Align};
use crate::tools::{self, Origin};
use crate::{bindings, model};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use console::style;
use std::time::{Duration, Instant};

/// The build script of `llama-sys` stays readable in one sitting. Comments and blank lines do not count.
const SCRIPT_LINES_BELOW: usize = 250;

/// One thing that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Formatting, with rustfmt.
    Fmt,
    /// Lints, with clippy; warnings are errors.
    Clippy,
    /// Documentation; warnings are errors.
    Docs,
    /// The committed bindings are what bindgen makes.
    Bindings,
    /// The build script of llama-sys is below 250 lines of code.
    Script,
    /// Unit and integration tests.
    Tests,
    /// The examples in the documentation.
    Doctests,
}

/// Runs the steps named in `only` (all if there are none) that are not in `skip`, and prints what came of each.
pub(crate) fn test(only: &[Step], skip: &[Step], origin: Origin) -> Result<()> {
    let chosen = |step: &Step| (only.is_empty() || only.contains(step)) && !skip.contains(step);
    let steps: Vec<Step> = Step::value_variants().iter().copied().filter(chosen).collect();
    ensure!(!steps.is_empty(), "no step is left to run");
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        eprintln!("\n{}", style(format!("[{}/{}] {}", number + 1, steps.len(), step.title())).bold());
        let start = Instant::now();
        let outcome = step.run(origin);
        if let Err(why) = &outcome {
            eprintln!("{} {why:#}", style("failed:").red().bold());
            failed.push(step.title());
        }
        let outcome = if outcome.is_ok() { style("passed").green() } else { style("FAILED").red() };
        rows.push(vec![step.title().to_owned(), outcome.to_string(), time(start.elapsed())]);
    }
    println!();
    table::print(&[("step", Align::Left), ("result", Align::Left), ("time", Align::Right)], &rows);
    println!();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

impl Step {
    fn title(self) -> &'static str {
        match self {
            Self::Fmt => "formatting",
            Self::Clippy => "clippy",
            Self::Docs => "documentation",
            Self::Bindings => "bindings",
            Self::Script => "length of the build script",
            Self::Tests => "tests",
            Self::Doctests => "documentation tests",
        }
    }

    fn run(self, origin: Origin) -> Result<()> {
        match self {
            Self::Fmt => Run::cargo().args(["fmt", "--all", "--check"]).cure("run `cargo fmt --all`").run(),
            Self::Clippy => {
                without_native().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
            }
            Self::Docs => {
                let doc = without_native().env("RUSTDOCFLAGS", "-D warnings");
                doc.args(["doc", "--workspace", "--no-deps"]).run()
            }
            Self::Bindings => bindings::bindings(true),
            Self::Script => script_length(),
            Self::Tests => tests(&with_clients(with_model(origin)?, origin)),
            Self::Doctests => Run::cargo().args(["test", "--workspace", "--doc"]).envs(&with_model(origin)?).run(),
        }
    }
}

/// A Cargo that compiles no C++, in a folder of its own so as not to disturb the native build.
fn without_native() -> Run {
    Run::cargo().env("LLAMA_SYS_SKIP_NATIVE", "1").env("CARGO_TARGET_DIR", target("check"))
}

/// What tests and benches need: a native build and the default model.
pub(crate) fn with_model(origin: Origin) -> Result<Variables> {
    let mut variables = tools::native(origin)?;
    match model::smollm2() {
        Ok(file) => variables.push((model::VARIABLE.into(), file.into())),
        Err(why) => warn(format!("{why:#}\nWhat needs the model will fail or be left out")),
    }
    Ok(variables)
}

/// What the tests of the server need besides.
fn with_clients(mut variables: Variables, origin: Origin) -> Variables {
    if let Err(why) = tools::browser(origin) {
        warn(format!("{why:#}\nThe tests of the server's page will fail"));
    }
    match tools::openai() {
        Ok(folder) => variables.push((tools::OPENAI_VARIABLE.into(), folder.into())),
        Err(why) => warn(format!("{why:#}\nThe test of the server with the Python package `openai` will fail")),
    }
    variables
}

fn tests(variables: &Variables) -> Result<()> {
    let nextest = Run::cargo().args(["nextest", "--version"]).succeeds();
    if !nextest {
        say("cargo-nextest is not installed: cargo test runs the tests");
    }
    // The same packages, features and profile as the documentation tests, so that C++ is compiled once.
    let words: &[&str] = if nextest {
        &["nextest", "run", "--workspace", "--no-fail-fast"]
    } else {
        &["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]
    };
    Run::cargo().args(words).envs(variables).run()
}

fn script_length() -> Result<()> {
    let folder = root().join("llama-sys").join("build");
    let mut lines = 0;
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry.context("cannot read a folder")?.path();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        lines += text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    }
    ensure!(
        lines < SCRIPT_LINES_BELOW,
        "llama-sys/build has {lines} lines of code and must stay below {SCRIPT_LINES_BELOW}: simplify it"
    );
    say(format!("llama-sys/build has {lines} lines of code (below {SCRIPT_LINES_BELOW})"));
    Ok(())
}

fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    if seconds < 60 {
        format!("{:.1} s", elapsed.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(time(Duration::from_millis(1_540)), "1.5 s");
        assert_eq!(time(Duration::from_secs(125)), "2 min 05 s");
    }

    #[test]
    fn leaving_nothing_to_run_is_an_error() {
        let error = test(&[Step::Fmt], &[Step::Fmt], Origin::Pip).unwrap_err().to_string();
        assert_eq!(error, "no step is left to run");
    }
}
