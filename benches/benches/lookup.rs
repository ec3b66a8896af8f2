//! What the lookup drafter costs at several lengths of text: a token appended (`begin`), the same with a guess that is scored
//! (`extend`), a draft of 16 tokens, and one behind 4 tokens of somebody else. Medians, 99th percentiles and the bytes for each
//! token are printed behind.

#[path = "../../llama-spec/src/lookup/tests/texts.rs"]
mod texts;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use llama_spec::Token;
use llama_spec::lookup::Lookup;
use std::hint::black_box;
use std::time::Instant;

const LENGTHS: [usize; 3] = [1_000, 32_000, 128_000];

/// Tokens appended between two looks at the clock, which takes as long as a few of them.
const CHUNK: usize = 16;

const LIMIT: usize = 16;

/// Tokens that somebody else drafted.
const BEFORE: usize = 4;

fn samples(length: usize) -> [(&'static str, Vec<Token>); 5] {
    let whole = |text: texts::Recorded| (text.name, [text.prompt, text.output].concat());
    let texts = [
        ("prose", texts::prose(&mut texts::Random::new(1), length)),
        ("program", texts::program(&mut texts::Random::new(1), length)),
        whole(texts::copy(3, length)),
        whole(texts::list(3, length)),
        whole(texts::agent(3, length)),
    ];
    texts.map(|(name, text)| (name, text.into_iter().map(Token::new).collect()))
}

fn lookup(criterion: &mut Criterion) {
    for length in LENGTHS {
        for (name, text) in samples(length) {
            let mut group = criterion.benchmark_group(format!("lookup, {name}, {length} tokens"));
            group.sample_size(10);
            group.throughput(Throughput::Elements(text.len() as u64));
            group.bench_function("begin", |bencher| {
                bencher.iter_batched_ref(|| Lookup::new(None), |lookup| lookup.begin(&text), BatchSize::LargeInput);
            });
            group.bench_function("extend and score", |bencher| {
                let extend =
                    |lookup: &mut Lookup| lookup.extend(&text, |evidence, right| _ = black_box((evidence, right)));
                bencher.iter_batched_ref(|| Lookup::new(None), extend, BatchSize::LargeInput);
            });
            group.finish();
            distribution(name, &text);
        }
    }
}

/// The text put in bit by bit, each followed by a draft.
fn distribution(name: &str, text: &[Token]) {
    let (mut extended, mut drafted, mut behind, mut draft) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut lookup = Lookup::new(None);
    let mut rest = text;
    for chunk in text.chunks(CHUNK) {
        rest = rest.get(chunk.len()..).unwrap_or_default();
        let start = Instant::now();
        lookup.extend(chunk, |evidence, right| _ = black_box((evidence, right)));
        extended.push(start.elapsed().as_nanos() as usize / chunk.len());
        let start = Instant::now();
        lookup.propose(LIMIT, &mut draft);
        drafted.push(start.elapsed().as_nanos() as usize);
        let right = rest.get(..BEFORE).unwrap_or(rest);
        let start = Instant::now();
        lookup.propose_after(right, LIMIT, &mut draft);
        behind.push(start.elapsed().as_nanos() as usize);
    }
    let measured = [("extend, for a token", extended), ("propose 16", drafted), ("propose 16 behind 4", behind)];
    for (what, mut times) in measured {
        times.sort_unstable();
        let of = |hundredths: usize| times[(times.len() - 1) * hundredths / 100];
        println!("{name}, {} tokens, {what}: median {} ns, 99 % within {} ns", text.len(), of(50), of(99));
    }
    println!("{name}, {} tokens: {:.1} bytes a token", text.len(), lookup.bytes() as f64 / text.len() as f64);
}

criterion_group!(benches, lookup);
criterion_main!(benches);
