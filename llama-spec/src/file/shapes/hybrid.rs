//! Models with recurrent layers.

use super::{Description, Need, Shapes};
use crate::file::LayerKind;
use Need::{Optional, Required};

/// Qwen 3.5: gated delta nets, every few layers one with attention, and perhaps MTP heads.
pub(super) fn check_qwen35(shapes: &mut Shapes<'_, '_>, description: &Description) -> bool {
    shapes.needs_epsilon();
    let hyper = shapes.hyper;
    shapes.facts.per_layer("rope.dimension_sections", 4, Required);
    let [kernel, inner, state, ranks, groups] =
        ["conv_kernel", "inner_size", "state_size", "time_step_rank", "group_count"].map(|suffix| {
            let key = shapes.facts.key(&format!("ssm.{suffix}"));
            u64::from(shapes.facts.u32(&key, Required).unwrap_or(0))
        });
    if groups == 0 || !ranks.is_multiple_of(groups) {
        let key = shapes.facts.key("ssm.group_count");
        shapes.facts.aborts(key, format!("{groups} groups of keys for {ranks} values: the one must divide the other"));
    }
    if hyper.key_length != hyper.value_length {
        let key = shapes.facts.key("attention.value_length");
        let why = format!("{}; the length of a key, {}, is expected", hyper.value_length, hyper.key_length);
        shapes.facts.aborts(key, why);
    }
    let (keys, values) = (state.saturating_mul(groups), state.saturating_mul(ranks));
    if inner != values {
        let key = shapes.facts.key("ssm.inner_size");
        let why = format!("{inner}; {values}, the state's size times the rank of the time step, is expected");
        shapes.facts.aborts(key, why);
    }
    let channels = keys.saturating_mul(2).saturating_add(values);
    let width = shapes.width;
    shapes.ends(Required, true);
    let layers = hyper.blocks - hyper.mtp_blocks;
    let trunk = if description.trunk { Required } else { Optional };
    let feed_forward = shapes.feed_forward_length(0);
    for layer in 0..layers {
        shapes.norm(layer, "attn_norm", trunk);
        shapes.norm(layer, "post_attention_norm", trunk);
        if shapes.kinds.get(layer as usize) == Some(&LayerKind::Recurrent) {
            shapes.layer(layer, "attn_qkv.weight", trunk, &[width, channels]);
            shapes.layer(layer, "attn_gate.weight", trunk, &[width, values]);
            shapes.layer(layer, "ssm_conv1d.weight", trunk, &[kernel, channels]);
            shapes.layer(layer, "ssm_dt.bias", trunk, &[ranks]);
            shapes.layer(layer, "ssm_a", trunk, &[ranks]);
            shapes.layer(layer, "ssm_beta.weight", trunk, &[width, ranks]);
            shapes.layer(layer, "ssm_alpha.weight", trunk, &[width, ranks]);
            shapes.layer(layer, "ssm_norm.weight", trunk, &[state]);
            shapes.layer(layer, "ssm_out.weight", trunk, &[values, width]);
        } else {
            gated_attention(shapes, layer, trunk);
        }
        shapes.feed_forward(layer, trunk, feed_forward);
    }
    let heads = if description.mtp_heads { Required } else { Optional };
    for layer in layers..hyper.blocks {
        shapes.norm(layer, "attn_norm", heads);
        shapes.norm(layer, "post_attention_norm", heads);
        gated_attention(shapes, layer, heads);
        shapes.feed_forward(layer, heads, feed_forward);
        shapes.layer(layer, "nextn.eh_proj.weight", heads, &[width.saturating_mul(2), width]);
        for norm in ["nextn.enorm", "nextn.hnorm"] {
            shapes.norm(layer, norm, heads);
        }
        let vocabulary = shapes.vocabulary;
        for matrix in ["nextn.embed_tokens.weight", "nextn.shared_head_head.weight"] {
            shapes.layer(layer, matrix, Optional, &[width, vocabulary]);
        }
        shapes.norm(layer, "nextn.shared_head_norm", Optional);
    }
    false
}

/// Attention whose queries come with a gate of the same size.
fn gated_attention(shapes: &mut Shapes<'_, '_>, layer: u32, need: Need) {
    let (heads, kv_heads) = shapes.head_counts(0);
    let (key, value) = (u64::from(shapes.hyper.key_length), u64::from(shapes.hyper.value_length));
    let queries = key.saturating_mul(heads);
    let width = shapes.width;
    let lengths = [queries.saturating_mul(2), key.saturating_mul(kv_heads), value.saturating_mul(kv_heads)];
    shapes.attention(layer, need, width, lengths);
    shapes.layer(layer, "attn_output.weight", need, &[queries, width]);
    shapes.layer(layer, "attn_q_norm.weight", need, &[key]);
    shapes.layer(layer, "attn_k_norm.weight", need, &[key]);
}

/// Mamba (Gu and Dao 2023, arXiv 2312.00752).
pub(super) fn check_mamba(shapes: &mut Shapes<'_, '_>) -> bool {
    shapes.needs_epsilon();
    let [kernel, inner, state, ranks] = ["conv_kernel", "inner_size", "state_size", "time_step_rank"].map(|suffix| {
        let key = shapes.facts.key(&format!("ssm.{suffix}"));
        u64::from(shapes.facts.u32(&key, Required).unwrap_or(0))
    });
    let width = shapes.width;
    if inner != width.saturating_mul(2) {
        let key = shapes.facts.key("ssm.inner_size");
        shapes.facts.refused(key, format!("{inner}; twice the width of {width} is expected"));
    }
    shapes.ends(Required, true);
    for layer in 0..shapes.hyper.blocks {
        shapes.norm(layer, "attn_norm", Required);
        shapes.layer(layer, "ssm_in.weight", Required, &[width, inner.saturating_mul(2)]);
        shapes.layer(layer, "ssm_conv1d.weight", Required, &[kernel, inner]);
        shapes.layer(layer, "ssm_conv1d.bias", Required, &[inner]);
        shapes.layer(layer, "ssm_x.weight", Required, &[inner, ranks.saturating_add(state.saturating_mul(2))]);
        shapes.layer(layer, "ssm_dt.weight", Required, &[ranks, inner]);
        shapes.layer(layer, "ssm_dt.bias", Required, &[inner]);
        shapes.layer(layer, "ssm_a", Required, &[state, inner]);
        shapes.layer(layer, "ssm_d", Required, &[inner]);
        shapes.layer(layer, "ssm_out.weight", Required, &[inner, width]);
    }
    true
}
