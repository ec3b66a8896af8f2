//! What makes llama.cpp refuse a file, or abort.

use super::made::{base, eagle3, llama, qwen35, tokens};
use super::*;
use crate::gguf::made::{Raw, raw};
use Outcome::{Aborts, Refused};

#[track_caller]
fn only(made: &Made, place: &str, outcome: Outcome) {
    let found = defects(made);
    assert!(found.contains(&(place.to_owned(), outcome)), "{place} {outcome:?} is not among {found:?}");
}

#[test]
fn keys_that_every_model_needs() {
    for key in ["context_length", "embedding_length", "block_count"] {
        let key = format!("llama.{key}");
        only(&llama().without(&key), &key, Refused);
        for wrong in [Raw::from(2u64), Raw::from(2i32), Raw::from("2"), Raw::from(2.0f32), Raw::from(&[2u32][..])] {
            only(&llama().set(&key, wrong), &key, Refused);
        }
    }
    only(&llama().without("llama.attention.layer_norm_rms_epsilon"), "llama.attention.layer_norm_rms_epsilon", Refused);
}

#[test]
fn numbers_out_of_range() {
    for blocks in [0u32, 513, u32::MAX] {
        only(&llama().set("llama.block_count", blocks), "llama.block_count", Aborts);
    }
    only(&llama().set("llama.nextn_predict_layers", 3u32), "llama.nextn_predict_layers", Aborts);
    only(&llama().set("llama.rope.scaling.type", "cubic"), "llama.rope.scaling.type", Aborts);
    only(&llama().set("llama.rope.section_order", "xyz"), "llama.rope.section_order", Refused);
    only(&llama().set("llama.classifier.activation", "relu"), "llama.classifier.activation", Aborts);
    for epsilon in [-1.0f32, f32::NAN] {
        let made = llama().set("llama.attention.layer_norm_rms_epsilon", epsilon);
        only(&made, "llama.attention.layer_norm_rms_epsilon", Aborts);
    }
    only(&llama().set("llama.attention.head_count_kv", 3u32), "llama.attention.head_count_kv", Aborts);
    only(&llama().set("llama.attention.head_count", &[4u32, 4, 4][..]), "llama.attention.head_count", Refused);
    only(&llama().set("llama.attention.head_count", &[4u64, 4][..]), "llama.attention.head_count", Refused);
    only(&llama().set("llama.rope.dimension_count", 4u32), "llama.rope.dimension_count", Refused);
    only(&llama().set("llama.attention.value_length", 4u32), "llama.attention.value_length", Aborts);
}

#[test]
fn experts_that_do_not_add_up() {
    let experts = |count: u32, used: u32, groups: u32, group_used: u32| {
        llama()
            .set("llama.expert_count", count)
            .set("llama.expert_used_count", used)
            .set("llama.expert_group_count", groups)
            .set("llama.expert_group_used_count", group_used)
    };
    only(&experts(0, 1, 0, 0), "llama.expert_used_count", Aborts);
    only(&experts(4, 5, 0, 0), "llama.expert_used_count", Aborts);
    only(&experts(4, 0, 0, 0), "llama.expert_used_count", Aborts);
    only(&experts(1025, 2, 0, 0), "llama.expert_count", Aborts);
    only(&experts(4, 2, 4, 0), "llama.expert_group_count", Aborts);
    only(&experts(8, 2, 3, 1), "llama.expert_group_count", Aborts);
    only(&experts(8, 2, 4, 4), "llama.expert_group_used_count", Aborts);
    only(&experts(0, 0, 2, 0), "llama.expert_group_count", Aborts);
    let right = describe(&experts(8, 2, 4, 2));
    assert!(right.defects.iter().all(|defect| defect.place.starts_with("blk.")), "{:?}", right.defects);
    assert_eq!((right.experts, right.experts_used), (Some(8), Some(2)));
}

/// Every tensor of a model: missing, of another shape, of a type that cannot be computed with.
#[test]
fn every_tensor_is_checked() {
    for made in [llama(), qwen35(), eagle3()] {
        assert_eq!(defects(&made), []);
        for tensor in &made.tensors {
            let name = tensor.name.as_str();
            // Without the markers a file is another kind of model, and complete.
            if !matches!(name, "blk.0.attn_norm.weight" | "blk.4.nextn.eh_proj.weight" | "blk.0.attn_qkv.weight") {
                assert_ne!(defects(&made.clone().without(name)), [], "without {name}");
            }
            for dimension in 0..tensor.shape.len() {
                let mut shape = tensor.shape.clone();
                shape[dimension] += 32;
                only(&made.clone().tensor(name, &shape), name, Refused);
            }
            let mut shape = tensor.shape.clone();
            shape.push(2);
            only(&made.clone().tensor(name, &shape), name, Refused);
            only(&made.clone().tensor_of(name, 26, &tensor.shape), name, Aborts);
        }
    }
}

#[test]
fn tensors_that_nobody_asks_for() {
    only(&llama().tensor("blk.0.attn_extra.weight", &[32]), "blk.0.attn_extra.weight", Refused);
    only(&llama().tensor("blk.2.attn_norm.weight", &[32]), "blk.2.attn_norm.weight", Refused);
    let more = llama()
        .tensor("output.weight", &[32, 40])
        .tensor("rope_freqs.weight", &[4])
        .tensor("blk.0.attn_q.bias", &[32])
        .tensor("blk.0.ffn_up.scale", &[1]);
    assert_eq!(defects(&more), []);
    let fused = llama()
        .without("blk.1.attn_q.weight")
        .without("blk.1.attn_k.weight")
        .without("blk.1.attn_v.weight")
        .tensor("blk.1.attn_qkv.weight", &[32, 64]);
    assert_eq!(defects(&fused), []);
}

#[test]
fn drafts_that_do_not_fit_together() {
    only(&eagle3().set("eagle3.target_layers", &[0i32, 1][..]), "eagle3.target_layers", Refused);
    only(&eagle3().without("eagle3.target_layers"), "eagle3.target_layers", Refused);
    only(&eagle3().set("eagle3.target_layers", &[0u64, 1, 2][..]), "eagle3.target_layers", Refused);
    only(&eagle3().without("eagle3.target_hidden_size"), "eagle3.target_hidden_size", Refused);
    only(&eagle3().set("eagle3.block_count", 2u32), "eagle3.block_count", Aborts);
    only(&eagle3().tensor_of("d2t", 26, &[20]), "d2t", Aborts);
    let dflash = tokens(base("dflash", 1)).tensor("fc.weight", &[64, 32]);
    only(&dflash, "dflash.target_layers", Refused);
    only(&dflash.clone().set("dflash.target_layers", &Vec::<u32>::new()[..]), "dflash.target_layers", Aborts);
    let dspark = dflash.set("dflash.target_layers", &[1u32][..]).tensor("markov_w1.weight", &[4, 40]);
    only(&dspark, "dflash.block_size", Aborts);
}

#[test]
fn a_map_of_ids_is_read() {
    let made = eagle3().tensor_of("d2t", 27, &[20]).tensor("output.weight", &[32, 20]);
    // The map is the last but one; its content comes behind the header.
    let (mut bytes, len) = made.header();
    let offset = open(&made).unwrap().tensor("d2t").unwrap().offset as usize;
    bytes.resize(offset + 160, 0);
    for (place, id) in (offset..).step_by(8).zip([3i64, 38, 7]) {
        bytes[place..place + 8].copy_from_slice(&id.to_le_bytes());
    }
    let file = ModelFile::from_header("made.gguf", &bytes, len).unwrap();
    let map = file.description().draft_vocabulary.clone().unwrap();
    assert_eq!((map.kind, map.size, map.smallest, map.largest), ("i64", 20, Some(0), Some(38)));
    assert_eq!(file.description().defects, []);
    // Only the header was given: the content is unknown, which is no defect.
    assert_eq!(describe(&made).draft_vocabulary.unwrap().largest, None);
    bytes[offset..offset + 8].copy_from_slice(&(-1i64).to_le_bytes());
    let file = ModelFile::from_header("made.gguf", &bytes, len).unwrap();
    assert_eq!(file.description().defects[0].place, "d2t");
}

/// However many things are wrong, the list stays short.
#[test]
fn a_list_of_defects_has_an_end() {
    let made = llama().set("llama.embedding_length", 64u32).set("llama.block_count", 512u32);
    let found = describe(&made).defects;
    assert!((10..=40).contains(&found.len()), "{}", found.len());
}

#[test]
fn a_description_can_be_written_as_json() {
    let text = serde_json::to_string(&describe(&llama().set("llama.block_count", raw(10, &[0; 8])))).unwrap();
    assert!(text.contains("\"kind\":\"generative\"") && text.contains("\"outcome\":\"refused\""), "{text}");
}
