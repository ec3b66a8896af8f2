//! The log of llama.cpp and of the library: nothing unless it is asked for.

use crate::failure::Failure;
use std::io;
use tracing_subscriber::EnvFilter;

/// Starts logging to standard error if `verbose` or RUST_LOG ask for it, and says whether they did. To be called before
/// anything of the library.
///
/// # Errors
/// When RUST_LOG is not understood.
pub fn start(verbose: bool) -> Result<bool, Failure> {
    let filter = match std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|wanted| !wanted.trim().is_empty()) {
        Some(wanted) => EnvFilter::try_new(&wanted)
            .map_err(|error| Failure::Usage(format!("RUST_LOG={wanted} is not understood: {error}")))?,
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
