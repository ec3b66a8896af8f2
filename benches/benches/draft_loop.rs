//! What a drafted token costs in our loops, over what it costs in those of llama.cpp, on tiny models: the less they compute, the
//! more the loops themselves show. Time to follow the target is part of it.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{ContextOptions, GenerateOptions, Generator, Model};
use llama_spec_benches::paired;
use llama_spec_tests::zoo;

const TOKENS: u32 = 200;
/// Target, draft if it is a file of its own, and method.
const PAIRS: [(&str, Option<&str>, Method); 5] = [
    ("recall", Some("recall-draft-0.8"), Method::DraftSimple),
    ("recall", Some("eagle3-recall"), Method::DraftEagle3),
    ("qwen35-mtp", None, Method::DraftMtp),
    ("chained-mtp", None, Method::DraftMtp),
    ("gemma4", Some("gemma4-assistant"), Method::DraftMtp),
];

fn load(name: &str, mtp: bool) -> Model {
    Model::builder(zoo::file(name)).mtp(mtp).load().expect("a zoo model loads")
}

fn generator(target: &Model, draft: Option<&Model>, method: Method, theirs: bool) -> Generator {
    let context = ContextOptions::default().length_per_slot(512).threads(1);
    let mut builder = Generator::builder(target).context(context).speculation(SpecConfig::new([method]));
    if let Some(draft) = draft {
        builder = builder.draft(draft);
    }
    if theirs {
        builder = builder.llama_cpp_loops();
    }
    builder.build().expect("models of the zoo fit together")
}

/// Seconds that a drafted token took in this text, which never is quite the same, so that nothing of it is known.
fn draft_time(generator: &mut Generator, number: usize) -> f64 {
    let before = generator.stats().clone();
    let options = GenerateOptions::greedy().max_tokens(TOKENS);
    let prompt = format!("{number} quick brown foxes");
    generator.generate(&prompt, options).expect("the prompt fits").for_each(drop);
    let stats = generator.stats();
    (stats.draft - before.draft).as_secs_f64() / (stats.drafted - before.drafted).max(1) as f64
}

fn draft_loop(criterion: &mut Criterion) {
    for (target, draft, method) in PAIRS {
        let mtp = method == Method::DraftMtp;
        let name = format!("{target} with {}", draft.unwrap_or("its heads"));
        let (target, draft) = (load(target, mtp), draft.map(|draft| load(draft, mtp)));
        let mut ours = generator(&target, draft.as_ref(), method, false);
        let mut theirs = generator(&target, draft.as_ref(), method, true);

        let mut group = criterion.benchmark_group(format!("drafting, {name}"));
        let mut number = 0;
        for (label, generator) in [("ours", &mut ours), ("llama.cpp", &mut theirs)] {
            group.sample_size(10).bench_function(label, |bencher| {
                bencher.iter(|| {
                    number += 1;
                    draft_time(generator, number)
                });
            });
        }
        group.finish();

        let (mut of_ours, mut of_theirs) = (Vec::new(), Vec::new());
        let mut text = 0;
        let ratio = paired(
            40,
            || {
                text += 1;
                of_ours.push(draft_time(&mut ours, text));
            },
            || of_theirs.push(draft_time(&mut theirs, of_theirs.len())),
        );
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2] * 1e6
        };
        let (one, other) = (median(&mut of_ours), median(&mut of_theirs));
        println!("{name}: {one:.1} µs for each drafted token, {other:.1} µs in llama.cpp's loop: {:.3}", one / other);
        println!("{name}: whole texts {:.3} (pairs from {:.3} to {:.3})", ratio.median, ratio.min, ratio.max);
    }
}

criterion_group!(benches, draft_loop);
criterion_main!(benches);
