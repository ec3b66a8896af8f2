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
use llama_spec::spec::{Method, SpecConfig, Stats};
use llama_spec::{ContextOptions, Engine, Model, ModelFile, Request};
use llama_spec_benches::{Ratio, paired_times, row_times, told};
use llama_spec_tests::zoo;
use std::path::Path;
use std::time::Duration;

const TOKENS: u32 = 160;
const THREADS: u32 = 2;
/// Drafts are no longer than this.
const LONGEST: usize = 16;

fn memory_bound(_: &mut Criterion) {
    let target = zoo::bench_target().cached().expect("the target can be written");
    let times = row_times(&target, THREADS, LONGEST + 1);
    println!("{}", told(&times));
    for acceptance in [0.5, 0.8, 0.95] {
        let draft = zoo::bench_draft(acceptance).cached().expect("the draft can be written");
        let step = row_times(&draft, THREADS, 1)[0];
        let speed_up = |length: usize| {
            let expected: f64 = (0..=length).map(|place| acceptance.powi(place as i32)).sum();
            expected * times[0] / (length as f64 * step + times[length])
        };
        let best = (0..=LONGEST).max_by(|left, right| speed_up(*left).total_cmp(&speed_up(*right))).unwrap_or(0);
        let (measured, rounds) = measure(&target, &draft);
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
        println!("  its rounds: {}", of_rounds(&rounds, times[0]));
    }
}

/// How many times faster than plain decoding the engine is with this draft, texts of all tokens but the first; and the numbers
/// of one of these texts.
fn measure(target: &Path, draft: &Path) -> (Ratio, Stats) {
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
    let generate = |engine: &Engine| {
        let mut request = Request::prompt("The quick brown fox").greedy().max_tokens(TOKENS);
        request.options.sampler.ignore_eos = true;
        engine.generate(request).expect("the prompt fits").output().expect("it generates").stats
    };
    let mut rounds = Stats::default();
    let speculate = || {
        rounds = generate(&drafted);
        rounds.generation
    };
    let times = paired_times(3, || generate(&plain).generation, speculate);
    let ratios = times.iter().map(|(plain, drafted)| plain.as_secs_f64() / drafted.as_secs_f64());
    (Ratio::of(ratios).expect("there are pairs"), rounds)
}

/// What the rounds of a text were, with times in those of a token alone.
fn of_rounds(stats: &Stats, token: f64) -> String {
    let each = |number: f64| number / stats.rounds as f64;
    let time = |time: Duration| each(time.as_secs_f64()) / token;
    format!(
        "{:.2} of {:.2} drafted tokens accepted; {:.3} to draft and follow, {:.3} to verify, {:.3} to sample, {:.3} to take back",
        each(stats.accepted as f64),
        each(stats.drafted as f64),
        time(stats.draft),
        time(stats.verify),
        time(stats.sample),
        time(stats.rollback)
    )
}

criterion_group!(benches, memory_bound);
criterion_main!(benches);
