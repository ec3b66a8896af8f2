//! Drafts that depend on a target.

use super::dense::check_equal_lengths;
use super::{ANY, Description, Need, Shapes};
use Need::{Optional, Required};

/// EAGLE-3: one layer that reads the hidden states of three layers of the target.
pub(super) fn check_eagle3(shapes: &mut Shapes<'_, '_>, description: &Description) -> bool {
    shapes.needs_epsilon();
    shapes.check_rotation(false);
    let width = shapes.width;
    let fused = u64::from(description.target_width.unwrap_or(0)).saturating_mul(description.target_layers.len() as u64);
    let draft_vocabulary = match &description.draft_vocabulary {
        Some(map) => {
            shapes.required("d2t", &[map.size]);
            map.size
        }
        None => shapes.vocabulary,
    };
    shapes.required("fc.weight", &[fused, width]);
    let key = shapes.facts.key("norm_before_fc");
    if shapes.facts.bool(&key, Optional) == Some(true) {
        shapes.required("enc.output_norm.weight", &[fused]);
    }
    shapes.required("output_norm.weight", &[width]);
    shapes.optional("output.weight", &[width, draft_vocabulary]);
    shapes.optional("token_embd.weight", &[width, ANY]);
    let (heads, kv_heads) = shapes.head_counts(0);
    let (key, value) = shapes.head_lengths(0);
    let input = width.saturating_mul(2);
    for layer in 0..shapes.hyper.blocks - shapes.hyper.mtp_blocks {
        for norm in ["attn_norm", "attn_norm_2", "ffn_norm"] {
            shapes.norm(layer, norm, Required);
        }
        let queries = key.saturating_mul(heads);
        for (name, length) in
            [("q", queries), ("k", key.saturating_mul(kv_heads)), ("v", value.saturating_mul(kv_heads))]
        {
            shapes.layer(layer, &format!("attn_{name}.weight"), Required, &[input, length]);
        }
        shapes.layer(layer, "attn_output.weight", Required, &[queries, width]);
        let feed_forward = shapes.feed_forward_length(0);
        shapes.feed_forward(layer, Required, feed_forward);
    }
    shapes.optional("rope_freqs.weight", &[u64::from(shapes.hyper.rope_length / 2)]);
    true
}

/// DFlash and DSpark with plain layers; of those with the layers of large targets only the ends are checked.
pub(super) fn check_dflash(shapes: &mut Shapes<'_, '_>, description: &Description) -> bool {
    shapes.needs_epsilon();
    let (width, vocabulary) = (shapes.width, shapes.vocabulary);
    let draft_vocabulary = match &description.draft_vocabulary {
        Some(map) => {
            shapes.required("d2t", &[map.size]);
            map.size
        }
        None => vocabulary,
    };
    let fused = width.saturating_mul(description.target_layers.len() as u64);
    shapes.required("fc.weight", &[fused, width]);
    shapes.required("enc.output_norm.weight", &[width]);
    shapes.required("output_norm.weight", &[width]);
    shapes.optional("token_embd.weight", &[width, vocabulary]);
    shapes.optional("output.weight", &[width, draft_vocabulary]);
    if let Some(rank) = shapes.facts.tensor("markov_w1.weight").map(|matrix| matrix.full_shape()[0]) {
        let (two, three) = (rank.saturating_mul(2), rank.saturating_mul(3));
        shapes.required("markov_w1.weight", &[rank, vocabulary]);
        shapes.required("markov_w2.weight", &[rank, draft_vocabulary]);
        shapes.optional("conf_proj.weight", &[width.saturating_add(rank), 1]);
        shapes.optional("conf_proj.bias", &[1]);
        let joint = shapes.want("joint_proj.weight", Optional, &[width.saturating_add(two), three]);
        shapes.want("joint_proj.bias", if joint { Required } else { Optional }, &[three]);
    }
    if shapes.facts.has("selector_hidden.weight") {
        check_selector(shapes);
    }
    let large = ["hyper_connection.count", "attention.kv_lora_rank"];
    if large.iter().any(|suffix| shapes.facts.value(&shapes.facts.key(suffix)).is_some()) {
        return false;
    }
    let (heads, kv_heads) = shapes.head_counts(0);
    let (key, value) = shapes.head_lengths(0);
    let queries = key.saturating_mul(heads);
    for layer in 0..shapes.hyper.blocks - shapes.hyper.mtp_blocks {
        for norm in ["attn_norm", "ffn_norm"] {
            shapes.norm(layer, norm, Required);
        }
        for norm in ["post_attention_norm", "post_ffw_norm"] {
            shapes.norm(layer, norm, Optional);
        }
        shapes.layer(layer, "attn_q.weight", Required, &[width, queries]);
        shapes.layer(layer, "attn_k.weight", Required, &[width, key.saturating_mul(kv_heads)]);
        shapes.layer(layer, "attn_v.weight", Optional, &[width, value.saturating_mul(kv_heads)]);
        shapes.layer(layer, "attn_output.weight", Required, &[queries, width]);
        shapes.layer(layer, "attn_q_norm.weight", Required, &[key]);
        shapes.layer(layer, "attn_k_norm.weight", Required, &[key]);
        shapes.layer(layer, "layer_output_scale.weight", Optional, &[1]);
        shapes.layer(layer, "attn_sinks.weight", Optional, &[heads]);
        let feed_forward = shapes.feed_forward_length(0);
        shapes.feed_forward(layer, Required, feed_forward);
    }
    shapes.optional("rope_freqs.weight", &[key / 2]);
    false
}

/// The selector of DFlash2, and the keys that it needs.
fn check_selector(shapes: &mut Shapes<'_, '_>) {
    let (width, vocabulary) = (shapes.width, shapes.vocabulary);
    let [rank, top, _, group, _] =
        ["selector_rank", "selector_top_k", "conv_kernel_size", "conv_group_size", "block_size"].map(|suffix| {
            let key = shapes.facts.key(suffix);
            let number = shapes.facts.u32(&key, Required);
            if number == Some(0) {
                shapes.facts.refused(key, "0; a DFlash2 draft needs more");
            }
            u64::from(number.unwrap_or(0))
        });
    if group > 0 && !width.is_multiple_of(group) {
        let key = shapes.facts.key("conv_group_size");
        shapes.facts.refused(key, format!("{group} does not divide the width of {width}"));
    }
    if top.saturating_mul(top.saturating_add(1)) > width {
        let key = shapes.facts.key("selector_top_k");
        shapes.facts.refused(key, format!("{top} candidates need a width of {top} x {}", top.saturating_add(1)));
    }
    shapes.required("selector_predecessor.weight", &[rank, vocabulary]);
    shapes.required("selector_successor.weight", &[rank, vocabulary]);
    shapes.required("selector_hidden.weight", &[width, rank]);
}

/// The assistant of Gemma 4: layers without keys and values, which it takes from the target.
pub(super) fn check_assistant(shapes: &mut Shapes<'_, '_>) -> bool {
    shapes.needs_epsilon();
    let hyper = shapes.hyper;
    for suffix in ["attention.key_length_swa", "attention.value_length_swa"] {
        let key = shapes.facts.key(suffix);
        shapes.facts.u32(&key, Required);
    }
    check_equal_lengths(shapes);
    let width = shapes.width;
    let target = u64::from(hyper.output_width.filter(|&width| width > 0).unwrap_or(width as u32));
    if target == width {
        let key = shapes.facts.key("embedding_length_out");
        shapes.facts.refused(key, "the width of the target is expected, which is not the assistant's own");
    }
    if hyper.mtp_blocks != hyper.blocks {
        let key = shapes.facts.key("nextn_predict_layers");
        let why = format!("{} of {} blocks; all blocks of an assistant are heads", hyper.mtp_blocks, hyper.blocks);
        shapes.facts.aborts(key, why);
    }
    shapes.ends(Required, false);
    shapes.required("nextn.post_projection.weight", &[width, target]);
    shapes.required("nextn.pre_projection.weight", &[target.saturating_mul(2), width]);
    let windowed = {
        let key = shapes.facts.key("attention.sliding_window_pattern");
        shapes.facts.integers(&key, Required, super::super::layers::MOST_BLOCKS as usize).unwrap_or_default()
    };
    let mut rotation = Required;
    for layer in 0..hyper.mtp_blocks {
        let windowed = windowed.get(layer as usize).is_some_and(|&flag| flag != 0);
        let key = u64::from(if windowed { hyper.key_length_swa } else { hyper.key_length });
        let (heads, _) = shapes.head_counts(layer);
        let queries = key.saturating_mul(heads);
        shapes.layer(layer, "attn_q.weight", Required, &[width, queries]);
        shapes.layer(layer, "attn_output.weight", Required, &[queries, width]);
        shapes.layer(layer, "attn_q_norm.weight", Required, &[key]);
        shapes.layer(layer, "layer_output_scale.weight", Required, &[1]);
        for norm in ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"] {
            shapes.norm(layer, norm, Required);
        }
        if !windowed {
            shapes.want("rope_freqs.weight", rotation, &[key / 2]);
            rotation = Optional;
        }
        let feed_forward = shapes.feed_forward_length(layer);
        shapes.feed_forward(layer, Required, feed_forward);
    }
    false
}
