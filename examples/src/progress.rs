//! Progress bars on standard error, shown only if that is a terminal and no log is written to it.

use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Parts of a model's load that the bar tells apart.
const LOAD_STEPS: u64 = 1000;

/// Makes bars, or none.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Bars, unless a log is written to the same terminal.
    pub fn new(logging: bool) -> Self {
        Self { shown: !logging }
    }

    /// A bar for loading a file, and what the library calls with the share that is loaded. Ctrl-C cancels.
    pub fn load(self, what: &str, file: &Path) -> (ProgressBar, impl FnMut(f32) -> ControlFlow<()> + Send + 'static) {
        let bar = self.loading(what, file);
        let shown = bar.clone();
        let step = move |share: f32| {
            shown.set_position(Self::position(share));
            if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        (bar, step)
    }

    /// A bar for loading a file.
    pub fn loading(self, what: &str, file: &Path) -> ProgressBar {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let bar = self.bar(LOAD_STEPS, "{msg} {bar:30} {percent:>3} %");
        bar.set_message(crate::failure::one_line(&format!("loading the {what} {name}")));
        bar
    }

    /// Where such a bar stands when this share of the file is loaded.
    pub fn position(share: f32) -> u64 {
        (f64::from(share) * LOAD_STEPS as f64) as u64
    }

    /// A bar for a prompt of so many tokens, of which `done` need no computing.
    pub fn prefill(self, done: usize, total: usize) -> ProgressBar {
        let bar = self.bar(total as u64, "reading the prompt {bar:30} {pos}/{len} tokens {rate}");
        bar.set_position(done as u64);
        bar.reset_eta();
        bar
    }

    /// A bar for an answer that is shown only at its end.
    pub fn answer(self, most: u32) -> ProgressBar {
        self.bar(u64::from(most), "generating {bar:30} {pos}/{len} tokens {rate}")
    }

    fn bar(self, length: u64, template: &str) -> ProgressBar {
        let target = if self.shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        // The templates are constants of this file; one that is wrong leaves the usual bar.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> ").with_key("rate", rate));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    // An error would mean that the bar cannot be drawn, and nothing depends on it.
    let _ = write!(out, "{:.0} tokens/s", state.per_sec());
}
