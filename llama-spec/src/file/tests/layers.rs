//! Layers, heads and the memory they take.

use super::made::{base, llama, qwen35, tokens};
use super::*;
use crate::options::KvType;
use LayerKind::{Attention, AttentionAndState, Nothing, Recurrent, SlidingWindow};

/// The kinds of the layers of a model of this architecture.
fn kinds(made: Made) -> Vec<LayerKind> {
    describe(&made).layer_kinds
}

#[test]
fn heads_follow_llama_cpp_s_defaults() {
    let description = describe(&llama());
    assert_eq!(description.defects, []);
    assert_eq!((description.heads, description.kv_heads), (vec![4, 4], vec![2, 2]));
    assert_eq!((description.key_length, description.value_length), (Some(8), Some(8)));
    assert_eq!(
        (description.width, description.output_width, description.trained_context),
        (Some(32), Some(32), Some(512))
    );
    assert_eq!(description.layer_kinds, [Attention, Attention]);
    assert_eq!(description.quantization, "all F32");

    let made = llama()
        .without("llama.attention.head_count_kv")
        .set("llama.attention.head_count", &[4u32, 2][..])
        .set("llama.attention.value_length", 6u32)
        .set("llama.attention.key_length_swa", 5u32);
    let description = describe(&made);
    assert_eq!((description.heads, description.kv_heads), (vec![4, 2], vec![4, 2]));
    assert_eq!((description.key_length, description.value_length), (Some(8), Some(6)));
    assert_eq!((description.key_length_swa, description.value_length_swa), (Some(5), Some(6)));
}

#[test]
fn windows_by_period() {
    let of = |name: &str, blocks| base(name, blocks).set(&format!("{name}.attention.sliding_window"), 16u32);
    assert_eq!(kinds(base("gemma2", 4)), [SlidingWindow, Attention, SlidingWindow, Attention]);
    assert_eq!(describe(&base("gemma2", 4)).sliding_window, Some(4096));
    assert_eq!(kinds(of("gemma3", 7)).iter().filter(|&&kind| kind == Attention).count(), 1);
    assert_eq!(kinds(of("gemma3", 7))[5], Attention);
    assert_eq!(kinds(base("gemma3", 2)), [Attention, Attention]);
    assert_eq!(kinds(of("cohere2moe", 4)), [Attention, SlidingWindow, SlidingWindow, SlidingWindow]);
    let period = of("gemma3", 4).set("gemma3.attention.sliding_window_pattern", 2u32);
    assert_eq!(kinds(period), [SlidingWindow, Attention, SlidingWindow, Attention]);
    let listed = of("gemma3", 3).set("gemma3.attention.sliding_window_pattern", &[false, true, false][..]);
    assert_eq!(kinds(listed), [Attention, SlidingWindow, Attention]);
    assert_eq!(kinds(of("llama", 2)), [Attention, Attention], "llama has none, whatever the file says");
    assert_eq!(describe(&of("llama4", 4)).sliding_window, Some(8192));
}

#[test]
fn recurrent_layers() {
    assert_eq!(kinds(qwen35()), [Recurrent, Recurrent, Recurrent, Attention]);
    assert_eq!(
        kinds(qwen35().set("qwen35.full_attention_interval", 2u32)),
        [Recurrent, Attention, Recurrent, Attention]
    );
    let listed = qwen35().set("qwen35.attention.recurrent_layers", &[false, true, true, false, false][..]);
    assert_eq!(kinds(listed), [Attention, Recurrent, Recurrent, Attention]);
    assert_eq!(kinds(base("mamba", 2)), [Recurrent, Recurrent]);
    let jamba = base("jamba", 3).set("jamba.attention.head_count_kv", &[0u32, 2, 0][..]);
    assert_eq!(kinds(jamba), [Recurrent, Attention, Recurrent]);
    assert_eq!(kinds(base("falcon-h1", 2)), [AttentionAndState, AttentionAndState]);
    let nemotron = base("nemotron_h", 3)
        .set("nemotron_h.attention.head_count_kv", &[0u32, 0, 2][..])
        .set("nemotron_h.feed_forward_length", &[0u32, 64, 0][..]);
    assert_eq!(kinds(nemotron), [Recurrent, Nothing, Attention]);
    let zero = describe(&qwen35().set("qwen35.full_attention_interval", 0u32));
    assert_eq!(zero.defects[0].outcome, Outcome::Aborts);
}

#[test]
fn memory_of_a_context() {
    let description = describe(&llama());
    // Two layers, two heads of 8 for keys and as much for values.
    assert_eq!(description.kv_bytes_per_token(KvType::F16, KvType::F16), 2 * 2 * 16 * 2);
    assert_eq!(description.kv_bytes_per_token(KvType::F32, KvType::Q8_0), 2 * (64 + 34));
    assert_eq!(description.state_bytes(), 0);
    assert_eq!(description.context_bytes(100, KvType::F16, KvType::F16), 100 * 128);

    let description = describe(&qwen35());
    assert_eq!(description.kv_bytes_per_token(KvType::F16, KvType::F16), 2 * 16 * 2);
    // Three states: three columns of 64 channels, and 8 numbers for each of 32.
    assert_eq!(description.state_bytes(), 3 * 4 * (3 * (32 + 2 * 2 * 8) + 8 * 32));

    let gemma = describe(&base("gemma3", 6).set("gemma3.attention.sliding_window", 16u32));
    assert_eq!(gemma.kv_bytes_per_token(KvType::F16, KvType::F16), 64);
    assert_eq!(gemma.window_bytes_per_token(KvType::F16, KvType::F16), 5 * 64);
    assert_eq!(gemma.context_bytes(100, KvType::F16, KvType::F16), 100 * 64 + 16 * 5 * 64);

    // Keys that hold the values too.
    let latent = base("deepseek2", 2)
        .set("deepseek2.attention.head_count_kv", 1u32)
        .set("deepseek2.attention.key_length", 24u32)
        .set("deepseek2.attention.key_length_mla", 12u32)
        .set("deepseek2.attention.value_length_mla", 8u32);
    assert_eq!(describe(&latent).kv_bytes_per_token(KvType::F16, KvType::F16), 2 * 24 * 2);
}

#[test]
fn layers_that_share_keys_have_none() {
    let gemma4 = tokens(base("gemma4", 4))
        .set("gemma4.attention.sliding_window", 16u32)
        .set("gemma4.attention.sliding_window_pattern", &[true, false, true, false][..])
        .set("gemma4.attention.shared_kv_layers", 2u32);
    let description = describe(&gemma4);
    assert_eq!(description.shared_layers, [false, false, true, true]);
    assert_eq!(description.kv_bytes_per_token(KvType::F16, KvType::F16), 64);
    assert_eq!(description.window_bytes_per_token(KvType::F16, KvType::F16), 64);
    let none = gemma4.set("gemma4.attention.shared_kv_layers", 3u32);
    assert!(defects(&none).contains(&("gemma4.attention.shared_kv_layers".into(), Outcome::Aborts)));
}

#[test]
fn widths_that_are_handed_out() {
    assert_eq!(describe(&llama().set("llama.embedding_length_out", 48u32)).output_width, Some(48));
    let hyper = base("qwen4exp", 2).set("qwen4exp.hyper_connection.count", 4u32);
    assert_eq!(describe(&hyper).output_width, Some(128));
}

#[test]
fn quantizations_have_llama_cpp_s_names() {
    let named = |made: Made| describe(&made).quantization;
    assert_eq!(named(llama().set("general.file_type", 15u32)), "Q4_K - Medium");
    assert_eq!(named(llama().set("general.file_type", 99u32)), "file type 99");
    let mut half = llama();
    half.tensors.iter_mut().for_each(|tensor| tensor.kind = if tensor.shape.len() > 1 { 8 } else { 0 });
    assert_eq!(named(half), "Q8_0");
}
