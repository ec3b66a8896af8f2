//! The figures the controller must reach.

use super::random::Random;
use super::strategy::{Controlled, Fixed, Oracle, Strategy};
use super::texts::{Course, Tells, block, lookup, lookup_drafts, model, model_drafts, text};
use super::trace::{LONGEST, Text};
use super::world::{World, curves};
use super::{Score, run};

const LENGTH: usize = 3000;
/// What is asserted was not tuned on: tuning used the seeds below.
const SEEDS: std::ops::Range<u64> = 200..203;

struct Table {
    plain: f64,
    fixed: f64,
    which: (usize, usize),
    oracle: f64,
    ours: f64,
    score: Score,
}

fn compare(world: &World, texts: &[Text], seed: u64) -> Table {
    let speed = |strategy: &mut dyn Strategy| run(world, texts, strategy, seed).speed();
    let plain = speed(&mut Fixed { drafter: 0, length: 0 });
    let all = (0..world.drafters.len()).flat_map(|drafter| (0..=LONGEST).map(move |length| (drafter, length)));
    let (which, fixed) = all
        .map(|(drafter, length)| ((drafter, length), speed(&mut Fixed { drafter, length })))
        .max_by(|left, right| left.1.total_cmp(&right.1))
        .expect("there are settings");
    let mut controlled = Controlled::new(world, seed);
    let score = run(world, texts, &mut controlled, seed);
    Table { plain, fixed, which, oracle: speed(&mut Oracle), ours: score.speed(), score }
}

fn print(name: &str, table: &Table) {
    let Table { plain, fixed, which: (drafter, length), oracle, ours, score } = table;
    println!(
        "{name:40} fixed {:.2}x ({drafter}:{length:<2}) oracle {:.2}x ours {:.2}x  \
         of fixed {:.3} of plain {:.3} account {:+.3}",
        fixed / plain,
        oracle / plain,
        ours / plain,
        ours / fixed,
        ours / plain,
        score.account.loss_share()
    );
}

fn model_text(seed: u64, course: Course, tells: Tells, decay: f64) -> Text {
    text(vec![model_drafts(LENGTH, course, tells, decay, &mut Random::new(seed))])
}

#[test]
fn stationary_model_drafts_reach_the_best_fixed_length() {
    let mut worst = (f64::MAX, f64::MAX);
    let (mut all, mut short, mut logs) = (0, 0, 0.0);
    for (name, curve) in curves() {
        for share in [0.2, 0.5, 0.8, 0.95] {
            for tells in [Tells::Nothing, Tells::Probability, Tells::Margin] {
                let world = World::new(&curve, vec![model(LONGEST)]);
                for seed in SEEDS {
                    let texts = [model_text(seed, Course::Steady(share), tells, 0.98)];
                    let table = compare(&world, &texts, seed);
                    if seed == SEEDS.start {
                        print(&format!("{name} {share} {tells:?}"), &table);
                    }
                    let figures = (table.ours / table.fixed, table.ours / table.plain);
                    if figures.0 < 0.97 || figures.1 < 0.99 {
                        print(&format!("MISS {name} {share} {tells:?} seed {seed}"), &table);
                    }
                    all += 1;
                    short += usize::from(figures.0 < 0.97);
                    logs += figures.0.ln();
                    worst = (worst.0.min(figures.0), worst.1.min(figures.1));
                }
            }
        }
    }
    let mean = (logs / f64::from(all)).exp();
    println!("worst: {worst:?}, {short} of {all} below 0.97, mean {mean:.3}");
    // 0.97 is not reached everywhere: a probe that was wrong about some batch sizes is found out only step by step, and
    // where the gain is small, bad luck at the beginning may close the account; then what a paused drafter must catch
    // up with may grow faster than what the bound lets be spent on it (0.93 was seen with other seeds).
    assert!(worst.0 >= 0.93 && worst.1 >= 0.99 && mean >= 0.99, "{worst:?} {mean}");
    assert!(short * 20 <= all as usize, "{short} of {all} are below 0.97");
}

#[test]
fn stationary_lookup_and_blocks_reach_the_best_fixed_length() {
    let mut worst = (f64::MAX, f64::MAX);
    for (name, curve) in curves() {
        for share in [0.0, 0.3, 0.8] {
            let world = World::new(&curve, vec![lookup()]);
            for seed in SEEDS {
                let texts = [text(vec![lookup_drafts(LENGTH, share, &mut Random::new(seed))])];
                let table = compare(&world, &texts, seed);
                if seed == SEEDS.start {
                    print(&format!("{name} lookup {share}"), &table);
                }
                let figures = (table.ours / table.fixed, table.ours / table.plain);
                if figures.0 < 0.97 || figures.1 < 0.99 {
                    print(&format!("MISS {name} lookup {share} seed {seed}"), &table);
                }
                worst = (worst.0.min(figures.0), worst.1.min(figures.1));
            }
        }
        for share in [0.3, 0.7, 0.9] {
            let mut world = World::new(&curve, vec![block(LONGEST)]);
            world.step = vec![0.3];
            for seed in SEEDS {
                let texts = [model_text(seed, Course::Steady(share), Tells::Probability, 0.95)];
                let table = compare(&world, &texts, seed);
                if seed == SEEDS.start {
                    print(&format!("{name} block {share}"), &table);
                }
                let figures = (table.ours / table.fixed, table.ours / table.plain);
                if figures.0 < 0.97 || figures.1 < 0.99 {
                    print(&format!("MISS {name} block {share} seed {seed}"), &table);
                }
                worst = (worst.0.min(figures.0), worst.1.min(figures.1));
            }
        }
    }
    println!("worst: {worst:?}");
    // 3 of 144 are below 0.97, all of them blocks that are right nine times out of ten, and the reason is the same as
    // above.
    assert!(worst.0 >= 0.92 && worst.1 >= 0.99, "{worst:?}");
}

#[test]
fn mixed_texts_beat_every_fixed_setting() {
    let mut worst = (f64::MAX, f64::MAX);
    let (mut all, mut short, mut logs) = (0, 0, 0.0);
    for (name, curve) in curves() {
        for (course, copied) in
            [(Course::Turns(0.9, 0.2, 300), 0.3), (Course::Drifts(0.9, 0.3), 0.5), (Course::Turns(0.6, 0.95, 500), 0.2)]
        {
            let world = World::new(&curve, vec![lookup(), model(8)]);
            for seed in SEEDS {
                let mut random = Random::new(seed);
                let texts = [text(vec![
                    lookup_drafts(LENGTH, copied, &mut random),
                    model_drafts(LENGTH, course, Tells::Probability, 0.98, &mut random),
                ])];
                let table = compare(&world, &texts, seed);
                print(&format!("{name} {course:?}"), &table);
                let figures = (table.ours / table.fixed, table.ours / table.plain);
                worst = (worst.0.min(figures.0), worst.1.min(figures.1));
                all += 1;
                short += usize::from(figures.0 < 1.0);
                logs += figures.0.ln();
            }
        }
    }
    let mean = (logs / f64::from(all)).exp();
    println!("worst of mixed: {worst:?}, {short} of {all} below the best fixed setting, mean {mean:.3}");
    // Where nothing pays (`m1`) plain decoding is the best fixed setting, and finding that out costs some thousandths.
    // For the rest see above.
    assert!(worst.1 >= 0.99 && worst.0 > 0.9 && mean > 1.05, "{worst:?} {mean}");
    assert!(short * 24 <= all as usize, "{short} of {all}");
}

#[test]
fn the_same_trace_gives_the_same_decisions() {
    let world = World::new(&curves()[3].1, vec![lookup(), model(8)]);
    let mut random = Random::new(5);
    let texts = [text(vec![
        lookup_drafts(600, 0.4, &mut random),
        model_drafts(600, Course::Turns(0.9, 0.3, 100), Tells::Margin, 0.98, &mut random),
    ])];
    let picks = || {
        let mut controlled = Controlled::new(&world, 5);
        run(&world, &texts, &mut controlled, 5);
        controlled.picks
    };
    assert_eq!(picks(), picks());
}

#[test]
fn without_a_probe_and_on_a_drifting_machine_nothing_is_lost() {
    for (name, curve) in curves() {
        for share in [0.2, 0.8] {
            let mut world = World::new(&curve, vec![model(8)]);
            (world.probed, world.drift, world.noise, world.depth) = (Vec::new(), 0.5, 0.1, 0.01);
            let texts = [model_text(1, Course::Steady(share), Tells::Probability, 0.98)];
            let table = compare(&world, &texts, 1);
            print(&format!("{name} {share} unprobed, drifting"), &table);
            assert!(table.ours / table.plain >= 0.99, "{name} {share}");
            assert!(table.ours / table.fixed >= 0.97, "{name} {share}");
        }
    }
}

#[test]
fn texts_side_by_side_lose_nothing() {
    let mut worst = (f64::MAX, f64::MAX);
    for (name, curve) in curves() {
        let world = World::new(&curve, vec![lookup(), model(8)]);
        for (seed, course) in
            [(201, Course::Turns(0.85, 0.5, 100)), (202, Course::Steady(0.7)), (203, Course::Steady(0.3))]
        {
            for count in [2, 4] {
                let texts: Vec<Text> = (0..count)
                    .map(|number| {
                        let mut random = Random::new(10 * seed + number);
                        text(vec![
                            lookup_drafts(1500, 0.2, &mut random),
                            model_drafts(1500, course, Tells::Probability, 0.98, &mut random),
                        ])
                    })
                    .collect();
                let table = compare(&world, &texts, seed);
                print(&format!("{name} {count} texts {course:?}"), &table);
                let figures = (table.ours / table.fixed, table.ours / table.plain);
                if figures.0 < 0.95 || figures.1 < 0.99 {
                    print(&format!("MISS {name} {count} texts {course:?}"), &table);
                }
                worst = (worst.0.min(figures.0), worst.1.min(figures.1));
            }
        }
    }
    println!("worst side by side: {worst:?}");
    assert!(worst.0 >= 0.95 && worst.1 >= 0.99, "{worst:?}");
}
