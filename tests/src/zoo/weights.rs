//! The tensors of a [`Llama`]: a known embedding and head, random layers, and the heads of recall.

use super::{
    llama::Llama,
    recall::{self, Recall},
};
use crate::{
    gguf::{Gguf, Tensor},
    rng::Rng,
};

/// Entries of the embedding that random weights never write to, counted from the end. With recall they hold a constant,
/// the sign of the token, and the sum of the votes.
const RESERVED: usize = 3;
const CONSTANT: usize = 3;
const SIGN: usize = 2;
const VOTE: usize = 1;

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
        .set("llama.rope.freq_base", recall::ROPE_BASE as f32)
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
/// length and any two are nearly at right angles.
fn direction(model: &Llama, token: u32, magnitude: f32, row: &mut [f32]) {
    let free = row.len() - RESERVED;
    row[free..].fill(0.0);
    Rng::new(model.seed(), "direction", token.into()).fill_signs(magnitude, &mut row[..free]);
}

fn embedding(model: &Llama, token: u32, row: &mut [f32]) {
    let free = row.len() - RESERVED;
    let possible = model.possible_next(token);
    direction(model, possible[0], 1.0, row);
    if let [_, second] = possible[..] {
        let mut other = vec![0.0; row.len()];
        direction(model, second, 1.0, &mut other);
        row.iter_mut().zip(&other).for_each(|(x, y)| *x += y);
        // Back to the length of one direction, so that what the norm makes of the reserved entries is known
        let length = row[..free].iter().map(|x| x * x).sum::<f32>().sqrt();
        row[..free].iter_mut().for_each(|x| *x *= (free as f32).sqrt() / length);
    }
    if model.recall().is_some() {
        row[free + RESERVED - CONSTANT] = 1.0;
        row[free + RESERVED - SIGN] = recall::sign(model.vocabulary().byte(token)) as f32;
    }
}

fn head(model: &Llama, token: u32, row: &mut [f32]) {
    let width = row.len();
    direction(model, token, model.peak() / width as f32, row);
    if model.recall().is_some() {
        // Half the peak up for one class and down for the other, at the smallest vote
        let class = recall::class(model.chain(), model.vocabulary().byte(token));
        row[width - VOTE] = class as f32 * model.peak() / 2.0;
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

/// The recall of a model in the layer that does it.
fn recall_of(model: &Llama, layer: u32) -> Option<&Recall> {
    model.recall().filter(|_| layer == 0)
}

fn built_query(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let head_width = model.head_width() as usize;
    let lag = recall_of(model, layer).and_then(|recall| Some((recall, *recall.lags().get(index / head_width)?)));
    let Some((recall, lag)) = lag else { return false };
    row.fill(0.0);
    row[row.len() - CONSTANT] = recall.query(lag)[index % head_width];
    true
}

/// Whether `index` is a row of a key or value head that a head of recall uses.
fn serves_recall(model: &Llama, layer: u32, index: usize) -> bool {
    let group = (model.shape().heads / model.shape().kv_heads) as usize;
    recall_of(model, layer).is_some_and(|recall| index / model.head_width() as usize * group < recall.lags().len())
}

fn built_key(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let built = serves_recall(model, layer, index);
    if built {
        row.fill(0.0);
        row[row.len() - CONSTANT] = if index % 2 == 0 { 1.0 } else { 0.0 };
    }
    built
}

fn built_value(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let built = serves_recall(model, layer, index);
    if built {
        row.fill(0.0);
        row[row.len() - SIGN] = if index % model.head_width() as usize == 0 { 1.0 } else { 0.0 };
    }
    built
}

fn built_output(model: &Llama, layer: u32, index: usize, row: &mut [f32]) -> bool {
    let (width, head_width) = (model.shape().width as usize, model.head_width() as usize);
    let reserved = built_down(model, layer, index, row);
    if let Some(recall) = recall_of(model, layer).filter(|_| index == width - VOTE) {
        (0..recall.lags().len()).for_each(|head| row[head * head_width] = 1.0);
    }
    reserved
}

/// Reserved entries of the embedding get nothing from the layers, votes excepted.
fn built_down(model: &Llama, _layer: u32, index: usize, row: &mut [f32]) -> bool {
    let reserved = index >= model.shape().width as usize - RESERVED;
    if reserved {
        row.fill(0.0);
    }
    reserved
}
