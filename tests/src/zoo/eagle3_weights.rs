//! The tensors of an [`Eagle3`].
//!
//! The hidden state has two halves. One holds what the target's state says: the direction of the token that it expects,
//! taken over from the embeddings that the target's layers begin with. The other holds what the draft's own attention adds:
//! the identity of the token that came, copied from its embedding (each position attends to itself, since only equal tokens
//! match), and a constant. A unit of the feed-forward layer fires where both halves name its token, and writes the direction
//! of the successor into the first half, which is what the head reads and what the next step takes for the target's state.

use std::sync::Arc;

use super::{
    described::Described as _,
    eagle3::Eagle3,
    linear, rows,
    units::{self, STEEPNESS, fired},
    weights::{CONSTANT, direction, embedding},
};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

const WEIGHTS: TensorType = TensorType::F16;
/// The size of the entries of the first half beside those of the second, so that what was expected before is soon forgotten.
const EXPECTED: f32 = 0.4;
/// What a unit writes that fires, beside the unit that writes [`Eagle3::wrong`] always.
const FIRED: f32 = 9.0;
/// The head's weights are for rows of twice as many entries, and the norm leaves entries of 1.405 of a half.
const OUTPUT: f32 = 2.0 / 1.405;
const WRONG: f32 = 1.0;

/// Describes the whole file of `draft`.
pub(super) fn gguf(draft: &Eagle3) -> Gguf<'_> {
    let vocabulary = draft.target().vocabulary();
    let (width, half) = (draft.width(), draft.width() / 2);
    let units: Arc<[u32]> = known(draft).into();
    let inside = (units.len() + 1).next_multiple_of(32);
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "eagle3")
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", draft.label()))
        .set("general.file_type", WEIGHTS.file_type())
        .set("eagle3.block_count", 1u32)
        .set("eagle3.context_length", draft.target().shape().context_length)
        .set("eagle3.embedding_length", width as u32)
        .set("eagle3.feed_forward_length", inside as u32)
        .set("eagle3.attention.head_count", 2u32)
        .set("eagle3.attention.head_count_kv", 1u32)
        .set("eagle3.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("eagle3.rope.dimension_count", half as u32)
        .set("eagle3.vocab_size", vocabulary.size())
        .set("eagle3.target_layers", draft.target_layers().to_vec())
        .set("eagle3.target_hidden_size", draft.target_width() as u32)
        .set("eagle3.norm_before_residual", true);
    vocabulary.describe(&mut gguf);

    let target_width = draft.target_width();
    let fused = draft.target_layers().len() * target_width;
    gguf.add(matrix("fc.weight", fused, width, move |index, row| {
        if index < half.min(target_width) {
            row.iter_mut().skip(index).step_by(target_width).for_each(|x| *x = target_width as f32 / fused as f32);
        }
    }));
    if draft.own_embeddings() {
        gguf.add(matrix("token_embd.weight", width, vocabulary.size() as usize, move |token, row| {
            own_embedding(draft, token as u32, row);
        }));
    }
    add_layer(&mut gguf, draft, &units, inside);
    gguf.add(halves("output_norm.weight", width, [OUTPUT, 0.0]));
    if draft.own_head() {
        let rows: Vec<u32> = if draft.reduced() { reduced(draft) } else { (0..vocabulary.size()).collect() };
        gguf.add(matrix("output.weight", width, rows.len(), move |row_index, row| {
            row[..half].copy_from_slice(&expected(draft, rows[row_index])[..half]);
            row.iter_mut().for_each(|x| *x *= draft.target().peak() / width as f32);
        }));
    }
    if draft.reduced() {
        gguf.add(Tensor::integers("d2t", TensorType::I64, reduced(draft)));
    }
    gguf
}

/// The tokens that the target can give, of which each has a unit.
fn known(draft: &Eagle3) -> Vec<u32> {
    let vocabulary = draft.target().vocabulary();
    let mut known: Vec<u32> = draft.target().cycle().iter().map(|byte| vocabulary.token(*byte)).collect();
    known.push(draft.end());
    known
}

/// The tokens of the reduced vocabulary.
fn reduced(draft: &Eagle3) -> Vec<u32> {
    let mut tokens = known(draft);
    tokens.push(draft.wrong());
    Rng::new(0, "reduced vocabulary", 0).shuffle(&mut tokens);
    tokens
}

/// What the first half holds where the target expects `token`, and more entries than that.
fn expected(draft: &Eagle3, token: u32) -> Vec<f32> {
    let mut row = vec![0.0; draft.target().shape().width as usize];
    direction(draft.target(), token, 1.0, &mut row);
    row
}

/// The last entry of the second half is the constant.
fn own_embedding(draft: &Eagle3, token: u32, row: &mut [f32]) {
    Rng::new(draft.target().seed(), "eagle3 embedding", token.into()).fill_signs(1.0, row);
    row[draft.width() / 2 - 1] = 1.0;
}

/// The embedding that the draft sees of `token`.
fn seen(draft: &Eagle3, token: u32) -> Vec<f32> {
    let mut row = vec![0.0; draft.width()];
    if draft.own_embeddings() {
        own_embedding(draft, token, &mut row);
    } else {
        embedding(draft.target(), token, &mut row);
    }
    row
}

fn matrix<'a>(
    name: impl Into<String>,
    row_length: usize,
    rows: usize,
    make_row: impl Fn(usize, &mut [f32]) + Send + Sync + 'a,
) -> Tensor<'a> {
    rows::matrix(name, WEIGHTS, row_length, rows, make_row)
}

/// A vector with one value in each half.
fn halves<'a>(name: &str, width: usize, values: [f32; 2]) -> Tensor<'a> {
    Tensor::vector(name, width as u64, move |row| {
        let half = row.len() / 2;
        row[..half].fill(values[0]);
        row[half..].fill(values[1]);
    })
}

fn add_layer<'a>(gguf: &mut Gguf<'a>, draft: &'a Eagle3, units: &Arc<[u32]>, inside: usize) {
    let (width, half) = (draft.width(), draft.width() / 2);
    let first = seen(draft, units[0]);
    let norm = (first.iter().map(|x| x * x).sum::<f32>() / width as f32).sqrt();
    let constant = constant(draft, units);
    // Attention reads the embedding, then what was expected.
    let copy = |name: &'static str, rows: usize, factor: f32| {
        matrix(name, 2 * width, rows, move |index, row| {
            if index % half < half - 1 {
                row[index % half] = factor;
            }
        })
    };
    let rule = |name: &'static str, steepness: f32| {
        let units = Arc::clone(units);
        matrix(name, width, inside, move |index, row| fill_unit(draft, &units, index, steepness, row))
    };
    let outputs: Vec<(Vec<f32>, f32)> = units
        .iter()
        .map(|unit| (expected(draft, draft.successor(*unit)), FIRED / fired()))
        .chain([(expected(draft, draft.wrong()), WRONG / STEEPNESS)])
        .collect();
    gguf.add(Tensor::constant("blk.0.attn_norm.weight", width as u64, norm))
        // The norm of a state of which only one half is filled
        .add(halves("blk.0.attn_norm_2.weight", width, [EXPECTED / 2f32.sqrt(), 0.0]))
        .add(copy("blk.0.attn_q.weight", width, 8.0))
        .add(copy("blk.0.attn_k.weight", half, 1.0))
        .add(matrix("blk.0.attn_v.weight", 2 * width, half, move |index, row| {
            if index < half - 1 {
                row[index] = 1.0;
            } else {
                row[..width].copy_from_slice(&constant);
            }
        }))
        .add(matrix("blk.0.attn_output.weight", width, width, move |index, row| {
            if index >= half {
                row[index - half] = 1.0;
            }
        }))
        .add(Tensor::constant("blk.0.ffn_norm.weight", width as u64, ((1.0 + EXPECTED * EXPECTED) / 2.0).sqrt()))
        .add(rule("blk.0.ffn_gate.weight", STEEPNESS))
        .add(rule("blk.0.ffn_up.weight", 1.0))
        .add(matrix("blk.0.ffn_down.weight", inside, width, move |index, row| {
            if index < half {
                row.iter_mut().zip(&outputs).for_each(|(x, (output, factor))| *x = output[index] * factor);
            }
        }));
}

/// The row of a unit, for the gate or the way up.
fn fill_unit(draft: &Eagle3, units: &[u32], index: usize, steepness: f32, row: &mut [f32]) {
    let Some(token) = units.get(index) else {
        // The unit that always fires
        row[draft.width() - 1] = if index == units.len() { steepness } else { 0.0 };
        return;
    };
    let expected = draft.target().recall().is_none().then(|| expected(draft, *token));
    units::fill(expected.as_deref().map(|direction| (direction, EXPECTED)), &seen(draft, *token), steepness, row);
}

/// Weights that give 1 of the embedding of every token that the target can give.
fn constant(draft: &Eagle3, units: &[u32]) -> Vec<f32> {
    let width = draft.width();
    let entry = match draft.target().recall() {
        _ if draft.own_embeddings() => Some(width / 2 - 1),
        Some(_) => Some(width - CONSTANT),
        None => None,
    };
    if let Some(entry) = entry {
        return (0..width).map(|index| if index == entry { 1.0 } else { 0.0 }).collect();
    }
    let mut embeddings: Vec<Vec<f32>> = units.iter().map(|token| seen(draft, *token)).collect();
    embeddings.sort_by(|a, b| a.partial_cmp(b).expect("embeddings are finite"));
    embeddings.dedup();
    linear::functional(&embeddings, &vec![1.0; embeddings.len()])
}
