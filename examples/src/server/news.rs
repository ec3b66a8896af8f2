//! What becomes of the engine, for whoever watches the server: progress of loading on a terminal, and lines in the log.

use super::config::Flags;
use crate::failure::{Failure, tell as complain};
use crate::logging::LogFormat;
use crate::output::note;
use crate::progress::Progress;
use indicatif::ProgressBar;
use llama_spec::supervise::{RefusalKind, State, Supervisor};
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

/// How often it is looked.
const STEP: Duration = Duration::from_millis(200);

/// Waits until the engine has generated for the first time.
///
/// # Errors
/// When it does not, with the reason already told.
pub(super) async fn first_load(flags: &Flags, supervisor: &Supervisor) -> Result<(), Failure> {
    let loaded = tokio::select! {
        loaded = supervisor.first_load() => loaded,
        never = bars(flags, supervisor) => never,
    };
    let Err(refused) = loaded else { return Ok(()) };
    let mut lines = refused.message.lines().filter(|line| !line.trim().is_empty());
    complain(lines.next().unwrap_or("the engine does not work"));
    lines.for_each(|line| note(&format!("  {line}")));
    Err(Failure::Verdict(match refused.kind {
        RefusalKind::Setting => 2,
        RefusalKind::File => 4,
        RefusalKind::Pair | RefusalKind::Trial => 3,
    }))
}

/// Shows how far loading is. It does not end by itself.
async fn bars<T>(flags: &Flags, supervisor: &Supervisor) -> T {
    let progress = Progress::new(flags.verbose || flags.log_format == LogFormat::Json);
    let mut bar = Bar::default();
    loop {
        match supervisor.status().state {
            State::Starting { draft: Some(share), .. } => {
                bar.show(progress, "draft", flags.model.draft.as_deref().unwrap_or(&flags.model.model), share);
            }
            State::Starting { target: share, .. } => bar.show(progress, "model", &flags.model.model, share),
            _ => {}
        }
        sleep(STEP).await;
    }
}

/// The bar of the file that is being loaded. It goes away when it is dropped.
#[derive(Debug, Default)]
struct Bar {
    what: &'static str,
    bar: Option<ProgressBar>,
}

impl Bar {
    fn show(&mut self, progress: Progress, what: &'static str, file: &Path, share: f32) {
        if self.what != what {
            self.clear();
            (self.what, self.bar) = (what, Some(progress.loading(what, file)));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(Progress::position(share));
        }
    }

    fn clear(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Tells of every change of its state, and of what was done about failures. It does not end by itself.
pub(super) async fn tell(supervisor: Supervisor) {
    let mut state = None;
    let mut recoveries = Vec::new();
    let mut told = Vec::new();
    loop {
        let status = supervisor.status();
        let known: Vec<String> = status.recoveries.into_iter().map(|recovery| recovery.what).collect();
        for what in fresh(&recoveries, &known) {
            tracing::warn!(target: "server", what, "recovery");
        }
        recoveries = known;
        let now = (status.state.name(), status.state.reason().map(str::to_owned));
        if state.as_ref() != Some(&now) {
            let (name, reason) = &now;
            let reason = reason.as_deref().unwrap_or_default();
            match status.state {
                State::Failed { .. } => {
                    tracing::error!(target: "server", state = name, reason, "engine");
                    let new = fresh(&told, &status.log);
                    new.iter().for_each(|line| tracing::error!(target: "server", line, "its last words"));
                    told = status.log;
                }
                State::Degraded { .. } | State::Recovering { .. } => {
                    tracing::warn!(target: "server", state = name, reason, "engine");
                }
                _ => tracing::info!(target: "server", state = name, "engine"),
            }
            state = Some(now);
        }
        sleep(STEP).await;
    }
}

/// What was done since: old entries make room for new ones.
fn fresh<'s>(before: &[String], now: &'s [String]) -> &'s [String] {
    (0..=before.len()).find_map(|gone| now.strip_prefix(&before[gone..])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::fresh;

    #[test]
    fn what_is_new_is_found_also_when_the_old_is_forgotten() {
        let list = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        for (before, now, new) in [
            ("", "", ""),
            ("", "ab", "ab"),
            ("ab", "ab", ""),
            ("ab", "abc", "c"),
            ("abc", "bcd", "d"),
            ("ab", "cd", "cd"),
        ] {
            assert_eq!(fresh(&list(before), &list(now)), list(new), "{before} {now}");
        }
    }
}
