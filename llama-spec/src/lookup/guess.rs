//! What comes next, as several ways of guessing see it.

use super::evidence::Evidence;
use super::panel::{Opinion, Panel};
use crate::token::Token;

/// Whether the latest place or the most frequent continuation was right when they differed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duel(i32);

impl Duel {
    const MOST: i32 = 16;

    pub(super) fn observe(&mut self, latest: bool, frequent: bool) {
        self.0 = (self.0 + i32::from(latest) - i32::from(frequent)).clamp(-Self::MOST, Self::MOST);
    }

    pub(super) fn choose(self, latest: Opinion, frequent: Option<Opinion>) -> Opinion {
        frequent.filter(|_| self.0 < 0).unwrap_or(latest)
    }
}

/// The next token, guessed in all ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guess {
    pub(super) token: Token,
    pub(super) evidence: Evidence,
    pub(super) from: From,
    pub(super) panel: Panel,
    pub(super) duel: Option<(Token, Token)>,
    /// What the other ways said.
    pub(super) others: [Option<(Token, Evidence)>; 2],
}

/// A way of guessing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum From {
    /// Copying what followed earlier places in the same text.
    Panel,
    /// Going on behind an edit.
    Edit,
    /// Copying from another text.
    Elsewhere,
}
