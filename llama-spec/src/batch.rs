//! A list of tokens to decode in one go.

use crate::token::{Slot, Token};

/// One token of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The token.
    pub token: Token,
    /// Where it stands in its slot, counted from zero; it must follow what the memory already holds.
    pub position: u32,
    /// Which slot it belongs to.
    pub slot: Slot,
    /// Whether logits are wanted for the token after it.
    pub output: bool,
}

/// Tokens of one or several slots that are decoded together.
///
/// Tokens of one slot must follow each other. A batch cannot be overfull by itself; whether it fits is checked by
/// [`crate::Context::decode`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    entries: Vec<Entry>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token and returns its index, by which its logits are found after the decode.
    pub fn push(&mut self, token: Token, position: u32, slot: Slot, output: bool) -> usize {
        self.entries.push(Entry { token, position, slot, output });
        self.entries.len() - 1
    }

    /// Adds the tokens of a prompt, the first at `position`; logits are wanted for the last one only.
    pub fn push_prompt(&mut self, tokens: &[Token], position: u32, slot: Slot) {
        for (offset, token) in tokens.iter().enumerate() {
            self.push(*token, position + offset as u32, slot, offset + 1 == tokens.len());
        }
    }

    /// Takes everything out.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Tokens in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}
