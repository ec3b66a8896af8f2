//! Models that do not generate text token by token: encoders, embedding models, rerankers, encoder-decoders, diffusion.

use std::sync::LazyLock;

use super::{
    llama::Llama,
    named::Named,
    sample::{CONTEXT, HEADS, INSIDE, LAYERS, Sample, WIDTH, model, ones, random, vocabulary, zeros},
};
use crate::gguf::Gguf;

/// How llama.cpp numbers the ways of pooling.
const MEAN: u32 = 1;
const LAST: u32 = 3;
const RANK: u32 = 4;

/// The named files of these kinds.
pub(super) const FILES: &[Named] = &[
    Named::new("encoder", "an encoder (bert) without pooling", || Box::new(Sample::new("encoder", || bert(None)))),
    Named::new("embedding", "an embedding model (bert, mean pooling)", || {
        Box::new(Sample::new("embedding", || bert(Some(MEAN))))
    }),
    Named::new("reranker", "a reranker (bert, rank pooling)", || {
        Box::new(Sample::new("reranker", || bert(Some(RANK))))
    }),
    Named::new("embedding-causal", "an embedding model of a generative architecture (llama, last pooling)", || {
        Box::new(Sample::new("embedding-causal", pooled_llama))
    }),
    Named::new("encoder-decoder", "an encoder-decoder (t5)", || Box::new(Sample::new("encoder-decoder", t5))),
    Named::new("encoder-of-t5", "the encoder of an encoder-decoder (t5encoder)", || {
        Box::new(Sample::new("encoder-of-t5", t5_encoder))
    }),
    Named::new("diffusion", "a diffusion model (dream)", || Box::new(Sample::new("diffusion", || diffusion("dream")))),
    Named::new("diffusion-llada", "another diffusion model (llada)", || {
        Box::new(Sample::new("diffusion-llada", || diffusion("llada")))
    }),
];

fn bert(pooling: Option<u32>) -> Gguf<'static> {
    let mut gguf = model("bert");
    gguf.set("bert.attention.layer_norm_epsilon", 1e-5f32)
        .set("bert.attention.causal", false)
        .set("tokenizer.ggml.token_type_count", 2u32);
    if let Some(pooling) = pooling {
        gguf.set("bert.pooling_type", pooling);
    }
    gguf.add(random("token_embd.weight", WIDTH, vocabulary().size().into()))
        .add(random("token_types.weight", WIDTH, 2))
        .add(random("position_embd.weight", WIDTH, CONTEXT.into()))
        .add(ones("token_embd_norm.weight", WIDTH))
        .add(zeros("token_embd_norm.bias", WIDTH));
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}");
        add_attention(&mut gguf, &format!("blk.{layer}."), "attn_output");
        gguf.add(ones(name("attn_output_norm.weight"), WIDTH))
            .add(zeros(name("attn_output_norm.bias"), WIDTH))
            .add(random(name("ffn_up.weight"), WIDTH, INSIDE))
            .add(random(name("ffn_down.weight"), INSIDE, WIDTH))
            .add(ones(name("layer_output_norm.weight"), WIDTH))
            .add(zeros(name("layer_output_norm.bias"), WIDTH));
    }
    if pooling == Some(RANK) {
        gguf.add(random("cls.weight", WIDTH, WIDTH)).add(zeros("cls.bias", WIDTH));
        gguf.add(random("cls.output.weight", WIDTH, 1)).add(zeros("cls.output.bias", 1));
    }
    gguf
}

fn pooled_llama() -> Gguf<'static> {
    // A model that lives as long as the program, since the file's rows are made of it.
    static MODEL: LazyLock<Llama> = LazyLock::new(|| Llama::target(1).labelled("embedding-causal"));
    let mut gguf = MODEL.gguf();
    gguf.set("llama.pooling_type", LAST);
    gguf
}

fn add_attention(gguf: &mut Gguf<'static>, prefix: &str, output: &str) {
    for matrix in ["attn_q", "attn_k", "attn_v", output] {
        gguf.add(random(format!("{prefix}{matrix}.weight"), WIDTH, WIDTH));
    }
}

fn t5() -> Gguf<'static> {
    let mut gguf = t5_base("t5");
    gguf.set("t5.decoder_start_token_id", 0u32).set("t5.decoder_block_count", LAYERS);
    gguf.add(ones("dec.output_norm.weight", WIDTH));
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("dec.blk.{layer}.{tensor}.weight");
        add_attention(&mut gguf, &format!("dec.blk.{layer}."), "attn_o");
        for matrix in ["cross_attn_q", "cross_attn_k", "cross_attn_v", "cross_attn_o"] {
            gguf.add(random(name(matrix), WIDTH, WIDTH));
        }
        gguf.add(ones(name("attn_norm"), WIDTH))
            .add(random(name("attn_rel_b"), HEADS.into(), 32))
            .add(ones(name("cross_attn_norm"), WIDTH))
            .add(ones(name("ffn_norm"), WIDTH))
            .add(random(name("ffn_up"), WIDTH, INSIDE))
            .add(random(name("ffn_down"), INSIDE, WIDTH));
    }
    gguf
}

fn t5_encoder() -> Gguf<'static> {
    t5_base("t5encoder")
}

/// What an encoder-decoder and its encoder alone have in common.
fn t5_base(architecture: &str) -> Gguf<'static> {
    let mut gguf = model(architecture);
    gguf.set(format!("{architecture}.attention.layer_norm_rms_epsilon"), 1e-5f32)
        .set(format!("{architecture}.attention.relative_buckets_count"), 32u32);
    gguf.add(random("token_embd.weight", WIDTH, vocabulary().size().into()))
        .add(ones("enc.output_norm.weight", WIDTH))
        .add(random("output.weight", WIDTH, vocabulary().size().into()));
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("enc.blk.{layer}.{tensor}.weight");
        add_attention(&mut gguf, &format!("enc.blk.{layer}."), "attn_o");
        gguf.add(ones(name("attn_norm"), WIDTH))
            .add(random(name("attn_rel_b"), HEADS.into(), 32))
            .add(ones(name("ffn_norm"), WIDTH))
            .add(random(name("ffn_up"), WIDTH, INSIDE))
            .add(random(name("ffn_down"), INSIDE, WIDTH));
    }
    gguf
}

fn diffusion(architecture: &str) -> Gguf<'static> {
    let mut gguf = model(architecture);
    gguf.set(format!("{architecture}.attention.layer_norm_rms_epsilon"), 1e-5f32)
        .set("tokenizer.ggml.mask_token_id", vocabulary().size() - 1)
        .set("diffusion.shift_logits", architecture == "dream");
    gguf.add(random("token_embd.weight", WIDTH, vocabulary().size().into()))
        .add(ones("output_norm.weight", WIDTH))
        .add(random("output.weight", WIDTH, vocabulary().size().into()));
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        add_attention(&mut gguf, &format!("blk.{layer}."), "attn_output");
        gguf.add(ones(name("attn_norm"), WIDTH))
            .add(ones(name("ffn_norm"), WIDTH))
            .add(random(name("ffn_gate"), WIDTH, INSIDE))
            .add(random(name("ffn_up"), WIDTH, INSIDE))
            .add(random(name("ffn_down"), INSIDE, WIDTH));
    }
    gguf
}
