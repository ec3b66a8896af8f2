//! What a file is.

use super::made::{base, eagle3, llama, qwen35, tokens};
use super::*;

fn kind(made: &Made) -> Kind {
    describe(made).kind
}

#[test]
fn language_models_and_their_mtp_heads() {
    assert_eq!(kind(&llama()), Kind::Generative);
    let whole = qwen35();
    let description = describe(&whole);
    assert_eq!(description.defects, []);
    assert_eq!(description.kind, Kind::GenerativeWithMtp);
    assert_eq!((description.layers, description.mtp_layers, description.block_count), (4, 1, Some(5)));
    assert!(description.mtp_heads && description.trunk && description.multi_axis_rope);

    let mut trunk = whole.clone();
    trunk.tensors.retain(|tensor| !tensor.name.starts_with("blk.4."));
    let description = describe(&trunk);
    assert_eq!((description.kind, description.mtp_heads, description.mtp_layers), (Kind::Generative, false, 1));
    assert_eq!(description.defects, []);

    let mut head = whole;
    head.tensors.retain(|tensor| !tensor.name.starts_with("blk.") || tensor.name.starts_with("blk.4."));
    let description = describe(&head);
    assert_eq!((description.kind, description.trunk), (Kind::MtpHead, false));
    assert_eq!(description.defects, []);
}

#[test]
fn dependent_drafts() {
    let description = describe(&eagle3());
    assert_eq!(description.defects, []);
    assert_eq!(description.kind, Kind::Eagle3);
    assert_eq!((description.target_layers, description.target_width), (vec![0, 1, 2], Some(48)));
    assert!(!description.own_embeddings && !description.own_head);

    let dflash = tokens(base("dflash", 1)).set("dflash.target_layers", &[0u32, 2][..]).tensor("fc.weight", &[64, 32]);
    assert_eq!(kind(&dflash), Kind::Dflash);
    let dflash2 = dflash.clone().tensor("selector_hidden.weight", &[32, 4]);
    assert_eq!(kind(&dflash2), Kind::Dflash2);
    let dspark = dflash.set("dflash.block_size", 8u32).tensor("markov_w1.weight", &[4, 40]);
    let description = describe(&dspark);
    assert_eq!((description.kind, description.block_size, description.target_width), (Kind::Dspark, Some(8), Some(32)));
    assert!(!description.confidence_head);
    assert!(describe(&dspark.tensor("conf_proj.weight", &[36, 1])).confidence_head);

    let assistant = tokens(base("gemma4-assistant", 2))
        .set("gemma4-assistant.nextn_predict_layers", 2u32)
        .set("gemma4-assistant.embedding_length_out", 64u32)
        .tensor("nextn.pre_projection.weight", &[128, 32]);
    let description = describe(&assistant);
    assert_eq!((description.kind, description.layers, description.mtp_heads), (Kind::Gemma4Assistant, 0, true));
    assert_eq!((description.output_width, description.target_width), (Some(64), Some(64)));
}

#[test]
fn models_that_do_not_generate() {
    let with = |name: &str, made: Made| tokens(made).tensor("token_embd.weight", &[32, 40]).set("general.name", name);
    assert_eq!(kind(&with("bert", base("bert", 1))), Kind::Encoder);
    assert_eq!(kind(&with("bert", base("bert", 1).set("bert.pooling_type", 1u32))), Kind::Embedding);
    assert_eq!(kind(&with("bert", base("bert", 1).set("bert.pooling_type", 4u32))), Kind::Reranker);
    assert_eq!(kind(&with("t5", base("t5", 1))), Kind::EncoderDecoder);
    assert_eq!(kind(&with("dream", base("dream", 1))), Kind::Diffusion);
    assert_eq!(kind(&llama().set("llama.pooling_type", 3u32)), Kind::Embedding);
    assert_eq!(kind(&llama().set("llama.pooling_type", 0u32)), Kind::Generative);
    assert_eq!(kind(&llama().set("llama.pooling_type", 4u32)), Kind::Reranker);
    assert_eq!(kind(&llama().set("llama.attention.causal", false)), Kind::Embedding);
    let mut vocabulary = llama();
    vocabulary.tensors.clear();
    assert_eq!(kind(&vocabulary), Kind::VocabularyOnly);
}

#[test]
fn files_that_are_no_models() {
    let typed = |kind: &str| Made::new().set("general.type", kind).set("general.architecture", "llama");
    assert_eq!(kind(&typed("adapter")), Kind::LoraAdapter);
    assert_eq!(kind(&Made::new().set("general.type", "imatrix")), Kind::ImportanceMatrix);
    assert_eq!(kind(&Made::new().set("general.architecture", "controlvector")), Kind::ControlVector);
    assert_eq!(kind(&Made::new().set("general.architecture", "clip")), Kind::Projector);
    for unknown in
        [Made::new(), Made::new().set("general.architecture", "qwen99"), Made::new().set("general.architecture", 7u32)]
    {
        let description = describe(&unknown);
        assert_eq!(description.kind, Kind::Unknown);
        assert_eq!(description.defects.len(), 1, "{:?}", description.defects);
        assert_eq!(description.defects[0].place, "general.architecture");
    }
}

#[test]
fn a_kind_has_a_name_in_words_and_one_for_programs() {
    assert_eq!(Kind::GenerativeWithMtp.to_string(), "a language model with MTP heads");
    assert_eq!(serde_json::to_string(&Kind::GenerativeWithMtp).unwrap(), "\"generative-with-mtp\"");
    assert!(Kind::Eagle3.is_dependent_draft() && !Kind::Eagle3.is_generative());
}
