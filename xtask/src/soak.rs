//! A day of traffic on engines whose calls fail at random, in some minutes.

use crate::run::Run;
use crate::tools::{self, Origin};
use anyhow::Result;
use clap::Args;

/// How long, and which requests and faults.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How long it runs, in minutes; ten stand for a day
    #[arg(default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// The seed that an earlier run printed; another one each time if not given
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs it, alone in its process, since it looks at the memory of that.
pub(crate) fn soak(options: &Options, origin: Origin) -> Result<()> {
    let mut test = Run::cargo()
        .args([
            "test",
            "--workspace",
            "--lib",
            "--",
            "--ignored",
            "--nocapture",
            "--exact",
            "runner::tests::soak::soak_long",
        ])
        .env("LLAMA_SPEC_SOAK_MINUTES", options.minutes.to_string())
        // The injected panics would have their backtraces resolved, and what is read for that stays in memory.
        .env("RUST_BACKTRACE", "0")
        .envs(&tools::native(origin)?);
    if let Some(seed) = options.seed {
        test = test.env("LLAMA_SPEC_SOAK_SEED", seed.to_string());
    }
    test.cure("the seed it printed, given with --seed, makes it ask for the same texts and faults").run()
}
