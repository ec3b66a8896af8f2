//! The models of the zoo with MTP heads: what they answer, and what llama.cpp's drafter really makes of their heads.

use llama_spec::{Model, Rollback};
use llama_spec_tests::{
    vocab::Special,
    zoo::{Acceptance, Chained, ChainedKind, Described, Qwen35},
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
