//! The drafts of the zoo that read a target's hidden states: what llama.cpp's drafters really make of them. Goes below the
//! safe library, so that an error in its generator does not look like one in a file.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{ffi::CString, path::Path, ptr};

use llama_spec_tests::zoo::{Acceptance, Described, Family, Layout, Llama, Round, Transformer};
use llama_sys as sys;

fn ok(status: sys::lsys_status) {
    // SAFETY: the text is never null and lives until the next call of this thread.
    let error = unsafe { std::ffi::CStr::from_ptr(sys::lsys_last_error()) };
    assert_eq!(status, sys::LSYS_OK, "{}", error.to_string_lossy());
}

/// A target and a draft, and how they speculate. Nothing is freed before the process ends.
struct Pair {
    target: *mut sys::llama_context,
    draft: *mut sys::llama_context,
    batch: *mut sys::lsys_batch,
    spec: *mut sys::lsys_spec,
}

impl Pair {
    fn new(target: &Path, draft: &Path, kind: sys::lsys_spec_type, draft_length: i32) -> Self {
        // SAFETY: null drops all messages.
        unsafe { sys::lsys_log_set(None, ptr::null_mut(), false) };
        let load = |path: &Path| {
            let path = CString::new(path.to_str().unwrap()).unwrap();
            let mut model = ptr::null_mut();
            // SAFETY: the path is a C string, and all else is llama.cpp's own default.
            ok(unsafe {
                let mut params = sys::llama_model_default_params();
                params.load_mtp = true;
                sys::lsys_model_load(&mut path.as_ptr(), 1, &params, &mut model)
            });
            model
        };
        let context = |model, other: *mut sys::llama_context| {
            let mut context = ptr::null_mut();
            // SAFETY: the model was loaded and is never freed; so was the other context made.
            unsafe {
                let mut params = sys::llama_context_default_params();
                (params.n_ctx, params.n_batch, params.n_ubatch, params.ctx_other) = (1024, 512, 512, other);
                (params.n_threads, params.n_threads_batch) = (1, 1);
                if kind == sys::LSYS_SPEC_DRAFT_MTP && !other.is_null() {
                    params.ctx_type = sys::LLAMA_CONTEXT_TYPE_MTP;
                }
                (params.n_outputs_max, params.n_outputs_max_per_seq) = (64, 64);
                ok(sys::lsys_context_new(model, &params, &mut context));
            }
            context
        };
        let target = context(load(target), ptr::null_mut());
        let draft = context(load(draft), target);
        let (mut spec, mut batch) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: both contexts live as long as the process, and the type's address for the call.
        unsafe {
            let mut params = sys::lsys_spec_params::default();
            sys::lsys_spec_defaults(&mut params);
            (params.types, params.n_types) = (&kind, 1);
            (params.ctx_target, params.ctx_draft) = (target, draft);
            params.draft_n_max = draft_length;
            ok(sys::lsys_spec_new(&params, &mut spec));
            ok(sys::lsys_batch_new(target, &mut batch));
        }
        Self { target, draft, batch, spec }
    }

    /// Decodes on the target and shows it to the drafter; gives the most probable successor of each token.
    fn decode(&mut self, tokens: &[u32], position: usize) -> Vec<u32> {
        // SAFETY: handles live as long as the process; the logits are read before the next call.
        unsafe {
            sys::lsys_batch_clear(self.batch);
            for (index, token) in tokens.iter().enumerate() {
                ok(sys::lsys_batch_add(self.batch, *token as i32, (position + index) as i32, 0, true));
            }
            let mut code = 0;
            ok(sys::lsys_decode(self.target, self.batch, &mut code));
            assert_eq!(code, 0);
            let next = (0..tokens.len()).map(|index| {
                let mut logits = ptr::null();
                ok(sys::lsys_logits(self.target, index as i32, &mut logits));
                let size = sys::llama_vocab_n_tokens(sys::llama_model_get_vocab(sys::llama_get_model(self.target)));
                let logits = std::slice::from_raw_parts(logits, size as usize);
                logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as u32
            });
            let next = next.collect();
            ok(sys::lsys_spec_process(self.spec, self.batch));
            next
        }
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
            let (text, rounds, _) = pair.speculate(&prompt, 200);
            println!("{} {:?}", Described::label(&draft), Acceptance::of(&rounds));
            assert_eq!(text[..200], target.continuation(&prompt, 200), "{draft:?}");
            assert_eq!(rounds, draft.speculate(&prompt, 200, length as usize), "{draft:?}");
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
fn assistants_draft_as_defined() {
    let target = Transformer::target(Family::Gemma4, 1);
    let prompt = target.text().vocabulary().tokenize("The beginning");
    for draft in [target.assistant(1.0), target.assistant(0.8), target.clone().with_width(224).assistant(0.5)] {
        for length in [1, 3, 8] {
            let paths = [draft.target().cached().unwrap(), draft.cached().unwrap()];
            let mut pair = Pair::new(&paths[0], &paths[1], sys::LSYS_SPEC_DRAFT_MTP, length);
            let (text, rounds, _) = pair.speculate(&prompt, 200);
            println!("{} {:?}", draft.label(), Acceptance::of(&rounds));
            assert_eq!(text[..200], draft.target().text().continuation(&prompt, 200), "{draft:?}");
            assert_eq!(rounds, draft.speculate(&prompt, 200, length as usize), "{draft:?}");
        }
    }
}

#[test]
fn an_assistant_that_gets_other_hidden_states_is_always_wrong() {
    let [target, other] = [1, 2].map(|seed| Transformer::target(Family::Gemma4, seed));
    let draft = other.assistant(1.0);
    let prompt = target.text().vocabulary().tokenize("The beginning");
    let mut pair = Pair::new(&target.cached().unwrap(), &draft.cached().unwrap(), sys::LSYS_SPEC_DRAFT_MTP, 3);
    let (text, rounds, _) = pair.speculate(&prompt, 100);
    assert_eq!(text[..100], target.text().continuation(&prompt, 100));
    assert!(rounds.iter().all(|round| round.accepted == 0), "{rounds:?}");
}

#[test]
fn drafts_for_a_llama_fit_other_architectures_with_its_text() {
    let llama = Llama::target(1);
    let prompt = llama.vocabulary().tokenize("The beginning");
    for family in [Family::Qwen3, Family::Qwen3Moe] {
        let target = Transformer::target(family, 1).cached().unwrap();
        let (eagle3, dflash) = (llama.eagle3(0.8), llama.dflash(0.8));
        let mut pair = Pair::new(&target, &eagle3.cached().unwrap(), sys::LSYS_SPEC_DRAFT_EAGLE3, 5);
        let (text, rounds, _) = pair.speculate(&prompt, 200);
        assert_eq!(text[..200], llama.continuation(&prompt, 200), "{family:?}");
        assert_eq!(rounds, eagle3.speculate(&prompt, 200, 5), "{family:?}");
        let mut pair = Pair::new(&target, &dflash.cached().unwrap(), sys::LSYS_SPEC_DRAFT_DFLASH, 5);
        let (text, rounds, _) = pair.speculate(&prompt, 200);
        assert_eq!(text[..200], llama.continuation(&prompt, 200), "{family:?}");
        assert_eq!(rounds, dflash.speculate(&prompt, 200, 5), "{family:?}");
    }
}
