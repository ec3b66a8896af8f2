//! The drafts of the zoo that read a target's hidden states: what llama.cpp's drafters really make of them.

use std::{path::Path, ptr};

use llama_spec_tests::zoo::{self, Acceptance, Described, Layout, Llama, Round};
use llama_sys as sys;

use crate::raw::{argmax, batch, context, fill, load, logits, ok};

/// A target and a draft, and how they speculate.
struct Pair {
    target: *mut sys::llama_context,
    draft: *mut sys::llama_context,
    batch: *mut sys::lsys_batch,
    spec: *mut sys::lsys_spec,
}

impl Pair {
    fn new(target: &Path, draft: &Path, kind: sys::lsys_spec_type, draft_length: i32) -> Self {
        Self::try_new(target, draft, kind, draft_length).unwrap()
    }

    /// The reason where the shim refuses the pair.
    fn try_new(target: &Path, draft: &Path, kind: sys::lsys_spec_type, draft_length: i32) -> Result<Self, String> {
        let target = context(load(target), |_| {});
        let draft = context(load(draft), |params| params.ctx_other = target);
        let batch = batch(target, &[], 0);
        let mut spec = ptr::null_mut();
        // SAFETY: both contexts live as long as the process, and the type's address for the call.
        unsafe {
            let mut params = sys::lsys_spec_params::default();
            sys::lsys_spec_defaults(&mut params);
            (params.types, params.n_types) = (&kind, 1);
            (params.ctx_target, params.ctx_draft) = (target, draft);
            params.draft_n_max = draft_length;
            if sys::lsys_spec_new(&params, &mut spec) != sys::LSYS_OK {
                return Err(std::ffi::CStr::from_ptr(sys::lsys_last_error()).to_string_lossy().into_owned());
            }
        }
        Ok(Self { target, draft, batch, spec })
    }

    /// Decodes on the target and shows it to the drafter; gives the most probable successor of each token.
    fn decode(&mut self, tokens: &[u32], position: usize) -> Vec<u32> {
        fill(self.batch, tokens, position);
        let mut code = 0;
        // SAFETY: handles live as long as the process.
        unsafe { ok(sys::lsys_decode(self.target, self.batch, &mut code)) };
        assert_eq!(code, 0);
        let next = (0..tokens.len()).map(|index| argmax(&logits(self.target, index))).collect();
        // SAFETY: as above.
        unsafe { ok(sys::lsys_spec_process(self.spec, self.batch)) };
        next
    }

    fn draft(&mut self, position: usize, last: u32) -> Vec<u32> {
        let request =
            sys::lsys_draft_request { n_max: -1, pos: position as i32, last: last as i32, ..Default::default() };
        let (mut tokens, mut from) = (sys::lsys_tokens::default(), sys::LSYS_SPEC_NONE);
        // SAFETY: as in `decode`; the result is copied.
        unsafe {
            ok(sys::lsys_spec_draft(self.spec, &request, 1));
            ok(sys::lsys_spec_result(self.spec, 0, &mut tokens, &mut from));
            let drafted = match tokens.size {
                0 => Vec::new(),
                size => std::slice::from_raw_parts(tokens.data, size).iter().map(|id| *id as u32).collect(),
            };
            ok(sys::lsys_memory_remove(self.draft, 0, position as i32, -1));
            drafted
        }
    }

    /// Speculates until `n` tokens or more are there; gives them, the rounds, and all that was drafted.
    fn speculate(&mut self, prompt: &[u32], n: usize) -> (Vec<u32>, Vec<Round>, Vec<u32>) {
        let mut text = vec![*self.decode(prompt, 0).last().unwrap()];
        let (mut rounds, mut all) = (Vec::new(), Vec::new());
        let ids = |tokens: &[u32]| tokens.iter().map(|id| *id as i32).collect::<Vec<_>>();
        // SAFETY: tokens are given with their number.
        ok(unsafe { sys::lsys_spec_begin(self.spec, 0, ids(prompt).as_ptr(), prompt.len()) });
        while text.len() < n {
            let position = prompt.len() + text.len() - 1;
            let last = text[text.len() - 1];
            let drafted = self.draft(position, last);
            let next = self.decode(&[&[last], &drafted[..]].concat(), position);
            let accepted = drafted.iter().zip(&next).take_while(|(drafted, right)| drafted == right).count();
            let kept = [&[last], &drafted[..accepted]].concat();
            // SAFETY: as above; the memories are cut behind what was accepted.
            unsafe {
                if !drafted.is_empty() {
                    ok(sys::lsys_spec_accept(self.spec, 0, accepted));
                }
                ok(sys::lsys_spec_extend(self.spec, 0, ids(&kept).as_ptr(), kept.len()));
                ok(sys::lsys_memory_remove(self.target, 0, (position + kept.len()) as i32, -1));
                ok(sys::lsys_memory_remove(self.draft, 0, (position + kept.len()) as i32, -1));
            }
            rounds.push(Round { drafted: drafted.len(), accepted });
            text.extend(&next[..=accepted]);
            all.extend(drafted);
        }
        (text, rounds, all)
    }
}

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
