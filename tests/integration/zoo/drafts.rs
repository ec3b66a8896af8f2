//! The drafts of the zoo that read a target's hidden states: what llama.cpp's drafters really make of them.

use llama_spec_tests::zoo::{self, Acceptance, Described, Layout, Llama};
use llama_sys as sys;

use crate::pair::Pair;

#[test]
fn eagle3_drafts_are_those_of_the_definition() {
    let target = Llama::target(1);
    let f16 = Llama::target(1).with_weights(llama_spec_tests::gguf::TensorType::F16);
    let drafts = [
        target.eagle3(0.8),
        target.eagle3(1.0),
        target.eagle3(0.5).without_embeddings(),
        target.eagle3(0.8).without_head(),
        target.eagle3(0.8).without_head().without_embeddings(),
        target.eagle3(0.8).with_reduced_vocabulary(),
        target.eagle3(0.8).with_width(64),
        target.eagle3(0.8).with_width(160),
        f16.eagle3(0.8),
    ];
    let prompt = target.vocabulary().tokenize("The beginning");
    for draft in drafts {
        let mut pair =
            Pair::new(&draft.target().cached().unwrap(), &draft.cached().unwrap(), sys::LSYS_SPEC_DRAFT_EAGLE3, 5);
        let (text, rounds, _) = pair.speculate(&prompt, 200);
        assert_eq!(text[..200], target.continuation(&prompt, 200), "{draft:?}");
        assert_eq!(rounds, draft.speculate(&prompt, 200, 5), "{draft:?}");
        println!("{} {:?}", Described::label(&draft), Acceptance::of(&rounds));
    }
}

#[test]
fn an_eagle3_draft_that_gets_other_hidden_states_is_always_wrong() {
    let (target, other) = (Llama::target(1), Llama::target(2));
    let draft = other.eagle3(1.0);
    let prompt = target.vocabulary().tokenize("The beginning");
    let mut pair = Pair::new(&target.cached().unwrap(), &draft.cached().unwrap(), sys::LSYS_SPEC_DRAFT_EAGLE3, 3);
    let (text, rounds, drafted) = pair.speculate(&prompt, 100);
    assert_eq!(text[..100], target.continuation(&prompt, 100));
    assert!(rounds.iter().all(|round| round.accepted == 0), "{rounds:?}");
    assert!(drafted.iter().all(|token| *token == draft.wrong()), "{drafted:?}");
}

#[test]
fn an_eagle3_draft_for_a_target_with_recall_is_right_half_of_the_time() {
    let target = Llama::target(1).with_recall();
    let prompt = target.vocabulary().tokenize("The beginning");
    for draft in [target.eagle3(1.0), target.eagle3(1.0).without_embeddings()] {
        let mut pair = Pair::new(&target.cached().unwrap(), &draft.cached().unwrap(), sys::LSYS_SPEC_DRAFT_EAGLE3, 3);
        let (text, rounds, _) = pair.speculate(&prompt, 400);
        assert_eq!(text[..400], target.continuation(&prompt, 400));
        assert_eq!(rounds, draft.speculate(&prompt, 400, 3));
        let rate = Acceptance::of(&rounds).rate();
        assert!((0.35..0.65).contains(&rate), "{rate}");
    }
}

#[test]
fn dflash_and_dspark_drafts_are_those_of_the_definition() {
    let target = Llama::target(1);
    let in_place = |acceptance| target.dspark(acceptance).with_layout(Layout::SparkInPlace);
    let drafts = [
        (target.dflash(1.0), sys::LSYS_SPEC_DRAFT_DFLASH),
        (target.dflash(0.8), sys::LSYS_SPEC_DRAFT_DFLASH),
        (target.dflash(0.8).without_head(), sys::LSYS_SPEC_DRAFT_DFLASH),
        (target.dflash(0.8).without_embeddings(), sys::LSYS_SPEC_DRAFT_DFLASH),
        (target.dflash(0.8).with_reduced_vocabulary(), sys::LSYS_SPEC_DRAFT_DFLASH),
        (target.dflash2(0.8), sys::LSYS_SPEC_DRAFT_DFLASH),
        (target.dspark(1.0), sys::LSYS_SPEC_DRAFT_DSPARK),
        (target.dspark(0.8).without_head(), sys::LSYS_SPEC_DRAFT_DSPARK),
        (target.dspark(0.8).with_reduced_vocabulary(), sys::LSYS_SPEC_DRAFT_DSPARK),
        (in_place(0.8), sys::LSYS_SPEC_DRAFT_DSPARK),
        (in_place(0.5).without_embeddings().without_head(), sys::LSYS_SPEC_DRAFT_DSPARK),
    ];
    let prompt = target.vocabulary().tokenize("The");
    for (draft, kind) in drafts {
        for length in [3, 8] {
            let mut pair = Pair::new(&target.cached().unwrap(), &draft.cached().unwrap(), kind, length);
            let (text, rounds, _) = pair.speculate(&prompt, 100);
            println!("{} {:?}", Described::label(&draft), Acceptance::of(&rounds));
            assert_eq!(text[..100], target.continuation(&prompt, 100), "{draft:?}");
            assert_eq!(rounds, draft.speculate(&prompt, 100, length as usize), "{draft:?}");
        }
    }
}

#[test]
fn a_block_draft_that_gets_other_hidden_states_is_always_wrong() {
    let (target, other) = (Llama::target(1), Llama::target(2));
    let prompt = target.vocabulary().tokenize("The beginning");
    for (draft, kind) in
        [(other.dflash(1.0), sys::LSYS_SPEC_DRAFT_DFLASH), (other.dspark(1.0), sys::LSYS_SPEC_DRAFT_DSPARK)]
    {
        let mut pair = Pair::new(&target.cached().unwrap(), &draft.cached().unwrap(), kind, 5);
        let (text, rounds, drafted) = pair.speculate(&prompt, 100);
        assert_eq!(text[..100], target.continuation(&prompt, 100));
        assert!(rounds.iter().all(|round| round.accepted == 0), "{rounds:?}");
        assert!(drafted.iter().all(|token| *token == draft.wrong()), "{drafted:?}");
    }
}

#[test]
fn drafts_that_do_not_fit_are_refused() {
    // "dspark-no-block-size" ends the process before that, when its context is made.
    for (name, kind, reason) in [
        ("eagle3-other-width", sys::LSYS_SPEC_DRAFT_EAGLE3, "reads 576 values"),
        ("eagle3-layer-beyond", sys::LSYS_SPEC_DRAFT_EAGLE3, "reads layer 7"),
        ("dflash-other-width", sys::LSYS_SPEC_DRAFT_DFLASH, "reads 576 values"),
        ("dflash-layer-beyond", sys::LSYS_SPEC_DRAFT_DFLASH, "reads layer 7"),
        ("dflash-no-mask", sys::LSYS_SPEC_DRAFT_DFLASH, "no mask token"),
        ("dspark-other-width", sys::LSYS_SPEC_DRAFT_DSPARK, "reads 576 values"),
        ("dspark-no-mask", sys::LSYS_SPEC_DRAFT_DSPARK, "no mask token"),
    ] {
        let refused = Pair::try_new(&zoo::file("target"), &zoo::file(name), kind, 3).err().unwrap();
        assert!(refused.contains(reason), "{name}: {refused}");
    }
}
