//! What is noted of each slot: hidden states that wait for the token after them, and what a paused drafter has missed.

use crate::batch::Entry;
use crate::error::Failure;
use crate::token::{Slot, Token};
use std::ops::Range;

/// The most tokens a paused slot keeps. With a hidden state of 4096 values they take 16 MB, and three times that for EAGLE-3.
pub(super) const MISSED: usize = 1024;

/// The most tokens that are owed: more are computed at once.
const OWED: usize = 32;

/// What is noted of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// The hidden state that is read beside the next token; nothing at the beginning of a text.
    pub(super) pending: Option<Pending>,
    /// The hidden states of the last batch of the target, of which only the accepted ones count.
    pub(super) last: Rows,
    /// Tokens of the last draft that were neither accepted nor rejected yet.
    pub(super) open: usize,
    pub(super) pause: Pause,
    /// What the target decoded and the draft has not yet: that is computed with its next step, instead of in a batch of its own.
    pub(super) owed: Span,
}

/// The hidden state of a token, in the form in which the draft reads it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pending {
    /// Where the token stands.
    pub(super) position: u32,
    pub(super) row: Vec<f32>,
}

/// Whether a slot is followed.
#[derive(Clone, Debug, Default)]
pub(super) enum Pause {
    #[default]
    No,
    /// What the target decoded meanwhile.
    Since(Span),
    /// The same, but it was too much to keep.
    TooLong,
}

/// Tokens of one slot that follow each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    /// Where the first of them stands.
    pub(super) position: u32,
    pub(super) tokens: Vec<Token>,
    /// What was read of the target for each of them, one row after the other.
    pub(super) rows: Vec<f32>,
}

/// Rows of hidden states, the first of the token at `position`.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) position: u32,
    pub(super) rows: Vec<f32>,
}

impl Notes {
    /// The row of the last token that was accepted, of those of the last batch, is the one that waits.
    pub(super) fn settle(&mut self, accepted: usize, width: usize) {
        let rows = self.last.rows.len().checked_div(width).unwrap_or(0);
        if let Some(last) = rows.checked_sub(1) {
            let number = accepted.min(last);
            let row = self.last.rows[number * width..(number + 1) * width].to_vec();
            self.pending = Some(Pending { position: self.last.position + number as u32, row });
        }
    }

    /// Notes what the target decoded, to be computed later. False if it is too much for that, or no continuation.
    pub(super) fn owe(&mut self, tokens: &[Entry], position: u32) -> bool {
        self.owed.add(tokens, position, &[], OWED)
    }

    /// Tokens that a paused slot has missed and keeps.
    pub(super) fn missed(&self) -> usize {
        match &self.pause {
            Pause::Since(span) => span.tokens.len(),
            Pause::No | Pause::TooLong => 0,
        }
    }

    /// Notes what a paused slot does not follow. What is not a continuation cannot be kept.
    pub(super) fn miss(&mut self, tokens: &[Entry], position: u32, rows: &[f32]) {
        let Pause::Since(span) = &mut self.pause else { return };
        self.last.rows.clear();
        if !span.add(tokens, position, rows, MISSED) {
            self.pause = Pause::TooLong;
        }
    }

    /// Takes what was missed or is owed from a position on out: it was rejected.
    pub(super) fn cut(&mut self, from: u32) {
        self.owed.cut(from);
        if let Pause::Since(span) = &mut self.pause {
            span.cut(from);
        }
    }

    /// What waits, as bytes that can be kept: of which form they are, where it stands, and the row.
    pub(super) fn to_bytes(&self, tag: u8) -> Vec<u8> {
        let Some(pending) = &self.pending else { return Vec::new() };
        let mut bytes = vec![VERSION, tag];
        bytes.extend_from_slice(&pending.position.to_le_bytes());
        pending.row.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote of rows of this width.
    pub(super) fn from_bytes(bytes: &[u8], tag: u8, width: usize) -> Result<Self, Failure> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let wrong = || Failure::new(format!("these {} bytes are not what this drafter keeps of a slot", bytes.len()));
        let head = bytes.get(HEAD).filter(|head| **head == [VERSION, tag]);
        let (Some(_), Some(position), Some(row)) = (head, bytes.get(POSITION), bytes.get(POSITION.end..)) else {
            return Err(wrong());
        };
        let (row, rest) = row.as_chunks();
        if row.len() != width || !rest.is_empty() {
            return Err(wrong());
        }
        let position = u32::from_le_bytes(position.try_into().map_err(|_| wrong())?);
        let row = row.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(Self { pending: Some(Pending { position, row }), ..Self::default() })
    }
}

impl Span {
    /// Adds tokens that stand behind those that are there, up to so many in all. False, and nothing has changed, if they do not.
    fn add(&mut self, tokens: &[Entry], position: u32, rows: &[f32], most: usize) -> bool {
        let follows = self.tokens.is_empty() || self.position as usize + self.tokens.len() == position as usize;
        if !follows || self.tokens.len() + tokens.len() > most {
            return false;
        }
        if self.tokens.is_empty() {
            self.position = position;
        }
        self.tokens.extend(tokens.iter().map(|entry| entry.token));
        self.rows.extend_from_slice(rows);
        true
    }

    fn cut(&mut self, from: u32) {
        let Some(width) = self.rows.len().checked_div(self.tokens.len()) else { return };
        let left = from.saturating_sub(self.position) as usize;
        self.tokens.truncate(left);
        self.rows.truncate(left * width);
    }

    /// Its tokens as those of a slot.
    pub(super) fn entries(&self, slot: Slot) -> Vec<Entry> {
        let entry = |(position, token): (u32, &Token)| Entry { token: *token, position, slot, output: false };
        (self.position..).zip(&self.tokens).map(entry).collect()
    }

    pub(super) fn clear(&mut self) {
        self.tokens.clear();
        self.rows.clear();
    }
}

const VERSION: u8 = 1;
const HEAD: Range<usize> = 0..2;
const POSITION: Range<usize> = 2..6;

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(range: Range<i32>) -> Vec<Entry> {
        let entry = |id| Entry { token: Token::new(id), position: 0, slot: Slot::FIRST, output: false };
        range.map(entry).collect()
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        let mut notes = Notes { last: Rows { position: 7, rows: vec![1.0, 2.0, 3.0, 4.0] }, ..Notes::default() };
        assert!(notes.to_bytes(1).is_empty());
        notes.settle(9, 2);
        let pending = Pending { position: 8, row: vec![3.0, 4.0] };
        assert_eq!(notes.pending, Some(pending));
        let bytes = notes.to_bytes(1);
        assert_eq!(Notes::from_bytes(&bytes, 1, 2).unwrap().pending, notes.pending);
        assert_eq!(Notes::from_bytes(&[], 1, 2).unwrap().pending, None);
        for (bytes, tag, width) in [(&bytes[..], 2, 2), (&bytes[..], 1, 3), (&bytes[..9], 1, 2), (&bytes[..1], 1, 2)] {
            assert!(Notes::from_bytes(bytes, tag, width).is_err());
        }
        let mut newer = bytes.clone();
        newer[0] += 1;
        assert!(Notes::from_bytes(&newer, 1, 2).is_err());
    }

    #[test]
    fn rejected_tokens_are_not_kept() {
        let mut notes = Notes { pause: Pause::Since(Span::default()), ..Notes::default() };
        notes.miss(&tokens(0..4), 10, &[0.0, 1.0, 2.0, 3.0]);
        notes.cut(12);
        notes.miss(&tokens(7..8), 12, &[7.0]);
        let Pause::Since(span) = &notes.pause else { panic!("it is paused") };
        assert_eq!((span.position, span.tokens.len(), &span.rows[..]), (10, 3, &[0.0, 1.0, 7.0][..]));
        notes.cut(5);
        assert_eq!(notes.missed(), 0);
        notes.miss(&tokens(0..1), 5, &[5.0]);
        assert_eq!(notes.missed(), 1);
    }

    #[test]
    fn what_is_owed_is_taken_back_and_has_a_bound() {
        let mut notes = Notes::default();
        assert!(notes.owe(&tokens(0..5), 10));
        notes.cut(12);
        assert!(!notes.owe(&tokens(7..8), 13), "there is a hole");
        assert!(notes.owe(&tokens(7..8), 12));
        assert_eq!((notes.owed.position, notes.owed.tokens.len()), (10, 3));
        assert!(!notes.owe(&tokens(0..OWED as i32 - 2), 13), "it is too much");
        assert_eq!(notes.owed.tokens.len(), 3);
        notes.owed.clear();
        assert!(notes.owe(&tokens(0..OWED as i32), 40) && notes.owed.position == 40);
    }

    #[test]
    fn what_is_too_much_or_has_a_hole_is_dropped() {
        let paused = || Notes { pause: Pause::Since(Span::default()), ..Notes::default() };
        let mut notes = paused();
        for piece in 0..2 {
            notes.miss(&tokens(0..(MISSED / 2) as i32), (piece * MISSED / 2) as u32, &[]);
        }
        assert_eq!(notes.missed(), MISSED);
        notes.miss(&tokens(0..1), MISSED as u32, &[]);
        assert!(matches!(notes.pause, Pause::TooLong) && notes.missed() == 0);
        let mut notes = paused();
        notes.miss(&tokens(0..2), 3, &[]);
        notes.miss(&tokens(0..2), 6, &[]);
        assert!(matches!(notes.pause, Pause::TooLong));
    }
}
