//! A text goes on from its tokens alone, wherever the process that generated it died.

use crate::pairs::{Loaded, context};
use crate::support::{alone, varied};
use crate::table::{PROMPTS, few, greedy};
use llama_spec::engine::Midway;
use llama_spec::sample::{Mirostat, SamplerOptions};
use llama_spec::{ContextFull, Engine, Error, Event, Request, StopReason};

/// All that a reader knows after each round, and the text that was shown by then.
fn rounds(engine: &Engine, request: &Request) -> Vec<(Midway, String)> {
    let mut response = engine.generate(request.clone().checkpoints(true)).unwrap();
    let mut midway = Midway { prompt: response.prompt().to_vec(), ..Midway::default() };
    let mut text = String::new();
    let mut rounds = vec![(midway.clone(), String::new())];
    for event in response.by_ref().map(Result::unwrap) {
        text += event.text();
        match event {
            Event::Token { token, .. } => midway.generated.push(token),
            Event::Shifted { dropped } => midway.dropped += dropped,
            Event::Checkpoint(sampler) => {
                midway.sampler = sampler.map(|state| *state);
                rounds.push((midway.clone(), text.clone()));
            }
            _ => {}
        }
    }
    rounds
}

/// From the beginning, the end and some places between.
fn some<T>(all: Vec<T>) -> impl Iterator<Item = T> {
    let (last, step) = (all.len() - 1, all.len().div_ceil(5));
    all.into_iter().enumerate().filter(move |(index, _)| index % step == 0 || *index == last).map(|(_, one)| one)
}

#[test]
fn every_method_goes_on_from_every_round() {
    for pair in few() {
        let loaded = Loaded::new(pair);
        let engine = loaded.engine_with(context().length_per_slot(256), loaded.config(5));
        let other = loaded.engine_with(context().length_per_slot(256).slots(2), loaded.config(3));
        let shifted = greedy("a", 275).context_full(ContextFull::Shift { keep: 3 });
        for request in [greedy(PROMPTS[2], 50), shifted] {
            let whole = alone(&engine, request.clone());
            for (midway, shown) in some(rounds(&engine, &request)) {
                let rest = other.resume_from(&request, &midway).unwrap().output().unwrap();
                let begun = midway.generated.len();
                assert_eq!(rest.tokens, whole.tokens[begun..], "{pair:?}, {request:?}, after {begun}");
                assert_eq!((shown + &rest.text, rest.reason), (whole.text.clone(), whole.reason), "{pair:?}");
            }
        }
    }
}

/// Random numbers, grammar, penalties and stop strings go on, too.
#[test]
fn what_decides_about_the_text_goes_on() {
    for pair in few().filter(|pair| ["target", "recall"].contains(&pair.target)) {
        let loaded = Loaded::new(pair);
        let (engine, other) = (loaded.engine(1, 5), loaded.engine(2, 3));
        let penalties = llama_spec::sample::Penalties { repeat: 1.1, frequency: 0.3, ..Default::default() };
        let drawn = Request::prompt(PROMPTS[0]).sampler(varied(9).penalties(penalties)).max_tokens(90).logprobs(1);
        let stop: String = alone(&engine, drawn.clone()).text.chars().skip(50).take(6).collect();
        for request in [drawn.clone(), drawn.stop([stop])] {
            let whole = alone(&engine, request.clone());
            for (midway, shown) in some(rounds(&engine, &request)) {
                let rest = other.resume_from(&request, &midway).unwrap().output().unwrap();
                let begun = midway.generated.len();
                assert_eq!((&rest.tokens[..], rest.reason), (&whole.tokens[begun..], whole.reason), "{pair:?}");
                assert_eq!(rest.logprobs.len(), whole.tokens.len() - begun);
                assert_eq!(shown + &rest.text, whole.text);
            }
        }
    }
}

/// Only the news of the end was lost.
#[test]
fn a_text_that_had_ended_ends() {
    let engine = Loaded::new(few().next().unwrap()).engine(1, 5);
    let whole = alone(&engine, greedy("a", 20));
    let prompt = engine.model().vocab().tokenize("a").unwrap();
    let midway = Midway { prompt, generated: whole.tokens.clone(), ..Midway::default() };
    let full = engine.resume_from(&greedy("a", 20), &midway).unwrap().output().unwrap();
    assert_eq!((full.tokens.len(), full.reason), (0, Some(StopReason::MaxTokens)));
    let stop: String = whole.text.chars().skip(5).take(3).collect();
    let stopped = engine.resume_from(&greedy("a", 50).stop([stop]), &midway).unwrap().output().unwrap();
    assert_eq!((stopped.tokens.len(), stopped.text, stopped.reason), (0, String::new(), Some(StopReason::StopString)));
    let longer = engine.resume_from(&greedy("a", 21), &midway).unwrap().output().unwrap();
    assert_eq!(longer.tokens, alone(&engine, greedy("a", 21)).tokens[20..]);
}

/// A sampler that cannot be saved says so, and a new one goes on.
#[test]
fn without_the_sampler_it_goes_on_with_a_new_one() {
    let engine = Loaded::new(few().next().unwrap()).engine(1, 5);
    let mirostat = SamplerOptions::default().seed(3).mirostat(Mirostat::V2 { tau: 5.0, eta: 0.1 });
    let request = Request::prompt("abc").sampler(mirostat).max_tokens(30);
    let rounds = rounds(&engine, &request);
    assert!(rounds.len() > 1 && rounds.iter().all(|(midway, _)| midway.sampler.is_none()));
    let (midway, _) = &rounds[rounds.len() / 2];
    let rest = engine.resume_from(&request, midway).unwrap().output().unwrap();
    assert_eq!(midway.generated.len() + rest.tokens.len(), 30);
}

#[test]
fn what_does_not_fit_is_refused() {
    let engine = Loaded::new(few().next().unwrap()).engine_with(context().length_per_slot(256), Default::default());
    let (last, shown) = rounds(&engine, &greedy("a", 20)).pop().unwrap();
    assert!(!shown.is_empty());
    let refused = |midway: &Midway| match engine.resume_from(&greedy("a", 400), midway) {
        Err(error) => error,
        Ok(response) => panic!("{:?}", response.output()),
    };
    let short = Midway { generated: last.generated[..5].to_vec(), ..last.clone() };
    assert!(matches!(refused(&short), Error::State { .. }), "the sampler has seen more");
    let long = Midway { generated: last.generated.repeat(30), sampler: None, ..last.clone() };
    assert!(matches!(refused(&long), Error::State { .. }));
    let foreign = Midway { generated: vec![llama_spec::Token::new(1 << 30)], sampler: None, ..last };
    assert!(refused(&foreign).to_string().contains("1073741824"));
    assert_eq!(alone(&engine, greedy("a", 3)).tokens.len(), 3);
}
