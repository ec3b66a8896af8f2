//! A real quantized model: greedy text with every method is the text of plain decoding, or differs at a near-tie only.
//!
//! The model is the one `cargo xtask test` fetches into `target/models`; a copy elsewhere is named by LLAMA_SPEC_SMOLLM2.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use llama_spec::engine::Output;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Batch, ContextOptions, Engine, Event, GenerateOptions, Generator, Model, Request, Slot, Token};
use std::path::PathBuf;

/// Logits closer than this are a tie for a model with four-bit weights: batches of different sizes round differently.
const NEAR_TIE: f32 = 0.5;

const PROMPTS: [&str; 14] = [
    "The lighthouse keeper climbed the stairs every evening, and",
    "Write a list of ten animals, one on each line:\n1. cat\n2. dog\n3.",
    "fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\nfn sub(a: i32, b: i32) -> i32 {\n",
    "{\"name\": \"Ada\", \"age\": 36}\n{\"name\": \"Grace\", \"age\": 41}\n{\"name\": \"Alan\",",
    "Question: What is the capital of France?\nAnswer: Paris.\nQuestion: What is the capital of Italy?\nAnswer:",
    "one two three one two three one two three one two",
    "Dear Sir or Madam,\n\nI am writing to",
    "Once upon a time there was a small robot who",
    "| item | price |\n|---|---|\n| apple | 1 |\n| bread | 2 |\n| milk |",
    "The three laws of motion are as follows. First,",
    "SELECT name, age FROM people WHERE age > 30;\nSELECT name, age FROM people WHERE",
    "Monday, Tuesday, Wednesday,",
    "The recipe needs flour, sugar, eggs and butter. First, mix the flour",
    "Repeat after me: the quick brown fox jumps over the lazy dog. The quick brown fox",
];

fn path() -> PathBuf {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = std::env::var_os("LLAMA_SPEC_SMOLLM2").map_or_else(|| PathBuf::from(fetched), PathBuf::from);
    assert!(path.is_file(), "{} is missing: run `cargo xtask test`, which fetches it", path.display());
    path
}

fn options() -> ContextOptions {
    ContextOptions::default().length_per_slot(512).threads(1)
}

fn greedy(generator: &mut Generator, prompt: &str) -> Vec<Token> {
    let generation = generator.generate(prompt, GenerateOptions::greedy().max_tokens(32)).unwrap();
    let token = |event| match event {
        Event::Token { token, .. } => Some(token),
        _ => None,
    };
    generation.filter_map(|event| token(event.unwrap())).collect()
}

/// How far the best two tokens are apart after `tokens`, decoded one by one.
fn margin(model: &Model, tokens: &[Token]) -> f32 {
    let mut context = model.context(&options()).unwrap();
    let mut batch = Batch::new();
    batch.push_prompt(tokens, 0, Slot::FIRST);
    context.decode(&batch).unwrap();
    let mut logits = context.logits(tokens.len() - 1).unwrap().to_vec();
    logits.sort_by(|a, b| b.total_cmp(a));
    logits[0] - logits[1]
}

/// The methods that this model can have.
const METHODS: [&[Method]; 6] = [
    &[Method::NgramSimple],
    &[Method::NgramMapK],
    &[Method::NgramMapK4v],
    &[Method::NgramMod],
    &[Method::NgramCache],
    &[Method::DraftSimple],
];

/// The model, and a copy of it as its draft (the same file would be refused): everything it drafts is right but for rounding. The
/// copy is in the folder.
fn models() -> (Model, Model, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("draft.gguf");
    std::fs::copy(path(), &copied).unwrap();
    (Model::load(path()).unwrap(), Model::load(&copied).unwrap(), folder)
}

/// What plain decoding says to each prompt.
fn plain_texts(model: &Model) -> Vec<Vec<Token>> {
    let mut plain = Generator::builder(model).context(options()).build().unwrap();
    PROMPTS.iter().map(|prompt| greedy(&mut plain, prompt)).collect()
}

#[test]
fn greedy_text_is_that_of_plain_decoding() {
    let (model, draft, _folder) = models();
    let expected = plain_texts(&model);
    for methods in METHODS {
        let config = SpecConfig::new(methods).fixed_length(12);
        let builder = Generator::builder(&model).context(options()).speculation(config.clone());
        let builder = if config.needs_draft() { builder.draft(&draft) } else { builder };
        let mut generator = builder.build().unwrap();
        let mut same = 0;
        for (prompt, expected) in PROMPTS.iter().zip(&expected) {
            let got = greedy(&mut generator, prompt);
            let differs = got.iter().zip(expected).position(|(got, expected)| got != expected);
            match differs {
                None => {
                    assert_eq!(got.len(), expected.len(), "{methods:?} on {prompt:?}");
                    same += 1;
                }
                Some(at) => {
                    let tokens = [model.vocab().tokenize(prompt).unwrap(), expected[..at].to_vec()].concat();
                    let margin = margin(&model, &tokens);
                    println!("{methods:?} on {prompt:?}: token {at} differs at a top-two margin of {margin}");
                    assert!(margin < NEAR_TIE, "{methods:?} on {prompt:?}: token {at} differs at a margin of {margin}");
                }
            }
        }
        println!("{methods:?}: {same} of {} texts are those of plain decoding; {}", PROMPTS.len(), generator.stats());
        assert!(generator.stats().accepted > 0, "{methods:?} never had a token accepted");
    }
}

/// Fewer than of a generator, since there are more engines.
const ENGINE_TOKENS: usize = 20;

/// Answers to all prompts at once, as an engine gives them at its default settings.
fn answers(engine: &Engine) -> Vec<Output> {
    let request = |prompt: &str| Request::prompt(prompt).greedy().max_tokens(ENGINE_TOKENS as u32);
    let responses: Vec<_> = PROMPTS.iter().map(|prompt| engine.generate(request(prompt)).unwrap()).collect();
    responses.into_iter().map(|response| response.output().unwrap()).collect()
}

/// At the default settings no near-tie turns around: the texts are the same, not only nearly. That includes prompts asked again,
/// when the lookups know the whole answers, and several at once.
#[test]
fn engines_leave_every_text_as_it_is() {
    let (model, draft, _folder) = models();
    let mut expected = plain_texts(&model);
    expected.iter_mut().for_each(|tokens| tokens.truncate(ENGINE_TOKENS));
    let mut wrong = Vec::new();
    for methods in [&[][..]].into_iter().chain(METHODS) {
        for slots in [1, 4] {
            let config = SpecConfig::new(methods).fixed_length(12);
            let builder = Engine::builder(&model).context(options().slots(slots)).speculation(config.clone());
            let builder = if config.needs_draft() { builder.draft(&draft) } else { builder };
            let engine = builder.build().unwrap();
            // The second time, some know what comes.
            for time in 0..if methods == [Method::NgramMod] { 2 } else { 1 } {
                let outputs = answers(&engine);
                for ((prompt, expected), got) in PROMPTS.iter().zip(&expected).zip(&outputs) {
                    if let Some(at) = got.tokens.iter().zip(expected).position(|(got, expected)| got != expected) {
                        let tokens = [model.vocab().tokenize(prompt).unwrap(), expected[..at].to_vec()].concat();
                        let margin = margin(&model, &tokens);
                        wrong.push(format!(
                            "{methods:?}, {slots} slots, time {time}, {prompt:?}: token {at}, margin {margin}"
                        ));
                    }
                }
                assert!(outputs.iter().zip(&expected).all(|(got, expected)| got.tokens.len() == expected.len()));
            }
            // So few tokens hold no key of the map methods twice.
            let few = matches!(methods, [] | [Method::NgramMapK | Method::NgramMapK4v]);
            assert!(engine.stats().total.accepted > 0 || few, "{methods:?} never had a token accepted");
            println!("{methods:?}, {slots} slots, {} rows:\n{}", engine.verify_rows(), engine.stats());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
