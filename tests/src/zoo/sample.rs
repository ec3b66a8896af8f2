//! Files whose answers are not known beforehand: random weights, or no model at all.

use std::fmt;

use super::described::Described;
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
    vocab::{Kind, Vocabulary},
};

/// The description of a file of a fixed kind.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    label: &'static str,
    make: fn() -> Gguf<'static>,
}

impl Sample {
    pub(super) const fn new(label: &'static str, make: fn() -> Gguf<'static>) -> Self {
        Self { label, make }
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample({:?})", self.label)
    }
}

impl Described for Sample {
    fn label(&self) -> &str {
        self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        (self.make)()
    }
}

/// The sizes of all samples that are models.
pub(super) const WIDTH: u64 = 64;
pub(super) const INSIDE: u64 = 128;
pub(super) const LAYERS: u32 = 2;
pub(super) const HEADS: u32 = 4;
pub(super) const CONTEXT: u32 = 256;

/// A file of an architecture with the sizes above, and with a byte-level vocabulary.
pub(super) fn model(architecture: &str) -> Gguf<'static> {
    let mut gguf = Gguf::new();
    let key = |name: &str| format!("{architecture}.{name}");
    gguf.set("general.architecture", architecture)
        .set("general.type", "model")
        .set("general.name", format!("zoo {architecture}"))
        .set("general.file_type", TensorType::F32.file_type())
        .set(key("block_count"), LAYERS)
        .set(key("context_length"), CONTEXT)
        .set(key("embedding_length"), WIDTH as u32)
        .set(key("feed_forward_length"), INSIDE as u32)
        .set(key("attention.head_count"), HEADS)
        .set(key("attention.head_count_kv"), HEADS)
        .set(key("vocab_size"), vocabulary().size());
    vocabulary().describe(&mut gguf);
    gguf
}

pub(super) fn vocabulary() -> Vocabulary {
    Vocabulary::new(Kind::ByteLevel)
}

/// A matrix of random weights, which keeps the size of what goes through it.
pub(super) fn random(name: impl Into<String>, row_length: u64, rows: u64) -> Tensor<'static> {
    let name = name.into();
    let purpose = name.clone();
    Tensor::matrix(name, TensorType::F32, row_length, rows, move |index, row| {
        Rng::new(1, &purpose, index).fill_uniform(1.0 / (row_length as f32).sqrt(), row);
    })
}

/// Ones, for the weights of a norm.
pub(super) fn ones(name: impl Into<String>, length: u64) -> Tensor<'static> {
    Tensor::constant(name, length, 1.0)
}

/// Zeros, for biases.
pub(super) fn zeros(name: impl Into<String>, length: u64) -> Tensor<'static> {
    Tensor::constant(name, length, 0.0)
}
