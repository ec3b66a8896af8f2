//! Texts that are kept together and do not change any more.

use super::super::index::Index;
use super::super::panel::Match;
use crate::token::Token;
use std::sync::atomic::{AtomicU64, Ordering};

/// Places in other texts are found by so many last tokens: fewer would find them in every text.
const LENGTHS: [usize; 2] = [4, 16];

/// Longer matches are not told apart.
const LONGEST: usize = 32;

/// Between two texts: no token of a vocabulary, so no draft crosses it.
pub(super) const END_OF_TEXT: Token = Token::new(-1);

/// What a text of the store costs at least counts as saved at first, so that new ones are not dropped before they were of use.
const CREDIT: u64 = 32;

/// Some texts and where their runs of tokens stand.
#[derive(Debug)]
pub(in super::super) struct Segment {
    index: Index<{ LENGTHS.len() }>,
    /// Tokens that were right because of it, halved from time to time.
    saved: AtomicU64,
}

impl Segment {
    pub(super) fn new(tokens: &[Token]) -> Self {
        let mut index = Index::new(LENGTHS);
        index.make_room(tokens.len(), true);
        tokens.iter().for_each(|token| index.push(*token));
        Self { saved: AtomicU64::new(tokens.len() as u64 / CREDIT), index }
    }

    pub(super) fn tokens(&self) -> &[Token] {
        self.index.text()
    }

    /// What follows a place, if its text goes on.
    pub(in super::super) fn next(&self, end: u32) -> Option<Token> {
        self.index.text().get(end as usize).copied().filter(|token| *token != END_OF_TEXT)
    }

    /// Where the end of another text stands in this one.
    pub(super) fn find(&self, context: &[Token]) -> Option<Match> {
        let (end, length) = self.index.find(context)?;
        self.next(end)?;
        Some(Match { end, length: self.index.common(context, end, length, LONGEST) as u32 })
    }

    pub(super) fn saved(&self) -> u64 {
        self.saved.load(Ordering::Relaxed)
    }

    pub(in super::super) fn save(&self, tokens: u64) {
        self.saved.fetch_add(tokens, Ordering::Relaxed);
    }

    pub(super) fn age(&self) {
        self.saved.fetch_sub(self.saved().div_ceil(2), Ordering::Relaxed);
    }

    /// What it is worth to keep: tokens saved for each byte.
    pub(super) fn value(&self) -> f64 {
        self.saved() as f64 / self.bytes() as f64
    }

    /// Bytes of it, with the counters in front of it and the pointer to it.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() - size_of_val(&self.index) + self.index.bytes() + 3 * size_of::<usize>()
    }
}
