//! What became of a worker that gave no answer.

use std::time::Duration;

/// Why there is no answer. `log` holds the last lines that the worker wrote to its standard error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// The worker could not be started.
    #[error("the worker was not started: {reason}")]
    NotStarted {
        /// Why not.
        reason: String,
    },
    /// A program was started, and did not say that it is a worker before it ended, or for half a minute.
    #[error(
        "the program did not become a worker{}: call `llama_spec::isolate::hook()` first in its `main`{}",
        how(None, *code),
        told(log)
    )]
    NotHooked {
        /// Its status if it ended by itself.
        code: Option<i32>,
        /// Its last words.
        log: Vec<String>,
    },
    /// The worker ended without an answer.
    #[error("the worker ended without an answer{}{}", how(*signal, *code), told(log))]
    Crashed {
        /// The signal that ended it, where there are signals; 6 for an abort, 11 for a segmentation fault.
        signal: Option<i32>,
        /// Its status if it ended by itself.
        code: Option<i32>,
        /// Its last words.
        log: Vec<String>,
    },
    /// The worker did not answer in time and was killed.
    #[error(
        "the worker did not {} within {after:?} and was killed{}",
        if *begun { "answer" } else { "call `llama_spec::isolate::hook()`" },
        told(log)
    )]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
        /// Whether it had begun with the job; if not, it was slow to start or does not call the hook.
        begun: bool,
        /// Its last words.
        log: Vec<String>,
    },
    /// The worker answered that it could not do the job.
    #[error("the worker could not do the job: {reason}{}", told(log))]
    Failed {
        /// Why not.
        reason: String,
        /// Its last words.
        log: Vec<String>,
    },
}

impl Lost {
    /// The last lines that the worker wrote to its standard error, oldest first.
    pub fn log(&self) -> &[String] {
        match self {
            Self::NotStarted { .. } => &[],
            Self::NotHooked { log, .. }
            | Self::Crashed { log, .. }
            | Self::TimedOut { log, .. }
            | Self::Failed { log, .. } => log,
        }
    }
}

/// How a process ended, to follow a sentence about that.
pub(crate) fn how(signal: Option<i32>, code: Option<i32>) -> String {
    let known = match signal {
        Some(4) => ": illegal instruction",
        Some(6) => ": abort",
        Some(8) => ": arithmetic fault",
        Some(9) => ": killed, perhaps because there was no memory left",
        Some(11) => ": segmentation fault",
        _ => "",
    };
    match (signal, code) {
        (Some(signal), _) => format!(" (signal {signal}{known})"),
        (None, Some(code)) => format!(" (status {code})"),
        (None, None) => String::new(),
    }
}

fn told(log: &[String]) -> String {
    let last: Vec<&str> = log.iter().rev().take(3).rev().map(String::as_str).collect();
    if last.is_empty() { String::new() } else { format!("; it wrote: {}", last.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::Lost;

    #[test]
    fn what_happened_is_told() {
        let log: Vec<String> = ["first", "second", "third", "fourth"].map(str::to_owned).into();
        let crashed = Lost::Crashed { signal: Some(6), code: None, log };
        assert_eq!(
            crashed.to_string(),
            "the worker ended without an answer (signal 6: abort); it wrote: second; third; fourth"
        );
        let ended = Lost::NotHooked { code: Some(2), log: Vec::new() };
        assert!(ended.to_string().starts_with("the program did not become a worker (status 2): call"), "{ended}");
    }
}
