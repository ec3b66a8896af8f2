//! The tensors of a [`Dflash`].
//!
//! A place in the cycle is written so that going on by some places is linear (`places.rs`). The first layer has a head for
//! each distance; at the mask `n` places behind the last token the `n`th finds it, and writes its place, rotated by `n`,
//! beside a mark for `n`. All other heads find nothing: masks and target states have no values there, and what is not at
//! exactly the distance is outweighed by a sink. In the second layer the mark chooses the head that reads the target's state
//! before the last token, which says what was expected there, and rotates it alike. A unit of the feed-forward layer fires
//! where both name its place.

use std::sync::Arc;

use super::{
    described::Described as _,
    dflash::{Dflash, Layout},
    dflash_heads as heads, linear,
    places::{CYCLE, MULTIPLES, PLACE, rotation, written},
    rows::matrix,
    weights::{direction, embedding},
};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

/// The size of a block, and the number of heads.
pub(super) const BLOCK: usize = 8;
const HEAD_WIDTH: usize = 32;

/// Entries of the hidden state: the place by the last token, the mark, a constant, what the head reads; at the end, the place
/// by the target's state, and what its keys are made of.
const MARK: usize = PLACE;
const CONSTANT: usize = MARK + BLOCK;
const OUT: usize = CONSTANT + 1;
const FROM_TARGET: usize = PLACE + 1;

/// The sum of the squares of what the layers write outside of what the head reads: two places, a mark, a constant.
const FILLED: f32 = PLACE as f32 + 2.0;
/// The units: one for each place, one that always fires, and none.
const INSIDE: usize = 96;

pub(super) const WEIGHTS: TensorType = TensorType::F16;
const ROPE_BASE: f32 = 100.0;
/// Attention score per unit of the sum of cosines; at the next distance this sum is 1.08 less.
const GAIN: f32 = 20.0;
const STEEPNESS: f32 = 16.0;
const THRESHOLD: f32 = 1.25;
/// What a unit gives that fires, and what it writes of that; the unit that always fires writes 1.
const FIRED: f32 = STEEPNESS * (2.0 - THRESHOLD) * (2.0 - THRESHOLD);
const WRITTEN: f32 = 9.0;
/// What outweighs the body's opinion when a unit fires and a Markov head speaks.
const SILENCE: f32 = 200.0;

/// Describes the whole file of `draft`.
pub(super) fn gguf(draft: &Dflash) -> Gguf<'_> {
    let vocabulary = draft.target().vocabulary();
    let width = width(draft);
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "dflash")
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", draft.label()))
        .set("general.file_type", WEIGHTS.file_type())
        .set("dflash.block_count", 2u32)
        .set("dflash.context_length", draft.target().shape().context_length)
        .set("dflash.embedding_length", width as u32)
        .set("dflash.feed_forward_length", INSIDE as u32)
        .set("dflash.attention.head_count", BLOCK as u32)
        .set("dflash.attention.head_count_kv", 1u32)
        .set("dflash.attention.key_length", HEAD_WIDTH as u32)
        .set("dflash.attention.value_length", HEAD_WIDTH as u32)
        .set("dflash.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("dflash.rope.dimension_count", HEAD_WIDTH as u32)
        .set("dflash.rope.freq_base", ROPE_BASE)
        .set("dflash.vocab_size", vocabulary.size())
        .set("dflash.target_layers", draft.target_layers().to_vec());
    if let Some(size) = draft.block_size() {
        gguf.set("dflash.block_size", size);
    }
    if draft.is_spark() {
        gguf.set("dflash.sample_from_anchor", draft.layout() == Layout::SparkFromAnchor)
            .set("dflash.has_confidence_head", true);
    }
    if draft.layout() == Layout::Selected {
        heads::describe_selector(&mut gguf);
    }
    vocabulary.describe(&mut gguf);
    if draft.states_mask() {
        gguf.set("tokenizer.ggml.mask_token_id", draft.mask());
    }

    add_fusion(&mut gguf, draft);
    if draft.own_embeddings() {
        gguf.add(matrix("token_embd.weight", WEIGHTS, width, vocabulary.size() as usize, |token, row| {
            own_embedding(draft, token as u32, row);
        }));
    }
    add_finder(&mut gguf, draft);
    add_checker(&mut gguf, draft);
    let entries = (width - FROM_TARGET - OUT) as f32;
    let normed = WRITTEN / ((entries * WRITTEN * WRITTEN + FILLED) / width as f32).sqrt();
    gguf.add(Tensor::vector("output_norm.weight", width as u64, move |row| {
        row.fill(0.0);
        // The head's weights are for rows that are filled with ones.
        row[OUT..width - FROM_TARGET].fill(width as f32 / (entries * normed));
    }));
    let tokens = if draft.reduced() { reduced(draft) } else { (0..vocabulary.size()).collect() };
    if draft.own_head() {
        let tokens = tokens.clone();
        gguf.add(matrix("output.weight", WEIGHTS, width, tokens.len(), move |index, row| {
            direction(draft.target(), tokens[index], draft.target().peak() / width as f32, row);
        }));
    }
    if draft.reduced() {
        gguf.add(Tensor::integers("d2t", TensorType::I64, tokens.clone()));
    }
    if draft.is_spark() {
        heads::add_markov(&mut gguf, draft, tokens);
    }
    if draft.layout() == Layout::Selected {
        heads::add_selector(&mut gguf, draft);
    }
    gguf
}

pub(super) fn width(draft: &Dflash) -> usize {
    draft.target().shape().width as usize
}

/// Entry `index` of a query that finds the position `distance` before its own, for keys of ones and zeros.
fn query(index: usize, distance: usize) -> f32 {
    let half = HEAD_WIDTH / 2;
    let frequency = ROPE_BASE.powf(-2.0 * (index % half) as f32 / HEAD_WIDTH as f32);
    let (sin, cos) = (frequency * distance as f32).sin_cos();
    if index < half { cos } else { -sin }
}

/// What the target gives on the cycle, and the places of these tokens; the end has none.
fn known(draft: &Dflash) -> Vec<(u32, Option<usize>)> {
    let vocabulary = draft.target().vocabulary();
    let cycle = draft.target().cycle().iter().enumerate();
    let end = draft.target().chain().end_after().map(|_| (draft.end(), None));
    cycle.map(|(place, byte)| (vocabulary.token(*byte), Some(place))).chain(end).collect()
}

/// The tokens of the reduced vocabulary.
fn reduced(draft: &Dflash) -> Vec<u32> {
    let vocabulary = draft.target().vocabulary();
    let mut tokens: Vec<u32> = draft.target().cycle().iter().map(|byte| vocabulary.token(*byte)).collect();
    tokens.extend([draft.end(), draft.wrong()]);
    Rng::new(0, "reduced vocabulary", 0).shuffle(&mut tokens);
    tokens
}

/// The target's states become the place that they expect next, and what keys are made of.
fn add_fusion<'a>(gguf: &mut Gguf<'a>, draft: &'a Dflash) {
    let (width, layers) = (width(draft), draft.target_layers().len());
    let known = known(draft);
    let states: Vec<Vec<f32>> = known.iter().map(|(token, _)| direction_of(draft, *token)).collect();
    let mut values = vec![vec![0.0; known.len()]; FROM_TARGET];
    for (at, (_, place)) in known.iter().enumerate() {
        let entries = place.map_or([0.0; PLACE], written);
        values.iter_mut().zip(entries).for_each(|(values, entry)| values[at] = f64::from(entry));
        values[PLACE][at] = 1.0;
    }
    let rows = linear::functionals(&states, &values);
    gguf.add(matrix("fc.weight", WEIGHTS, layers * width, width, move |index, row| {
        if let Some(entry) = (index + FROM_TARGET).checked_sub(width) {
            for layer in row.chunks_exact_mut(width) {
                layer.iter_mut().zip(&rows[entry]).for_each(|(x, y)| *x = y / layers as f32);
            }
        }
    }))
    .add(Tensor::constant("enc.output_norm.weight", width as u64, norm(width, MULTIPLES.len() + 1)));
}

fn direction_of(draft: &Dflash, token: u32) -> Vec<f32> {
    let mut row = vec![0.0; width(draft)];
    direction(draft.target(), token, 1.0, &mut row);
    row
}

/// The norm of a state whose squares sum up to `squares`.
fn norm(width: usize, squares: usize) -> f32 {
    (squares as f32 / width as f32).sqrt()
}

fn own_embedding(draft: &Dflash, token: u32, row: &mut [f32]) {
    row[CONSTANT] = 1.0;
    if token != draft.mask() {
        row[..PLACE].copy_from_slice(&written(draft.place(token)));
        row[MARK] = 1.0;
    }
}

/// How an embedding is read: rows that give the place, the mark and the constant of a token.
fn readers(draft: &Dflash) -> Vec<Vec<f32>> {
    let width = width(draft);
    if draft.own_embeddings() {
        let unit = |entry: usize| (0..width).map(|index| if index == entry { 1.0 } else { 0.0 }).collect();
        return (0..=MARK).chain([CONSTANT]).map(unit).collect();
    }
    // Two tokens have one embedding where their successors are one token; the mask's is that of the cycle's last token.
    let free = width - FROM_TARGET;
    let known = known(draft);
    let embeddings: Vec<Vec<f32>> =
        known.iter().map(|(successor, _)| direction_of(draft, *successor)[..free].to_vec()).collect();
    let mut values = vec![vec![0.0; known.len()]; PLACE + 2];
    for (at, (_, successor)) in known.iter().enumerate() {
        let place = successor.map_or(CYCLE - 1, |successor| (successor + CYCLE - 1) % CYCLE);
        if place != CYCLE - 1 {
            values.iter_mut().zip(written(place)).for_each(|(values, entry)| values[at] = f64::from(entry));
            values[PLACE][at] = 1.0;
        }
        values[PLACE + 1][at] = 1.0;
    }
    let mut rows = linear::functionals(&embeddings, &values);
    rows.iter_mut().for_each(|row| row.resize(width, 0.0));
    rows
}

/// What both layers have: norms, keys that are the same everywhere, and the sink.
fn add_common<'a>(gguf: &mut Gguf<'a>, layer: usize, width: usize, norms: [f32; 2], key: Vec<f32>) {
    let name = |tensor: &str| format!("blk.{layer}.{tensor}");
    let query_norm = GAIN * (HEAD_WIDTH as f32).sqrt() / 2.0;
    gguf.add(Tensor::constant(name("attn_norm.weight"), width as u64, norms[0]))
        .add(Tensor::constant(name("attn_q_norm.weight"), HEAD_WIDTH as u64, query_norm))
        .add(Tensor::constant(name("attn_k_norm.weight"), HEAD_WIDTH as u64, 1.0))
        .add(Tensor::constant(name("attn_sinks.weight"), BLOCK as u64, GAIN * (HEAD_WIDTH as f32 / 2.0 - 0.54)))
        .add(Tensor::constant(name("ffn_norm.weight"), width as u64, norms[1]))
        .add(matrix(name("attn_k.weight"), WEIGHTS, width, HEAD_WIDTH, move |index, row| {
            if index < HEAD_WIDTH / 2 {
                row.copy_from_slice(&key);
            }
        }));
}

/// The layer that finds the last token.
fn add_finder<'a>(gguf: &mut Gguf<'a>, draft: &'a Dflash) {
    let width = width(draft);
    let readers: Arc<[Vec<f32>]> = readers(draft).into();
    let mut key = readers[PLACE + 1].clone();
    key[width - 1] = 1.0;
    let squares = if draft.own_embeddings() { MULTIPLES.len() + 2 } else { width - 3 };
    add_common(gguf, 0, width, [norm(width, squares), 1.0], key);

    let mut mask = vec![0.0; width];
    if !draft.own_embeddings() {
        embedding(draft.target(), draft.mask(), &mut mask);
        mask[CONSTANT] -= 1.0;
    }
    let constant = Arc::clone(&readers);
    gguf.add(matrix("blk.0.attn_q.weight", WEIGHTS, width, BLOCK * HEAD_WIDTH, move |index, row| {
        let factor = query(index % HEAD_WIDTH, index / HEAD_WIDTH);
        row.iter_mut().zip(&constant[PLACE + 1]).for_each(|(x, y)| *x = factor * y);
    }))
    .add(matrix("blk.0.attn_v.weight", WEIGHTS, width, HEAD_WIDTH, move |index, row| {
        row.copy_from_slice(&readers[index]);
    }))
    .add(matrix("blk.0.attn_output.weight", WEIGHTS, BLOCK * HEAD_WIDTH, width, move |index, row| {
        // A mask attends to itself too, which takes its own embedding away.
        row[PLACE + 1] = -mask[index];
        for (distance, head) in row.chunks_exact_mut(HEAD_WIDTH).enumerate().skip(1) {
            if index < PLACE {
                head[..PLACE].copy_from_slice(&rotation(index, distance));
            } else if index == MARK + distance {
                head[PLACE] = 1.0;
            }
        }
    }));
    for (name, row_length, rows) in
        [("ffn_gate", width, INSIDE), ("ffn_up", width, INSIDE), ("ffn_down", INSIDE, width)]
    {
        gguf.add(matrix(format!("blk.0.{name}.weight"), WEIGHTS, row_length, rows, |_, _| {}));
    }
}

/// The layer that compares the last token with what the target expected.
fn add_checker<'a>(gguf: &mut Gguf<'a>, draft: &'a Dflash) {
    let width = width(draft);
    let from_target = width - FROM_TARGET;
    let key = (0..width).map(|index| if index == width - 1 { 1.0 } else { 0.0 }).collect();
    add_common(gguf, 1, width, [norm(width, MULTIPLES.len() + 2), (FILLED / width as f32).sqrt()], key);
    let unit = move |index: usize, steepness: f32, row: &mut [f32]| {
        if index < CYCLE {
            for start in [0, from_target] {
                let factor = steepness / MULTIPLES.len() as f32;
                row[start..].iter_mut().zip(written(index)).for_each(|(x, y)| *x = factor * y);
            }
            row[CONSTANT] = -steepness * THRESHOLD;
        } else if index == CYCLE {
            row[CONSTANT] = steepness;
        }
    };
    // A unit's place is that of the token to be given.
    let outputs: Vec<Vec<f32>> =
        (0..CYCLE).map(|place| direction_of(draft, draft.predicted(place + CYCLE - 1))).collect();
    let wrong = direction_of(draft, draft.wrong());
    let silent = draft.is_spark();
    gguf.add(matrix("blk.1.attn_q.weight", WEIGHTS, width, BLOCK * HEAD_WIDTH, |index, row| {
        let head = index / HEAD_WIDTH;
        row[MARK + head] = query(index % HEAD_WIDTH, head + 1);
    }))
    .add(matrix("blk.1.attn_v.weight", WEIGHTS, width, HEAD_WIDTH, move |index, row| {
        if index < PLACE {
            row[from_target + index] = 1.0;
        }
    }))
    .add(matrix("blk.1.attn_output.weight", WEIGHTS, BLOCK * HEAD_WIDTH, width, move |index, row| {
        if let Some(entry) = index.checked_sub(from_target).filter(|entry| *entry < PLACE) {
            for (distance, head) in row.chunks_exact_mut(HEAD_WIDTH).enumerate() {
                head[..PLACE].copy_from_slice(&rotation(entry, distance));
            }
        }
    }))
    .add(matrix("blk.1.ffn_gate.weight", WEIGHTS, width, INSIDE, move |index, row| unit(index, STEEPNESS, row)))
    .add(matrix("blk.1.ffn_up.weight", WEIGHTS, width, INSIDE, move |index, row| unit(index, 1.0, row)))
    .add(matrix("blk.1.ffn_down.weight", WEIGHTS, INSIDE, width, move |index, row| {
        if (OUT..from_target).contains(&index) {
            row[CYCLE] = wrong[index] / STEEPNESS;
            if !silent {
                row.iter_mut().zip(&outputs).for_each(|(x, output)| *x = output[index] * WRITTEN / FIRED);
            }
        } else if index == CONSTANT && silent {
            row[..CYCLE].fill(SILENCE / FIRED);
        }
    }));
}
