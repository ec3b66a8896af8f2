//! Counted shares of right guesses.

use super::odds::{against, clamped};

/// How often guesses of a kind were right, with a prior, and with the old ones fading (a Beta distribution).
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    right: f64,
    total: f64,
    /// What the prior counts for.
    weight: f64,
    /// The share as it was last computed, and the odds against it: both are asked for more often than they change.
    share: f64,
    pub(super) against: f64,
}

/// After so many newer ones an observation counts for a third.
const MEMORY: f64 = 400.0;

impl Counts {
    pub(super) fn new(prior: f64, weight: f64) -> Self {
        Self { right: 0.0, total: 0.0, weight, share: prior, against: against(prior) }
    }

    /// Learns from a guess that was right with the probability `right`: 0 or 1 if that is known.
    pub(super) fn learn(&mut self, prior: f64, right: f64, weight: f64) {
        self.fade();
        self.right += weight * right;
        self.total += weight;
        self.settle(prior);
    }

    /// What was seen counts a little less.
    pub(super) fn fade(&mut self) {
        let keep = 1.0 - 1.0 / MEMORY;
        (self.right, self.total) = (self.right * keep, self.total * keep);
    }

    /// Computes the share anew and returns it.
    pub(super) fn settle(&mut self, prior: f64) -> f64 {
        self.share = self.share_after(prior);
        self.against = against(self.share);
        self.share
    }

    /// The standard error of the log-odds.
    pub(super) fn error(&self) -> f64 {
        let share = self.clamped();
        1.0 / (share * (1.0 - share) * (self.total + self.weight)).sqrt()
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// The share, as far from 0 and 1 as every probability is kept.
    pub(super) fn clamped(&self) -> f64 {
        clamped(self.share)
    }

    /// What the share is with this prior.
    pub(super) fn share_after(&self, prior: f64) -> f64 {
        (self.right + self.weight * prior) / (self.total + self.weight)
    }
}
