//! No text leaves a trace in another, before, after or beside it.

use crate::pairs::{Loaded, Pair};
use crate::support::{alone, assert_same, together};
use crate::table::{PROMPTS, few, greedy};
use llama_spec::Request;
use llama_spec::engine::{Output, Prompt};
use llama_spec::spec::{Method, Stats};

/// Whether drafts depend on nothing but the text. The table of one lookup is shared by all texts, and another learns from
/// earlier ones.
fn drafts_alone(pair: Pair) -> bool {
    !pair.methods.iter().any(|method| matches!(method, Method::NgramMod | Method::NgramCache))
}

fn counts(stats: &Stats) -> (u64, u64, u64) {
    (stats.rounds, stats.drafted, stats.accepted)
}

#[test]
fn the_same_again_is_the_same_and_its_beginning_is_not_computed_again() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let engine = loaded.engine(1, 5);
        let (one, other) = (PROMPTS[2], PROMPTS[0]);
        let longer = format!("{one} And then it goes on for a while longer.");
        // The shorter one cannot cut what a recurrent memory holds, but can go on from where another ended.
        let mut first = None;
        for prompt in [one, &longer, one, other, "a", one] {
            let request = greedy(prompt, 30);
            let got = alone(&engine, request.clone());
            assert_same(&got, &plain.run(&request), &(pair, prompt));
            if prompt == one && drafts_alone(pair) {
                let counts = counts(&got.stats);
                assert_eq!(*first.get_or_insert(counts), counts, "{pair:?}: drafts changed");
            }
        }
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
        // A conversation goes on in what is there, whatever the memory.
        let begun = alone(&engine, greedy(one, 20));
        let more = engine.model().vocab().tokenize_plain(" go on").unwrap();
        let mut turn = engine.model().vocab().tokenize(one).unwrap();
        turn.extend_from_slice(&begun.tokens);
        turn.extend(more);
        let request = Request::tokens(turn.clone()).greedy().max_tokens(20);
        let got = alone(&engine, request.clone());
        assert_same(&got, &plain.run(&request), &(pair, "the next turn"));
        assert!(got.stats.cached_tokens + 30 > turn.len() as u64, "{pair:?}: {} cached", got.stats.cached_tokens);
    }
}

#[test]
fn texts_side_by_side_are_drafted_as_if_alone() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let requests: Vec<_> = PROMPTS[..4].iter().zip(33..).map(|(prompt, tokens)| greedy(prompt, tokens)).collect();
        let outputs = together(&loaded.engine(4, 5), requests.clone());
        for (request, got) in requests.iter().zip(&outputs) {
            let engine = loaded.engine(1, 5);
            let expected = alone(&engine, request.clone());
            assert_same(got, &expected, &(pair, request));
            if !pair.methods.contains(&Method::NgramMod) {
                assert_eq!(counts(&got.stats), counts(&expected.stats), "{pair:?}, {request:?}");
                assert_eq!(got.sources, expected.sources, "{pair:?}, {request:?}");
            }
        }
    }
}

/// The beginning of a prompt that another slot is working on is copied from there.
#[test]
fn beginnings_are_shared_between_slots() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let engine = loaded.engine(4, 5);
        let requests: Vec<_> = (0..6).map(|at| greedy(&format!("{}{at}", PROMPTS[2]), 25)).collect();
        let outputs: Vec<Output> = together(&engine, requests.clone());
        for (request, got) in requests.iter().zip(&outputs) {
            let Prompt::Text(text) = &request.prompt else { unreachable!() };
            assert_same(got, &plain.run(request), &(pair, text));
        }
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
        let again: Vec<Output> = together(&engine, requests.clone());
        assert!(again.iter().zip(&outputs).all(|(again, first)| again.tokens == first.tokens), "{pair:?}");
    }
}
