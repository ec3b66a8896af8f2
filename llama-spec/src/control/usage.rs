//! Whether a drafter is in use, and when one that is not is tried again.

use super::account::{DrafterAccount, DrafterState};

/// The first wait before a drafter that does not pay is tried again, in tokens of a text. Each vain try doubles it.
const FIRST: u64 = 16;
const LONGEST: u64 = 1024;
/// Rounds without use after which a drafter need not follow any more.
const PATIENCE: u32 = 4;

/// Tries that follow the one for which a drafter caught up.
const BURST: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// It is tried in so many more rounds, whatever came of the last one.
    more: u32,
    /// Tokens of a text since it was last used or tried.
    idle: f64,
    wait: u64,
    /// Rounds since then.
    rounds: u32,
    /// It does not follow.
    pub(super) paused: bool,
    /// It is told how it would have done, and needs no tries.
    pub(super) shadowed: bool,
    drafted: u64,
    accepted: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { more: 0, idle: 0.0, wait: FIRST, rounds: 0, paused: false, shadowed: false, drafted: 0, accepted: 0 }
    }
}

impl Usage {
    /// Its tokens were verified in a round because that was expected to pay.
    pub(super) fn used(&mut self) {
        (self.more, self.idle, self.wait, self.rounds) = (0, 0.0, FIRST, 0);
    }

    /// It was tried.
    pub(super) fn tried(&mut self) {
        (self.idle, self.rounds) = (0.0, 0);
        match self.more.checked_sub(1) {
            Some(more) => self.more = more,
            None => self.wait = (self.wait * 2).min(LONGEST),
        }
    }

    /// It follows again. Since that was paid for, one try would be little.
    pub(super) fn resume(&mut self) {
        if self.paused {
            self.more = BURST;
        }
        self.paused = false;
    }

    pub(super) fn unused(&mut self, tokens: f64) {
        self.idle += tokens;
        self.rounds = self.rounds.saturating_add(1);
    }

    pub(super) fn count(&mut self, accepted: bool) {
        self.drafted += 1;
        self.accepted += u64::from(accepted);
    }

    pub(super) fn is_due(&self) -> bool {
        !self.shadowed && (self.more > 0 || self.idle >= self.wait as f64)
    }

    /// It was of use in the last round.
    pub(super) fn is_in_use(&self) -> bool {
        self.rounds == 0
    }

    /// Rounds since it was of use.
    pub(super) fn rest(&self) -> f64 {
        f64::from(self.rounds)
    }

    pub(super) fn may_rest(&self) -> bool {
        self.rounds >= PATIENCE
    }

    pub(super) fn account(&self) -> DrafterAccount {
        let next_try = (self.wait as f64 - self.idle).max(0.0) as u64;
        let idle = self.paused || self.rounds >= PATIENCE;
        let state = if idle { DrafterState::Idle { paused: self.paused, next_try } } else { DrafterState::Active };
        DrafterAccount { drafted: self.drafted, accepted: self.accepted, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vain_tries_become_rare() {
        let mut usage = Usage::default();
        let mut tries = Vec::new();
        for token in 0..5000 {
            if usage.is_due() {
                tries.push(token);
                usage.tried();
            }
            usage.unused(1.0);
        }
        let gaps: Vec<u64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [32, 64, 128, 256, 512, 1024, 1024, 1024]);
        usage.used();
        (0..FIRST).for_each(|_| usage.unused(1.0));
        assert!(usage.is_due());
    }
}
