//! Text that depends on a recurrent state: the rule of it, which models of several architectures follow.

use std::collections::HashMap;

use super::chain::Chain;
use crate::{rng::Rng, vocab::Vocabulary};

/// How many tokens of its input a layer's convolution sees, the last one included.
pub(super) const KERNEL: usize = 4;

/// The rule by which a token follows on a state of latches.
///
/// The cycle's tokens are in groups of four, and each group has a latch. A token writes to the latch of its own group and
/// reads that of the next one, which its successor will be of. What is written is the sign of the token three positions
/// before; what is read chooses between the two successors of the token. New signs are an invertible function of old ones,
/// so the text hardly ever comes back to where it was.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Latches {
    vocabulary: Vocabulary,
    /// The cycle's order does not matter here, only its bytes and where a draft differs.
    chain: Chain,
}

impl Latches {
    /// The rule for a cycle whose length is a multiple of four.
    pub(super) fn new(vocabulary: Vocabulary, chain: Chain) -> Self {
        assert!(chain.cycle().len().is_multiple_of(4), "groups are of four tokens");
        Self { vocabulary, chain }
    }

    /// The rule of a draft that differs on the share `1 - acceptance` of the cycle's tokens.
    pub(super) fn draft(&self, acceptance: f64) -> Self {
        Self { chain: self.chain.draft(acceptance), ..self.clone() }
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The exact share of the cycle on which this draft agrees with its target.
    pub(super) fn acceptance(&self) -> f64 {
        self.chain.acceptance()
    }

    /// How many latches there are.
    pub(super) fn count(&self) -> usize {
        self.chain.cycle().len() / 4
    }

    /// The tokens that may follow `token`: for a latch at 1 and at -1.
    pub(super) fn possible_next(&self, token: u32) -> [u32; 2] {
        let byte = self.vocabulary.byte(token);
        let (group, member) = (self.latch(token), self.place(token) / self.count());
        // Two of the four members lead to one pair of successors, two to the other.
        let mut pairs = [0, 0, 1, 1];
        Rng::new(0, "pairs", group as u64).shuffle(&mut pairs);
        let differs = self.chain.place(byte).is_some_and(|place| self.chain.differs_at(place));
        let pair = if differs { 1 - pairs[member] } else { pairs[member] };
        [0, 1].map(|class| {
            let next = (group + 1) % self.count() + (2 * pair + class) * self.count();
            self.vocabulary.token(self.chain.cycle()[next])
        })
    }

    /// The token that follows `token` where `read` is what the next latch holds: one to which nothing was written counts
    /// as 1.
    pub(super) fn follows(&self, token: u32, read: i32) -> u32 {
        self.possible_next(token)[usize::from(read < 0)]
    }

    /// The latch that `token` writes; it reads the next one.
    pub(super) fn latch(&self, token: u32) -> usize {
        self.place(token) % self.count()
    }

    /// 1 for tokens that follow on a latch at 1, and -1 for the others; 0 for those outside of the cycle.
    pub(super) fn class(&self, token: u32) -> i32 {
        let place = self.chain.place(self.vocabulary.byte(token));
        place.map_or(0, |place| if (place / self.count()).is_multiple_of(2) { 1 } else { -1 })
    }

    /// What `token` leaves for a latch to hold.
    pub(super) fn sign(&self, token: u32) -> i32 {
        // Both members of a pair keep or both turn the sign that chose them.
        if matches!(self.place(token) / self.count(), 0 | 3) { 1 } else { -1 }
    }

    /// The place of a token in the cycle; one outside of it stands for one of it.
    fn place(&self, token: u32) -> usize {
        let byte = self.vocabulary.byte(token);
        self.chain.place(byte).unwrap_or_else(|| self.chain.entry(byte))
    }

    /// The state after `context`.
    pub(super) fn state(&self, context: &[u32]) -> State {
        let mut state = State::default();
        context.iter().for_each(|token| state.read(self, *token));
        state
    }

    /// The `n` tokens that follow `prompt`, which must hold a token.
    pub(super) fn continuation(&self, prompt: &[u32], n: usize) -> Vec<u32> {
        let mut state = self.state(prompt);
        let step = || {
            let next = state.next(self);
            state.read(self, next);
            next
        };
        std::iter::repeat_with(step).take(n).collect()
    }
}

/// What a model remembers of its context.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    latches: HashMap<usize, i32>,
    /// The last tokens, the newest first.
    last: Vec<u32>,
}

impl State {
    /// Takes in a token.
    pub(super) fn read(&mut self, rule: &Latches, token: u32) {
        self.last.insert(0, token);
        self.last.truncate(KERNEL);
        let written = self.last.get(KERNEL - 1).map_or(0, |token| rule.sign(*token));
        self.latches.insert(rule.latch(token), written);
    }

    /// What follows.
    pub(super) fn next(&self, rule: &Latches) -> u32 {
        let last = *self.last.first().expect("a model needs a token to continue from");
        rule.follows(last, self.held(rule, rule.latch(last) + 1))
    }

    /// What a latch holds, counted on from the last to the first; 0 where nothing was written yet.
    pub(super) fn held(&self, rule: &Latches, latch: usize) -> i32 {
        self.latches.get(&(latch % rule.count())).copied().unwrap_or(0)
    }
}
