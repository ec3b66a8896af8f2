//! How long it takes until an engine is there: headers, the choice of a method, weights, and the probe.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::probe::Probe;
use llama_spec::spec::SpecConfig;
use llama_spec::{Engine, Model, ModelFile};
use llama_spec_benches::smollm2;
use llama_spec_tests::zoo;
use std::path::Path;

fn load(criterion: &mut Criterion) {
    measure(criterion, "tiny target", &zoo::file("target"));
    if let Some(path) = smollm2() {
        measure(criterion, "SmolLM2", &path);
    }
}

fn measure(criterion: &mut Criterion, name: &str, path: &Path) {
    let mut group = criterion.benchmark_group(format!("load {name}"));
    group.sample_size(10);
    let open = || ModelFile::open(path).expect("it opens");
    group.bench_function("header", |bencher| bencher.iter(open));
    group.bench_function("header and auto", |bencher| {
        bencher.iter(|| SpecConfig::auto(&open(), None).expect("lookup fits any language model"));
    });
    group.bench_function("weights", |bencher| bencher.iter(|| Model::load(path).expect("it loads")));
    let model = Model::load(path).expect("it loads");
    let engine =
        |probe| Engine::builder(&model).context_per_slot(512).threads(2).probe(probe).build().expect("an engine");
    group.bench_function("engine without probe", |bencher| bencher.iter(|| engine(Probe::Off)));
    group.bench_function("engine with probe", |bencher| bencher.iter(|| engine(Probe::Full)));
    group.finish();
}

criterion_group!(benches, load);
criterion_main!(benches);
