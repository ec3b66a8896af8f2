//! Tokens per second of all slots together, with 1, 2, 4 and 8 of them, plain and speculative.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use llama_spec::spec::SpecConfig;
use llama_spec::{ContextOptions, Engine, Model, Request};
use llama_spec_benches::{paired, smollm2};
use llama_spec_tests::zoo;

const TOKENS: u32 = 32;
/// So that texts differ, and none waits for the other's cache.
const BEGINNINGS: [&str; 8] = [
    "A river is",
    "My uncle said",
    "The list of colours: red, green,",
    "In winter the birds",
    "fn main() {",
    "To boil an egg",
    "1, 2, 3, 4,",
    "The train was late, and",
];

fn slots(criterion: &mut Criterion) {
    let (name, path, threads) = match smollm2() {
        Some(path) => ("SmolLM2", path, 2),
        None => ("tiny target", zoo::file("target"), 1),
    };
    let model = Model::load(path).expect("the model loads");
    let engine = |slots: u32, plain: bool| {
        let context = ContextOptions::default().slots(slots).length_per_slot(512).threads(threads);
        let builder = Engine::builder(&model).context(context);
        if plain { builder.speculation(SpecConfig::off()) } else { builder }.build().expect("an engine")
    };
    let all = |engine: &Engine| {
        let ask = |beginning: &&str| {
            let mut request = Request::prompt(*beginning).greedy().max_tokens(TOKENS);
            request.options.sampler.ignore_eos = true;
            engine.generate(request).expect("there is room")
        };
        let answers: Vec<_> = BEGINNINGS.iter().take(engine.slots() as usize).map(ask).collect();
        answers.into_iter().map(|answer| answer.output().expect("it generates").tokens.len()).sum::<usize>()
    };
    let mut group = criterion.benchmark_group(format!("slots, {name}"));
    group.sample_size(10);
    for slots in [1, 2, 4, 8] {
        let (plain, auto) = (engine(slots, true), engine(slots, false));
        group.throughput(Throughput::Elements(u64::from(slots * TOKENS)));
        group.bench_function(BenchmarkId::new("plain", slots), |bencher| bencher.iter(|| all(&plain)));
        group.bench_function(BenchmarkId::new("auto", slots), |bencher| bencher.iter(|| all(&auto)));
        let ratio = paired(6, || _ = all(&plain), || _ = all(&auto));
        println!("{slots} slots, speed auto / plain: {:.3} ({:.3} to {:.3})", ratio.median, ratio.min, ratio.max);
    }
    group.finish();
}

criterion_group!(benches, slots);
criterion_main!(benches);
