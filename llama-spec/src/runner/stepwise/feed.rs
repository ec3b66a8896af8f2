//! A batch for the draft's context, with the row of hidden states beside each token if it reads one.

use crate::batch::Batch;
use crate::context::Context;
use crate::error::DecodeError;
use crate::token::{Slot, Token};

#[derive(Debug, Default)]
pub(super) struct Feed {
    batch: Batch,
    rows: Vec<f32>,
}

impl Feed {
    /// Adds a token and gives its index. All tokens of a batch have rows of the same width, or all have none.
    pub(super) fn push(&mut self, token: Token, position: u32, slot: Slot, output: bool, row: &[f32]) -> usize {
        self.rows.extend_from_slice(row);
        self.batch.push(token, position, slot, output)
    }

    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.rows.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.batch
    }

    pub(super) fn decode(&self, draft: &mut Context) -> Result<(), DecodeError> {
        match self.rows.is_empty() {
            true => draft.decode(&self.batch),
            false => draft.decode_with_rows(&self.batch, &self.rows),
        }
    }
}
