//! Speculation changes the speed and not the text: every method, every draft length, against the oracle and plain decoding.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/lengths.rs"]
mod lengths;

use lengths::config;
use llama_spec::spec::{Method, Source, SpecConfig, Stats};
use llama_spec::{ContextOptions, Event, GenerateOptions, Generator, Model, StopReason, Token};
use llama_spec_tests::zoo::Llama;

const TOKENS: usize = 200;

/// All methods that a single generation has, with and without a draft model.
const METHODS: [&[Method]; 8] = [
    &[],
    &[Method::NgramSimple],
    &[Method::NgramMapK],
    &[Method::NgramMapK4v],
    &[Method::NgramMod],
    &[Method::NgramCache],
    &[Method::DraftSimple],
    &[Method::NgramMod, Method::NgramSimple, Method::DraftSimple],
];

fn load(model: &Llama) -> Model {
    Model::load(model.cached().expect("the zoo can write its files")).expect("a zoo model loads")
}

fn generator(target: &Model, draft: &Model, config: SpecConfig) -> Generator {
    let context = ContextOptions::default().length_per_slot(1024).threads(1);
    let builder = Generator::builder(target).context(context).speculation(config.clone());
    let builder = if config.needs_draft() { builder.draft(draft) } else { builder };
    builder.build().expect("zoo models fit together")
}

/// The prompt in tokens, as the library gives it to the model.
fn ids(model: &Model, prompt: &str) -> Vec<u32> {
    model.vocab().tokenize(prompt).unwrap().iter().map(|token| token.id() as u32).collect()
}

struct Outcome {
    tokens: Vec<u32>,
    text: String,
    sources: Vec<Source>,
    reason: StopReason,
    stats: Stats,
}

fn run(generator: &mut Generator, prompt: &str, options: GenerateOptions) -> Outcome {
    let mut generation = generator.generate(prompt, options).unwrap();
    let (mut tokens, mut text, mut sources, mut reason) = (Vec::new(), String::new(), Vec::new(), None);
    for event in generation.by_ref() {
        let event = event.unwrap();
        text += event.text();
        match event {
            Event::Token { token, source, .. } => {
                tokens.push(token.id() as u32);
                sources.push(source);
            }
            Event::Finished { reason: why, .. } => reason = Some(why),
            _ => {}
        }
    }
    let stats = generation.stats().clone();
    Outcome { tokens, text, sources, reason: reason.expect("every generation ends with a reason"), stats }
}

fn greedy() -> GenerateOptions {
    GenerateOptions::greedy().max_tokens(TOKENS as u32)
}

#[test]
fn every_method_and_length_gives_the_text_of_the_target() {
    for target in [Llama::target(1), Llama::target(2).with_recall()] {
        let (model, draft) = (load(&target), load(&target.draft(0.8)));
        let prompt = "The quick brown fox";
        let expected = target.continuation(&ids(&model, prompt), TOKENS);
        for methods in METHODS {
            for length in [1, 3, 8, 16] {
                let mut generator = generator(&model, &draft, config(methods, length));
                let got = run(&mut generator, prompt, greedy());
                assert_eq!(got.tokens, expected, "{methods:?}, drafts of {length}");
                assert_eq!(
                    got.text.as_bytes(),
                    target.vocabulary().bytes(&got.tokens),
                    "{methods:?}, drafts of {length}"
                );
                assert_eq!(got.reason, StopReason::MaxTokens);
                let speculation = generator.speculation();
                assert_eq!(speculation.is_active(), !methods.is_empty());
                assert_eq!(speculation.reason, None, "{methods:?} broke down on the way");
            }
        }
    }
}

#[test]
fn every_method_drafts_and_is_accepted_where_the_text_repeats() {
    let target = Llama::target(1);
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    for methods in METHODS.iter().filter(|methods| !methods.is_empty()) {
        let mut generator = generator(&model, &draft, config(methods, 8));
        let got = run(&mut generator, "abc", greedy().max_tokens(300));
        assert!(got.stats.accepted > 50, "{methods:?}: {:?}", got.stats);
        let marked = got.sources.iter().filter(|source| **source != Source::Target).count();
        assert_eq!(marked as u64, got.stats.accepted, "{methods:?}");
        for source in got.sources {
            assert!(
                matches!(source, Source::Target) || methods.iter().any(|method| source == Source::Drafted(*method))
            );
        }
    }
}

/// The counts are those of the definition, not only plausible ones.
#[test]
fn counts_of_a_draft_model_are_exact() {
    let target = Llama::target(1);
    let model = load(&target);
    for acceptance in [0.5, 0.8, 0.95, 1.0] {
        let wrong = target.draft(acceptance);
        let draft = load(&wrong);
        for length in [1, 4, 9] {
            let mut generator = generator(&model, &draft, config(&[Method::DraftSimple], length));
            let got = run(&mut generator, "abc", greedy());
            let prompt = ids(&model, "abc");
            let tokens = [prompt.clone(), target.continuation(&prompt, TOKENS + 16)].concat();
            let (mut at, end, mut rounds, mut drafted, mut accepted) = (prompt.len(), prompt.len() + TOKENS, 0, 0, 0);
            while at < end {
                let guess = wrong.continuation(&tokens[..at], (length as usize).min(end - at - 1));
                let right = guess.iter().zip(&tokens[at..]).take_while(|(guess, token)| guess == token).count();
                (rounds, drafted, accepted, at) = (rounds + 1, drafted + guess.len(), accepted + right, at + right + 1);
            }
            let counts = (got.stats.rounds, got.stats.drafted, got.stats.accepted);
            assert_eq!(
                counts,
                (rounds, drafted as u64, accepted as u64),
                "acceptance {acceptance}, drafts of {length}"
            );
            assert_eq!(got.stats.generated_tokens, got.stats.rounds + got.stats.accepted);
        }
    }
}

#[test]
fn a_second_request_reuses_the_first_and_gives_the_same_text() {
    let target = Llama::target(2).with_recall();
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    for methods in METHODS {
        let mut generator = generator(&model, &draft, config(methods, 8));
        let first = run(&mut generator, "The quick brown fox", greedy());
        let longer = run(&mut generator, "The quick brown fox jumps over the lazy dog", greedy());
        let again = run(&mut generator, "The quick brown fox", greedy());
        let expected = |prompt: &str| target.continuation(&ids(&model, prompt), TOKENS);
        assert_eq!(first.tokens, expected("The quick brown fox"), "{methods:?}");
        assert_eq!(longer.tokens, expected("The quick brown fox jumps over the lazy dog"), "{methods:?}");
        assert_eq!(again.tokens, first.tokens, "{methods:?}");
        assert!(again.stats.cached_tokens > 10, "{methods:?}: {:?}", again.stats);
    }
}

#[test]
fn a_cancelled_request_leaves_no_trace() {
    let target = Llama::target(1);
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    let expected = target.continuation(&ids(&model, "xyz"), TOKENS);
    for methods in METHODS {
        let mut generator = generator(&model, &draft, config(methods, 8));
        for events in 0..12 {
            let taken =
                generator.generate("A long prompt to be given up somewhere", greedy()).unwrap().take(events).count();
            assert_eq!(taken, events);
            let got = run(&mut generator, "xyz", greedy());
            assert_eq!(got.tokens, expected, "{methods:?} after {events} events");
        }
    }
}

#[test]
fn the_context_is_filled_to_the_last_token_and_not_beyond() {
    let target = Llama::target(1);
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    let context = ContextOptions::default().length_per_slot(256).threads(1);
    let prompt = "x".repeat(240);
    let expected = target.continuation(&ids(&model, &prompt), 100);
    for methods in METHODS {
        let config = config(methods, 8);
        let builder = Generator::builder(&model).context(context.clone()).speculation(config.clone());
        let builder = if config.needs_draft() { builder.draft(&draft) } else { builder };
        let mut generator = builder.build().unwrap();
        let length = generator.context_length() as usize;
        let got = run(&mut generator, &prompt, GenerateOptions::greedy());
        let tokens = ids(&model, &prompt).len();
        assert_eq!(got.reason, StopReason::ContextFull, "{methods:?}");
        // Every token but the last one must be in the memory.
        assert_eq!(got.tokens.len(), length - tokens + 1, "{methods:?}");
        assert_eq!(got.tokens, expected[..got.tokens.len()], "{methods:?}");
    }
}

#[test]
fn the_end_of_the_text_ends_it_in_mid_draft() {
    let target = Llama::target(1).ending_after(b'.');
    let (model, draft) = (load(&target), load(&target.draft(1.0)));
    let prompt = "abc";
    let mut expected = target.continuation(&ids(&model, prompt), 1000);
    let end = expected.iter().position(|token| target.is_end(*token)).expect("this model ends its text");
    expected.truncate(end);
    for methods in METHODS {
        for length in [1, 3, 8, 16] {
            let got = run(&mut generator(&model, &draft, config(methods, length)), prompt, GenerateOptions::greedy());
            assert_eq!(
                (got.tokens, got.reason),
                (expected.clone(), StopReason::EndOfText),
                "{methods:?}, drafts of {length}"
            );
        }
    }
}

#[test]
fn stop_strings_cut_exactly() {
    let target = Llama::target(1);
    let (model, draft) = (load(&target), load(&target.draft(1.0)));
    let plain = run(&mut generator(&model, &draft, config(&[], 1)), "abc", greedy().max_tokens(60)).text;
    let stop: String = plain.chars().skip(20).take(5).collect();
    let expected = &plain[..plain.find(&stop).unwrap()];
    for methods in METHODS {
        let options = greedy().stop([stop.clone(), "never to be seen".into()]);
        let got = run(&mut generator(&model, &draft, config(methods, 8)), "abc", options);
        assert_eq!((got.text.as_str(), got.reason), (expected, StopReason::StopString), "{methods:?}");
    }
}

#[test]
fn zero_and_one_token_are_exact() {
    let target = Llama::target(1);
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    for methods in METHODS {
        let mut generator = generator(&model, &draft, config(methods, 8));
        for count in [0, 1, 2] {
            let got = run(&mut generator, "abc", greedy().max_tokens(count));
            assert_eq!((got.tokens.len() as u32, got.reason), (count, StopReason::MaxTokens), "{methods:?}");
        }
    }
}

#[test]
fn sampling_with_a_seed_gives_the_same_text_with_and_without_drafts() {
    let target = Llama::target(1).with_peak(3.0);
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    let sampler = llama_spec::SamplerOptions::default().temperature(1.0).seed(7);
    let options = || GenerateOptions::sampled(sampler.clone()).max_tokens(150);
    let plain = run(&mut generator(&model, &draft, config(&[], 1)), "abc", options());
    let greedy = run(&mut generator(&model, &draft, config(&[], 1)), "abc", greedy().max_tokens(150));
    assert_ne!(plain.tokens, greedy.tokens, "a peak this low must not look greedy, or the test shows nothing");
    for methods in METHODS {
        let got = run(&mut generator(&model, &draft, config(methods, 8)), "abc", options());
        assert_eq!(got.tokens, plain.tokens, "{methods:?}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    let target = Llama::target(1);
    let (model, draft) = (load(&target), load(&target.draft(0.8)));
    let refused =
        |builder: llama_spec::generate::GeneratorBuilder| builder.build().expect_err("must be refused").to_string();
    let simple = || SpecConfig::new([Method::DraftSimple]).fixed_length(4);
    let without = refused(Generator::builder(&model).speculation(simple()));
    assert!(without.contains("draft-missing"), "{without}");
    let unused = refused(
        Generator::builder(&model).draft(&draft).speculation(SpecConfig::new([Method::NgramMod]).fixed_length(12)),
    );
    assert!(unused.contains("draft-unused"), "{unused}");
    let other = load(&target.draft(1.0).other_vocabulary());
    let mismatch = refused(Generator::builder(&model).draft(&other).speculation(simple()));
    assert!(mismatch.contains("token"), "the first differing token must be named: {mismatch}");
    let tokenizer = load(&target.draft(1.0).other_tokenizer());
    let mismatch = refused(Generator::builder(&model).draft(&tokenizer).speculation(simple()));
    assert!(mismatch.to_lowercase().contains("vocab"), "{mismatch}");
}

#[test]
fn prompts_that_cannot_work_are_refused() {
    let target = Llama::target(1);
    let model = load(&target);
    let context = ContextOptions::default().length_per_slot(256);
    let mut generator = Generator::builder(&model).context(context).build().unwrap();
    let length = generator.context_length() as usize;
    let refused =
        |result: llama_spec::Result<llama_spec::Generation<'_>>| result.expect_err("must be refused").to_string();
    assert_eq!(refused(generator.generate_tokens(Vec::new(), greedy())), llama_spec::Error::EmptyPrompt.to_string());
    let long = refused(generator.generate(&"x".repeat(length), greedy()));
    assert!(long.contains(&length.to_string()), "{long}");
    let alien = refused(generator.generate_tokens(vec![Token::new(1 << 20)], greedy()));
    assert!(alien.contains("vocabulary"), "{alien}");
    // And the generator still works.
    let mut generation = generator.generate("abc", greedy()).unwrap();
    assert!(generation.all(|event| event.is_ok()));
}
