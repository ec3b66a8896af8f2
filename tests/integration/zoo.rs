//! The files of the zoo that are no plain llama: what llama.cpp really makes of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use llama_spec::file::{Kind, LayerKind, ModelFile};
use llama_spec::{Batch, ContextOptions, Model, Rollback, Slot, Token};
use llama_spec_tests::{vocab::Special, zoo};

fn options() -> ContextOptions {
    ContextOptions::default().length_per_slot(1024).threads(1)
}

fn argmax(logits: &[f32]) -> u32 {
    assert!(logits.iter().all(|logit| logit.is_finite()));
    logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as u32
}

fn tokens(ids: &[u32]) -> Vec<Token> {
    ids.iter().map(|id| Token::new(*id as i32)).collect()
}

/// Decodes `prompt` in one batch and `text` token by token, and gives the greedy successor of each.
fn follow(model: &Model, prompt: &[u32], text: &[u32]) -> Vec<u32> {
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
fn files_are_described_as_what_they_are() {
    use LayerKind::{Attention, SlidingWindow};
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
