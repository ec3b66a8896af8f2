//! Files that are no model by themselves: adapters, control vectors, projectors, vocabularies, importance matrices.

use super::{
    llama::Llama,
    named::Named,
    sample::{Sample, ones, random, zeros},
};
use crate::{
    gguf::{Gguf, Tensor},
    vocab::{Kind, Vocabulary},
};

/// The named files of these kinds, made for the target of the zoo.
pub(super) const FILES: &[Named] = &[
    Named::new("lora", "a LoRA adapter for the target", || Box::new(Sample::new("lora", lora))),
    Named::new("control-vector", "a control vector for the target", || {
        Box::new(Sample::new("control-vector", control_vector))
    }),
    Named::new("projector", "a projector of images (clip)", || Box::new(Sample::new("projector", projector))),
    Named::new("vocabulary", "the target's vocabulary without weights", || {
        Box::new(Sample::new("vocabulary", vocabulary_only))
    }),
    Named::new("importance-matrix", "an importance matrix of the target", || {
        Box::new(Sample::new("importance-matrix", importance_matrix))
    }),
];

fn target_width() -> u64 {
    Llama::target(1).shape().width.into()
}

fn lora() -> Gguf<'static> {
    const RANK: u64 = 4;
    let width = target_width();
    let mut gguf = Gguf::new();
    gguf.set("general.type", "adapter")
        .set("general.architecture", "llama")
        .set("general.name", "zoo lora")
        .set("adapter.type", "lora")
        .set("adapter.lora.alpha", 1f32);
    for layer in 0..Llama::target(1).shape().layers {
        let name = format!("blk.{layer}.attn_q.weight");
        gguf.add(random(format!("{name}.lora_a"), width, RANK));
        gguf.add(random(format!("{name}.lora_b"), RANK, width));
    }
    gguf
}

fn control_vector() -> Gguf<'static> {
    let layers = Llama::target(1).shape().layers;
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "controlvector")
        .set("controlvector.model_hint", "llama")
        .set("controlvector.layer_count", layers as i32 - 1);
    for layer in 1..layers {
        gguf.add(Tensor::constant(format!("direction.{layer}"), target_width(), 0.01));
    }
    gguf
}

fn projector() -> Gguf<'static> {
    const WIDTH: u64 = 32;
    const PATCH: u64 = 4;
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "clip")
        .set("general.type", "mmproj")
        .set("general.name", "zoo projector")
        .set("general.file_type", 0u32)
        .set("clip.has_vision_encoder", true)
        .set("clip.projector_type", "mlp")
        .set("clip.use_gelu", true)
        .set("clip.vision.image_size", 16u32)
        .set("clip.vision.patch_size", PATCH as u32)
        .set("clip.vision.embedding_length", WIDTH as u32)
        .set("clip.vision.feed_forward_length", 64u32)
        .set("clip.vision.block_count", 1u32)
        .set("clip.vision.projection_dim", target_width() as u32)
        .set("clip.vision.attention.head_count", 2u32)
        .set("clip.vision.attention.layer_norm_epsilon", 1e-5f32)
        .set("clip.vision.image_mean", vec![0.5f32; 3])
        .set("clip.vision.image_std", vec![0.5f32; 3]);
    gguf.add(random("v.patch_embd.weight", PATCH, PATCH * 3 * WIDTH).with_shape(vec![PATCH, PATCH, 3, WIDTH]))
        .add(random("v.position_embd.weight", WIDTH, 17))
        .add(zeros("v.class_embd", WIDTH))
        .add(ones("v.pre_ln.weight", WIDTH))
        .add(zeros("v.pre_ln.bias", WIDTH));
    for matrix in ["attn_q", "attn_k", "attn_v", "attn_out"] {
        gguf.add(random(format!("v.blk.0.{matrix}.weight"), WIDTH, WIDTH));
        gguf.add(zeros(format!("v.blk.0.{matrix}.bias"), WIDTH));
    }
    for norm in ["ln1", "ln2"] {
        gguf.add(ones(format!("v.blk.0.{norm}.weight"), WIDTH)).add(zeros(format!("v.blk.0.{norm}.bias"), WIDTH));
    }
    gguf.add(random("v.blk.0.ffn_up.weight", WIDTH, 64))
        .add(zeros("v.blk.0.ffn_up.bias", 64))
        .add(random("v.blk.0.ffn_down.weight", 64, WIDTH))
        .add(zeros("v.blk.0.ffn_down.bias", WIDTH))
        .add(random("mm.0.weight", WIDTH, target_width()))
        .add(zeros("mm.0.bias", target_width()))
        .add(random("mm.2.weight", target_width(), target_width()))
        .add(zeros("mm.2.bias", target_width()));
    gguf
}

fn vocabulary_only() -> Gguf<'static> {
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "llama").set("general.type", "model").set("general.name", "zoo vocabulary");
    for (key, value) in
        [("block_count", 3), ("context_length", 4096), ("embedding_length", 128), ("attention.head_count", 4)]
    {
        gguf.set(format!("llama.{key}"), value as u32);
    }
    gguf.set("llama.feed_forward_length", 256u32).set("llama.attention.layer_norm_rms_epsilon", 1e-5f32);
    Vocabulary::new(Kind::ByteLevel).describe(&mut gguf);
    gguf
}

fn importance_matrix() -> Gguf<'static> {
    let mut gguf = Gguf::new();
    gguf.set("general.type", "imatrix")
        .set("imatrix.datasets", vec!["text.txt".to_owned()])
        .set("imatrix.chunk_count", 1u32)
        .set("imatrix.chunk_size", 512u32);
    for layer in 0..Llama::target(1).shape().layers {
        let name = format!("blk.{layer}.attn_q.weight");
        gguf.add(ones(format!("{name}.in_sum2"), target_width()).with_shape(vec![target_width(), 1]));
        gguf.add(ones(format!("{name}.counts"), 1).with_shape(vec![1, 1]));
    }
    gguf
}
