//! Serves a model over HTTP: `cargo run --release --bin server -- --help`.

use llama_spec_examples::begin;
use llama_spec_examples::server::{config, fault, run};
use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A worker does its job and does not come back.
    llama_spec::supervise::hook(fault::customise);
    begin(config::read(env::args_os()), run::run)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use llama_spec_examples::server::config::Flags;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Flags::command().debug_assert();
    }
}
