//! Counted shares of right guesses.

use super::logistic::log_odds;

/// How often guesses of a kind were right, with a prior, and with the old ones fading (a Beta distribution).
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    right: f64,
    total: f64,
    /// The log-odds of the share, kept since it is asked for more often than it changes.
    pub(super) log_odds: f64,
}

/// After so many newer ones an observation counts for a third.
const MEMORY: f64 = 400.0;
/// What a prior counts for.
const PRIOR: f64 = 4.0;

impl Counts {
    pub(super) fn new(prior: f64) -> Self {
        Self { right: 0.0, total: 0.0, log_odds: log_odds(prior) }
    }

    pub(super) fn learn(&mut self, prior: f64, right: bool) {
        let keep = 1.0 - 1.0 / MEMORY;
        self.right = self.right * keep + f64::from(u8::from(right));
        self.total = self.total * keep + 1.0;
        self.log_odds = log_odds(self.share(prior));
    }

    pub(super) fn share(&self, prior: f64) -> f64 {
        (self.right + PRIOR * prior) / (self.total + PRIOR)
    }
}
