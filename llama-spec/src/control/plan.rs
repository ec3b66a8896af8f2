//! What the controller decides, and what it is told of the outcome.

use super::chain::{DrafterIndex, Guess, Sequence};
use std::time::Duration;

/// What to draft in a round. Kept by the caller, so that its buffers are used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The drafter that runs, if one that costs time does.
    pub drafter: Option<DrafterIndex>,
    /// What it drafts for each text, in the order of the sequences.
    pub drafts: Vec<PlannedDraft>,
    /// For each drafter whether it keeps up with the target in this round. One that did not before must catch up first.
    pub follow: Vec<bool>,
}

/// What a costly drafter does for a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedDraft {
    /// The most tokens it may draft, as long as [`Controller::go_on`](super::Controller::go_on) agrees; 0 for none.
    pub limit: usize,
    /// The length that is best if nothing is known of the tokens: for drafters that cannot be stopped midway.
    pub aim: usize,
    /// It goes on behind this much of a free draft, as if it were right; if no chain, it begins at the end of the text.
    pub behind: Pick,
}

/// What is verified of the drafts. Kept by the caller, so that its buffers are used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// For each text, in the order of the sequences.
    pub picks: Vec<Pick>,
}

/// What is verified for a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// Which of the chains; nothing for plain decoding.
    pub chain: Option<usize>,
    /// How many of its tokens.
    pub length: usize,
}

/// What happened in a round.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The texts that took part.
    pub sequences: &'a [Sequence],
    /// What was verified for each of them.
    pub verified: &'a [Verified<'a>],
    /// What the costly drafters did.
    pub drafters: &'a [DrafterTimes],
    /// To decode the batch.
    pub verify: Duration,
    /// To sample its rows.
    pub sample: Duration,
    /// To take rejected tokens back, if there were any.
    pub rollback: Duration,
}

/// What was verified for a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified<'a> {
    /// The drafted tokens that were in the batch.
    pub guesses: &'a [Guess],
    /// How many of them were accepted.
    pub accepted: usize,
}

/// What a costly drafter did in a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct DrafterTimes {
    /// Which one.
    pub drafter: DrafterIndex,
    /// Texts that it drafted for.
    pub sequences: usize,
    /// Steps, all texts at once; blocks for one that drafts in blocks.
    pub steps: usize,
    /// What they took.
    pub draft: Duration,
    /// To follow the verified batch, if it did.
    pub follow: Option<Duration>,
    /// Tokens that it caught up with before.
    pub missed: usize,
    /// What that took.
    pub catch_up: Duration,
}
