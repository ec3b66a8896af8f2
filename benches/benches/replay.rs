//! How well the controller uses what lookup drafts, on what a real model writes: replays, in which the same texts are drafted again
//! and rounds take the times that were measured for their rows before. So drafters and settings are compared without the noise of
//! the machine, against
//!
//! - fixed settings: drafts of always the same length, copied from the latest place where as many tokens as told stood before,
//! - an oracle, which has lookup's own drafts and verifies as much of each as is right.
//!
//! SmolLM2 writes the texts of all workloads of the comparison first, which takes two minutes on two cores.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::control::{
    Chain, Controller, Costs, DrafterKind, DrafterSpec, Evidence, Guess, Outcome, Sequence, Verified,
};
use llama_spec::lookup::{Lookup, Proposed};
use llama_spec::{Model, Token};
use llama_spec_benches::compare::{Workload, Written, written};
use llama_spec_benches::{geometric_mean, row_times, smollm2, told};
use std::time::Duration;

const THREADS: u32 = 2;
/// No draft is longer.
const LONGEST: usize = 16;
/// Of fixed settings.
const LENGTHS: [usize; 5] = [1, 2, 4, 8, 16];
const MATCHES: [usize; 5] = [1, 2, 3, 4, 8];

fn replay(_: &mut Criterion) {
    let Some(path) = smollm2() else { return };
    let times = row_times(&path, THREADS, LONGEST + 1);
    println!("{}", told(&times));
    let model = Model::load(&path).expect("the model loads");
    let workloads = Workload::all().expect("the workloads are sound");
    let texts: Vec<Vec<Written>> =
        workloads.iter().map(|workload| written(&model, workload).expect("it generates")).collect();
    let replays: Vec<Replay<'_>> = texts.iter().map(|texts| Replay { times: &times, texts }).collect();

    let settings = MATCHES.iter().flat_map(|matched| LENGTHS.map(|length| (*matched, length)));
    let fixed: Vec<_> =
        settings.map(|setting| (setting, replays.iter().map(|one| one.fixed(setting)).collect())).collect();
    let mean = |speeds: &Vec<f64>| geometric_mean(speeds.iter().copied()).unwrap_or(f64::NAN);
    let ((matched, length), best): &((usize, usize), Vec<f64>) =
        fixed.iter().max_by(|left, right| mean(&left.1).total_cmp(&mean(&right.1))).expect("there are settings");
    let of_each = (0..replays.len()).map(|place| fixed.iter().map(|(_, speeds)| speeds[place]).fold(0.0, f64::max));

    let fresh = replays.iter().map(|one| one.adaptive(&mut one.controller())).collect();
    let mut controller = replays[0].controller();
    // It has seen all of them once.
    replays.iter().for_each(|one| _ = one.adaptive(&mut controller));
    let experienced = replays.iter().map(|one| one.adaptive(&mut controller)).collect();
    let rows: [(String, Vec<f64>); 5] = [
        ("controller, new for each workload".into(), fresh),
        ("controller that has seen all of them".into(), experienced),
        (format!("best fixed: {length} tokens behind {matched}"), best.clone()),
        ("best fixed of each workload".into(), of_each.collect()),
        ("oracle".into(), replays.iter().map(Replay::oracle).collect()),
    ];
    println!("{:<38} {} mean", "times as fast as plain", listed_names(&workloads));
    for (name, speeds) in rows {
        println!(
            "{name:<38} {} {:.3}",
            speeds.iter().map(|speed| format!("{speed:>10.3}")).collect::<String>(),
            mean(&speeds)
        );
    }
}

/// Texts that are drafted again, and what rounds take.
struct Replay<'a> {
    /// By rows, from 1.
    times: &'a [f64],
    texts: &'a [Written],
}

impl Replay<'_> {
    fn controller(&self) -> Controller {
        let costs = self.times.iter().zip(1..);
        let costs =
            costs.fold(Costs::unknown(), |costs, (time, rows)| costs.rows(rows, Duration::from_secs_f64(*time)));
        let buckets = llama_spec::lookup::Evidence::priors().to_vec();
        let spec = DrafterSpec { kind: DrafterKind::Free, longest: LONGEST, pausable: false, goes_on: false, buckets };
        Controller::new(Default::default(), &[spec], costs)
    }

    /// How many times faster than plain decoding it is, where `draft` says for each round how many tokens it verifies and how
    /// many of them are right; it is told of the text before, of its rest, and of the tokens after each round.
    fn speed(&self, mut draft: impl FnMut(Step<'_>) -> (usize, usize)) -> f64 {
        let (mut seconds, mut tokens) = (0.0, 0);
        for (prompt, answer) in self.texts {
            draft(Step::Begins(prompt));
            let mut at = 0;
            while at < answer.len() {
                let (drafted, right) = draft(Step::Round(&answer[..at], &answer[at..]));
                seconds += self.times[drafted];
                let next = (at + right + 1).min(answer.len());
                draft(Step::Goes(&answer[at..next]));
                at = next;
            }
            tokens += answer.len();
        }
        tokens as f64 * self.times[0] / seconds
    }

    fn fixed(&self, (matched, length): (usize, usize)) -> f64 {
        let mut before = Vec::new();
        self.speed(|step| {
            match step {
                Step::Begins(prompt) => before = prompt.to_vec(),
                Step::Goes(tokens) => before.extend_from_slice(tokens),
                Step::Round(_, rest) => {
                    let copied = copied(&before, matched, length.min(rest.len() - 1));
                    return (copied.len(), right(copied.iter(), rest));
                }
            }
            (0, 0)
        })
    }

    fn oracle(&self) -> f64 {
        let (mut lookup, mut proposed) = (Lookup::new(None), Vec::new());
        self.speed(|step| {
            match step {
                Step::Begins(prompt) => lookup.begin(prompt),
                Step::Goes(tokens) => lookup.extend(tokens, |_, _| {}),
                Step::Round(_, rest) => {
                    lookup.propose(LONGEST.min(rest.len() - 1), &mut proposed);
                    let right = right(proposed.iter().map(|one| &one.token), rest);
                    return (right, right);
                }
            }
            (0, 0)
        })
    }

    fn adaptive(&self, controller: &mut Controller) -> f64 {
        let (mut lookup, mut proposed) = (Lookup::new(None), Vec::new());
        let (mut plan, mut choice) = Default::default();
        let mut length = 0;
        self.speed(|step| {
            match step {
                Step::Begins(prompt) => {
                    length = prompt.len();
                    lookup.begin(prompt);
                    controller.begin(0, length);
                }
                Step::Goes(tokens) => {
                    lookup.extend(tokens, |evidence, right| controller.shadow(0, 0, bucket(evidence), right))
                }
                Step::Round(before, rest) => {
                    let limit = LONGEST.min(rest.len() - 1);
                    lookup.propose(limit, &mut proposed);
                    let guess = |one: &Proposed| Guess { drafter: 0, evidence: bucket(one.evidence) };
                    let guesses: Vec<Guess> = proposed.iter().map(guess).collect();
                    let sequences = [Sequence { slot: 0, depth: length + before.len(), limit }];
                    let chains = [Chain { sequence: 0, guesses: &guesses }];
                    controller.plan(LONGEST + 1, &sequences, &chains, &mut plan);
                    controller.choose(&sequences, &chains, &mut choice);
                    let pick = &choice.picks[0];
                    let drafted = if pick.chain.is_some() { pick.length } else { 0 };
                    let accepted = right(proposed[..drafted].iter().map(|one| &one.token), rest);
                    controller.observe(&Outcome {
                        sequences: &sequences,
                        verified: &[Verified { guesses: &guesses[..drafted], accepted }],
                        drafters: &[],
                        verify: Duration::from_secs_f64(self.times[drafted]),
                        sample: Duration::ZERO,
                        rollback: Duration::ZERO,
                    });
                    return (drafted, accepted);
                }
            }
            (0, 0)
        })
    }
}

/// What happens in a replay.
enum Step<'a> {
    /// A text, with this prompt.
    Begins(&'a [Token]),
    /// A round, between these parts of the answer.
    Round(&'a [Token], &'a [Token]),
    /// The answer goes on with these tokens.
    Goes(&'a [Token]),
}

fn bucket(evidence: llama_spec::lookup::Evidence) -> Evidence {
    Evidence::Bucket(evidence.index() as u16)
}

/// What stood behind the last `matched` tokens when they were there before.
fn copied(text: &[Token], matched: usize, length: usize) -> Vec<Token> {
    let Some(start) = text.len().checked_sub(matched) else { return Vec::new() };
    let place = (0..start).rev().find(|place| text[*place..][..matched] == text[start..]);
    place.map_or_else(Vec::new, |place| text[place + matched..].iter().take(length).copied().collect())
}

fn right<'a>(draft: impl Iterator<Item = &'a Token>, rest: &[Token]) -> usize {
    draft.zip(rest).take_while(|(drafted, token)| drafted == token).count()
}

fn listed_names(workloads: &[Workload]) -> String {
    workloads.iter().map(|workload| format!("{:>10}", workload.name)).collect()
}

criterion_group!(benches, replay);
criterion_main!(benches);
