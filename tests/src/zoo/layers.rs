//! Random layers, which add little to an embedding, and the units by which an MTP head sees that it was given another state
//! than the one before its token.

use super::rows;
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

/// Gates of this size are open, and their negatives closed.
const LARGE: f32 = 8.0;
/// What an MTP head writes where its state is not the expected one, whose entries are 1.
const WRONG: f32 = 4.0;

/// Full attention in a layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attention {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_width: usize,
    pub(super) form: Form,
}

/// How queries, keys and values are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By a matrix each, then queries and keys are normed.
    Separate,
    /// The same, and each query is followed by a gate.
    Gated,
    /// By one matrix, without norms.
    Fused,
}

/// Writes the tensors of random layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    pub(super) seed: u64,
    pub(super) weights: TensorType,
    pub(super) width: usize,
    /// How many entries of the embedding the layers write to: the first.
    pub(super) free: usize,
    pub(super) attention: Attention,
    pub(super) feed_forward: usize,
    /// What attention or feed-forward of one layer adds, as a standard deviation; the entries are 1 and -1.
    pub(super) written: f32,
    /// The name of the norm before the feed-forward layer.
    pub(super) second_norm: &'static str,
}

/// The first units of the feed-forward layer of an MTP head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// A unit fires for each of these entries that is 1.
    pub(super) unexpected: usize,
    pub(super) count: usize,
    /// An entry that is always 1.
    pub(super) constant: usize,
    /// The entry that units write.
    pub(super) wrong: usize,
    /// The norm of the embedding.
    pub(super) norm: f32,
}

impl Layers {
    /// A matrix whose rows are zero where `make_row` does not write.
    pub(super) fn matrix<'a>(
        &self,
        name: impl Into<String>,
        row_length: usize,
        rows: usize,
        make_row: impl Fn(usize, &mut [f32]) + Send + Sync + 'a,
    ) -> Tensor<'a> {
        rows::matrix(name, self.weights, row_length, rows, make_row)
    }

    /// Adds the tensors of attention.
    pub(super) fn add_attention(&self, gguf: &mut Gguf<'_>, layer: usize) {
        let Attention { heads, kv_heads, head_width, form } = self.attention;
        let [all, kv] = [heads * head_width, kv_heads * head_width];
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        let read = |tensor: &str, rows: usize| self.random(name(tensor), self.width, rows, self.keep(), false);
        let out = self.written / (all as f32).sqrt();
        gguf.add(Tensor::constant(name("attn_norm"), self.width as u64, 1.0));
        if form == Form::Fused {
            gguf.add(read("attn_qkv", all + 2 * kv));
        } else {
            gguf.add(read("attn_q", if form == Form::Gated { 2 * all } else { all }))
                .add(read("attn_k", kv))
                .add(read("attn_v", kv))
                .add(Tensor::constant(name("attn_q_norm"), head_width as u64, 1.0))
                .add(Tensor::constant(name("attn_k_norm"), head_width as u64, 1.0));
        }
        gguf.add(self.random(name("attn_output"), all, self.width, out, true));
    }

    /// Adds the tensors of the feed-forward layer.
    pub(super) fn add_feed_forward(&self, gguf: &mut Gguf<'_>, layer: usize, watch: Option<Watch>) {
        let this = *self;
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        // The gated product of inputs of deviation 1 has a deviation of 0.6.
        let down = this.written / (0.6 * (this.feed_forward as f32).sqrt());
        let units = watch.map_or(0, |watch| watch.count);
        let inside = |tensor: &str, built: fn(&Watch, usize, &mut [f32])| {
            let name = name(tensor);
            let purpose = name.clone();
            self.matrix(name, this.width, this.feed_forward, move |index, row| match &watch {
                Some(watch) if index < watch.count => built(watch, index, row),
                _ => Rng::new(this.seed, &purpose, index as u64).fill_uniform(this.keep(), row),
            })
        };
        gguf.add(Tensor::constant(name(this.second_norm), this.width as u64, watch.map_or(1.0, |watch| watch.norm)))
            .add(inside("ffn_gate", |watch, index, row| {
                row[watch.unexpected + index] = 2.0 * LARGE;
                row[watch.constant] = -LARGE;
            }))
            .add(inside("ffn_up", |watch, _, row| row[watch.constant] = 1.0));
        let purpose = name("ffn_down");
        gguf.add(self.matrix(name("ffn_down"), this.feed_forward, this.width, move |index, row| {
            if index < this.free {
                Rng::new(this.seed, &purpose, index as u64).fill_uniform(down, row);
                row[..units].fill(0.0);
            } else if watch.is_some_and(|watch| watch.wrong == index) {
                row[..units].fill(WRONG / LARGE);
            }
        }));
    }

    /// The deviation of weights that keep the size of their input.
    fn keep(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    fn random<'a>(&self, name: String, row_length: usize, rows: usize, deviation: f32, writes: bool) -> Tensor<'a> {
        let (seed, purpose, free) = (self.seed, name.clone(), self.free);
        self.matrix(name, row_length, rows, move |index, row| {
            if !writes || index < free {
                Rng::new(seed, &purpose, index as u64).fill_uniform(deviation, row);
            }
        })
    }
}
