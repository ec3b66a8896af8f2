//! What a request can ask for, and what it gets.

use crate::support::{builder, ids, oracle, together};
use llama_spec::engine::Drafters;
use llama_spec::spec::{Method, Source, SpecConfig};
use llama_spec::{Engine, Error, Event, Request, StopReason};
use llama_spec_tests::zoo::{self, Llama};
use std::time::Duration;

const PROMPTS: [&str; 6] = ["abc", "The quick brown fox", "a", "Hello, world", "The quick brown cat", "0123456789"];

fn speculative(slots: u32) -> Engine {
    let draft = llama_spec::ModelFile::open(zoo::file("draft-0.8")).unwrap();
    let config = SpecConfig::new([Method::NgramSimple, Method::DraftSimple]).fixed_length(4);
    builder("target", slots).draft(draft).speculation(config).build().unwrap()
}

#[test]
fn texts_side_by_side_are_those_of_the_target() {
    let target = Llama::target(1);
    for slots in [1, 4] {
        let engine = speculative(slots);
        let requests = PROMPTS.map(|prompt| Request::prompt(prompt).greedy().max_tokens(60)).to_vec();
        for (prompt, output) in PROMPTS.iter().zip(together(&engine, requests)) {
            assert_eq!(ids(&output), oracle(&target, engine.model(), prompt, 60), "{slots} slots, {prompt:?}");
            assert_eq!(output.reason, Some(StopReason::MaxTokens));
            assert!(output.stats.accepted > 0, "{:?}", output.stats);
        }
        let stats = engine.stats();
        assert_eq!((stats.finished, stats.running, stats.queued), (6, 0, 0), "{stats}");
        assert_eq!(stats.total.generated_tokens, 360);
    }
}

#[test]
fn the_last_round_of_a_text_is_part_of_its_time() {
    let engine = speculative(2);
    // A text of one round, and texts of some.
    for tokens in [1, 2, 30] {
        let output = engine.generate(Request::prompt("abc").greedy().max_tokens(tokens)).unwrap().output().unwrap();
        let stats = output.stats;
        let parts = stats.draft + stats.verify + stats.sample + stats.rollback;
        assert!(!stats.verify.is_zero() && parts <= stats.generation, "{tokens} tokens: {stats:?}");
    }
}

#[test]
fn a_request_chooses_who_drafts() {
    let engine = speculative(2);
    let run = |request: Request| engine.generate(request.greedy().max_tokens(60)).unwrap().output().unwrap();
    let drafted = |by: Source| move |source: &Source| *source == by;
    let off = run(Request::prompt("abc").drafters(Drafters::Off));
    assert_eq!((off.stats.drafted, off.sources.iter().all(drafted(Source::Target))), (0, true));
    let simple = run(Request::prompt("abc").drafters(Drafters::Methods(vec![Method::DraftSimple])));
    assert!(
        simple.sources.iter().all(|source| matches!(source, Source::Target | Source::Drafted(Method::DraftSimple)))
    );
    assert!(simple.sources.iter().any(drafted(Source::Drafted(Method::DraftSimple))));
    let lookup = run(Request::prompt("abc").drafters(Drafters::Methods(vec![Method::NgramSimple])));
    assert!(
        lookup.sources.iter().all(|source| matches!(source, Source::Target | Source::Drafted(Method::NgramSimple)))
    );
    let short = run(Request::prompt("abc").draft_max(2));
    assert_eq!(short.stats.drafted_per_position.len(), 2);
    assert!([&simple, &lookup, &short].iter().all(|output| output.tokens == off.tokens));
    let refused = engine.generate(Request::prompt("abc").drafters(Drafters::Methods(vec![Method::NgramMod])));
    assert!(matches!(refused, Err(Error::Speculation { .. })));
    assert!(matches!(
        engine.generate(Request::prompt("abc").drafters(Drafters::Own(0))),
        Err(Error::Speculation { .. })
    ));
}

#[test]
fn a_full_queue_says_so() {
    let engine = builder("target", 1).queue(2).build().unwrap();
    let held: Vec<_> = (0..40).map(|_| engine.generate(Request::prompt("abc").greedy().max_tokens(400))).collect();
    let refused = held.iter().filter(|response| matches!(response, Err(Error::Busy { .. }))).count();
    assert!(refused > 0, "nobody was refused");
    assert_eq!(engine.stats().refused, refused as u64);
}

#[test]
fn deadlines_and_cancelling_end_a_text_early() {
    let engine = builder("target", 1).build().unwrap();
    let long = || Request::prompt("abc").greedy();
    let mut first = engine.generate(long()).unwrap();
    let canceller = first.canceller();
    let late = engine.generate(long().deadline(Duration::ZERO)).unwrap().output().unwrap();
    assert_eq!((late.reason, late.tokens.len()), (Some(StopReason::Deadline), 0));
    first.next();
    canceller.cancel();
    let output = first.output().unwrap();
    assert_eq!(output.reason, Some(StopReason::Cancelled));
    assert!(output.tokens.len() < 505);
    // Dropping cancels, too, and the slot is free for the next.
    drop(engine.generate(long()).unwrap());
    let next = engine.generate(Request::prompt("abc").greedy().max_tokens(5)).unwrap().output().unwrap();
    assert_eq!(ids(&next), oracle(&Llama::target(1), engine.model(), "abc", 5));
}

#[test]
fn several_answers_share_the_prompt() {
    let engine = speculative(4);
    let prompt = "The quick brown fox jumps over the lazy dog, and then it does so again and again until evening.";
    let responses = engine.generate_many(Request::prompt(prompt).greedy().max_tokens(30), 6).unwrap();
    let outputs: Vec<_> = responses.into_iter().map(|response| response.output().unwrap()).collect();
    let expected = oracle(&Llama::target(1), engine.model(), prompt, 30);
    assert!(outputs.iter().all(|output| ids(output) == expected));
    let computed: u64 = outputs.iter().map(|output| output.stats.prompt_tokens - output.stats.cached_tokens).sum();
    assert!(computed < 2 * outputs[0].stats.prompt_tokens, "{computed} tokens of the prompt were computed");
}

#[test]
fn the_context_is_shifted_when_that_is_asked_for() {
    let engine = speculative(1);
    let request = Request::prompt("abc").greedy().max_tokens(1200);
    let shifted = request.clone().context_full(llama_spec::ContextFull::Shift { keep: 2 });
    let events: Vec<_> = engine.generate(shifted).unwrap().map(Result::unwrap).collect();
    let tokens = events.iter().filter(|event| matches!(event, Event::Token { .. })).count();
    let shifts = events.iter().filter(|event| matches!(event, Event::Shifted { .. })).count();
    assert_eq!((tokens, shifts), (1200, 3));
    let stopped = engine.generate(request).unwrap().output().unwrap();
    assert_eq!(stopped.reason, Some(StopReason::ContextFull));
}

#[test]
fn a_saved_text_goes_on_where_it_was() {
    let engine = speculative(2);
    let sampler = llama_spec::SamplerOptions::default().temperature(3.0).seed(11);
    let request = Request::prompt("The quick brown fox").sampler(sampler).max_tokens(400);
    let whole = engine.generate(request.clone()).unwrap().output().unwrap();
    let mut response = engine.generate(request).unwrap();
    while !matches!(response.next(), Some(Ok(Event::Token { .. }))) {}
    let saved = response.save().unwrap();
    drop(response);
    let other = speculative(1);
    let bytes = saved.to_bytes().unwrap();
    let saved = llama_spec::engine::SavedState::from_bytes(&bytes).unwrap();
    let rest = other.resume(&saved).unwrap().output().unwrap();
    let begun = saved.generated().len();
    assert!(begun < 400, "it had ended already");
    assert_eq!(rest.tokens, whole.tokens[begun..]);
    for at in [0, 9, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(matches!(llama_spec::engine::SavedState::from_bytes(&damaged), Err(Error::State { .. })));
        assert!(matches!(llama_spec::engine::SavedState::from_bytes(&bytes[..at]), Err(Error::State { .. })));
    }
}

#[test]
fn draining_finishes_what_was_asked_and_takes_no_more() {
    let engine = speculative(2);
    let responses: Vec<_> =
        (0..5).map(|_| engine.generate(Request::prompt("abc").greedy().max_tokens(50)).unwrap()).collect();
    assert!(engine.drain(Duration::from_secs(60)));
    assert!(matches!(engine.generate("abc"), Err(Error::ShuttingDown)));
    assert!(responses.into_iter().all(|response| response.output().unwrap().tokens.len() == 50));
    engine.shutdown();
}

#[test]
fn dropping_an_engine_tells_those_who_wait() {
    let engine = speculative(1);
    let responses: Vec<_> = (0..3).map(|_| engine.generate(Request::prompt("abc").greedy()).unwrap()).collect();
    drop(engine);
    for response in responses {
        assert!(matches!(response.output(), Err(Error::ShuttingDown) | Ok(_)));
    }
}
