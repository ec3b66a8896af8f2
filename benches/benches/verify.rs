//! What a row of logits costs after it was computed: sampling one token, and comparing a draft with several rows. And whether it is
//! the same row when it is computed alone as when it is computed with others, behind texts of several lengths.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use llama_spec::{Batch, Context, ContextOptions, Model, Sampler, SamplerOptions, Slot, Token};
use llama_spec_benches::smollm2;
use llama_spec_tests::zoo;
use std::hint::black_box;

/// Rows that are verified at once.
const ROWS: [usize; 4] = [1, 2, 4, 8];

/// Tokens before them.
const DEPTHS: [u32; 5] = [60, 200, 300, 600, 900];

fn verify(criterion: &mut Criterion) {
    let path = smollm2().unwrap_or_else(|| zoo::file("target"));
    let model = Model::load(path).expect("the model loads");
    let (context, greedy) = decoded(&model);
    let kinds = [
        ("greedy", SamplerOptions::greedy()),
        ("usual", SamplerOptions::default().seed(1)),
        ("whole vocabulary", SamplerOptions::unfiltered().seed(1)),
    ];
    let mut group = criterion.benchmark_group(format!("rows of {} logits", model.vocab().len()));
    group.sample_size(20);
    for (name, options) in kinds {
        let fresh = || Sampler::new(&model, &options).expect("good options");
        let mut sampler = fresh();
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("sample", name), |bencher| {
            bencher.iter(|| black_box(sampler.sample(&context, 0).expect("a token")));
        });
        for rows in ROWS {
            let (entries, draft): (Vec<usize>, &[Token]) = ((0..rows).collect(), &greedy[..rows - 1]);
            let mut accepted = Vec::new();
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::new(format!("verify, {name}"), rows), |bencher| {
                bencher.iter_batched_ref(
                    fresh,
                    |sampler| sampler.verify(&context, &entries, draft, &mut accepted).expect("tokens"),
                    criterion::BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
    for threads in [1, 2] {
        println!("logits of {} rows at once against those of single ones, {threads} threads:", ROWS[ROWS.len() - 1]);
        DEPTHS.iter().for_each(|depth| println!("  behind {depth} tokens: {} apart", apart(&model, threads, *depth)));
    }
}

/// The largest difference of a logit of rows that are computed together from the same rows computed one by one.
fn apart(model: &Model, threads: u32, depth: u32) -> f32 {
    let rows = ROWS[ROWS.len() - 1] as u32;
    let options = ContextOptions::default().length_per_slot(1024).threads(threads);
    let mut context = model.context(&options).expect("a context");
    let text = "The quick brown fox jumps over the lazy dog and goes to the market to buy some apples. ".repeat(60);
    let tokens = model.vocab().tokenize(&text).expect("plain text");
    let mut decode = |from: u32, to: u32, outputs: bool| -> Vec<Vec<f32>> {
        let mut batch = Batch::new();
        (from..to).for_each(|place| _ = batch.push(tokens[place as usize], place, Slot::FIRST, outputs));
        context.memory().remove(Slot::FIRST, from..).expect("a transformer forgets what it is told to");
        context.decode(&batch).expect("it decodes");
        let row = |entry| context.logits(entry).expect("it was asked for").to_vec();
        if outputs { (0..batch.len()).map(row).collect() } else { Vec::new() }
    };
    decode(0, depth, false);
    let alone: Vec<Vec<f32>> = (depth..depth + rows).flat_map(|place| decode(place, place + 1, true)).collect();
    let together = decode(depth, depth + rows, true);
    let pairs = alone.iter().flatten().zip(together.iter().flatten());
    pairs.map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

/// A context with the logits of all rows, and the most probable token of each: a draft that greedy sampling accepts whole.
fn decoded(model: &Model) -> (Context, Vec<Token>) {
    let most = ROWS.into_iter().max().unwrap_or(1);
    let mut context = model.context(&ContextOptions::default().length_per_slot(256).threads(2)).expect("a context");
    let tokens =
        model.vocab().tokenize("one two three four five six seven eight nine ten eleven twelve").expect("text");
    let mut batch = Batch::new();
    for (position, token) in tokens.into_iter().take(most).enumerate() {
        batch.push(token, position as u32, Slot::FIRST, true);
    }
    context.decode(&batch).expect("it decodes");
    let mut sampler = Sampler::new(model, &SamplerOptions::greedy()).expect("good options");
    let best = (0..most).map(|row| sampler.sample(&context, row).expect("a token")).collect();
    (context, best)
}

criterion_group!(benches, verify);
criterion_main!(benches);
