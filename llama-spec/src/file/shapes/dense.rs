//! Language models whose layers are all alike: attention, and a feed-forward network or a mixture of experts.

use super::{Need, Shapes};
use Need::{Optional, Required};

/// The families of llama, qwen and gemma. All layers have the lengths of the first, as the loaders of these
/// architectures assume. Gives whether all tensors were asked for.
pub(super) fn check(shapes: &mut Shapes<'_, '_>, name: &str) -> bool {
    shapes.needs_epsilon();
    let gemma = name.starts_with("gemma");
    let qwen3 = name.starts_with("qwen3");
    let experts = u64::from(shapes.hyper.experts);
    shapes.ends(Required, !matches!(name, "gemma" | "gemma2"));
    shapes.check_rotation(!gemma);

    let (heads, kv_heads) = shapes.head_counts(0);
    let (key, value) = shapes.head_lengths(0);
    let (width, feed_forward) = (shapes.width, shapes.feed_forward_length(0));
    let queries = if name == "qwen2" { width } else { key.saturating_mul(heads) };
    let values = value.saturating_mul(kv_heads);
    let keys = if gemma || name == "llama" { key.saturating_mul(kv_heads) } else { values };
    if name == "qwen2" && key.saturating_mul(heads) != width {
        let key = shapes.facts.key("attention.key_length");
        shapes.facts.aborts(key, "the heads of a qwen2 model together must be as wide as its hidden state");
    }
    for layer in 0..shapes.hyper.blocks - shapes.hyper.mtp_blocks {
        shapes.norm(layer, "attn_norm", Required);
        shapes.attention(layer, Required, width, [queries, keys, values]);
        shapes.layer(layer, "attn_output.weight", Required, &[queries, width]);
        shapes.norm(layer, "ffn_norm", Required);
        if qwen3 || name == "gemma3" {
            shapes.layer(layer, "attn_q_norm.weight", Required, &[key]);
            shapes.layer(layer, "attn_k_norm.weight", Required, &[key]);
        }
        if matches!(name, "gemma2" | "gemma3") {
            shapes.norm(layer, "post_attention_norm", Required);
            shapes.norm(layer, "post_ffw_norm", Required);
        }
        match (name, experts) {
            ("llama", 1..) => mixture(shapes, layer, feed_forward, Optional),
            ("qwen3moe", _) => {
                let (per_layer, used) = (expert_length(shapes), u64::from(shapes.hyper.experts_used));
                let length = match per_layer {
                    0 => feed_forward.checked_div(used).unwrap_or(0),
                    length => length,
                };
                mixture(shapes, layer, length, Required);
            }
            _ => shapes.feed_forward(layer, Required, feed_forward),
        }
        if name == "llama" {
            shapes.layer(layer, "attn_output.bias", Optional, &[width]);
            for (bias, length) in [("gate", feed_forward), ("down", width), ("up", feed_forward)] {
                shapes.layer(layer, &format!("ffn_{bias}.bias"), Optional, &[length]);
            }
        }
    }
    if name == "qwen3moe" && (experts == 0 || shapes.hyper.experts_used == 0) {
        let key = shapes.facts.key("expert_count");
        shapes.facts.refused(key, "a qwen3moe model must have experts");
    }
    extras(shapes, name);
    // The others have parts that only some models use, which are not listed here.
    matches!(name, "llama" | "qwen2" | "gemma" | "gemma2") && experts == 0
}

/// Tensors outside the layers that not every model has.
fn extras(shapes: &mut Shapes<'_, '_>, name: &str) {
    let (vocabulary, half) = (shapes.vocabulary, u64::from(shapes.hyper.rope_length / 2));
    match name {
        "llama" => {
            let key = shapes.facts.key("rope.scaling.type");
            if shapes.facts.text(&key, Optional).as_deref() == Some("longrope") {
                shapes.optional("rope_factors_long.weight", &[half]);
                shapes.optional("rope_factors_short.weight", &[half]);
            } else {
                shapes.optional("rope_freqs.weight", &[half]);
            }
        }
        "qwen2" => shapes.optional("output.bias", &[vocabulary]),
        _ => {}
    }
}

/// The router and the experts.
fn mixture(shapes: &mut Shapes<'_, '_>, layer: u32, length: u64, gate: Need) {
    let (width, experts) = (shapes.width, u64::from(shapes.hyper.experts));
    shapes.layer(layer, "ffn_gate_inp.weight", Required, &[width, experts]);
    shapes.layer(layer, "ffn_gate_exps.weight", gate, &[width, length, experts]);
    shapes.layer(layer, "ffn_down_exps.weight", Required, &[length, width, experts]);
    shapes.layer(layer, "ffn_up_exps.weight", Required, &[width, length, experts]);
}

/// The length of an expert's feed-forward layer; 0 where the file does not say it.
fn expert_length(shapes: &mut Shapes<'_, '_>) -> u64 {
    let lengths = shapes.facts.per_layer("expert_feed_forward_length", shapes.hyper.blocks, Optional);
    lengths.and_then(|lengths| lengths.first().copied()).unwrap_or(0).into()
}

/// Gemma 4: layers of two kinds, some without keys of their own, per-layer embeddings, and perhaps experts.
pub(super) fn check_gemma4(shapes: &mut Shapes<'_, '_>) -> bool {
    shapes.needs_epsilon();
    let hyper = shapes.hyper;
    for suffix in ["attention.key_length_swa", "attention.value_length_swa"] {
        let key = shapes.facts.key(suffix);
        shapes.facts.u32(&key, Required);
    }
    check_equal_lengths(shapes);
    let key = shapes.facts.key("embedding_length_per_layer_input");
    let per_layer = u64::from(shapes.facts.u32(&key, Required).unwrap_or(0));
    let layers = u64::from(hyper.blocks - hyper.mtp_blocks);
    let (width, vocabulary) = (shapes.width, shapes.vocabulary);
    shapes.ends(Required, true);
    if per_layer > 0 {
        let all = per_layer.saturating_mul(layers);
        shapes.required("per_layer_token_embd.weight", &[all, vocabulary]);
        shapes.required("per_layer_model_proj.weight", &[width, all]);
        shapes.required("per_layer_proj_norm.weight", &[per_layer]);
    }
    let key = shapes.facts.key("attention.shared_kv_layers");
    let own = hyper.blocks.saturating_sub(shapes.facts.u32(&key, Optional).unwrap_or(0));
    let mut rotation = Required;
    for layer in 0..layers as u32 {
        let (heads, kv_heads) = shapes.head_counts(layer);
        let (key, value) = shapes.head_lengths(layer);
        let [queries, keys, values] =
            [key.saturating_mul(heads), key.saturating_mul(kv_heads), value.saturating_mul(kv_heads)];
        let need = if layer < own { Required } else { Optional };
        let all = queries.saturating_add(keys).saturating_add(values);
        if !shapes.layer(layer, "attn_qkv.weight", Optional, &[width, all]) {
            shapes.layer(layer, "attn_q.weight", Required, &[width, queries]);
            shapes.layer(layer, "attn_k.weight", need, &[width, keys]);
            shapes.layer(layer, "attn_v.weight", Optional, &[width, values]);
        }
        shapes.layer(layer, "attn_output.weight", Required, &[queries, width]);
        shapes.layer(layer, "attn_q_norm.weight", Required, &[key]);
        shapes.layer(layer, "attn_k_norm.weight", need, &[key]);
        for norm in ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"] {
            shapes.norm(layer, norm, Required);
        }
        shapes.layer(layer, "layer_output_scale.weight", Optional, &[1]);
        if !shapes.is_windowed(layer) {
            shapes.want("rope_freqs.weight", rotation, &[key / 2]);
            rotation = Optional;
        }
        let feed_forward = shapes.feed_forward_length(layer);
        shapes.feed_forward(layer, Required, feed_forward);
        if per_layer > 0 {
            shapes.layer(layer, "inp_gate.weight", Required, &[width, per_layer]);
            shapes.layer(layer, "proj.weight", Required, &[per_layer, width]);
            shapes.norm(layer, "post_norm", Required);
        }
    }
    false
}

/// Keys and values of one length, in both kinds of layers.
pub(super) fn check_equal_lengths(shapes: &mut Shapes<'_, '_>) {
    let hyper = shapes.hyper;
    for (suffix, key, value) in [
        ("attention.value_length", hyper.key_length, hyper.value_length),
        ("attention.value_length_swa", hyper.key_length_swa, hyper.value_length_swa),
    ] {
        if key != value {
            let place = shapes.facts.key(suffix);
            shapes.facts.refused(place, format!("{value}; the length of a key, {key}, is expected"));
        }
    }
}
