//! Says what model files are and whether they work together: `cargo run --release --bin inspect -- --help`.

use llama_spec_examples::inspect::{InspectArgs, run};
use llama_spec_examples::start;
use std::process::ExitCode;

fn main() -> ExitCode {
    start(|args: InspectArgs| run(&args))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        InspectArgs::command().debug_assert();
        assert!(InspectArgs::try_parse_from(["inspect"]).is_err());
    }
}
