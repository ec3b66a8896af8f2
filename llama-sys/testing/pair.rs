//! A target and a draft that reads its hidden states, as llama.cpp's drafters run them.

use std::{path::Path, ptr};

use llama_spec_tests::zoo::Round;
use llama_sys as sys;

use crate::raw::{argmax, batch, context, fill, load, load_with_mtp, logits, ok};

/// A target and a draft, and how they speculate.
pub(crate) struct Pair {
    target: *mut sys::llama_context,
    draft: *mut sys::llama_context,
    batch: *mut sys::lsys_batch,
    spec: *mut sys::lsys_spec,
}

impl Pair {
    pub(crate) fn new(target: &Path, draft: &Path, kind: sys::lsys_spec_type, draft_length: i32) -> Self {
        let target = context(load(target), |_| {});
        let draft = context(load(draft), |params| params.ctx_other = target);
        Self::of(target, draft, kind, draft_length)
    }

    /// The reason where the shim refuses the pair.
    pub(crate) fn try_new(
        target: &Path,
        draft: &Path,
        kind: sys::lsys_spec_type,
        draft_length: i32,
    ) -> Result<Self, String> {
        let target = context(load(target), |_| {});
        let draft = context(load(draft), |params| params.ctx_other = target);
        Self::try_of(target, draft, kind, draft_length)
    }

    /// The same with MTP heads, those of the target or of a file of their own. The target's state can be rolled back by as
    /// many tokens as are drafted.
    pub(crate) fn mtp(target: &Path, heads: Option<&Path>, draft_length: i32) -> Self {
        let model = load_with_mtp(target);
        let target = context(model, |params| params.n_rs_seq = draft_length as u32);
        let draft = context(heads.map_or(model, load_with_mtp), |params| {
            (params.ctx_other, params.ctx_type) = (target, sys::LLAMA_CONTEXT_TYPE_MTP);
        });
        Self::of(target, draft, sys::LSYS_SPEC_DRAFT_MTP, draft_length)
    }

    fn of(
        target: *mut sys::llama_context,
        draft: *mut sys::llama_context,
        kind: sys::lsys_spec_type,
        draft_length: i32,
    ) -> Self {
        Self::try_of(target, draft, kind, draft_length).unwrap()
    }

    fn try_of(
        target: *mut sys::llama_context,
        draft: *mut sys::llama_context,
        kind: sys::lsys_spec_type,
        draft_length: i32,
    ) -> Result<Self, String> {
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
    pub(crate) fn decode(&mut self, tokens: &[u32], position: usize) -> Vec<u32> {
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

    /// What is drafted after `last`, the token at `position` that was not decoded yet.
    pub(crate) fn draft(&mut self, position: usize, last: u32) -> Vec<u32> {
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
    pub(crate) fn speculate(&mut self, prompt: &[u32], n: usize) -> (Vec<u32>, Vec<Round>, Vec<u32>) {
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
