//! Broken headers for the reader: a million known ones, or new ones from cargo-fuzz.

use crate::run::{Run, say};
use crate::tools::{self, Origin};
use anyhow::Result;
use clap::Args;

/// Which headers.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run cargo-fuzz on the target `model_file` instead, beginning with the headers of the zoo and of `fuzz/seeds`
    #[arg(long)]
    fuzzer: bool,
    /// How long cargo-fuzz runs, in seconds
    #[arg(long, default_value_t = 300, requires = "fuzzer", value_name = "SECONDS")]
    time: u32,
}

/// Runs them.
pub(crate) fn fuzz(options: &Options, origin: Origin) -> Result<()> {
    let variables = tools::native(origin)?;
    if !options.fuzzer {
        let test = ["test", "--workspace", "--test", "headers", "--", "--ignored", "--nocapture"];
        return Run::cargo().args(test).envs(&variables).run();
    }
    say("writing the headers of the zoo to fuzz/corpus/model_file");
    let seeds = ["run", "--manifest-path", "fuzz/Cargo.toml", "--bin", "seeds", "--", "fuzz/corpus/model_file"];
    Run::cargo().args(seeds).envs(&variables).run()?;
    let time = format!("-max_total_time={}", options.time);
    Run::cargo()
        .args(["+nightly", "fuzz", "run", "model_file", "fuzz/corpus/model_file", "fuzz/seeds/model_file"])
        .args(["--", &time, "-timeout=1", "-rss_limit_mb=512"])
        .envs(&variables)
        .cure("`cargo install cargo-fuzz` and `rustup toolchain install nightly`, if one of them is missing")
        .run()
}
