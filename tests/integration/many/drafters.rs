//! What the shim adds to llama.cpp's drafters: who may draft in which sequence, and what limits and rejections leave behind.

use std::ffi::CStr;

use llama_sys as sys;

use crate::kinds::{self, DRAFT_MAX, Kind};
use crate::many::{Many, Sequence, Setup, Trace};
use crate::side_by_side::{LENGTH, check, sequence};

fn kind(name: &str) -> Kind {
    kinds::models().into_iter().chain(kinds::lookups()).find(|kind| kind.name == name).unwrap()
}

#[test]
fn only_who_is_allowed_to_drafts() {
    let kind = kinds::lookup_and_model();
    let (model, lookup) = (sys::LSYS_SPEC_DRAFT_SIMPLE, sys::LSYS_SPEC_NGRAM_SIMPLE);
    let allowed = [0, 1 << model, 1 << lookup, 1 << sys::LSYS_SPEC_DRAFT_MTP];
    let of = |which| Sequence { types: allowed[which], chunk: 100, ..sequence(&kind, which) };
    let sequences: Vec<Sequence> = (0..4).map(of).collect();
    check(&kind, &kind.setup(), &sequences, true);

    let traces = Many::new(&kind.setup()).run(&sequences);
    let drafted = |trace: &Trace| trace.drafts.iter().map(|draft| draft.from).collect::<Vec<_>>();
    for (trace, by) in traces.iter().zip([lookup, model, lookup]) {
        let by_others = drafted(trace).into_iter().filter(|from| *from != by && *from != sys::LSYS_SPEC_NONE).count();
        assert!(drafted(trace).contains(&by) && by_others == 0, "{trace:?}");
    }
    assert!(traces[3].drafts.iter().all(|draft| draft.tokens.is_empty()), "{:?}", traces[3]);
}

/// Of a draft that was cut and all right, the map does not know that more would have been wrong.
#[test]
fn a_map_drafts_at_full_length_after_a_limit() {
    const LIMITS: &[i32] = &[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, -1];
    let kind = kind("ngram-map-k");
    // The text repeats itself after 80 tokens, which are 20 rounds of 3 drafted tokens and one more.
    let prompt = kind.prompts[1][..100].to_vec();
    let sequence = Sequence { prompt, limits: LIMITS, length: 100, ..sequence(&kind, 1) };
    let trace = Many::new(&kind.setup()).run(&[sequence]).remove(0);
    assert!(trace.drafts[..20].iter().all(|draft| draft.tokens.len() == 3 && draft.accepted == 3), "{trace:?}");
    assert_eq!(trace.drafts[20].tokens.len(), DRAFT_MAX as usize, "{trace:?}");
}

/// It empties the table of all sequences after several drafts that were mostly wrong; what was cut off was not.
#[test]
fn the_shared_table_survives_short_limits() {
    let kind = kind("ngram-mod");
    let question = b"one of 36 questions, 9 of them odd".map(u32::from).to_vec();
    let next = (kind.text)(&question, 1);
    let answer = b"not what the target says".map(u32::from);
    let known = [&question[..], &next, &answer].concat();
    let traces = Many::new(&kind.setup()).run(&[
        Sequence { prompt: known, length: 2, ..sequence(&kind, 0) },
        Sequence { limits: &[1], ..sequence(&kind, 1) },
        Sequence { start: LENGTH, prompt: question, ..sequence(&kind, 0) },
    ]);
    assert!(traces[1].drafts.iter().all(|draft| draft.accepted == 1), "{traces:?}");
    assert_eq!(traces[2].drafts[0].tokens, answer[..DRAFT_MAX as usize], "{traces:?}");
}

/// The pair of a state with the token after it is only in an EAGLE-3 draft's memory once that token is certain.
#[test]
fn rejected_tokens_leave_no_pair_behind() {
    let kind = kind("eagle3");
    let sequences = [0, 1].map(|which| Sequence { limits: &[-1, 0], ..sequence(&kind, which) });
    let traces = Many::new(&kind.setup()).run_with(&sequences, |many, slot, position| {
        assert_eq!(many.draft_end(slot), position as i32 - 2, "slot {slot} at {position}");
    });
    assert!(traces[0].drafts.iter().any(|draft| draft.accepted < draft.tokens.len()));
}

#[test]
fn copies_are_of_known_sequences_and_without_draft() {
    let kind = kind("draft-simple");
    let many = Many::new(&kind.setup());
    for (from, to, refused) in [(0, 4, "sequence 4"), (-1, 0, "sequence -1"), (0, i32::MAX, "sequence 2147483647")] {
        // SAFETY: the handle is alive; the text lives until the next call of this thread.
        let why = unsafe {
            assert_eq!(sys::lsys_spec_copy(many.spec, from, to), sys::LSYS_INVALID);
            CStr::from_ptr(sys::lsys_last_error())
        };
        assert!(why.to_str().unwrap().contains(refused), "{why:?}");
    }
}

#[test]
#[should_panic(expected = "4 sequences can only be taken back if kv_unified is off")]
fn snapshots_in_one_cache_are_refused() {
    Many::new(&Setup { unified: true, ..kind("mtp of a hybrid").setup() });
}
