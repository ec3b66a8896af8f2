//! The time that a probe may take.

use std::time::{Duration, Instant};

/// When a probe must be over. It is asked between steps, so that the last step may end later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    start: Instant,
    budget: Duration,
}

impl Deadline {
    pub(super) fn new(budget: Duration) -> Self {
        Self { start: Instant::now(), budget }
    }

    pub(super) fn budget(&self) -> Duration {
        self.budget
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn left(&self) -> Duration {
        self.budget.saturating_sub(self.elapsed())
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Whether this share of the budget is spent.
    pub(super) fn is_past(&self, share: f64) -> bool {
        self.elapsed() >= self.budget.mul_f64(share)
    }
}
