//! Checks the shapes of tensors, where they are certain: those that the `load_arch_tensors` of an architecture in
//! `src/models/` of the pinned llama.cpp asks for.

mod dense;
mod drafts;
mod hybrid;

use super::description::{Description, LayerKind};
use super::facts::{Facts, Need};
use super::hyper::Hyper;
use std::collections::HashMap;

/// What is known about the tensors of a model while they are checked.
struct Shapes<'f, 'm> {
    facts: &'f mut Facts<'m>,
    hyper: &'f Hyper,
    kinds: &'f [LayerKind],
    /// Names of the tensors that were asked for and are there, and how many dimensions they should have.
    wanted: HashMap<&'m str, usize>,
    /// Lengths that many tensors have.
    width: u64,
    vocabulary: u64,
}

/// A length that is not checked.
const ANY: u64 = u64::MAX;

/// Checks the tensors of an architecture; of those that are not known here, only that there are no tensors of types
/// that nothing computes with.
pub(super) fn check(
    facts: &mut Facts<'_>,
    name: &str,
    hyper: &Hyper,
    kinds: &[LayerKind],
    vocabulary: Option<u32>,
    description: &Description,
) {
    // Without the numbers, every shape would be wrong; what is missing is noted already.
    let (Some(width), 1..) = (hyper.width, hyper.blocks) else { return };
    let vocabulary = vocabulary.map_or(ANY, u64::from);
    let mut shapes = Shapes { facts, hyper, kinds, wanted: HashMap::new(), width: width.into(), vocabulary };
    let complete = match name {
        "llama" | "qwen2" | "qwen3" | "qwen3moe" | "gemma" | "gemma2" | "gemma3" => dense::check(&mut shapes, name),
        "gemma4" => dense::check_gemma4(&mut shapes),
        "qwen35" => hybrid::check_qwen35(&mut shapes, description),
        "mamba" => hybrid::check_mamba(&mut shapes),
        "eagle3" => drafts::check_eagle3(&mut shapes, description),
        "dflash" => drafts::check_dflash(&mut shapes, description),
        "gemma4-assistant" => drafts::check_assistant(&mut shapes),
        _ => return,
    };
    if complete {
        shapes.check_unasked();
    }
    shapes.check_types();
}

impl<'m> Shapes<'_, 'm> {
    /// Checks a tensor against the shape that it must have. Gives whether it is there.
    fn want(&mut self, name: &str, need: Need, shape: &[u64]) -> bool {
        let Some(tensor) = self.facts.tensor(name) else {
            if need == Need::Required {
                self.facts.refused(name, format!("the tensor is missing; its shape must be {}", shown(shape)));
            }
            return false;
        };
        self.wanted.insert(tensor.name, shape.len());
        let expected = shape.iter().chain(std::iter::repeat(&1));
        let fits = tensor.full_shape().iter().zip(expected).all(|(found, &wanted)| wanted == ANY || *found == wanted);
        if !fits {
            self.facts.refused(name, format!("its shape is {}; it must be {}", shown(tensor.shape()), shown(shape)));
        }
        true
    }

    fn required(&mut self, name: &str, shape: &[u64]) {
        self.want(name, Need::Required, shape);
    }

    fn optional(&mut self, name: &str, shape: &[u64]) {
        self.want(name, Need::Optional, shape);
    }

    /// A matrix or vector of block `layer`.
    fn layer(&mut self, layer: u32, name: &str, need: Need, shape: &[u64]) -> bool {
        self.want(&format!("blk.{layer}.{name}"), need, shape)
    }

    /// The matrices for queries, keys and values, in one or in three, with their biases.
    fn attention(&mut self, layer: u32, need: Need, input: u64, [queries, keys, values]: [u64; 3]) {
        let all = queries.saturating_add(keys).saturating_add(values);
        let each = [("q", queries), ("k", keys), ("v", values)];
        let one = self.layer(layer, "attn_qkv.weight", Need::Optional, &[input, all]);
        let one_bias = one && self.layer(layer, "attn_qkv.bias", Need::Optional, &[all]);
        for (name, length) in each {
            if !one {
                self.layer(layer, &format!("attn_{name}.weight"), need, &[input, length]);
            }
            if !one_bias {
                self.layer(layer, &format!("attn_{name}.bias"), Need::Optional, &[length]);
            }
        }
    }

    /// A gated feed-forward network.
    fn feed_forward(&mut self, layer: u32, need: Need, length: u64) {
        let width = self.width;
        for (name, shape) in [("gate", [width, length]), ("up", [width, length]), ("down", [length, width])] {
            self.layer(layer, &format!("ffn_{name}.weight"), need, &shape);
        }
    }

    /// A norm or another vector as long as the hidden state.
    fn norm(&mut self, layer: u32, name: &str, need: Need) {
        let width = self.width;
        self.layer(layer, &format!("{name}.weight"), need, &[width]);
    }

    /// Embeddings, last norm and head.
    fn ends(&mut self, embeddings: Need, own_head: bool) {
        let (width, vocabulary) = (self.width, self.vocabulary);
        self.want("token_embd.weight", embeddings, &[width, vocabulary]);
        self.required("output_norm.weight", &[width]);
        if own_head {
            self.optional("output.weight", &[width, vocabulary]);
        }
    }

    fn is_windowed(&self, layer: u32) -> bool {
        self.kinds.get(layer as usize) == Some(&LayerKind::SlidingWindow)
    }

    /// Lengths of a key and of a value of a head in this layer.
    fn head_lengths(&self, layer: u32) -> (u64, u64) {
        let hyper = self.hyper;
        let (key, value) = match self.is_windowed(layer) {
            true => (hyper.key_length_swa, hyper.value_length_swa),
            false => (hyper.key_length, hyper.value_length),
        };
        (key.into(), value.into())
    }

    /// Heads, and heads of keys and values, of this block.
    fn head_counts(&self, block: u32) -> (u64, u64) {
        let of = |counts: &[u32]| counts.get(block as usize).copied().unwrap_or(0).into();
        (of(&self.hyper.heads), of(&self.hyper.kv_heads))
    }

    fn feed_forward_length(&self, block: u32) -> u64 {
        self.hyper.feed_forward.get(block as usize).copied().unwrap_or(0).into()
    }

    /// The epsilon of norms, which most architectures cannot do without.
    fn needs_epsilon(&mut self) {
        let key = self.facts.key("attention.layer_norm_rms_epsilon");
        self.facts.f32(&key, Need::Required);
    }

    /// The rotation must fit in a head, and keys and values must have one length.
    fn check_rotation(&mut self, whole: bool) {
        let hyper = self.hyper;
        if hyper.key_length != hyper.value_length {
            let why = format!("{}; the length of a key, {}, is expected", hyper.value_length, hyper.key_length);
            self.facts.aborts(self.facts.key("attention.value_length"), why);
        }
        let fits = if whole { hyper.rope_length == hyper.key_length } else { hyper.rope_length <= hyper.key_length };
        if !fits || !hyper.rope_length.is_multiple_of(2) {
            let why = format!("{} of the {} components of a key are rotated", hyper.rope_length, hyper.key_length);
            self.facts.aborts(self.facts.key("rope.dimension_count"), why);
        }
    }

    /// Notes a tensor that llama.cpp does not ask for: it wants to use all of them.
    fn check_unasked(&mut self) {
        // Scales of quantized matrices go with every architecture.
        let is_scale = |name: &str| name.ends_with(".scale") || name.ends_with(".input_scale");
        let unasked =
            self.facts.tensors().find(|tensor| !self.wanted.contains_key(tensor.name) && !is_scale(tensor.name));
        if let Some(tensor) = unasked {
            self.facts.refused(tensor.name, "the architecture has no tensor of this name");
        }
    }

    /// Notes tensors of types that the operation they are made for does not take.
    fn check_types(&mut self) {
        let names: Vec<_> = self
            .facts
            .tensors()
            .filter(|tensor| tensor.name != "d2t")
            .filter(|tensor| {
                // A matrix of one row is a matrix: it is multiplied with and not added.
                let Some(dimensions) = self.wanted.get(tensor.name) else { return false };
                let vector = *dimensions == 1;
                match tensor.kind.name {
                    "f32" => false,
                    "f16" | "bf16" => vector,
                    "i8" | "i16" | "i32" | "i64" | "f64" | "q8_1" | "q8_K" => true,
                    _ => vector,
                }
            })
            .map(|tensor| (tensor.name, tensor.kind.name))
            .take(4)
            .collect();
        for (name, kind) in names {
            self.facts.aborts(name, format!("weights of type {kind}, which cannot be computed with here"));
        }
    }
}

fn shown(shape: &[u64]) -> String {
    let lengths: Vec<_> = shape
        .iter()
        .map(|&length| match length {
            ANY => "any".to_owned(),
            length => length.to_string(),
        })
        .collect();
    format!("[{}]", lengths.join(", "))
}
