//! Small models that llama.cpp would load, to be changed by tests.

use crate::gguf::made::{Made, Raw};

/// The number of tokens of all these models.
pub(super) const VOCABULARY: u64 = 40;

/// Llama with two layers of width 32, four heads and two of keys and values.
pub(super) fn llama() -> Made {
    let made = attention(base("llama", 2), 2, 32);
    tokens(made).tensor("token_embd.weight", &[32, VOCABULARY]).tensor("output_norm.weight", &[32])
}

/// Qwen 3.5 with four layers, the last with attention, and an MTP head.
pub(super) fn qwen35() -> Made {
    let mut made = tokens(base("qwen35", 5))
        .set("qwen35.nextn_predict_layers", 1u32)
        .set("qwen35.rope.dimension_sections", &[2i32, 1, 1, 0][..])
        .set("qwen35.ssm.conv_kernel", 4u32)
        .set("qwen35.ssm.inner_size", 32u32)
        .set("qwen35.ssm.state_size", 8u32)
        .set("qwen35.ssm.time_step_rank", 4u32)
        .set("qwen35.ssm.group_count", 2u32)
        .tensor("token_embd.weight", &[32, VOCABULARY])
        .tensor("output_norm.weight", &[32]);
    for layer in 0..5u32 {
        let name = |name: &str| format!("blk.{layer}.{name}");
        made = made.tensor(&name("attn_norm.weight"), &[32]).tensor(&name("post_attention_norm.weight"), &[32]);
        for (matrix, shape) in [("gate", [32, 64]), ("up", [32, 64]), ("down", [64, 32])] {
            made = made.tensor(&name(&format!("ffn_{matrix}.weight")), &shape);
        }
        if layer < 3 {
            made = made
                .tensor(&name("attn_qkv.weight"), &[32, 64])
                .tensor(&name("attn_gate.weight"), &[32, 32])
                .tensor(&name("ssm_conv1d.weight"), &[4, 64])
                .tensor(&name("ssm_dt.bias"), &[4])
                .tensor(&name("ssm_a"), &[4])
                .tensor(&name("ssm_beta.weight"), &[32, 4])
                .tensor(&name("ssm_alpha.weight"), &[32, 4])
                .tensor(&name("ssm_norm.weight"), &[8])
                .tensor(&name("ssm_out.weight"), &[32, 32]);
        } else {
            made = made
                .tensor(&name("attn_q.weight"), &[32, 64])
                .tensor(&name("attn_k.weight"), &[32, 16])
                .tensor(&name("attn_v.weight"), &[32, 16])
                .tensor(&name("attn_output.weight"), &[32, 32])
                .tensor(&name("attn_q_norm.weight"), &[8])
                .tensor(&name("attn_k_norm.weight"), &[8]);
        }
    }
    made.tensor("blk.4.nextn.eh_proj.weight", &[64, 32])
        .tensor("blk.4.nextn.enorm.weight", &[32])
        .tensor("blk.4.nextn.hnorm.weight", &[32])
}

/// EAGLE-3 for a target of width 48.
pub(super) fn eagle3() -> Made {
    let made = tokens(base("eagle3", 1))
        .set("eagle3.target_layers", &[0i32, 1, 2][..])
        .set("eagle3.target_hidden_size", 48u32)
        .tensor("fc.weight", &[144, 32])
        .tensor("output_norm.weight", &[32])
        .tensor("blk.0.attn_norm_2.weight", &[32]);
    attention(made, 1, 64)
}

/// The keys of every architecture, for layers of width 32 with four heads of 8, two of them for keys and values.
pub(super) fn base(name: &str, blocks: u32) -> Made {
    let key = |suffix: &str| format!("{name}.{suffix}");
    Made::new()
        .set("general.architecture", name)
        .set("general.name", "made")
        .set(&key("context_length"), 512u32)
        .set(&key("embedding_length"), 32u32)
        .set(&key("block_count"), blocks)
        .set(&key("feed_forward_length"), 64u32)
        .set(&key("attention.head_count"), 4u32)
        .set(&key("attention.head_count_kv"), 2u32)
        .set(&key("attention.layer_norm_rms_epsilon"), 1e-5f32)
}

/// A byte-level vocabulary without merges.
pub(super) fn tokens(made: Made) -> Made {
    let texts: Vec<String> = (0..VOCABULARY).map(|id| format!("<{id}>")).collect();
    made.set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "default")
        .set("tokenizer.ggml.tokens", &texts[..])
        .set("tokenizer.ggml.token_type", &vec![1i32; VOCABULARY as usize][..])
        .set("tokenizer.ggml.merges", texts_none())
        .set("tokenizer.ggml.bos_token_id", 1u32)
        .set("tokenizer.ggml.eos_token_id", 2u32)
}

fn texts_none() -> Raw {
    Raw::from(&Vec::<String>::new()[..])
}

/// Layers with attention and a feed-forward network; the matrices of attention read `input` numbers.
fn attention(mut made: Made, layers: u32, input: u64) -> Made {
    for layer in 0..layers {
        let name = |name: &str| format!("blk.{layer}.{name}.weight");
        made = made
            .tensor(&name("attn_norm"), &[32])
            .tensor(&name("attn_q"), &[input, 32])
            .tensor(&name("attn_k"), &[input, 16])
            .tensor(&name("attn_v"), &[input, 16])
            .tensor(&name("attn_output"), &[32, 32])
            .tensor(&name("ffn_norm"), &[32])
            .tensor(&name("ffn_gate"), &[32, 64])
            .tensor(&name("ffn_up"), &[32, 64])
            .tensor(&name("ffn_down"), &[64, 32]);
    }
    made
}
