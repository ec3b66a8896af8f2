//! What the generator costs over a bare loop of `llama_decode` and argmax, on the tiny target of the zoo: the less the model
//! computes, the more the overhead shows.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::{ContextOptions, GenerateOptions, Generator, Model};
use llama_spec_benches::{BareLoop, paired};
use llama_spec_tests::zoo;

const TOKENS: usize = 200;
const LENGTH: u32 = 512;

fn plain_decoding(criterion: &mut Criterion) {
    let path = zoo::file("target");
    let model = Model::load(&path).expect("a zoo model loads");
    let prompt = model.vocab().tokenize("The quick brown fox").expect("plain text");
    let ids: Vec<i32> = prompt.iter().map(|token| token.id()).collect();
    let context = ContextOptions::default().length_per_slot(LENGTH).threads(1);
    let mut generator = Generator::builder(&model).context(context).build().expect("a context of a zoo model");
    let mut bare = BareLoop::new(&path, LENGTH, 1);
    let mut generate = || {
        let options = GenerateOptions::greedy().max_tokens(TOKENS as u32);
        generator.generate_tokens(prompt.clone(), options).expect("the prompt fits").count()
    };
    let mut decode = || bare.generate(&ids, TOKENS);

    let mut group = criterion.benchmark_group("plain decoding, 200 tokens");
    group.bench_function("bare loop", |bencher| bencher.iter(&mut decode));
    group.bench_function("generator", |bencher| bencher.iter(&mut generate));
    group.finish();

    let ratio = paired(60, || _ = generate(), || _ = decode());
    println!("generator / bare loop: {:.3} (pairs from {:.3} to {:.3})", ratio.median, ratio.min, ratio.max);
}

criterion_group!(benches, plain_decoding);
criterion_main!(benches);
