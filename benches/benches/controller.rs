//! What a decision costs: a whole round of the controller (plan, go on, choose, observe) for 1 and 8 texts, each with a lookup
//! draft of 8 tokens and a draft model.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use llama_spec::control::{
    Chain, Choice, ControlSettings, Controller, Costs, DrafterKind, DrafterSpec, DrafterTimes, Evidence, Guess,
    Outcome, Plan, Sequence, Verified,
};
use std::time::Duration;

const LONGEST: usize = 8;

fn controller() -> Controller {
    let lookup = DrafterSpec {
        kind: DrafterKind::Free,
        longest: 16,
        pausable: true,
        goes_on: false,
        buckets: (0..64).map(|bucket| 0.3 + 0.01 * bucket as f32).collect(),
    };
    let model = DrafterSpec {
        kind: DrafterKind::Stepwise,
        longest: LONGEST,
        pausable: true,
        goes_on: false,
        buckets: Vec::new(),
    };
    let mut costs = Costs::unknown().drafter(1, Duration::from_millis(1), Some(Duration::from_millis(1)));
    for rows in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64] {
        costs = costs.rows(rows, Duration::from_micros(20_000 + 1_000 * rows as u64));
    }
    Controller::new(ControlSettings::default(), &[lookup, model], costs)
}

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("controller step");
    for count in [1usize, 8] {
        let mut controller = controller();
        let sequences: Vec<Sequence> = (0..count).map(|slot| Sequence { slot, depth: 900 + slot, limit: 16 }).collect();
        (0..count).for_each(|slot| controller.begin(slot, 100));
        let free: Vec<Guess> =
            (0..8).map(|place| Guess { drafter: 0, evidence: Evidence::Bucket(30 + place) }).collect();
        let drafted: Vec<Guess> = (0..LONGEST)
            .map(|place| Guess { drafter: 1, evidence: Evidence::Margin(3.0 - 0.2 * place as f32) })
            .collect();
        let (mut plan, mut choice) = (Plan::default(), Choice::default());
        let mut lengths = vec![0; count];
        let mut round = 0usize;
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                round += 1;
                let none = Chain { sequence: 0, guesses: &[] };
                let mut chains = [none; 16];
                for (sequence, chain) in chains[..count].iter_mut().enumerate() {
                    *chain = Chain { sequence, guesses: &free };
                }
                controller.plan(64, &sequences, &chains[..count], &mut plan);
                let mut all = count;
                for (sequence, planned) in plan.drafts.iter().enumerate() {
                    lengths[sequence] = 0;
                    while lengths[sequence] < planned.limit {
                        let place = lengths[sequence];
                        lengths[sequence] += 1;
                        if !controller.go_on(sequence, place, drafted[place].evidence) {
                            break;
                        }
                    }
                    if lengths[sequence] > 0 {
                        chains[all] = Chain { sequence, guesses: &drafted[..lengths[sequence]] };
                        all += 1;
                    }
                }
                controller.choose(&sequences, &chains[..all], &mut choice);
                let mut verified = [Verified::default(); 8];
                let mut rows = count;
                for (index, (verified, pick)) in verified.iter_mut().zip(&choice.picks).enumerate() {
                    let guesses = pick.chain.map_or(&[][..], |chain| &chains[chain].guesses[..pick.length]);
                    *verified = Verified { guesses, accepted: guesses.len() * ((round + index) % 4) / 3 };
                    rows += guesses.len();
                }
                let steps = lengths.iter().copied().max().unwrap_or(0);
                let times = [DrafterTimes {
                    drafter: 1,
                    sequences: count,
                    steps,
                    draft: Duration::from_millis(steps as u64),
                    follow: Some(Duration::from_millis(1)),
                    ..DrafterTimes::default()
                }];
                controller.observe(&Outcome {
                    sequences: &sequences,
                    verified: &verified[..count],
                    drafters: &times,
                    verify: Duration::from_micros(20_000 + 1_000 * rows as u64),
                    sample: Duration::from_micros(100),
                    rollback: Duration::from_micros(10),
                });
            });
        });
    }
    group.finish();
}

criterion_group!(benches, step);
criterion_main!(benches);
