//! What the controller makes of a draft model, over what can be had at best: a target of 1.1 billion parameters in F16, whose
//! time is that of reading its weights, with drafts of 52 million of which a known share is right.
//!
//! The best is that of the limit formula (Leviathan et al. 2023, section 3.3, with measured times in place of equal ones),
//!
//! ```text
//!            1 + a + a^2 + ... + a^k
//! S(k) = -------------------------------
//!         k D / T(1)  +  T(k + 1) / T(1)
//! ```
//!
//! of the best length k, where `a` is the share that is right, T(n) the time for n tokens at once, and D that of a step of the
//! draft. It knows all of this beforehand and pays for nothing else.
//!
//! This takes six minutes on two cores, and 2.5 GB of disk for models that are written once.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Batch, Context, ContextOptions, Engine, Model, ModelFile, Request, Slot, Token};
use llama_spec_benches::{Ratio, paired_times};
use llama_spec_tests::zoo;
use std::path::Path;
use std::time::{Duration, Instant};

const TOKENS: u32 = 160;
const THREADS: u32 = 2;
/// Drafts are no longer than this.
const LONGEST: usize = 16;
const DEPTH: u32 = 64;

fn memory_bound(_: &mut Criterion) {
    let target = zoo::bench_target().cached().expect("the target can be written");
    let times = verify_times(&target);
    println!("T(n) / T(1) for n = 1, 2, ...: {}", listed(times.iter().map(|time| time / times[0])));
    for acceptance in [0.5, 0.8, 0.95] {
        let draft = zoo::bench_draft(acceptance).cached().expect("the draft can be written");
        let step = step_time(&draft);
        let speed_up = |length: usize| {
            let expected: f64 = (0..=length).map(|place| acceptance.powi(place as i32)).sum();
            expected * times[0] / (length as f64 * step + times[length])
        };
        let best = (0..=LONGEST).max_by(|left, right| speed_up(*left).total_cmp(&speed_up(*right))).unwrap_or(0);
        let measured = measure(&target, &draft);
        println!(
            "acceptance {acceptance}, a step of the draft {:.3} T(1): at best {:.3} times plain (length {best}); \
             the controller {:.3} ({:.3} to {:.3}), {:.3} of that",
            step / times[0],
            speed_up(best),
            measured.median,
            measured.min,
            measured.max,
            measured.median / speed_up(best),
        );
    }
}

/// Seconds to decode 1, 2, ... tokens at once.
fn verify_times(path: &Path) -> Vec<f64> {
    let (mut context, token) = context(path);
    (1..=LONGEST + 1).map(|rows| decode_time(&mut context, token, rows)).collect()
}

fn step_time(path: &Path) -> f64 {
    let (mut context, token) = context(path);
    decode_time(&mut context, token, 1)
}

fn context(path: &Path) -> (Context, Token) {
    let model = Model::load(path).expect("the model loads");
    let token = model.vocab().tokenize("a").expect("plain text")[0];
    let mut context =
        model.context(&ContextOptions::default().length_per_slot(512).threads(THREADS)).expect("a context");
    decode(&mut context, token, DEPTH as usize, 0);
    // The first batches read the weights from the disk.
    (0..3).for_each(|_| _ = decode_time(&mut context, token, 1));
    (context, token)
}

/// The median of some batches behind a short text.
fn decode_time(context: &mut Context, token: Token, rows: usize) -> f64 {
    let times = (0..7).map(|_| {
        let start = Instant::now();
        decode(context, token, rows, DEPTH);
        let time = start.elapsed().as_secs_f64();
        context.memory().remove(Slot::FIRST, DEPTH..).expect("a transformer forgets what it is told to");
        time
    });
    Ratio::of(times).expect("there are times").median
}

fn decode(context: &mut Context, token: Token, rows: usize, position: u32) {
    let mut batch = Batch::new();
    for row in 0..rows as u32 {
        batch.push(token, position + row, Slot::FIRST, true);
    }
    context.decode(&batch).expect("it decodes");
}

/// How many times faster than plain decoding the engine is with this draft; texts of all tokens but the first.
fn measure(target: &Path, draft: &Path) -> Ratio {
    let model = Model::load(target).expect("the model loads");
    let builder = || {
        let context = ContextOptions::default().length_per_slot(512).threads(THREADS);
        Engine::builder(&model).context(context)
    };
    let plain = builder().speculation(SpecConfig::off()).build().expect("an engine");
    let drafted = builder()
        .draft(ModelFile::open(draft).expect("a draft"))
        .speculation(SpecConfig::new([Method::DraftSimple]))
        .build()
        .expect("an engine");
    let generate = |engine: &Engine| -> Duration {
        let mut request = Request::prompt("The quick brown fox").greedy().max_tokens(TOKENS);
        request.options.sampler.ignore_eos = true;
        let stats = engine.generate(request).expect("the prompt fits").output().expect("it generates").stats;
        stats.generation
    };
    let times = paired_times(3, || generate(&plain), || generate(&drafted));
    Ratio::of(times.iter().map(|(plain, drafted)| plain.as_secs_f64() / drafted.as_secs_f64()))
        .expect("there are pairs")
}

fn listed(numbers: impl Iterator<Item = f64>) -> String {
    numbers.map(|number| format!("{number:.2}")).collect::<Vec<_>>().join(", ")
}

criterion_group!(benches, memory_bound);
criterion_main!(benches);
