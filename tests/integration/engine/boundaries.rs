//! Where room, texts and patience end.

use crate::pairs::{Loaded, context};
use crate::scripted::Slow;
use crate::support::{alone, assert_same, builder, ids, model, together};
use crate::table::{PROMPTS, few, greedy};
use llama_spec::engine::Drafters;
use llama_spec::spec::SpecConfig;
use llama_spec::{ContextFull, Engine, Error, Event, Request, StopReason};
use std::time::Duration;

#[test]
fn a_prompt_that_all_but_fills_the_context() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let engine = loaded.engine_with(context().length_per_slot(256).slots(4), loaded.config(7));
        let length = engine.context_length() as usize;
        let text = PROMPTS[2].repeat(2);
        let tokens = engine.model().vocab().tokenize(&text).unwrap();
        assert!(tokens.len() > length, "{} tokens", tokens.len());
        let requests: Vec<_> =
            [1, 2, 3, 7, 8, 20].map(|left| Request::tokens(&tokens[..length - left]).greedy()).to_vec();
        let outputs = together(&engine, requests.clone());
        for (request, (got, left)) in requests.iter().zip(outputs.iter().zip([1, 2, 3, 7, 8, 20])) {
            // Every token but the last one must be in the memory.
            assert_eq!((got.reason, got.tokens.len()), (Some(StopReason::ContextFull), left + 1), "{pair:?}");
            let expected = plain.run(&request.clone().max_tokens(left as u32 + 1));
            assert_eq!(ids(got), ids(&expected), "{pair:?}, {left} left");
        }
        for too_long in [length, length + 1] {
            let refused = engine.generate(Request::tokens(&tokens[..too_long]));
            assert!(matches!(refused, Err(Error::PromptTooLong { tokens, .. }) if tokens == too_long), "{pair:?}");
        }
        assert!(matches!(engine.generate(Request::tokens(Vec::new())), Err(Error::EmptyPrompt)));
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
    }
}

#[test]
fn a_context_is_shifted_with_every_method_beside_others() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let small = || context().length_per_slot(256).slots(4);
        let engine = loaded.engine_with(small(), loaded.config(5));
        let plain = Engine::builder(&loaded.target).context(small()).speculation(SpecConfig::off()).build().unwrap();
        let shifting = |prompt, keep, tokens| greedy(prompt, tokens).context_full(ContextFull::Shift { keep });
        let mut requests = vec![
            shifting(PROMPTS[2], 4, 220),
            shifting(PROMPTS[0], 0, 250),
            shifting("a", 1000, 260),
            greedy(PROMPTS[0], 40),
        ];
        requests.push(shifting(PROMPTS[0], 3, 20));
        let outputs = together(&engine, requests.clone());
        for (request, got) in requests.iter().zip(&outputs) {
            assert_same(got, &alone(&plain, request.clone()), &(pair, request));
            assert_eq!(Some(got.tokens.len() as u32), request.options.max_tokens, "{pair:?}");
        }
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
    }
}

#[test]
fn cancelling_at_every_stage_leaves_no_trace() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let engine = loaded.engine(2, 6);
        let long = PROMPTS[2].repeat(4);
        let check = greedy(PROMPTS[0], 25);
        let expected = plain.run(&check);
        // The events are those of four pieces of the prompt, of tokens, and the end.
        for events in [0, 2, 5, 9, 400] {
            let mut both = [0, 1].map(|_| engine.generate(greedy(&long, 60)).unwrap());
            let waiting = [0, 1].map(|_| engine.generate(greedy(&long, 60)).unwrap());
            let [given_up, cancelled] = &mut both;
            let taken = given_up.by_ref().take(events).filter(Result::is_ok).count();
            assert!(taken == events || events == 400, "{pair:?}");
            let canceller = cancelled.canceller();
            let first = cancelled.next();
            assert!(matches!(first, Some(Ok(_))), "{pair:?}");
            canceller.cancel();
            let [queued, other] = waiting;
            queued.canceller().cancel();
            drop(other);
            let [given_up, cancelled] = both;
            drop(given_up);
            for response in [queued, cancelled] {
                let output = response.output().unwrap();
                let ended = matches!(output.reason, Some(StopReason::Cancelled | StopReason::MaxTokens));
                assert!(ended, "{pair:?}: {:?}", output.reason);
            }
            canceller.cancel();
            let got = alone(&engine, check.clone());
            assert_same(&got, &expected, &(pair, events));
        }
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
        let stats = engine.stats();
        assert_eq!((stats.running, stats.queued, stats.failed), (0, 0, 0), "{pair:?}");
    }
}

/// Every stage takes a while, since the drafter is slow.
#[test]
fn deadlines_end_a_text_at_every_stage() {
    let engine = builder("target", 1).drafter(|| Slow(Duration::from_millis(4))).build().unwrap();
    let slow = |prompt: &str| Request::prompt(prompt).greedy().drafters(Drafters::Own(0));
    let first = engine.generate(slow("abc").deadline(Duration::from_millis(60))).unwrap();
    let queued = engine.generate(slow("abc").deadline(Duration::from_millis(20))).unwrap().output().unwrap();
    assert_eq!((queued.reason, queued.tokens.len()), (Some(StopReason::Deadline), 0));
    let first = first.output().unwrap();
    assert_eq!(first.reason, Some(StopReason::Deadline));
    assert!(!first.tokens.is_empty() && first.tokens.len() < 20, "{} tokens", first.tokens.len());
    let whole = alone(&engine, greedy("abc", 100));
    assert_eq!(ids(&first), ids(&whole)[..first.tokens.len()]);
    assert!(first.text.len() == first.tokens.len() && whole.text.starts_with(&first.text));
    // One that is over when the prompt is being computed.
    let engine =
        Engine::builder(model("target")).context(crate::support::context(1).micro_batch(1).batch(8)).build().unwrap();
    let prompt = PROMPTS[2].repeat(3);
    let prefill = engine.generate(greedy(&prompt, 9).deadline(Duration::from_millis(3))).unwrap();
    let events: Vec<_> = prefill.map(Result::unwrap).collect();
    assert!(events.iter().all(|event| !matches!(event, Event::Token { .. })));
    assert!(matches!(events.last(), Some(Event::Finished { reason: StopReason::Deadline, .. })));
    assert_eq!(engine.stats().expired, 1);
}

#[test]
fn empty_drafts_and_none_at_all() {
    let model = model("target");
    let plain = crate::support::Plain::new(&model);
    let engine = builder("target", 4).drafter(|| Slow(Duration::ZERO)).build().unwrap();
    for tokens in [0, 1, 2, 9] {
        for request in [greedy("abc", tokens), greedy("abc", tokens).draft_max(0), greedy("a", tokens)] {
            let got = alone(&engine, request.clone());
            assert_same(&got, &plain.run(&request), &request);
            assert_eq!(got.stats.drafted, 0);
        }
    }
}

#[test]
fn one_cache_for_all_slots() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let engine = loaded.engine_with(context().slots(4).unified_kv(true), loaded.config(5));
        let requests: Vec<_> = PROMPTS.iter().map(|prompt| greedy(prompt, 30)).collect();
        for _ in 0..2 {
            for (request, got) in requests.iter().zip(together(&engine, requests.clone())) {
                assert_same(&got, &plain.run(request), &(pair, request));
            }
        }
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
    }
}

/// So small a cache that texts have to give way to others: all end as if nothing had happened.
#[test]
fn one_cache_that_is_too_small_for_all() {
    let mut preempted = 0;
    for pair in few() {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let small = context().slots(4).length_per_slot(96).unified_kv(true);
        let engine = loaded.engine_with(small, loaded.config(5));
        let requests: Vec<_> = PROMPTS[..5].iter().map(|prompt| greedy(prompt, 150)).collect();
        let outputs = together(&engine, requests.clone());
        for (request, got) in requests.iter().zip(&outputs) {
            assert_same(got, &plain.run(request), &(pair, request));
        }
        let stats = engine.stats();
        preempted += stats.preempted;
        assert_eq!((stats.failed, stats.finished), (0, 5), "{pair:?}");
    }
    assert!(preempted > 0, "nobody had to give way: this shows nothing");
}
