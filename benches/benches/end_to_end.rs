//! Whole texts with drafts and without: drafts of known acceptance on the zoo, and what a real model finds by itself.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use llama_spec::spec::SpecConfig;
use llama_spec::{ContextOptions, Engine, Model, ModelFile, Request};
use llama_spec_benches::{paired, smollm2};
use llama_spec_tests::zoo;
use std::path::{Path, PathBuf};

const TOKENS: u32 = 64;

fn end_to_end(criterion: &mut Criterion) {
    let target = zoo::file("target");
    for draft in ["draft-0.5", "draft-0.8", "draft-1.0"] {
        compare(criterion, draft, &target, Some(zoo::file(draft)), 1, "The quick brown fox");
    }
    if let Some(path) = smollm2() {
        let days =
            "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, Monday, Tuesday, Wednesday, Thursday,";
        compare(criterion, "SmolLM2, a repetition", &path, None, 2, days);
        compare(criterion, "SmolLM2, prose", &path, None, 2, "The lighthouse keeper opened the letter, and");
    }
}

fn compare(criterion: &mut Criterion, name: &str, path: &Path, draft: Option<PathBuf>, threads: u32, prompt: &str) {
    let model = Model::load(path).expect("the model loads");
    let context = ContextOptions::default().length_per_slot(512).threads(threads);
    let builder = || Engine::builder(&model).context(context.clone());
    let plain = builder().speculation(SpecConfig::off()).build().expect("an engine");
    let speculative = match draft {
        Some(draft) => builder().draft(ModelFile::open(draft).expect("a draft")),
        None => builder(),
    };
    let speculative = speculative.build().expect("an engine");
    let generate = |engine: &Engine| {
        let mut request = Request::prompt(prompt).greedy().max_tokens(TOKENS);
        request.options.sampler.ignore_eos = true;
        engine.generate(request).expect("the prompt fits").output().expect("it generates").text
    };
    assert_eq!(generate(&plain), generate(&speculative), "drafts change no text");
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).throughput(Throughput::Elements(u64::from(TOKENS)));
    group.bench_function("plain", |bencher| bencher.iter(|| generate(&plain)));
    group.bench_function("speculative", |bencher| bencher.iter(|| generate(&speculative)));
    group.finish();
    let ratio = paired(10, || _ = generate(&plain), || _ = generate(&speculative));
    println!("{name}, speed speculative / plain: {:.3} ({:.3} to {:.3})", ratio.median, ratio.min, ratio.max);
}

criterion_group!(benches, end_to_end);
criterion_main!(benches);
