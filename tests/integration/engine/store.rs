//! Texts of earlier requests, from which lookup drafts: for the same tenant, and nobody else.

use crate::support::{Plain, alone, assert_same, builder, context, model, together, varied};
use llama_spec::engine::{Drafters, Output};
use llama_spec::generate::{ContextFull, StopReason};
use llama_spec::lookup::{Store, StoreSettings};
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Engine, Event, GenerateOptions, Generator, Request, Token};
use std::time::Duration;

/// Longer than any text of few tokens that is found by its end, and not how the text goes on.
const PROMPT: &str = "a text of some length, which stands in the store";

fn store() -> Store {
    Store::new(StoreSettings::default().bytes(4 << 20))
}

/// An engine that has drafted nothing yet, so that what it drafts can be compared.
fn engine(target: &str, store: Option<&Store>) -> Engine {
    let builder = builder(target, 2).speculation(SpecConfig::new([Method::Lookup]).fixed_length(8));
    match store {
        Some(store) => builder.lookup_store(store.clone()).build().unwrap(),
        None => builder.build().unwrap(),
    }
}

/// Runs a request on an engine of its own, and waits until its text is in the store.
fn run(target: &str, store: Option<&Store>, request: &Request) -> Output {
    let engine = engine(target, store);
    let output = alone(&engine, request.clone());
    engine.shutdown();
    output
}

#[test]
fn a_text_that_comes_again_is_drafted_for_its_tenant_only() {
    for target in ["target", "recall", "qwen35"] {
        let plain = Plain::new(&model(target));
        for request in [Request::prompt(PROMPT).greedy(), Request::prompt(PROMPT).sampler(varied(7))] {
            let request = request.max_tokens(60);
            let expected = plain.run(&request);
            let fresh = run(target, None, &request);
            let store = store();
            let [anna, bert] = ["anna", "bert"].map(|name| request.clone().tenant(name));
            let accepted = [&anna, &anna, &bert, &request, &anna].map(|request| {
                let got = run(target, Some(&store), request);
                assert_same(&got, &expected, &(target, request));
                got.stats.accepted
            });
            let [first, again, other, nobody, last] = accepted;
            let fresh = fresh.stats.accepted;
            assert_eq!([first, other, nobody], [fresh; 3], "{target}");
            assert!(again > fresh + 20 && last > fresh + 20, "{target}: {accepted:?}");
            let stats = store.stats();
            assert!(stats.tenants == 3 && stats.saved >= again - fresh, "{target}: {stats:?}");
        }
    }
}

#[test]
fn tenants_side_by_side_have_their_own_texts() {
    let store = store();
    let plain = Plain::new(&model("recall"));
    let engine = engine("recall", Some(&store));
    // Slots change hands all the time, and their texts begin alike.
    let requests = |round: u32| {
        let tenants = (0..6).map(move |tenant| {
            let prompt = format!("{PROMPT} {}", tenant % 3);
            Request::prompt(prompt).sampler(varied(round % 2)).max_tokens(40).tenant(format!("tenant {tenant}"))
        });
        tenants.collect::<Vec<_>>()
    };
    for round in 0..4 {
        for (request, got) in requests(round).iter().zip(together(&engine, requests(round))) {
            assert_same(&got, &plain.run(request), request);
        }
    }
    let shown = engine.stats();
    assert!(shown.to_string().contains("\nkept texts   "), "{shown}");
    assert!(shown.prometheus().contains("\nllama_spec_store_bytes "), "{}", shown.prometheus());
    engine.shutdown();
    assert_eq!(store.stats().tenants, 6);
    for (number, request) in requests(0).into_iter().enumerate() {
        let fresh = run("recall", None, &request).stats.accepted;
        assert!(run("recall", Some(&store), &request).stats.accepted > fresh + 10);
        let stranger = run("recall", Some(&store), &request.tenant(format!("stranger {number}")));
        assert_eq!(stranger.stats.accepted, fresh);
    }
}

/// Whoever gives way to others goes on in another slot.
#[test]
fn a_text_that_lost_its_slot_is_kept_for_its_tenant() {
    let store = store();
    let small = context(4).length_per_slot(96).unified_kv(true);
    let config = SpecConfig::new([Method::Lookup]).fixed_length(5);
    let builder = Engine::builder(model("recall")).context(small).speculation(config);
    let engine = builder.lookup_store(store.clone()).build().unwrap();
    let requests: Vec<_> =
        (0..5).map(|tenant| Request::prompt(PROMPT).sampler(varied(tenant)).max_tokens(150)).collect();
    let named = (0..).zip(&requests).map(|(tenant, request): (u32, _)| request.clone().tenant(tenant.to_string()));
    let plain = Plain::new(&model("recall"));
    for (request, got) in requests.iter().zip(together(&engine, named.collect())) {
        assert_same(&got, &plain.run(request), request);
    }
    assert!(engine.stats().preempted > 0, "nobody had to give way: this shows nothing");
    engine.shutdown();
    assert_eq!(store.stats().tenants, 5);
}

/// Tokens that are kept of a request, on an engine of its own.
fn kept(run: impl FnOnce(&Engine)) -> usize {
    let store = store();
    let engine = engine("recall", Some(&store));
    run(&engine);
    engine.shutdown();
    store.stats().tokens
}

#[test]
fn what_is_kept_is_what_was_generated() {
    let request = || Request::prompt(PROMPT).sampler(varied(3)).max_tokens(60);
    let whole = kept(|engine| drop(alone(engine, request())));
    assert!((100..130).contains(&whole), "{whole} tokens of prompt and answer");
    assert_eq!(kept(|engine| drop(alone(engine, request().max_tokens(0)))), 0);
    assert_eq!(kept(|engine| drop(alone(engine, request().drafters(Drafters::Off)))), 0);
    assert_eq!(kept(|engine| drop(alone(engine, request().draft_max(0)))), 0);
    let cancelled = kept(|engine| {
        let mut response = engine.generate(request().max_tokens(400)).unwrap();
        let tokens = |event: &Result<Event, _>| matches!(event, Ok(Event::Token { .. }));
        assert!(response.by_ref().filter(tokens).nth(20).is_some());
        drop(response);
        assert!(engine.drain(Duration::from_secs(120)));
    });
    assert!(cancelled > 60, "{cancelled} tokens of one that was not wanted any more");
    let shifted = kept(|engine| {
        let request = request().max_tokens(1200).context_full(ContextFull::Shift { keep: 4 });
        assert_eq!(alone(engine, request).reason, Some(StopReason::MaxTokens));
    });
    assert!(shifted > 1200, "{shifted} tokens of one that was longer than the context");
}

#[test]
fn a_store_without_lookup_is_not_used() {
    let store = store();
    let engine = builder("target", 1).speculation(SpecConfig::off()).lookup_store(store.clone()).build().unwrap();
    drop(alone(&engine, Request::prompt(PROMPT).greedy().max_tokens(40)));
    assert!(engine.lookup_store().is_none() && engine.stats().store.is_none());
    engine.shutdown();
    assert_eq!(store.stats().tokens, 0);
}

/// As when it was filled by an engine with another model.
#[test]
fn tokens_of_another_vocabulary_are_not_drafted() {
    let model = model("target");
    let store = store();
    let prompt = model.vocab().tokenize(PROMPT).unwrap();
    let beyond = [i32::MAX, model.vocab().len() as i32, 1 << 20];
    let text: Vec<Token> = prompt.iter().copied().chain(beyond.map(Token::new).into_iter().cycle().take(40)).collect();
    store.shelf("").add(&text);
    let request = Request::prompt(PROMPT).greedy().max_tokens(30);
    let got = run("target", Some(&store), &request);
    assert_same(&got, &Plain::new(&model).run(&request), &"a foreign store");
}

#[test]
fn a_generator_keeps_its_texts_too() {
    let (model, store) = (model("recall"), store());
    let accepted = || {
        let config = SpecConfig::new([Method::Lookup]).fixed_length(8);
        let mut generator = Generator::builder(&model).speculation(config).lookup_store(store.clone()).build().unwrap();
        let mut generation = generator.generate(PROMPT, GenerateOptions::greedy().max_tokens(60)).unwrap();
        let text: String = generation.by_ref().map(|event| event.unwrap().text().to_owned()).collect();
        (text, generation.stats().accepted)
    };
    let ((text, fresh), (again, accepted)) = (accepted(), accepted());
    assert!(text == again && accepted > fresh + 20, "{fresh}, then {accepted}");
}
