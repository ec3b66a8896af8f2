//! The log of llama.cpp and of the library: nothing unless it is asked for.

use crate::failure::Failure;
use std::io;
use tracing_subscriber::EnvFilter;

/// How the lines of a log look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Human,
    /// One JSON object a line, for programs
    Json,
}

/// Starts the log of a server to standard error: requests and what happens to the engine, more if `verbose` or RUST_LOG ask for
/// it.
///
/// # Errors
/// When RUST_LOG is not understood.
pub fn serve(format: LogFormat, verbose: bool) -> Result<(), Failure> {
    let usual = if verbose { "server=debug,llama_spec=debug,llama.cpp=info" } else { "server=info,llama_spec=warn" };
    let filter = wanted()?.unwrap_or_else(|| EnvFilter::new(usual));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Human => log.with_ansi(console::colors_enabled_stderr()).init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).with_span_list(false).init(),
    }
    Ok(())
}

/// Starts logging to standard error if `verbose` or RUST_LOG ask for it, and says whether they did. To be called before
/// anything of the library.
///
/// # Errors
/// When RUST_LOG is not understood.
pub fn start(verbose: bool) -> Result<bool, Failure> {
    let filter = match wanted()? {
        Some(filter) => filter,
        None if verbose => EnvFilter::new("debug"),
        None => return Ok(false),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(console::colors_enabled_stderr())
        .without_time()
        // It would use standard error for that, and panic if nobody reads it.
        .log_internal_errors(false)
        .init();
    Ok(true)
}

/// What RUST_LOG asks for.
fn wanted() -> Result<Option<EnvFilter>, Failure> {
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|wanted| !wanted.trim().is_empty());
    let understood = wanted.map(|wanted| {
        EnvFilter::try_new(&wanted)
            .map_err(|error| Failure::Usage(format!("RUST_LOG={wanted} is not understood: {error}")))
    });
    understood.transpose()
}
