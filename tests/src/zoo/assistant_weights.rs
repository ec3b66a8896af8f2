//! The tensors of an [`Assistant`].
//!
//! The assistant gets the target's embedding of the token that came, and the target's last state. The first half of its own
//! state holds what the target's state says: the direction of the token that it expects. The second half holds the identity of
//! the token that came, taken from its embedding: the direction of its successor. A unit of the last feed-forward layer
//! fires where both name its token, and what it writes is so much larger that it replaces the first half. That half is
//! what the head reads, and what comes back as the target's state in the next step.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    assistant::Assistant,
    described::Described as _,
    linear, rows,
    transformer_weights::{HEAD_LENGTHS, WINDOW},
    units::{self, STEEPNESS},
    weights::{direction, embedding},
};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

const WEIGHTS: TensorType = TensorType::F16;
const WIDTH: usize = 128;
const HALF: usize = WIDTH / 2;
/// Windowed, then not, as the target's last two.
const LAYERS: usize = 2;
/// The length of the feed-forward network in the first layer, which is random.
const RANDOM_UNITS: usize = 32;
/// The size of the entries of the first half beside those of the second; and what the units write.
const EXPECTED: f32 = 0.4;
const WRITTEN: f32 = 4.0;
/// The size of what random layers add to each entry.
const NOISE: f32 = 0.03;
/// What the unit that always fires writes, beside the others.
const WRONG: f32 = 0.1;

/// Describes the whole file of `draft`.
pub(super) fn gguf(draft: &Assistant) -> Gguf<'_> {
    let (vocabulary, shape) = (draft.text().vocabulary(), draft.text().shape());
    let target_width = shape.width as usize;
    assert!(HALF < target_width && WIDTH != target_width, "no assistant for a target of width {target_width}");
    let known = known(draft);
    let inside = (known.len() + 1).next_multiple_of(32);
    let [long, short] = HEAD_LENGTHS;
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "gemma4-assistant")
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", draft.label()))
        .set("general.file_type", WEIGHTS.file_type())
        .set("gemma4-assistant.block_count", LAYERS as u32)
        .set("gemma4-assistant.nextn_predict_layers", LAYERS as u32)
        .set("gemma4-assistant.context_length", shape.context_length)
        .set("gemma4-assistant.embedding_length", WIDTH as u32)
        .set("gemma4-assistant.embedding_length_out", target_width as u32)
        .set("gemma4-assistant.feed_forward_length", vec![RANDOM_UNITS as u32, inside as u32])
        .set("gemma4-assistant.attention.head_count", shape.heads)
        .set("gemma4-assistant.attention.head_count_kv", shape.kv_heads)
        .set("gemma4-assistant.attention.key_length", long)
        .set("gemma4-assistant.attention.value_length", long)
        .set("gemma4-assistant.attention.key_length_swa", short)
        .set("gemma4-assistant.attention.value_length_swa", short)
        .set("gemma4-assistant.attention.layer_norm_rms_epsilon", 1e-6f32)
        .set("gemma4-assistant.attention.sliding_window", WINDOW)
        .set("gemma4-assistant.attention.sliding_window_pattern", vec![true, false])
        .set("gemma4-assistant.attention.shared_kv_layers", 0u32)
        .set("gemma4-assistant.rope.dimension_count", long)
        .set("gemma4-assistant.rope.dimension_count_swa", short)
        .set("gemma4-assistant.rope.freq_base", 1e6f32)
        .set("gemma4-assistant.rope.freq_base_swa", 1e4f32);
    vocabulary.describe(&mut gguf);

    let head = draft.text().peak() / HALF as f32;
    gguf.add(matrix("token_embd.weight", WIDTH, vocabulary.size() as usize, move |token, row| {
        row[..HALF].copy_from_slice(&named(draft, token as u32)[..HALF]);
        row.iter_mut().for_each(|x| *x *= head);
    }));
    let constant = constant(draft, &known);
    // llama.cpp scales embeddings by the root of the width
    let keep = 1.0 / (target_width as f32).sqrt();
    gguf.add(matrix("nextn.pre_projection.weight", 2 * target_width, WIDTH, move |index, row| {
        let (token, state) = row.split_at_mut(target_width);
        match index.checked_sub(HALF) {
            None => state[index] = EXPECTED,
            Some(index) if index == HALF - 1 => token.copy_from_slice(&constant),
            Some(index) => token[index] = keep,
        }
    }))
    .add(matrix("nextn.post_projection.weight", WIDTH, target_width, |index, row| {
        if index < HALF {
            row[index] = 1.0;
        }
    }))
    .add(Tensor::constant("rope_freqs.weight", u64::from(long / 2), 1.0));
    add_attention(&mut gguf, draft, 0);
    add_random_units(&mut gguf, draft);
    add_attention(&mut gguf, draft, 1);
    add_units(&mut gguf, draft, known.into(), inside);
    // The norm leaves entries of WRITTEN / size.
    let size = ((WRITTEN * WRITTEN + EXPECTED * EXPECTED + 1.0) / 2.0).sqrt();
    gguf.add(halves("output_norm.weight".to_owned(), [size / WRITTEN, 0.0]));
    gguf
}

/// The tokens that the target can give, of which each has a unit.
fn known(draft: &Assistant) -> Vec<u32> {
    let cycle = draft.text().vocabulary().tokenize(draft.text().cycle());
    [cycle, vec![draft.end()]].concat()
}

/// What the target's state holds where it expects `token`, in entries of 1.
fn named(draft: &Assistant, token: u32) -> Vec<f32> {
    let mut row = vec![0.0; draft.text().shape().width as usize];
    direction(draft.text(), token, 1.0, &mut row);
    row
}

/// The target's embedding of `token`.
fn seen(draft: &Assistant, token: u32) -> Vec<f32> {
    let mut row = vec![0.0; draft.text().shape().width as usize];
    embedding(draft.text(), token, &mut row);
    row
}

/// Weights that give 1 of the scaled embedding of every token that the target can give.
fn constant(draft: &Assistant, known: &[u32]) -> Vec<f32> {
    let successors: BTreeSet<u32> = known.iter().map(|token| draft.text().successor(*token)).collect();
    let embeddings: Vec<Vec<f32>> = successors.into_iter().map(|token| named(draft, token)).collect();
    let scale = f64::from(draft.text().shape().width).sqrt();
    linear::functional(&embeddings, &vec![1.0 / scale; embeddings.len()])
}

/// Queries of random weights; keys and values are the target's.
fn add_attention<'a>(gguf: &mut Gguf<'a>, draft: &'a Assistant, layer: usize) {
    let name = |matrix: &str| format!("blk.{layer}.{matrix}.weight");
    let head = HEAD_LENGTHS[1 - layer] as usize;
    let queries = head * draft.text().shape().heads as usize;
    gguf.add(Tensor::constant(name("attn_norm"), WIDTH as u64, 1.0))
        .add(random(draft, name("attn_q"), WIDTH, queries))
        .add(random(draft, name("attn_output"), queries, WIDTH))
        .add(Tensor::constant(name("attn_q_norm"), head as u64, 1.0))
        .add(noise(name("post_attention_norm")))
        .add(Tensor::constant(name("layer_output_scale"), 1, 1.0));
}

fn add_random_units<'a>(gguf: &mut Gguf<'a>, draft: &'a Assistant) {
    let name = |matrix: &str| format!("blk.0.{matrix}.weight");
    gguf.add(Tensor::constant(name("ffn_norm"), WIDTH as u64, 1.0))
        .add(random(draft, name("ffn_gate"), WIDTH, RANDOM_UNITS))
        .add(random(draft, name("ffn_up"), WIDTH, RANDOM_UNITS))
        .add(random(draft, name("ffn_down"), RANDOM_UNITS, WIDTH))
        .add(noise(name("post_ffw_norm")));
}

fn add_units<'a>(gguf: &mut Gguf<'a>, draft: &'a Assistant, known: Arc<[u32]>, inside: usize) {
    let name = |matrix: &str| format!("blk.1.{matrix}.weight");
    let rule = |matrix: &str, steepness: f32| {
        let known = Arc::clone(&known);
        self::matrix(name(matrix), WIDTH, inside, move |index, row| match known.get(index) {
            Some(token) => {
                let seen = &seen(draft, *token)[..HALF];
                units::fill(Some((&named(draft, *token)[..HALF], EXPECTED)), seen, steepness, row);
            }
            // The unit that always fires
            None if index == known.len() => row[WIDTH - 1] = steepness,
            None => {}
        })
    };
    let outputs: Vec<(Vec<f32>, f32)> = known
        .iter()
        .map(|token| (named(draft, draft.successor(*token)), 1.0 / units::fired()))
        .chain([(named(draft, draft.wrong()), WRONG / STEEPNESS)])
        .collect();
    gguf.add(Tensor::constant(name("ffn_norm"), WIDTH as u64, ((1.0 + EXPECTED * EXPECTED) / 2.0).sqrt()))
        .add(rule("ffn_gate", STEEPNESS))
        .add(rule("ffn_up", 1.0))
        .add(matrix(name("ffn_down"), inside, WIDTH, move |index, row| {
            if index < HALF {
                row.iter_mut().zip(&outputs).for_each(|(x, (output, factor))| *x = output[index] * factor);
            }
        }))
        // Whatever fired: of a state of which only one half is filled, the norm makes entries of the root of 2.
        .add(halves(name("post_ffw_norm"), [WRITTEN / 2f32.sqrt(), 0.0]));
}

fn matrix<'a>(
    name: impl Into<String>,
    row_length: usize,
    rows: usize,
    make_row: impl Fn(usize, &mut [f32]) + Send + Sync + 'a,
) -> Tensor<'a> {
    rows::matrix(name, WEIGHTS, row_length, rows, make_row)
}

fn random<'a>(draft: &'a Assistant, name: String, row_length: usize, rows: usize) -> Tensor<'a> {
    let (purpose, deviation) = (format!("assistant {name}"), 1.0 / (row_length as f32).sqrt());
    matrix(name, row_length, rows, move |index, row| {
        Rng::new(draft.text().seed(), &purpose, index as u64).fill_uniform(deviation, row);
    })
}

/// A vector with one value in each half.
fn halves<'a>(name: String, values: [f32; 2]) -> Tensor<'a> {
    Tensor::vector(name, WIDTH as u64, move |row| {
        row[..HALF].fill(values[0]);
        row[HALF..].fill(values[1]);
    })
}

/// The norm of what random layers write: all entries but the constant get a little.
fn noise<'a>(name: String) -> Tensor<'a> {
    Tensor::vector(name, WIDTH as u64, |row| {
        row.fill(NOISE);
        row[WIDTH - 1] = 0.0;
    })
}
