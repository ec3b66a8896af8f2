//! The tensors of a [`Chained`]: random layers, and heads that know their place in the chain.

use super::{
    chain::Chain,
    chained::{Chained, ChainedKind, MARKS},
    described::Described as _,
    layers::{Attention, Form, Layers, Watch},
};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

const WIDTH: usize = 128;
const LAYERS: usize = 2;
const HEADS: usize = 2;
const HEAD_WIDTH: usize = 32;
const FEED_FORWARD: usize = 64;
/// The sliding window of the second layer, in tokens.
const WINDOW: u32 = 64;
const WEIGHTS: TensorType = TensorType::F16;

/// How many heads there may be.
const LONGEST: usize = 6;
/// Entries of the embedding from the end: random weights write only to those before them.
const CONSTANT: usize = WIDTH - 2;
const WRONG: usize = WIDTH - 1;
/// In a head: that the state is not its predecessor's.
const STRANGE: usize = CONSTANT - 1;
/// In a head, for each mark: that it is the token's and does not follow the state's.
const UNEXPECTED: usize = STRANGE - MARKS;
/// Whose state it is: the model's, the first head's and so on.
const FROM: usize = UNEXPECTED - LONGEST;
/// One entry for each mark.
const MARK: usize = FROM - MARKS;
const FREE: usize = MARK;

/// Describes the whole file of `model`.
pub(super) fn gguf(model: &Chained) -> Gguf<'_> {
    let heads = model.heads().len();
    assert!(heads <= LONGEST, "{heads} heads are too many");
    let tokens = model.vocabulary().size();
    let architecture = match model.kind() {
        ChainedKind::Mimo2 => "mimo2",
        ChainedKind::HyV3 => "hy_v3",
    };
    let key = |name: &str| format!("{architecture}.{name}");
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", architecture)
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", model.label()))
        .set("general.file_type", WEIGHTS.file_type())
        .set(key("block_count"), (LAYERS + heads) as u32)
        .set(key("context_length"), 4096u32)
        .set(key("embedding_length"), WIDTH as u32)
        .set(key("feed_forward_length"), FEED_FORWARD as u32)
        .set(key("expert_feed_forward_length"), FEED_FORWARD as u32)
        .set(key("attention.head_count"), HEADS as u32)
        .set(key("attention.head_count_kv"), 1u32)
        .set(key("attention.key_length"), HEAD_WIDTH as u32)
        .set(key("attention.value_length"), HEAD_WIDTH as u32)
        .set(key("attention.layer_norm_rms_epsilon"), 1e-5f32)
        .set(key("rope.dimension_count"), HEAD_WIDTH as u32)
        .set(key("rope.freq_base"), 10_000f32)
        .set(key("vocab_size"), tokens);
    if model.kind() == ChainedKind::Mimo2 {
        let windowed: Vec<bool> = (0..LAYERS + heads).map(|layer| layer == 1).collect();
        gguf.set(key("attention.sliding_window"), WINDOW).set(key("attention.sliding_window_pattern"), windowed);
    }
    if heads > 0 {
        gguf.set(key("nextn_predict_layers"), heads as u32);
    }
    model.vocabulary().describe(&mut gguf);

    let layers = layers(model);
    gguf.add(embeddings(model, &layers, "token_embd.weight", model.chain()));
    if model.has_trunk() {
        for layer in 0..LAYERS {
            layers.add_attention(&mut gguf, layer);
            layers.add_feed_forward(&mut gguf, layer, None);
        }
    }
    for (number, chain) in model.heads().iter().enumerate() {
        add_head(&mut gguf, model, &layers, number, chain);
    }
    gguf.add(Tensor::constant("output_norm.weight", WIDTH as u64, 1.0));
    gguf.add(layers.matrix("output.weight", WIDTH, tokens as usize, |token, row| {
        Rng::new(model.seed(), "direction", token as u64).fill_signs(model.peak() / FREE as f32, &mut row[..FREE]);
        if token == model.wrong() as usize {
            row[WRONG] = model.peak();
        }
    }));
    gguf
}

/// The random layers: all of the model and one head write.
fn layers(model: &Chained) -> Layers {
    let form = match model.kind() {
        ChainedKind::Mimo2 => Form::Fused,
        ChainedKind::HyV3 => Form::Separate,
    };
    Layers {
        seed: model.seed(),
        weights: WEIGHTS,
        width: WIDTH,
        free: FREE,
        attention: Attention { heads: HEADS, kv_heads: 1, head_width: HEAD_WIDTH, form },
        feed_forward: FEED_FORWARD,
        written: model.noise() / (2.0 * (LAYERS + 1) as f32).sqrt(),
        second_norm: "ffn_norm",
    }
}

/// The embeddings by which the model goes, or a head: the direction of the successor, the mark, and what is always 1.
fn embeddings<'a>(model: &'a Chained, layers: &Layers, name: impl Into<String>, chain: &'a Chain) -> Tensor<'a> {
    layers.matrix(name, WIDTH, model.vocabulary().size() as usize, move |token, row| {
        let next = model.follows(chain, token as u32);
        Rng::new(model.seed(), "direction", next.into()).fill_signs(1.0, &mut row[..FREE]);
        row[MARK + model.mark(token as u32)] = 1.0;
        row[FROM] = 1.0;
        row[CONSTANT] = 1.0;
    })
}

/// The norm of a row that holds a direction with noise, a mark, whose state it is, and the constant.
fn norm(noise: f32) -> f32 {
    ((FREE as f32 * (1.0 + noise * noise) + 3.0) / WIDTH as f32).sqrt()
}

/// A head: it takes the successor from the token, and compares the token with the state.
fn add_head<'a>(gguf: &mut Gguf<'a>, model: &'a Chained, layers: &Layers, number: usize, chain: &'a Chain) {
    let layer = LAYERS + number;
    let next = if model.heads().len() == 1 { 0 } else { number + 1 };
    let name = |tensor: &str| format!("blk.{layer}.nextn.{tensor}.weight");
    gguf.add(layers.matrix(name("eh_proj"), 2 * WIDTH, WIDTH, move |index, row| {
        let (token, state) = row.split_at_mut(WIDTH);
        match index {
            FROM..UNEXPECTED if index == FROM + next => token[CONSTANT] = 1.0,
            STRANGE => {
                token[CONSTANT] = 1.0;
                state[FROM + number] = -1.0;
            }
            UNEXPECTED..STRANGE => {
                let mark = index - UNEXPECTED;
                token[MARK + mark] = 1.0;
                state[MARK + (mark + MARKS - 1) % MARKS] = -1.0;
            }
            FROM..UNEXPECTED | WRONG => {}
            _ => token[index] = 1.0,
        }
    }));
    for (tensor, value) in [("enorm", norm(0.0)), ("hnorm", norm(model.noise())), ("shared_head_norm", 1.0)] {
        gguf.add(Tensor::constant(name(tensor), WIDTH as u64, value));
    }
    if chain.acceptance() < 1.0 {
        gguf.add(embeddings(model, layers, name("embed_tokens"), chain));
    }
    layers.add_attention(gguf, layer);
    let watch =
        Watch { unexpected: UNEXPECTED, count: MARKS + 1, constant: CONSTANT, wrong: WRONG, norm: norm(model.noise()) };
    layers.add_feed_forward(gguf, layer, Some(watch));
}
