//! The table of tensors.

use serde::Serialize;

/// A tensor in the table of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorInfo<'a> {
    /// The name.
    pub name: &'a str,
    /// How its weights are stored.
    pub kind: TensorType,
    /// The part of a split model that holds it, from 0.
    pub part: usize,
    /// Where its data begins in that part, in bytes from the start of the file.
    pub offset: u64,
    shape: [u64; 4],
    dimensions: usize,
}

impl TensorInfo<'_> {
    /// The shape: the length of a row first.
    pub fn shape(&self) -> &[u64] {
        &self.shape[..self.dimensions]
    }

    /// The number of its weights.
    pub fn elements(&self) -> u64 {
        todo!()
    }

    /// The bytes of its weights.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
}

/// How the weights of a tensor are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct TensorType {
    /// ggml's name of the type.
    pub name: &'static str,
    /// Weights in a block.
    pub block: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
}
