//! A saved text goes on as if nothing had happened: in this engine or another, with the same methods or others.

use crate::pairs::{Loaded, context};
use crate::scripted::Slow;
use crate::support::{alone, varied};
use crate::table::{PROMPTS, few, greedy};
use llama_spec::engine::SavedState;
use llama_spec::spec::SpecConfig;
use llama_spec::{ContextFull, Engine, Error, Event, Request, Response};
use std::time::Duration;

/// Reads so many tokens.
fn advance(response: &mut Response, tokens: usize) {
    let read = response.by_ref().map(Result::unwrap).filter(|event| matches!(event, Event::Token { .. }));
    assert_eq!(read.take(tokens).count(), tokens);
}

/// As it comes out of another process.
fn carried(saved: SavedState) -> SavedState {
    let bytes = saved.to_bytes().unwrap();
    let again = SavedState::from_bytes(&bytes).unwrap();
    assert!(again == saved);
    again
}

#[test]
fn every_method_goes_on_in_every_engine() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let small = || context().length_per_slot(256);
        // One that takes its time, so that there is something left to save.
        let builder = Engine::builder(&loaded.target).context(small().slots(3)).speculation(loaded.config(5));
        let builder = loaded.draft.iter().fold(builder, |builder, draft| builder.draft(draft));
        let engine = builder.drafter(|| Slow(Duration::from_millis(1))).build().unwrap();
        let others = [
            loaded.engine_with(small(), loaded.config(3)),
            loaded.engine_with(small().slots(2).unified_kv(true), loaded.config(5)),
            Engine::builder(&loaded.target).context(small()).speculation(SpecConfig::off()).build().unwrap(),
        ];
        let shifted = greedy("a", 275).context_full(ContextFull::Shift { keep: 3 });
        for (begin, request) in [(1, greedy(PROMPTS[2], 50)), (7, greedy("a", 50)), (262, shifted)] {
            let whole = alone(&others[2], request.clone());
            // Another one is busy meanwhile.
            let beside = engine.generate(greedy(PROMPTS[4], 200)).unwrap();
            let mut response = engine.generate(request.clone()).unwrap();
            advance(&mut response, begin);
            let saved = carried(response.save().unwrap_or_else(|error| panic!("{pair:?}: {error}")));
            let begun = saved.generated().len();
            assert!(begun >= begin && begun < whole.tokens.len(), "{pair:?}");
            let mut resumed = vec![engine.resume(&saved).unwrap()];
            resumed.extend(others.iter().map(|other| other.resume(&saved).unwrap()));
            for (number, rest) in resumed.into_iter().enumerate() {
                let rest = rest.output().unwrap();
                assert_eq!(rest.tokens, whole.tokens[begun..], "{pair:?}, {request:?}, engine {number}");
                assert_eq!(rest.reason, whole.reason, "{pair:?}, engine {number}");
                assert_eq!(rest.stats.generated_tokens, whole.stats.generated_tokens, "{pair:?}, engine {number}");
            }
            // Saving disturbs nobody.
            let left = response.map(Result::unwrap).filter(|event| matches!(event, Event::Token { .. }));
            assert_eq!(left.count() + begin, whole.tokens.len(), "{pair:?}");
            drop(beside);
        }
        assert_eq!(engine.speculation().reason, None, "{pair:?}");
        assert!(others[..2].iter().all(|other| other.speculation().reason.is_none()), "{pair:?}");
    }
}

/// Random numbers, penalties, stop strings and budgets go on, too.
#[test]
fn what_decides_about_the_text_goes_on() {
    for pair in few().filter(|pair| ["target", "recall"].contains(&pair.target)) {
        let loaded = Loaded::new(pair);
        // One that takes its time, so that there is something left to save.
        let builder = Engine::builder(&loaded.target).context(context()).speculation(loaded.config(5));
        let builder = loaded.draft.iter().fold(builder, |builder, draft| builder.draft(draft));
        let engine = builder.drafter(|| Slow(Duration::from_millis(2))).build().unwrap();
        let (other, plain) = (loaded.engine(1, 5), loaded.reference());
        let penalties = llama_spec::sample::Penalties { repeat: 1.1, frequency: 0.3, ..Default::default() };
        let request = Request::prompt(PROMPTS[0]).sampler(varied(9).penalties(penalties)).max_tokens(120).logprobs(1);
        let whole = plain.run(&request);
        let stop: String = whole.text.chars().skip(90).take(6).collect();
        for request in [request.clone(), request.stop([stop])] {
            let whole = plain.run(&request);
            let mut response = engine.generate(request.clone()).unwrap();
            advance(&mut response, 2);
            let saved = carried(response.save().unwrap());
            let begun = saved.generated().len();
            let rest = other.resume(&saved).unwrap().output().unwrap();
            assert_eq!((rest.tokens, rest.reason), (whole.tokens[begun..].to_vec(), whole.reason), "{pair:?}");
            assert_eq!(rest.logprobs.len(), whole.tokens.len() - begun);
            assert!(whole.text.ends_with(&rest.text));
        }
    }
}

#[test]
fn what_cannot_go_on_is_refused() {
    let pair = few().next().unwrap();
    let loaded = Loaded::new(pair);
    let engine = loaded.engine(1, 5);
    let mut first = engine.generate(greedy(PROMPTS[2], 800)).unwrap();
    let waiting = engine.generate(greedy("a", 5)).unwrap();
    assert!(matches!(waiting.save(), Err(Error::State { .. })), "it was waiting");
    advance(&mut first, 1);
    let saved = first.save().unwrap();
    drop(first);
    let mut ended = engine.generate(greedy("a", 2)).unwrap();
    assert!(ended.by_ref().all(|event| event.is_ok()));
    assert!(matches!(ended.save(), Err(Error::State { .. })), "it had ended");
    let mamba = Engine::builder(crate::support::model("mamba")).context(context()).build().unwrap();
    assert!(matches!(mamba.resume(&saved), Err(Error::State { .. })));
    let small = loaded.engine_with(context().length_per_slot(256), loaded.config(3));
    let fits = saved.prompt().len() + saved.generated().len() <= small.context_length() as usize;
    assert_eq!(small.resume(&saved).is_ok(), fits);
    // And the engine still works.
    assert_eq!(alone(&engine, greedy("a", 3)).tokens.len(), 3);
}
