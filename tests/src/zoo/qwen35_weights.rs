//! The tensors of a [`Qwen35`]: a layer of linear attention that holds latches, a random one of full attention, and a head.

use super::{
    described::Described as _,
    latches::{KERNEL, Latches},
    layers::{Attention, Form, Layers, Watch},
    qwen35::{Content, Qwen35},
    rows,
};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

const LAYERS: usize = 2;
/// How many latches the state holds. Each has a head of linear attention that reads it, and is an entry of its keys.
const LATCHES: usize = 16;
/// The width of a head of linear attention, and of all its values.
const STATE: usize = LATCHES;
const VALUES: usize = LATCHES * STATE;
/// Full attention: heads, heads of keys, and their width.
const HEADS: usize = 2;
const HEAD_WIDTH: usize = 32;
const FEED_FORWARD: usize = 64;

const WEIGHTS: TensorType = TensorType::F16;
/// The activation passes numbers of this size as they are, and their negatives as nothing.
const LARGE: f32 = 8.0;

/// Entries of the embedding, of which random weights write only to the first.
struct Entries {
    /// How many entries hold the directions of successors: each class has a half of them.
    free: usize,
    /// One entry for each latch: 1 where the token writes it.
    latch: usize,
    /// What the tokens after the next one will read.
    later: usize,
    /// For each latch: whether the token writes it and the state before does not lead to it. In the head only.
    unexpected: usize,
    constant: usize,
    sign: usize,
    /// What the next latch holds: 1 and twice its sign.
    read: usize,
    wrong: usize,
}

/// How many latches are known that later tokens read.
const LATER: usize = LATCHES - 1;

impl Entries {
    fn of(model: &Qwen35) -> Self {
        let free = model.width() - 4 - 2 * LATCHES - LATER;
        let [latch, later, unexpected] = [free, free + LATCHES, free + LATCHES + LATER];
        let constant = unexpected + LATCHES;
        Self { free, latch, later, unexpected, constant, sign: constant + 1, read: constant + 2, wrong: constant + 3 }
    }

    /// The norm of a row whose entries are 1 and -1, and which has `further` in squares besides.
    fn norm(&self, further: f32) -> f32 {
        ((self.free as f32 + 1.0 + 3.0 + further) / (self.wrong + 1) as f32).sqrt()
    }

    /// The norm of what the layers leave: noise, what was read (9 or 1 instead of 1), and what is read later.
    fn full_norm(&self, model: &Qwen35) -> f32 {
        self.norm(model.noise() * model.noise() * self.free as f32 + 4.0 + LATER as f32)
    }
}

/// Describes the whole file of `model`.
pub(super) fn gguf(model: &Qwen35) -> Gguf<'_> {
    let heads = usize::from(model.head().is_some());
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "qwen35")
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", model.label()))
        .set("general.file_type", WEIGHTS.file_type())
        .set("qwen35.block_count", (LAYERS + heads) as u32)
        .set("qwen35.context_length", 4096u32)
        .set("qwen35.embedding_length", model.width() as u32)
        .set("qwen35.feed_forward_length", FEED_FORWARD as u32)
        .set("qwen35.attention.head_count", HEADS as u32)
        .set("qwen35.attention.head_count_kv", 1u32)
        .set("qwen35.attention.key_length", HEAD_WIDTH as u32)
        .set("qwen35.attention.value_length", HEAD_WIDTH as u32)
        .set("qwen35.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("qwen35.rope.dimension_count", HEAD_WIDTH as u32)
        .set("qwen35.rope.dimension_sections", vec![6, 5, 5, 0])
        .set("qwen35.rope.freq_base", 10_000f32)
        .set("qwen35.full_attention_interval", LAYERS as u32)
        .set("qwen35.ssm.conv_kernel", KERNEL as u32)
        .set("qwen35.ssm.inner_size", VALUES as u32)
        .set("qwen35.ssm.state_size", STATE as u32)
        .set("qwen35.ssm.time_step_rank", LATCHES as u32)
        .set("qwen35.ssm.group_count", LATCHES as u32)
        .set("qwen35.vocab_size", model.latches().vocabulary().size());
    if heads > 0 {
        gguf.set("qwen35.nextn_predict_layers", heads as u32);
    }
    model.latches().vocabulary().describe(&mut gguf);

    let head_only = model.content() == Content::HeadOnly;
    gguf.add(embeddings(model, "token_embd.weight", if head_only { model.head() } else { None }));
    if !head_only {
        add_latches(&mut gguf, model);
        layers(model).add_attention(&mut gguf, 1);
        layers(model).add_feed_forward(&mut gguf, 1, None);
    }
    if let Some(head) = model.head().filter(|_| model.content() != Content::TrunkOnly) {
        add_head(&mut gguf, model, head);
    }
    let (width, tokens) = (model.width(), model.vocabulary().size() as usize);
    gguf.add(Tensor::constant("output_norm.weight", width as u64, 1.0));
    gguf.add(matrix("output.weight", width, tokens, |token, row| output(model, token as u32, row)));
    gguf
}

/// The random layers: both of the model and the head write.
fn layers(model: &Qwen35) -> Layers {
    Layers {
        seed: model.seed(),
        weights: WEIGHTS,
        width: model.width(),
        free: Entries::of(model).free,
        attention: Attention { heads: HEADS, kv_heads: 1, head_width: HEAD_WIDTH, form: Form::Gated },
        feed_forward: FEED_FORWARD,
        written: model.noise() / ((LAYERS + 1) as f32).sqrt(),
        second_norm: "post_attention_norm",
    }
}

fn matrix<'a>(
    name: impl Into<String>,
    row_length: usize,
    rows: usize,
    make_row: impl Fn(usize, &mut [f32]) + Send + Sync + 'a,
) -> Tensor<'a> {
    rows::matrix(name, WEIGHTS, row_length, rows, make_row)
}

/// The embeddings by which the model goes, or its head.
fn embeddings<'a>(model: &'a Qwen35, name: impl Into<String>, rule: Option<&'a Latches>) -> Tensor<'a> {
    let rule = rule.unwrap_or(model.latches());
    let tokens = rule.vocabulary().size() as usize;
    matrix(name, model.width(), tokens, move |token, row| embedding(model, rule, token as u32, row))
}

/// The direction that stands for a token as a successor.
fn direction(model: &Qwen35, token: u32, row: &mut [f32]) {
    Rng::new(model.seed(), "direction", token.into()).fill_signs(1.0, row);
}

fn embedding(model: &Qwen35, rule: &Latches, token: u32, row: &mut [f32]) {
    let entries = Entries::of(model);
    let [plus, minus] = rule.possible_next(token);
    let mut other = vec![0.0; entries.free];
    direction(model, plus, &mut row[..entries.free]);
    direction(model, minus, &mut other);
    row[entries.free / 2..entries.free].copy_from_slice(&other[entries.free / 2..]);
    row[entries.latch + rule.latch(token)] = 1.0;
    row[entries.constant] = 1.0;
    row[entries.sign] = rule.sign(token) as f32;
    row[entries.read] = 1.0;
}

fn output(model: &Qwen35, token: u32, row: &mut [f32]) {
    let entries = Entries::of(model);
    let free = entries.free;
    let class = model.latches().class(token);
    direction(model, token, &mut row[..free]);
    let scale = model.peak() / free as f32 * if class == 0 { 1.0 } else { 2.0 };
    row.iter_mut().for_each(|x| *x *= scale);
    if class != 0 {
        row[if class > 0 { free / 2..free } else { 0..free / 2 }].fill(0.0);
        row[entries.read] = class as f32 * model.peak() / 2.0;
    }
    if token == model.wrong() {
        row[entries.wrong] = model.peak();
    }
}

/// The layer of linear attention. The head with number `n` reads the latch that is `n + 1` after the token's own.
fn add_latches<'a>(gguf: &mut Gguf<'a>, model: &'a Qwen35) {
    let (width, entries) = (model.width(), Entries::of(model));
    let name = |tensor: &str| format!("blk.0.{tensor}");
    let [latch, constant, sign] = [entries.latch, entries.constant, entries.sign];
    gguf.add(Tensor::constant(name("attn_norm.weight"), width as u64, entries.norm(0.0)))
        // Queries, keys and values: of each head the first value is the sign where it is 1, the second where it is -1.
        .add(matrix(name("attn_qkv.weight"), width, 3 * VALUES, move |index, row| {
            let (head, entry) = (index % VALUES / STATE, index % STATE);
            match index / VALUES {
                0 => row[latch + (entry + 2 * LATCHES - head - 1) % LATCHES] = LARGE,
                1 => row[latch + entry] = LARGE,
                _ if entry < 2 => row[sign] = [LARGE, -LARGE][entry],
                _ => {}
            }
        }))
        .add(matrix(name("attn_gate.weight"), width, VALUES, move |index, row| {
            if index % STATE < 2 {
                row[constant] = LARGE;
            }
        }))
        .add(rows::matrix(name("ssm_conv1d.weight"), TensorType::F32, KERNEL, 3 * VALUES, |index, row| {
            row[if index < 2 * VALUES { KERNEL - 1 } else { 0 }] = 1.0;
        }))
        // Next to nothing decays, and what is written takes the place of what was there.
        .add(Tensor::constant(name("ssm_dt.bias"), LATCHES as u64, -30.0))
        .add(Tensor::constant(name("ssm_a"), LATCHES as u64, -1.0))
        .add(matrix(name("ssm_alpha.weight"), width, LATCHES, |_, _| {}))
        .add(matrix(name("ssm_beta.weight"), width, LATCHES, move |_, row| row[constant] = 2.0 * LARGE))
        .add(Tensor::constant(name("ssm_norm.weight"), STATE as u64, 1.0))
        .add(matrix(name("ssm_out.weight"), VALUES, width, move |index, row| {
            // The norm makes the one value of a head that is not 0 the root of the width.
            let one = 1.0 / (LARGE * (STATE as f32).sqrt());
            let (head, size) = match index {
                _ if index == entries.read => (0, 2.0 * one),
                _ if (entries.later..entries.later + LATER).contains(&index) => (index - entries.later + 1, one),
                _ => return,
            };
            row[head * STATE] = size;
            row[head * STATE + 1] = -size;
        }));
    layers(model).add_feed_forward(gguf, 0, None);
}

/// The head: it takes the successors from the token, and from the state what the latches hold.
fn add_head<'a>(gguf: &mut Gguf<'a>, model: &'a Qwen35, head: &'a Latches) {
    let (width, entries) = (model.width(), Entries::of(model));
    let name = |tensor: &str| format!("blk.{LAYERS}.nextn.{tensor}.weight");
    let norms = [("enorm", entries.norm(0.0)), ("hnorm", entries.full_norm(model)), ("shared_head_norm", 1.0)];
    gguf.add(matrix(name("eh_proj"), 2 * width, width, move |index, row| {
        let (token, state) = row.split_at_mut(width);
        let Entries { later, unexpected, latch, .. } = entries;
        match index {
            _ if (later..later + LATER).contains(&index) => {
                if index + 1 < later + LATER {
                    state[index + 1] = 1.0;
                }
            }
            _ if (unexpected..unexpected + LATCHES).contains(&index) => {
                let number = index - unexpected;
                token[latch + number] = 1.0;
                state[latch + (number + LATCHES - 1) % LATCHES] = -1.0;
            }
            _ if index == entries.wrong => {}
            _ => {
                token[index] = 1.0;
                if index == entries.read {
                    state[later] = 2.0;
                }
            }
        }
    }));
    for (tensor, value) in norms {
        gguf.add(Tensor::constant(name(tensor), width as u64, value));
    }
    if model.content() != Content::HeadOnly && head.acceptance() < 1.0 {
        gguf.add(embeddings(model, name("embed_tokens"), Some(head)));
    }
    layers(model).add_attention(gguf, LAYERS);
    let Entries { unexpected, constant, wrong, .. } = entries;
    let watch = Watch { unexpected, count: LATCHES, constant, wrong, norm: entries.full_norm(model) };
    layers(model).add_feed_forward(gguf, LAYERS, Some(watch));
}
