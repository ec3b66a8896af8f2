//! The tensors of a [`Transformer`]: embeddings and head of its llama, random layers.

use super::{
    described::Described as _,
    transformer::{Family, Transformer},
    weights::{embedding, head},
};
use crate::{
    gguf::{Gguf, Tensor, Value},
    rng::Rng,
};

/// The sliding window in tokens.
pub(super) const WINDOW: u32 = 64;
/// Lengths of the heads of [`Family::Gemma4`]: in layers that see everything, and with a window.
pub(super) const HEAD_LENGTHS: [u32; 2] = [64, 32];
const EXPERTS: u32 = 4;
const EXPERTS_USED: u32 = 2;

/// Describes the whole file of `model`.
pub(super) fn gguf(model: &Transformer) -> Gguf<'_> {
    let (text, shape) = (model.text(), model.text().shape());
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", model.family().name())
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", model.label()))
        .set("general.file_type", text.weights().file_type());
    describe(&mut gguf, model);
    text.vocabulary().describe(&mut gguf);
    if let Some(template) = text.chat_template() {
        gguf.set("tokenizer.chat_template", template);
    }

    let (width, vocabulary) = (u64::from(shape.width), u64::from(text.vocabulary().size()));
    gguf.add(Tensor::matrix("token_embd.weight", text.weights(), width, vocabulary, |token, row| {
        embedding(text, token as u32, row);
    }));
    if model.family() == Family::Gemma4 {
        gguf.add(Tensor::constant("rope_freqs.weight", u64::from(HEAD_LENGTHS[0] / 2), 1.0));
    }
    for layer in 0..shape.layers {
        add_layer(&mut gguf, model, layer);
    }
    gguf.add(Tensor::constant("output_norm.weight", width, 1.0));
    gguf.add(Tensor::matrix("output.weight", text.weights(), width, vocabulary, |token, row| {
        head(text, token as u32, row);
    }));
    gguf
}

fn describe(gguf: &mut Gguf<'_>, model: &Transformer) {
    let shape = model.text().shape();
    let mut set = |key: &str, value: Value| {
        gguf.set(format!("{}.{key}", model.family().name()), value);
    };
    set("block_count", shape.layers.into());
    set("context_length", shape.context_length.into());
    set("embedding_length", shape.width.into());
    set("feed_forward_length", shape.feed_forward.into());
    set("attention.head_count", shape.heads.into());
    set("attention.head_count_kv", shape.kv_heads.into());
    set("attention.layer_norm_rms_epsilon", 1e-6f32.into());
    set("rope.freq_base", 1e6f32.into());
    match model.family() {
        Family::Qwen2 => {}
        Family::Qwen3 | Family::Qwen3Moe => set_head_length(&mut set, head_length(model, 0)),
        Family::Gemma3 => {
            set_head_length(&mut set, head_length(model, 0));
            set("attention.sliding_window_pattern", 2u32.into());
        }
        Family::Gemma4 => {
            set_head_length(&mut set, HEAD_LENGTHS[0]);
            set("attention.key_length_swa", HEAD_LENGTHS[1].into());
            set("attention.value_length_swa", HEAD_LENGTHS[1].into());
            set("rope.dimension_count", HEAD_LENGTHS[0].into());
            set("rope.dimension_count_swa", HEAD_LENGTHS[1].into());
            let windowed: Vec<bool> = (0..shape.layers).map(|layer| is_windowed(model, layer)).collect();
            set("attention.sliding_window_pattern", windowed.into());
            set("attention.shared_kv_layers", (shape.layers / 2).into());
            set("embedding_length_per_layer_input", 0u32.into());
            set("final_logit_softcapping", 30f32.into());
        }
    }
    if model.family().is_gemma() {
        set("attention.sliding_window", WINDOW.into());
        set("rope.freq_base_swa", 1e4f32.into());
    }
    if model.family() == Family::Qwen3Moe {
        set("expert_count", EXPERTS.into());
        set("expert_used_count", EXPERTS_USED.into());
        set("expert_feed_forward_length", expert_length(model).into());
    }
}

fn set_head_length(set: &mut impl FnMut(&str, Value), length: u32) {
    set("attention.key_length", length.into());
    set("attention.value_length", length.into());
}

fn is_windowed(model: &Transformer, layer: u32) -> bool {
    model.family().is_gemma() && layer.is_multiple_of(2)
}

fn head_length(model: &Transformer, layer: u32) -> u32 {
    match model.family() {
        Family::Gemma4 => HEAD_LENGTHS[usize::from(is_windowed(model, layer))],
        _ => model.text().head_width(),
    }
}

/// The length of an expert's feed-forward network: those of a token are together as long as that of a dense layer.
fn expert_length(model: &Transformer) -> u32 {
    model.text().shape().feed_forward / EXPERTS_USED
}

/// Adds a layer of random weights, in the scale of those of a llama.
fn add_layer<'a>(gguf: &mut Gguf<'a>, model: &'a Transformer, layer: u32) {
    let (family, shape) = (model.family(), model.text().shape());
    let width = u64::from(shape.width);
    let head = u64::from(head_length(model, layer));
    let [queries, keys] = [shape.heads, shape.kv_heads].map(|heads| head * u64::from(heads));
    let inside = u64::from(shape.feed_forward);
    let keep = 1.0 / (width as f32).sqrt();
    let written = model.text().noise() / (2.0 * shape.layers as f32).sqrt();
    // The gated product of inputs of deviation 1 has a deviation of 0.6.
    let down = written / (0.6 * (inside as f32).sqrt());

    let name = |matrix: &str| format!("blk.{layer}.{matrix}.weight");
    let random = |matrix: &str, row_length, rows, deviation| {
        Tensor::matrix(name(matrix), model.text().weights(), row_length, rows, filler(model, name(matrix), deviation))
    };
    let experts = |matrix: &str, row_length, rows, deviation| {
        let shape = [row_length, rows, u64::from(EXPERTS)];
        Tensor::matrices(name(matrix), model.text().weights(), shape, filler(model, name(matrix), deviation))
    };
    let one = |norm: &str, length| Tensor::constant(name(norm), length, 1.0);
    let own_keys = family != Family::Gemma4 || layer < shape.layers / 2;

    gguf.add(one("attn_norm", width)).add(random("attn_q", width, queries, keep));
    if own_keys {
        gguf.add(random("attn_k", width, keys, keep)).add(random("attn_v", width, keys, keep));
    }
    match family {
        Family::Qwen2 => {
            for (part, length) in [("q", queries), ("k", keys), ("v", keys)] {
                let name = format!("blk.{layer}.attn_{part}.bias");
                let fill = filler(model, name.clone(), 0.5);
                gguf.add(Tensor::vector(name, length, move |row| fill(0, row)));
            }
        }
        _ => {
            gguf.add(one("attn_q_norm", head));
            if own_keys {
                gguf.add(one("attn_k_norm", head));
            }
        }
    }
    gguf.add(random("attn_output", queries, width, written / (queries as f32).sqrt()));
    gguf.add(one("ffn_norm", width));
    if family == Family::Qwen3Moe {
        let inside = u64::from(expert_length(model));
        gguf.add(random("ffn_gate_inp", width, EXPERTS.into(), keep))
            .add(experts("ffn_gate_exps", width, inside, keep))
            .add(experts("ffn_up_exps", width, inside, keep))
            .add(experts("ffn_down_exps", inside, width, down * (EXPERTS_USED as f32).sqrt()));
    } else {
        gguf.add(random("ffn_gate", width, inside, keep))
            .add(random("ffn_up", width, inside, keep))
            .add(random("ffn_down", inside, width, down));
    }
    if family.is_gemma() {
        // What layers write has entries of 1 and then of this, beside embeddings whose entries are the root of the width.
        for norm in ["post_attention_norm", "post_ffw_norm"] {
            gguf.add(Tensor::constant(name(norm), width, written / keep));
        }
    }
    if family == Family::Gemma4 {
        gguf.add(one("layer_output_scale", 1));
    }
}

/// Fills rows of the tensor `name` with random numbers.
fn filler(model: &Transformer, name: String, deviation: f32) -> impl Fn(u64, &mut [f32]) + Send + Sync + use<> {
    let seed = model.text().seed();
    move |index, row| Rng::new(seed, &name, index).fill_uniform(deviation, row)
}
