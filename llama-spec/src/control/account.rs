//! The account against plain decoding: what was lost, and what may still be.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How generation compares with plain decoding of the same tokens, as far as can be told from the times of real rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Account {
    /// What all rounds took.
    pub time: Duration,
    /// What plain decoding would have taken for the same tokens, without any drafter.
    pub plain: Duration,
    /// The tokens of these rounds.
    pub tokens: u64,
    /// The share of the time that may be lost, 0.01 for 1 %.
    pub bound: f64,
    /// Too much was lost of late: nothing is drafted until that is made up for.
    pub closed: bool,
    /// The drafters, in the controller's order.
    pub drafters: Vec<DrafterAccount>,
}

/// How a drafter is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DrafterAccount {
    /// Tokens of it that were verified.
    pub drafted: u64,
    /// Those of them that were accepted.
    pub accepted: u64,
    /// Whether it is paying now.
    pub state: DrafterState,
}

/// Whether a drafter is used now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DrafterState {
    /// It drafts where that pays.
    #[default]
    Active,
    /// It did not pay of late.
    Idle {
        /// It no longer follows the target.
        paused: bool,
        /// Tokens until it is tried again at the earliest.
        next_try: u64,
    },
}

impl Account {
    /// The share of the time that was lost against plain decoding; negative if there was a gain.
    pub fn loss_share(&self) -> f64 {
        let (time, plain) = (self.time.as_secs_f64(), self.plain.as_secs_f64());
        if plain > 0.0 { time / plain - 1.0 } else { 0.0 }
    }

    /// How many times as fast as plain decoding it was; nothing as long as nothing was decided.
    pub fn speedup(&self) -> Option<f64> {
        let time = self.time.as_secs_f64();
        (time > 0.0).then(|| self.plain.as_secs_f64() / time)
    }
}

/// The money behind it: two purses that fill with time. All amounts are seconds.
#[derive(Clone, Debug)]
pub(super) struct Purse {
    bound: f64,
    time: f64,
    plain: f64,
    /// What may be lost against plain decoding.
    guard: f64,
    /// What may be spent on finding out.
    trials: f64,
    closed: bool,
    begun: bool,
}

/// The guard begins with so many plain rounds: enough for some bad luck with drafts that pay on the whole.
const GUARD: f64 = 13.0;
/// It holds at most so many: an old gain is no licence to lose.
const FULL: f64 = 40.0;
/// So many must be there again to open.
const OPEN: f64 = 0.3;
const TRIALS: f64 = 12.0;
/// Of the bound: the rest is for what the estimates get wrong.
const GUARD_SHARE: f64 = 0.3;
const TRIAL_SHARE: f64 = 0.2;
/// Of what is gained: who is far ahead may look for something still better.
const GAIN_SHARE: f64 = 0.03;

impl Purse {
    pub(super) fn new(bound: f64) -> Self {
        let (time, plain, guard, trials) = (0.0, 0.0, 0.0, 0.0);
        Self { bound, time, plain, guard, trials, closed: false, begun: false }
    }

    /// Enters a round that took `time` (the credible part of it: `credible`), where `round` is what a plain round takes
    /// and `plain` what plain decoding of its tokens.
    pub(super) fn enter(&mut self, time: f64, credible: f64, plain: f64, round: f64) {
        if !self.begun {
            (self.begun, self.guard, self.trials) = (true, GUARD * round, TRIALS / 4.0 * round);
        }
        let lost = credible - plain;
        self.time += time;
        self.plain += (time - lost).max(0.0);
        let income = self.bound * credible;
        self.guard = (self.guard + GUARD_SHARE * income - lost).min(FULL * round);
        self.trials = (self.trials + TRIAL_SHARE * income - GAIN_SHARE * lost).clamp(0.0, TRIALS * round);
        self.closed = self.guard < 0.0 || (self.closed && self.guard < OPEN * round);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Pays for a trial that is expected to cost so much, if there is enough.
    pub(super) fn pay(&mut self, cost: f64) -> bool {
        let enough = cost <= self.trials;
        if enough {
            self.trials -= cost.max(0.0);
        }
        enough
    }

    /// Whether so much may be spent at once on what is expected to pay in the end.
    pub(super) fn bears(&self, cost: f64) -> bool {
        cost <= self.guard / 2.0
    }

    pub(super) fn account(&self, tokens: u64, drafters: Vec<DrafterAccount>) -> Account {
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let (time, plain) = (duration(self.time), duration(self.plain));
        Account { time, plain, tokens, bound: self.bound, closed: self.closed, drafters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_when_the_bound_is_reached_and_opens_again() {
        let mut purse = Purse::new(0.01);
        let mut rounds = 0;
        let mut drafts = 0;
        for _ in 0..10_000 {
            // Every round that may draft loses half its time.
            let time = if purse.is_closed() { 1.0 } else { 1.5 };
            drafts += u64::from(!purse.is_closed());
            purse.enter(time, time, 1.0, 1.0);
            rounds += 1;
        }
        let account = purse.account(rounds, Vec::new());
        assert!(account.loss_share() <= 0.01, "{}", account.loss_share());
        assert!(drafts > 20, "{drafts} rounds drafted");
    }

    #[test]
    fn a_gain_is_no_licence_to_lose() {
        let mut purse = Purse::new(0.01);
        (0..1000).for_each(|_| purse.enter(1.0, 1.0, 4.0, 1.0));
        let lossy = (0..1000).take_while(|_| {
            purse.enter(2.0, 2.0, 1.0, 1.0);
            !purse.is_closed()
        });
        assert!(lossy.count() < 45);
    }
}
