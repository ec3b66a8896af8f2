//! What the engine costs for each generated token over a bare loop of `llama_decode` and argmax: queue, rounds, sampler, events
//! and text. On the tiny target of the zoo in microseconds, on a real model in parts of its time.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::spec::SpecConfig;
use llama_spec::{ContextOptions, Engine, Model, Request};
use llama_spec_benches::{BareLoop, Ratio, paired_times, smollm2};
use llama_spec_tests::zoo;
use std::path::Path;
use std::time::{Duration, Instant};

const LENGTH: u32 = 512;
const PROMPT: &str = "The quick brown fox jumps over the lazy dog, and";

fn overhead(_: &mut Criterion) {
    compare("tiny target", &zoo::file("target"), 200, 1, 60);
    if let Some(path) = smollm2() {
        compare("SmolLM2", &path, 64, 2, 30);
    }
}

/// Prints both as they are for each token. Prompts are not counted on either side.
fn compare(name: &str, path: &Path, tokens: u32, threads: u32, pairs: usize) {
    let model = Model::load(path).expect("the model loads");
    let prompt = model.vocab().tokenize(PROMPT).expect("plain text");
    let ids: Vec<i32> = prompt.iter().map(|token| token.id()).collect();
    let context = ContextOptions::default().length_per_slot(LENGTH).threads(threads);
    let engine = Engine::builder(&model).context(context).speculation(SpecConfig::off()).build().expect("an engine");
    let mut bare = BareLoop::new(path, LENGTH, threads as i32);
    let generate = || {
        let mut sampler = Request::tokens(prompt.clone()).greedy().max_tokens(tokens);
        // Both generate the same number of tokens.
        sampler.options.sampler.ignore_eos = true;
        let stats = engine.generate(sampler).expect("the prompt fits").output().expect("it generates").stats;
        // The first token comes with the prompt.
        stats.generation / (stats.generated_tokens - 1) as u32
    };
    let decode = || {
        let start = Instant::now();
        bare.generate(&ids, tokens as usize);
        start.elapsed() / tokens
    };
    let times = paired_times(pairs, generate, decode);
    let micro = |time: Duration| time.as_secs_f64() * 1e6;
    let spread = |numbers: &mut dyn Iterator<Item = f64>| Ratio::of(numbers).expect("there are pairs");
    let theirs = spread(&mut times.iter().map(|(_, bare)| micro(*bare)));
    let more = spread(&mut times.iter().map(|(ours, bare)| micro(*ours) - micro(*bare)));
    let ratio = spread(&mut times.iter().map(|(ours, bare)| micro(*ours) / micro(*bare)));
    println!(
        "{name}: a token of the bare loop {:.1} us; the engine {:+.1} us ({:+.1} to {:+.1}), ratio {:.4} ({:.4} to {:.4})",
        theirs.median, more.median, more.min, more.max, ratio.median, ratio.min, ratio.max
    );
}

criterion_group!(benches, overhead);
criterion_main!(benches);
