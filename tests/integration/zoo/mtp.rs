//! The models of the zoo with MTP heads: what they answer, and what llama.cpp's drafter really makes of their heads.

use llama_spec::{
    Model, Rollback,
    file::{Kind, LayerKind, ModelFile},
    spec::{Method, SpecConfig},
};
use llama_spec_tests::{
    vocab::Special,
    zoo::{self, Acceptance, Chained, ChainedKind, Described, Qwen35},
};

use crate::{
    models::{follow, options},
    pair::Pair,
};

#[test]
fn qwen35_answers_as_its_oracle_says() {
    let target = Qwen35::target(1);
    let oracles = [
        target.clone(),
        Qwen35::target(2),
        target.clone().with_width(128),
        target.clone().with_mtp(0.8),
        target.with_mtp(0.8).without_head_tensors(),
    ];
    for oracle in oracles {
        let path = oracle.cached().unwrap();
        for load_mtp in [false, true] {
            let model = Model::builder(&path).mtp(load_mtp).load().unwrap();
            let vocabulary = oracle.vocabulary();
            for prompt in ["a", "abc", "The beginning of a text of 41 characters."] {
                let prompt = [vec![vocabulary.special(Special::Bos)], vocabulary.tokenize(prompt)].concat();
                let text = oracle.continuation(&prompt, 300);
                assert_eq!(follow(&model, &prompt, &text[..299]), text, "{oracle:?}");
            }
            assert_eq!(model.context(&options()).unwrap().probe_rollback().unwrap(), Rollback::Checkpoint);
        }
    }
}

#[test]
fn qwen35_drafts_are_those_of_the_definition() {
    for (acceptance, separate) in [(1.0, false), (1.0, true), (0.8, false), (0.8, true), (0.5, false)] {
        let model = Qwen35::target(1).with_mtp(acceptance);
        let prompt = model.vocabulary().tokenize("The beginning");
        for length in [1, 3, 8, 16] {
            let mut pair = if separate {
                let head = model.clone().head_only().cached().unwrap();
                Pair::mtp(&Qwen35::target(1).cached().unwrap(), Some(&head), length)
            } else {
                Pair::mtp(&model.cached().unwrap(), None, length)
            };
            let (text, rounds, _) = pair.speculate(&prompt, 200);
            assert_eq!(text[..200], model.continuation(&prompt, 200), "{acceptance} {length}");
            assert_eq!(rounds, model.speculate(&prompt, 200, length as usize), "{acceptance} {length}");
            println!("{acceptance} {length} {:?} {}", Acceptance::of(&rounds), Acceptance::of(&rounds).rate());
        }
    }
}

#[test]
fn a_qwen35_head_that_gets_another_state_is_wrong() {
    let model = Qwen35::target(1).with_mtp(1.0);
    let prompt = model.vocabulary().tokenize("The beginning");
    let text = model.continuation(&prompt, 4);
    for (decoded, last, right) in
        [(0, 0, true), (0, 1, false), (1, 1, true), (1, 2, false), (1, 0, false), (2, 0, false)]
    {
        let mut pair = Pair::mtp(&model.cached().unwrap(), None, 3);
        let context = [&prompt[..], &text[..decoded]].concat();
        pair.decode(&context, 0);
        let drafted = pair.draft(context.len(), text[last]);
        assert_eq!(drafted, model.draft(&[&context[..], &[text[last]]].concat(), 3), "{decoded} {last}");
        assert_eq!(drafted[0] != model.wrong(), right, "{decoded} {last}");
    }
}

const KINDS: [ChainedKind; 2] = [ChainedKind::Mimo2, ChainedKind::HyV3];

#[test]
fn chained_models_answer_as_their_oracle_says() {
    for kind in KINDS {
        for oracle in [Chained::target(kind, 1), Chained::target(kind, 2).with_mtp(&[0.5; 6])] {
            let path = oracle.cached().unwrap();
            for load_mtp in [false, true] {
                let model = Model::builder(&path).mtp(load_mtp).load().unwrap();
                let prompt = oracle.vocabulary().tokenize("The beginning");
                let text = oracle.continuation(&prompt, 300);
                assert_eq!(follow(&model, &prompt, &text[..299]), text, "{oracle:?}");
                assert_eq!(model.context(&options()).unwrap().probe_rollback().unwrap(), Rollback::Partial);
            }
        }
    }
}

#[test]
fn chained_drafts_are_those_of_the_definition() {
    let shares = [&[1.0; 6][..], &[0.9, 0.8, 0.7], &[0.5, 1.0], &[0.8]];
    for (kind, acceptances) in KINDS.into_iter().flat_map(|kind| shares.map(|shares| (kind, shares))) {
        let model = Chained::target(kind, 1).with_mtp(acceptances);
        let prompt = model.vocabulary().tokenize("The beginning");
        for (length, separate) in [(1, false), (3, false), (8, false), (3, true)] {
            let mut pair = if separate {
                let heads = model.clone().heads_only().cached().unwrap();
                Pair::mtp(&Chained::target(kind, 1).cached().unwrap(), Some(&heads), length)
            } else {
                Pair::mtp(&model.cached().unwrap(), None, length)
            };
            let (text, rounds, _) = pair.speculate(&prompt, 200);
            println!("{kind:?} {acceptances:?} {length} {:?}", Acceptance::of(&rounds));
            assert_eq!(text[..200], model.continuation(&prompt, 200), "{kind:?} {acceptances:?} {length}");
            assert_eq!(rounds, model.speculate(&prompt, 200, length as usize), "{kind:?} {acceptances:?} {length}");
        }
    }
}

fn open(name: &str) -> ModelFile {
    ModelFile::open(zoo::file(name)).unwrap()
}

#[test]
fn files_with_heads_are_known_for_what_they_are() {
    use Kind::{Generative, GenerativeWithMtp, MtpHead};
    // What the file is, how many heads it declares, and whether heads and model are there
    for (name, kind, declared, heads, trunk) in [
        ("qwen35", Generative, 0, false, true),
        ("qwen35-mtp", GenerativeWithMtp, 1, true, true),
        ("qwen35-mtp-head", MtpHead, 1, true, false),
        ("qwen35-declared", Generative, 1, false, true),
        ("qwen35-narrow-mtp", GenerativeWithMtp, 1, true, true),
        ("chained", Generative, 0, false, true),
        ("chained-mtp", GenerativeWithMtp, 3, true, true),
        ("chained-mtp-heads", MtpHead, 3, true, false),
        ("hy-v3-mtp", GenerativeWithMtp, 3, true, true),
    ] {
        let file = open(name);
        let found = file.description();
        assert_eq!(found.kind, kind, "{name}");
        assert_eq!((found.mtp_layers, found.mtp_heads, found.trunk), (declared, heads, trunk), "{name}");
        assert!(found.defects.is_empty(), "{name}: {:?}", found.defects);
        assert_eq!(found.layers, 2, "{name}");
        let layers = match found.architecture.as_deref() {
            Some("qwen35") => [LayerKind::Recurrent, LayerKind::Attention],
            Some("mimo2") => [LayerKind::Attention, LayerKind::SlidingWindow],
            _ => [LayerKind::Attention, LayerKind::Attention],
        };
        assert_eq!(found.layer_kinds, layers, "{name}");
    }
}

#[test]
fn heads_are_chosen_where_they_fit() {
    for (target, draft, methods) in [
        ("qwen35-mtp", None, &[Method::DraftMtp][..]),
        ("qwen35", Some("qwen35-mtp-head"), &[Method::DraftMtp]),
        ("qwen35-declared", Some("qwen35-mtp-head"), &[Method::DraftMtp]),
        ("qwen35", Some("qwen35-mtp"), &[Method::DraftMtp]),
        ("chained-mtp", None, &[Method::DraftMtp]),
        ("chained", Some("chained-mtp-heads"), &[Method::DraftMtp]),
        ("qwen35", None, &[Method::Lookup]),
        ("qwen35-declared", None, &[Method::Lookup]),
        ("qwen35", Some("chained-mtp-heads"), &[]),
        ("chained", Some("qwen35-mtp-head"), &[]),
    ] {
        let (target_file, draft_file) = (open(target), draft.map(open));
        let config = SpecConfig::auto(&target_file, draft_file.as_ref());
        let found = config.as_ref().map_or(vec![], SpecConfig::effective);
        assert_eq!(found, methods, "{target} with {draft:?}: {config:?}");
    }
}
