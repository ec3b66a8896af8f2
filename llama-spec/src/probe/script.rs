//! A drafter that knows the text, and is wrong on purpose.

use crate::spec::{Draft, Drafter};
use crate::token::Token;
use std::sync::Arc;

/// Proposes drafts, the first as long as it may be, of which the first tokens are right: none of them at first, then one, all, and so on.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Prompt and answer.
    text: Arc<[Token]>,
    vocabulary: u32,
    /// Where the text is now.
    position: usize,
    round: usize,
    /// The longest draft but for the first.
    later: usize,
    first: bool,
}

impl Script {
    /// `round` is where it begins, so that several are wrong at different places. After the first draft, all have at most
    /// `later` tokens.
    pub(super) fn new(text: Arc<[Token]>, vocabulary: u32, round: usize, later: usize) -> Self {
        Self { text, vocabulary, position: 0, round, later, first: true }
    }

    /// Of a draft of `limit` tokens, how many are right in this round.
    fn right(&self, limit: usize) -> usize {
        match self.round % 5 {
            0 => 0,
            1 => 1,
            2 => limit,
            3 => limit / 2,
            _ => limit.saturating_sub(1),
        }
    }

    fn wrong(&self, right: Token) -> Token {
        let vocabulary = i64::from(self.vocabulary.max(1));
        Token::new(((i64::from(right.id()) + 1 + vocabulary / 2) % vocabulary) as i32)
    }
}

impl Drafter for Script {
    fn begin(&mut self, text: &[Token]) {
        self.position = text.len();
    }

    fn extend(&mut self, tokens: &[Token]) {
        self.position += tokens.len();
    }

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        let limit = if self.first { limit } else { limit.min(self.later) };
        self.first = false;
        let right = self.right(limit);
        for offset in 0..limit {
            // Behind the end of what is known nothing is right but by chance.
            let known = self.text.get(self.position + offset).copied();
            match known {
                Some(token) if offset < right => draft.push(token),
                _ => draft.push(self.wrong(known.unwrap_or(Token::new(0)))),
            }
        }
        self.round += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_full_and_right_as_far_as_planned() {
        let text: Arc<[Token]> = (0..40).map(Token::new).collect();
        let mut script = Script::new(text.clone(), 100, 0, 4);
        script.begin(&text[..10]);
        for expected in [0, 1, 4, 2, 3, 0] {
            let mut draft = Draft::default();
            script.propose(4, &mut draft);
            let right = draft.tokens().iter().zip(&text[script.position..]).take_while(|(one, other)| one == other);
            assert_eq!((right.count(), draft.tokens().len()), (expected, 4));
            script.extend(&text[10..11]);
        }
        let mut script = Script::new(text, 100, 0, 3);
        for expected in [9, 3, 3] {
            let mut draft = Draft::default();
            script.propose(9, &mut draft);
            assert_eq!(draft.tokens().len(), expected);
        }
    }
}
