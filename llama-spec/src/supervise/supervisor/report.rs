//! What is kept to be told at any time.

use crate::engine::Loading;
use crate::supervise::status::{Info, LastDecode, Recovery as Told};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Recoveries and lines of log that are kept.
const RECOVERIES: usize = 100;
const LINES: usize = 60;

#[derive(Debug, Default)]
pub(super) struct Report {
    /// How far loading is.
    target: f32,
    draft: Option<f32>,
    info: Option<Box<Info>>,
    last_decode: Option<(Instant, bool)>,
    recoveries: VecDeque<(Instant, String)>,
    log: VecDeque<String>,
}

impl Report {
    /// Something is being loaded.
    pub(super) fn loading(&mut self) {
        (self.target, self.draft) = (0.0, None);
    }

    pub(super) fn progress(&mut self, loading: Loading) {
        match loading {
            Loading::Target(done) => self.target = done,
            Loading::Draft(done) => (self.target, self.draft) = (1.0, Some(done)),
        }
    }

    pub(super) fn loaded(&mut self, info: Box<Info>, now: Instant) {
        // What was tried has decoded.
        if info.probe.is_some() {
            self.decoded(now, true);
        }
        self.info = Some(info);
    }

    /// The user wants something else, or nothing.
    pub(super) fn forget(&mut self) {
        (self.info, self.last_decode) = (None, None);
    }

    pub(super) fn decoded(&mut self, at: Instant, ok: bool) {
        // What comes later may be about something earlier.
        if self.last_decode.is_none_or(|(known, _)| known <= at) {
            self.last_decode = Some((at, ok));
        }
    }

    pub(super) fn record(&mut self, what: String, now: Instant) {
        tracing::warn!("{what}");
        push(&mut self.recoveries, (now, what), RECOVERIES);
    }

    pub(super) fn write_down(&mut self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| push(&mut self.log, line, LINES));
    }

    pub(super) fn loading_progress(&self) -> (f32, Option<f32>) {
        (self.target, self.draft)
    }

    pub(super) fn info(&self) -> Option<&Info> {
        self.info.as_deref()
    }

    /// When something was decoded last, and whether it gave what it should.
    pub(super) fn decoded_last(&self) -> Option<(Instant, bool)> {
        self.last_decode
    }

    pub(super) fn last_decode(&self, now: Instant) -> Option<LastDecode> {
        self.last_decode.map(|(at, ok)| LastDecode { age: age(at, now), ok })
    }

    pub(super) fn recoveries(&self, now: Instant) -> Vec<Told> {
        self.recoveries.iter().map(|(at, what)| Told { age: age(*at, now), what: what.clone() }).collect()
    }

    /// The lines of workers that are gone, and these of the present one.
    pub(super) fn log(&self, present: Vec<String>) -> Vec<String> {
        let all: Vec<String> = self.log.iter().cloned().chain(present).collect();
        all[all.len().saturating_sub(LINES)..].to_vec()
    }
}

fn age(at: Instant, now: Instant) -> Duration {
    now.saturating_duration_since(at)
}

fn push<T>(to: &mut VecDeque<T>, what: T, most: usize) {
    if to.len() >= most {
        to.pop_front();
    }
    to.push_back(what);
}
