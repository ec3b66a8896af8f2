//! The files of the zoo that are no plain llama: which load, what they answer, and which are refused.

use llama_spec::{Batch, ContextOptions, Error, Model, Rollback, Slot, Token};
use llama_spec_tests::{vocab::Special, zoo};
use llama_sys as sys;

use crate::raw::{self, argmax};

pub(crate) fn options() -> ContextOptions {
    ContextOptions::default().length_per_slot(1024).threads(1)
}

fn tokens(ids: &[u32]) -> Vec<Token> {
    ids.iter().map(|id| Token::new(*id as i32)).collect()
}

/// Decodes `prompt` in one batch and `text` token by token, and gives the greedy successor of each.
pub(crate) fn follow(model: &Model, prompt: &[u32], text: &[u32]) -> Vec<u32> {
    let mut context = model.context(&options()).unwrap();
    let mut batch = Batch::new();
    batch.push_prompt(&tokens(prompt), 0, Slot::FIRST);
    context.decode(&batch).unwrap();
    let mut next = vec![argmax(context.logits(batch.len() - 1).unwrap())];
    for (at, token) in text.iter().enumerate() {
        batch.clear();
        batch.push_prompt(&tokens(&[*token]), (prompt.len() + at) as u32, Slot::FIRST);
        context.decode(&batch).unwrap();
        next.push(argmax(context.logits(0).unwrap()));
    }
    next
}

#[test]
fn mamba_answers_as_its_oracle_says() {
    for oracle in [zoo::Mamba::target(1), zoo::Mamba::target(2), zoo::Mamba::target(1).draft(0.8)] {
        let model = Model::load(zoo::Described::cached(&oracle).unwrap()).unwrap();
        let vocabulary = oracle.vocabulary();
        for prompt in ["a", "abc", "The beginning of a text of 41 characters."] {
            let prompt = [vec![vocabulary.special(Special::Bos)], vocabulary.tokenize(prompt)].concat();
            let text = oracle.continuation(&prompt, 600);
            assert_eq!(follow(&model, &prompt, &text[..599]), text);
        }
        assert_eq!(model.context(&options()).unwrap().probe_rollback().unwrap(), Rollback::Checkpoint);
    }
}

/// All that can be loaded, and the architecture that llama.cpp finds in it.
const MODELS: &[(&str, &str)] = &[
    ("target", "llama"),
    ("mamba", "mamba"),
    ("eagle3", "eagle3"),
    ("eagle3-borrowing", "eagle3"),
    ("eagle3-reduced", "eagle3"),
    ("eagle3-narrow", "eagle3"),
    ("eagle3-recall", "eagle3"),
    ("eagle3-other-width", "eagle3"),
    ("eagle3-layer-beyond", "eagle3"),
    ("dflash", "dflash"),
    ("dflash-borrowing", "dflash"),
    ("dflash-reduced", "dflash"),
    ("dflash2", "dflash"),
    ("dflash-no-mask", "dflash"),
    ("dflash-other-width", "dflash"),
    ("dflash-layer-beyond", "dflash"),
    ("dspark", "dflash"),
    ("dspark-in-place", "dflash"),
    ("dspark-no-mask", "dflash"),
    ("dspark-no-block-size", "dflash"),
    ("dspark-other-width", "dflash"),
    ("qwen35", "qwen35"),
    ("qwen35-mtp", "qwen35"),
    ("qwen35-declared", "qwen35"),
    ("qwen35-narrow-mtp", "qwen35"),
    ("chained", "mimo2"),
    ("chained-mtp", "mimo2"),
    ("hy-v3-mtp", "hy_v3"),
    ("encoder", "bert"),
    ("embedding", "bert"),
    ("reranker", "bert"),
    ("embedding-causal", "llama"),
    ("encoder-decoder", "t5"),
    ("encoder-of-t5", "t5encoder"),
    ("diffusion", "dream"),
    ("diffusion-llada", "llada"),
];

#[test]
fn models_are_of_the_architecture_they_stand_for() {
    for (name, architecture) in MODELS {
        let loaded = Model::load(zoo::file(name));
        if *name == "dspark-no-block-size" {
            // llama.cpp would load it, and abort when a context is made.
            assert!(matches!(loaded, Err(Error::NotLoadable { .. })), "{loaded:?}");
            continue;
        }
        let model = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(model.architecture(), *architecture, "{name}");
        assert_eq!(model.is_recurrent(), *architecture == "mamba", "{name}");
        assert_eq!(model.is_diffusion(), name.starts_with("diffusion"), "{name}");
        assert_eq!(model.has_encoder(), ["eagle3", "dflash", "t5", "t5encoder"].contains(architecture), "{name}");
    }
}

#[test]
fn files_that_are_no_model_are_refused() {
    for name in ["lora", "control-vector", "projector", "vocabulary", "importance-matrix"] {
        let error = Model::load(zoo::file(name)).expect_err(name);
        assert!(matches!(error, Error::NotLoadable { .. }), "{name}: {error:?}");
    }
}

#[test]
fn a_vocabulary_without_weights_is_a_vocabulary() {
    let model = Model::builder(zoo::file("vocabulary")).vocab_only(true).load().unwrap();
    assert_eq!(model.vocab().tokenize("abc").unwrap().len(), 4);
}

#[test]
fn encoders_give_embeddings() {
    for (name, pooling, length) in [
        ("encoder", sys::LLAMA_POOLING_TYPE_MEAN, 64),
        ("encoder-of-t5", sys::LLAMA_POOLING_TYPE_MEAN, 64),
        ("embedding", sys::LLAMA_POOLING_TYPE_UNSPECIFIED, 64),
        ("embedding-causal", sys::LLAMA_POOLING_TYPE_UNSPECIFIED, 128),
        ("reranker", sys::LLAMA_POOLING_TYPE_UNSPECIFIED, 1),
    ] {
        let context = raw::context(raw::load(&zoo::file(name)), |params| {
            (params.embeddings, params.pooling_type) = (true, pooling);
            // With fewer outputs than tokens in a batch, llama.cpp's mean pooling ends the process.
            (params.n_outputs_max, params.n_outputs_max_per_seq) = (512, 512);
        });
        let embedding = raw::embedding(context, &[97, 98, 99], name == "embedding-causal");
        assert_eq!(embedding.len(), length, "{name}");
        assert!(embedding.iter().all(|x| x.is_finite()) && embedding.iter().any(|x| *x != 0.0), "{name}");
    }
}

#[test]
fn an_encoder_decoder_gives_logits_after_both() {
    let context = raw::context(raw::load(&zoo::file("encoder-decoder")), |_| {});
    let logits = raw::encode_and_decode(context, &[97, 98, 99], 0);
    assert!(logits.iter().all(|logit| logit.is_finite()) && logits.iter().any(|logit| *logit != 0.0));
}

#[test]
fn diffusion_models_give_logits_for_all_positions() {
    for name in ["diffusion", "diffusion-llada"] {
        let context = raw::context(raw::load(&zoo::file(name)), |_| {});
        raw::encode(context, &[97, 98, 260, 260]);
        for index in 0..4 {
            assert!(raw::logits(context, index).iter().any(|logit| *logit != 0.0), "{name}");
        }
    }
}

#[test]
fn the_adapter_fits_its_target_and_no_other() {
    for (name, fits) in [("target", true), ("mamba", false), ("eagle3", false)] {
        let model = raw::load(&zoo::file(name));
        assert_eq!(raw::adapter_fits(model, &zoo::file("lora")), fits, "{name}");
    }
}

#[test]
fn other_architectures_answer_as_the_llama_whose_text_they_have() {
    use zoo::{Described as _, Family};
    for family in [Family::Qwen2, Family::Qwen3, Family::Qwen3Moe, Family::Gemma3, Family::Gemma4] {
        for seed in [1, 2] {
            let oracle = zoo::Transformer::target(family, seed);
            let path = oracle.cached().unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() < 1_000_000, "{family:?}");
            let model = Model::load(&path).unwrap();
            let vocabulary = oracle.text().vocabulary();
            // Longer than the sliding windows
            for prompt in ["a", "The beginning of a text of 41 characters. The beginning of a text of 41 characters."] {
                let prompt = [vec![vocabulary.special(Special::Bos)], vocabulary.tokenize(prompt)].concat();
                let text = oracle.text().continuation(&prompt, 300);
                assert_eq!(follow(&model, &prompt, &text[..299]), text, "{family:?}");
            }
        }
    }
}

#[test]
fn transformers_are_described_as_what_they_are() {
    use LayerKind::{Attention, SlidingWindow};
    use llama_spec::file::{Kind, LayerKind, ModelFile};
    for (name, kind, layers) in [
        ("qwen2", Kind::Generative, &[Attention; 3][..]),
        ("qwen3", Kind::Generative, &[Attention; 3]),
        ("qwen3moe", Kind::Generative, &[Attention; 3]),
        ("gemma3", Kind::Generative, &[SlidingWindow, Attention, SlidingWindow]),
        ("gemma4", Kind::Generative, &[SlidingWindow, Attention, SlidingWindow, Attention]),
        ("gemma4-assistant", Kind::Gemma4Assistant, &[]),
        ("gemma4-assistant-wide", Kind::Gemma4Assistant, &[]),
    ] {
        let file = ModelFile::open(zoo::file(name)).unwrap();
        let description = file.description();
        assert_eq!(description.kind, kind, "{name}");
        assert_eq!(description.defects, [], "{name}");
        assert_eq!(description.layer_kinds, layers, "{name}");
        assert_eq!(description.experts.unwrap_or(0), if name == "qwen3moe" { 4 } else { 0 }, "{name}");
    }
}
