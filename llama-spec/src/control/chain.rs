//! What the engine tells the controller about drafters, texts and drafts.

use serde::{Deserialize, Serialize};

/// A drafter's position in the list that the controller was given.
pub type DrafterIndex = usize;

/// When and how a drafter costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DrafterKind {
    /// Its drafts cost next to nothing and are there before anything is decided: lookup in the text, a user's own
    /// drafter.
    Free,
    /// Token by token, one step for all texts at once: a draft model, MTP, EAGLE-3.
    Stepwise,
    /// A whole block in one go: DFlash, DSpark.
    Block,
}

impl DrafterKind {
    pub(super) fn costs(self) -> bool {
        self != Self::Free
    }
}

/// What the controller must know about a drafter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrafterSpec {
    /// When it costs time.
    pub kind: DrafterKind,
    /// The most tokens that it drafts.
    pub longest: usize,
    /// Whether it may stop following the target for a while and catch up later. Free drafters don't follow.
    pub pausable: bool,
    /// Whether it may go on behind the draft of a free drafter, instead of beginning at the end of the text.
    #[serde(default)]
    pub goes_on: bool,
    /// For each [`Evidence::Bucket`], how probable its token is before anything was observed.
    pub buckets: Vec<f32>,
}

/// What speaks for a drafted token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Evidence {
    /// One of the kinds of guesses that the drafter tells apart.
    Bucket(u16),
    /// By how much the drafter's best logit exceeds the second.
    Margin(f32),
    /// What the drafter gives the token.
    Probability(f32),
    /// The token is right for sure: the grammar allows no other.
    Certain,
    /// Nothing is known but its place in the draft.
    Unknown,
}

/// A drafted token: who drafted it and what speaks for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guess {
    /// Who drafted it.
    pub drafter: DrafterIndex,
    /// What speaks for it.
    pub evidence: Evidence,
}

/// A draft for a text. Its tokens may come from several drafters, where one went on with the draft of another.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    /// Whose draft it is: a position in the sequences of the round.
    pub sequence: usize,
    /// Its tokens in order.
    pub guesses: &'a [Guess],
}

/// A text that takes part in a round.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    /// The slot it has; what is learned about a text is kept by it.
    pub slot: usize,
    /// Tokens in its memory.
    pub depth: usize,
    /// The most tokens that may be drafted for it.
    pub limit: usize,
}
