//! Going on behind an edit: a text that followed an earlier place and departed from it often comes back to it a token or
//! two later, long before enough tokens are the same again to find the place by them.

use crate::token::Token;

/// The followed place must have been the same for so many tokens.
const FOLLOWED: usize = 4;

/// So far from the place of the edit a text is looked for again, in tokens.
const WINDOW: usize = 12;

/// So many tokens may differ before the place is given up.
const MISSES: usize = 8;

/// A text that departed from the place it followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edit {
    /// The first token of the place that did not come.
    from: usize,
    /// The token of the place that is expected next.
    pub(super) next: usize,
    /// So many were right since.
    pub(super) right: usize,
    misses: usize,
}

impl Edit {
    /// A place that was the same for `length` tokens should have gone on with the token at `end`, and the text with `token`.
    pub(super) fn begin(text: &[Token], end: usize, length: usize, token: Token) -> Option<Self> {
        let mut edit = Self { from: end, next: end, right: 0, misses: 0 };
        (length >= FOLLOWED).then(|| edit.realign(text, token))?;
        Some(edit)
    }

    /// The text went on with `token`. Whether it may still come back.
    pub(super) fn follow(&mut self, text: &[Token], token: Token) -> bool {
        if text.get(self.next) == Some(&token) {
            self.next += 1;
            self.right += 1;
            return true;
        }
        if self.right >= FOLLOWED {
            // It had come back, so this is another edit.
            *self = Self { from: self.next, next: self.next, right: 0, misses: 0 };
        }
        self.misses += 1;
        self.realign(text, token);
        self.misses < MISSES
    }

    /// The token was put in, or it took the place of the expected one, or it is one from further on or from before the
    /// place where it is expected, since some were left out or put in.
    fn realign(&mut self, text: &[Token], token: Token) {
        let window = text.get(self.from..text.len().min(self.from + WINDOW)).unwrap_or_default();
        let places = window.iter().enumerate().filter(|(_, one)| **one == token).map(|(place, _)| self.from + place);
        match places.min_by_key(|place| place.abs_diff(self.next)) {
            Some(place) => (self.next, self.right) = (place + 1, 1),
            None => (self.next, self.right) = (self.next + 1, 0),
        }
    }
}
