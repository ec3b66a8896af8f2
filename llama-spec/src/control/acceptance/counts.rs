//! Counted shares of right guesses.

use super::logistic::log_odds;

/// How often guesses of a kind were right, with a prior, and with the old ones fading (a Beta distribution).
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    right: f64,
    total: f64,
    /// What the prior counts for.
    weight: f64,
    /// The log-odds of the share, kept since it is asked for more often than it changes.
    pub(super) log_odds: f64,
}

/// After so many newer ones an observation counts for a third.
const MEMORY: f64 = 400.0;

impl Counts {
    pub(super) fn new(prior: f64, weight: f64) -> Self {
        Self { right: 0.0, total: 0.0, weight, log_odds: log_odds(prior) }
    }

    /// Learns from a guess that was right with the probability `right`: 0 or 1 if that is known.
    pub(super) fn learn(&mut self, prior: f64, right: f64, weight: f64) {
        self.fade();
        self.right += weight * right;
        self.total += weight;
        self.log_odds = log_odds(self.share(prior));
    }

    /// What was seen counts a little less.
    pub(super) fn fade(&mut self) {
        let keep = 1.0 - 1.0 / MEMORY;
        (self.right, self.total) = (self.right * keep, self.total * keep);
    }

    /// The standard error of the log-odds.
    pub(super) fn error(&self) -> f64 {
        let share = super::sigmoid(self.log_odds);
        1.0 / (share * (1.0 - share) * (self.total + self.weight)).sqrt()
    }

    pub(super) fn share(&self, prior: f64) -> f64 {
        (self.right + self.weight * prior) / (self.total + self.weight)
    }
}
