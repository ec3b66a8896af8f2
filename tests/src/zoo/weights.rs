//! The tensors of a [`Llama`]: a known embedding and head, random layers, and the head of recall.

use super::{
    described::Described as _,
    llama::Llama,
    recall::{self, Recall},
};
use crate::{
    gguf::{Gguf, Tensor},
    rng::Rng,
};

/// Entries of the embedding that random weights never write to, counted from the end. With recall they hold a constant,
/// the sign of the token, and the sign that the head read.
const RESERVED: usize = 3;
pub(super) const CONSTANT: usize = 3;
const SIGN: usize = 2;
const READ: usize = 1;

/// Describes the whole file of `model`.
pub(super) fn gguf(model: &Llama) -> Gguf<'_> {
    let shape = model.shape();
    let [width, heads, kv_heads] = [shape.width, shape.heads, shape.kv_heads];
    assert!(width % heads == 0 && heads % kv_heads == 0 && (width / heads) % 2 == 0, "no attention fits {shape:?}");
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "llama")
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", model.label()))
        .set("general.file_type", model.weights().file_type())
        .set("llama.block_count", shape.layers)
        .set("llama.context_length", shape.context_length)
        .set("llama.embedding_length", width)
        .set("llama.feed_forward_length", shape.feed_forward)
        .set("llama.attention.head_count", heads)
        .set("llama.attention.head_count_kv", kv_heads)
        .set("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("llama.rope.dimension_count", width / heads)
        .set("llama.rope.freq_base", recall::rope_base(model.head_width()) as f32)
        .set("llama.vocab_size", model.vocabulary().size());
    model.vocabulary().describe(&mut gguf);
    if let Some(template) = model.chat_template() {
        gguf.set("tokenizer.chat_template", template);
    }

    let (width, vocabulary) = (u64::from(width), u64::from(model.vocabulary().size()));
    gguf.add(Tensor::matrix("token_embd.weight", model.weights(), width, vocabulary, |token, row| {
        embedding(model, token as u32, row);
    }));
    for layer in 0..shape.layers {
        add_layer(&mut gguf, model, layer);
    }
    gguf.add(Tensor::constant("output_norm.weight", width, 1.0));
    gguf.add(Tensor::matrix("output.weight", model.weights(), width, vocabulary, |token, row| {
        head(model, token as u32, row);
    }));
    gguf
}

/// The direction in the embedding that stands for `token` as a successor: random signs, so all directions have one
/// length, any two are nearly at right angles, and every type of weights holds them exactly.
pub(super) fn direction(model: &Llama, token: u32, magnitude: f32, row: &mut [f32]) {
    let free = row.len() - RESERVED;
    row[free..].fill(0.0);
    Rng::new(model.seed(), "direction", token.into()).fill_signs(magnitude, &mut row[..free]);
}

pub(super) fn embedding(model: &Llama, token: u32, row: &mut [f32]) {
    let (plus, minus) = model.possible_next(token);
    direction(model, plus, 1.0, row);
    if model.recall().is_some() {
        // Each class of successors has a half of the entries.
        let half = row.len() / 2;
        let mut other = vec![0.0; row.len()];
        direction(model, minus, 1.0, &mut other);
        row[half..].copy_from_slice(&other[half..]);
        row[2 * half - CONSTANT] = 1.0;
        row[2 * half - SIGN] = recall::sign(model.vocabulary().byte(token)) as f32;
    }
}

pub(super) fn head(model: &Llama, token: u32, row: &mut [f32]) {
    let (width, scale) = (row.len(), model.peak() / row.len() as f32);
    match model.recall().map(|_| recall::class(model.chain(), model.vocabulary().byte(token))) {
        None | Some(0) => direction(model, token, scale, row),
        Some(class) => {
            direction(model, token, scale * 2.0, row);
            row[if class > 0 { width / 2..width } else { 0..width / 2 }].fill(0.0);
            // Half the peak up for one class and down for the other
            row[width - READ] = class as f32 * model.peak() / 2.0;
        }
    }
}

/// Adds a layer of random weights. Queries, keys, values and the inside of the feed-forward layer have entries of about
/// the size of their input; the two matrices that write to the embedding bring them down.
fn add_layer<'a>(gguf: &mut Gguf<'a>, model: &'a Llama, layer: u32) {
    let shape = model.shape();
    let width = u64::from(shape.width);
    let kv_width = width * u64::from(shape.kv_heads) / u64::from(shape.heads);
    let inside = u64::from(shape.feed_forward);
    let keep = 1.0 / (width as f32).sqrt();
    // Each layer writes twice, and squares of deviations add up.
    let written = model.noise() / (2.0 * shape.layers as f32).sqrt();
    // The gated product of inputs of deviation 1 has a deviation of 0.6.
    let down = written / (0.6 * (inside as f32).sqrt());
    let up = keep;

    let name = |matrix: &str| format!("blk.{layer}.{matrix}.weight");
    let matrix = |matrix, row_length, rows, deviation, built: Built| {
        let name = name(matrix);
        let purpose = name.clone();
        Tensor::matrix(name, model.weights(), row_length, rows, move |index, row| {
            if !built(model, layer, index as usize, row) {
                Rng::new(model.seed(), &purpose, index).fill_uniform(deviation, row);
            }
        })
    };
    gguf.add(Tensor::constant(name("attn_norm"), width, 1.0))
        .add(matrix("attn_q", width, width, keep, built_query))
        .add(matrix("attn_k", width, kv_width, keep, built_key))
        .add(matrix("attn_v", width, kv_width, keep, built_value))
        .add(matrix("attn_output", width, width, written * keep, built_output))
        .add(Tensor::constant(name("ffn_norm"), width, 1.0))
        .add(matrix("ffn_gate", width, inside, up, |_, _, _, _| false))
        .add(matrix("ffn_up", width, inside, up, |_, _, _, _| false))
        .add(matrix("ffn_down", inside, width, down, built_down));
}

/// Fills a row of a layer's matrix that is not random, and says whether it did.
type Built = fn(&Llama, layer: u32, index: usize, row: &mut [f32]) -> bool;

/// The recall of a model in the layer that does it, with its first head.
fn recall_of(model: &Llama, layer: u32) -> Option<&Recall> {
    model.recall().filter(|_| layer == 0)
}

fn built_query(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let recall = recall_of(model, layer).filter(|_| index < model.head_width() as usize);
    if let Some(recall) = recall {
        row.fill(0.0);
        row[row.len() - CONSTANT] = recall.query(index);
    }
    recall.is_some()
}

fn built_key(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let built = recall_of(model, layer).is_some() && index < model.head_width() as usize;
    if built {
        row.fill(0.0);
        row[row.len() - CONSTANT] = if index.is_multiple_of(2) { 1.0 } else { 0.0 };
    }
    built
}

fn built_value(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let built = recall_of(model, layer).is_some() && index < model.head_width() as usize;
    if built {
        row.fill(0.0);
        row[row.len() - SIGN] = if index == 0 { 1.0 } else { 0.0 };
    }
    built
}

fn built_output(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let reserved = built_down(model, layer, index, row);
    if recall_of(model, layer).is_some() && index == model.shape().width as usize - READ {
        row[0] = 1.0;
    }
    reserved
}

/// Reserved entries of the embedding get nothing from the layers, the sign that recall reads excepted.
fn built_down(model: &Llama, _layer: u32, index: usize, row: &mut [f32]) -> bool {
    let reserved = index >= model.shape().width as usize - RESERVED;
    if reserved {
        row.fill(0.0);
    }
    reserved
}
