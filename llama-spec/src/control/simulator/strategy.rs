//! Who decides: nobody, a fixed length, somebody who knows the outcome, the controller.

use super::super::account::Account;
use super::super::chain::{Chain, DrafterKind, Guess, Sequence};
use super::super::controller::{ControlSettings, Controller};
use super::super::plan::{Choice, DrafterTimes, Outcome, Plan, Verified};
use super::recording::{Decision, RecordedChain, RecordedRound, Recording};
use super::trace::{LONGEST, Text, right};
use super::world::{Moment, World};
use std::time::Duration;

pub(super) struct Round {
    pub(super) seconds: f64,
    /// Of each text that took part.
    pub(super) accepted: Vec<usize>,
}

pub(super) trait Strategy {
    fn begin(&mut self, _slot: usize) {}
    fn round(&mut self, world: &World, texts: &[Text], open: &[usize], positions: &[usize], moment: &Moment) -> Round;
    fn account(&self) -> Account {
        Account::default()
    }
}

/// Always this drafter and length; 0 is plain decoding.
pub(super) struct Fixed {
    pub(super) drafter: usize,
    pub(super) length: usize,
}

/// The best drafter and length for what is about to come. It need not keep up with anything.
pub(super) struct Oracle;

fn depth(open: &[usize], positions: &[usize]) -> usize {
    open.iter().map(|text| positions[*text]).sum::<usize>() / open.len()
}

/// True seconds of a round with one drafter.
fn seconds(
    world: &World,
    drafter: usize,
    steps: usize,
    rows: usize,
    depth: usize,
    rejected: bool,
    follow: bool,
) -> f64 {
    let steps = if world.drafters[drafter].kind == DrafterKind::Block { steps.min(1) } else { steps };
    let follow = if follow { world.follow[drafter] } else { 0.0 };
    let rollback = if rejected { world.rollback } else { 0.0 };
    world.verify(rows, depth) + world.plain * (steps as f64 * world.step[drafter] + follow + rollback)
}

fn fixed(
    world: &World,
    texts: &[Text],
    open: &[usize],
    positions: &[usize],
    drafter: usize,
    length: usize,
    follow: bool,
) -> Round {
    let drafts = open
        .iter()
        .map(|text| texts[*text].draft(drafter, positions[*text]))
        .map(|draft| &draft[..length.min(draft.len())]);
    let drafts: Vec<_> = drafts.collect();
    let rows = open.len() + drafts.iter().map(|draft| draft.len()).sum::<usize>();
    let accepted: Vec<usize> = drafts.iter().map(|draft| right(draft)).collect();
    let rejected = drafts.iter().zip(&accepted).any(|(draft, accepted)| accepted < &draft.len());
    let steps = drafts.iter().map(|draft| draft.len()).max().unwrap_or(0);
    Round { seconds: seconds(world, drafter, steps, rows, depth(open, positions), rejected, follow), accepted }
}

impl Strategy for Fixed {
    fn round(&mut self, world: &World, texts: &[Text], open: &[usize], positions: &[usize], moment: &Moment) -> Round {
        let mut round = fixed(world, texts, open, positions, self.drafter, self.length, self.length > 0);
        round.seconds *= moment.slow;
        round
    }
}

impl Strategy for Oracle {
    fn round(&mut self, world: &World, texts: &[Text], open: &[usize], positions: &[usize], moment: &Moment) -> Round {
        let all = (0..world.drafters.len()).flat_map(|drafter| (0..=LONGEST).map(move |length| (drafter, length)));
        let rounds = all.map(|(drafter, length)| fixed(world, texts, open, positions, drafter, length, false));
        let speed = |round: &Round| (open.len() + round.accepted.iter().sum::<usize>()) as f64 / round.seconds;
        let mut best = rounds.max_by(|left, right| speed(left).total_cmp(&speed(right))).expect("there are drafters");
        best.seconds *= moment.slow;
        best
    }
}

/// The controller, with the engine around it.
pub(super) struct Controlled {
    controller: Controller,
    plan: Plan,
    choice: Choice,
    /// By drafter.
    missed: Vec<usize>,
    pub(super) picks: Vec<(usize, usize)>,
    pub(super) recording: Recording,
    /// Slots in which a text began since the last round.
    begins: Vec<usize>,
}

impl Controlled {
    pub(super) fn new(world: &World, seed: u64) -> Self {
        let (drafters, costs) = (world.drafters.clone(), world.probe(seed));
        let controller = Controller::new(ControlSettings::default(), &drafters, costs.clone());
        let recording = Recording { drafters, costs, rounds: Vec::new() };
        let missed = vec![0; world.drafters.len()];
        let (plan, choice, picks, begins) = (Plan::default(), Choice::default(), Vec::new(), Vec::new());
        Self { controller, plan, choice, missed, picks, recording, begins }
    }
}

impl Strategy for Controlled {
    fn begin(&mut self, slot: usize) {
        self.controller.begin(slot, 0);
        self.begins.push(slot);
    }

    fn account(&self) -> Account {
        self.controller.account()
    }

    fn round(&mut self, world: &World, texts: &[Text], open: &[usize], positions: &[usize], moment: &Moment) -> Round {
        let Self { controller, plan, choice, missed, picks, recording, begins } = self;
        let sequence = |text: &usize| Sequence { slot: *text, depth: positions[*text], limit: LONGEST };
        let sequences: Vec<Sequence> = open.iter().map(sequence).collect();
        let guesses = |index: usize, drafter: usize| -> Vec<Guess> {
            let draft = texts[open[index]].draft(drafter, positions[open[index]]);
            draft.iter().map(|said| Guess { drafter, evidence: said.evidence }).collect()
        };
        let free = world
            .drafters
            .iter()
            .enumerate()
            .filter(|(_, spec)| spec.kind == DrafterKind::Free)
            .map(|(index, _)| index);
        let mut drafts: Vec<(usize, Vec<Guess>)> = free
            .flat_map(|drafter| (0..open.len()).map(move |index| (index, guesses(index, drafter))))
            .filter(|(_, draft)| !draft.is_empty())
            .collect();
        let chains: Vec<Chain<'_>> =
            drafts.iter().map(|(sequence, guesses)| Chain { sequence: *sequence, guesses }).collect();
        let free = chains.len();
        controller.plan(64, &sequences, &chains, plan);

        let (mut true_seconds, slow) = (0.0, world.plain * moment.slow);
        let mut times: Vec<DrafterTimes> = Vec::new();
        if let Some(drafter) = plan.drafter {
            let mut open_drafts: Vec<(usize, Vec<Guess>)> = Vec::new();
            let (mut steps, mut drafting) = (0, Vec::new());
            for (index, planned) in plan.drafts.iter().enumerate().filter(|(_, planned)| planned.limit > 0) {
                let mut draft = guesses(index, drafter);
                draft.truncate(planned.limit);
                if world.drafters[drafter].kind == DrafterKind::Stepwise {
                    let stop = (0..draft.len()).find(|place| !controller.go_on(index, *place, draft[*place].evidence));
                    draft.truncate(stop.map_or(draft.len(), |place| place + 1));
                    steps = steps.max(draft.len());
                } else {
                    steps = 1;
                }
                drafting.push(index);
                open_drafts.push((index, draft));
            }
            drafts.extend(open_drafts);
            let seconds = steps as f64 * world.step[drafter] * slow;
            true_seconds += seconds;
            let draft = Duration::from_secs_f64(seconds * moment.wrong[1]);
            times.push(DrafterTimes { drafter, sequences: drafting.len(), steps, draft, ..DrafterTimes::default() });
        }
        let chains: Vec<Chain<'_>> =
            drafts.iter().map(|(sequence, guesses)| Chain { sequence: *sequence, guesses }).collect();
        controller.choose(&sequences, &chains, choice);

        let (mut verified, mut accepted) = (Vec::new(), Vec::new());
        for (index, pick) in choice.picks.iter().enumerate() {
            let guesses = pick.chain.map_or(&[][..], |chain| &chains[chain].guesses[..pick.length]);
            assert_eq!(guesses.len(), pick.length, "what is picked is there");
            let right = guesses.first().map_or(0, |guess| {
                right(&texts[open[index]].draft(guess.drafter, positions[open[index]])[..pick.length])
            });
            picks.push((guesses.first().map_or(usize::MAX, |guess| guess.drafter), pick.length));
            verified.push(Verified { guesses, accepted: right });
            accepted.push(right);
        }
        let rows = open.len() + choice.picks.iter().map(|pick| pick.length).sum::<usize>();
        let tokens = open.len() + accepted.iter().sum::<usize>();
        for (drafter, follow) in plan.follow.iter().enumerate() {
            if !follow {
                missed[drafter] += tokens;
                continue;
            }
            let caught = std::mem::take(&mut missed[drafter]);
            let follow = world.follow[drafter] * slow;
            let catch_up = caught as f64 * world.step[drafter] * slow / 16.0;
            true_seconds += follow + catch_up;
            let index = times.iter().position(|times| times.drafter == drafter).unwrap_or_else(|| {
                times.push(DrafterTimes { drafter, ..DrafterTimes::default() });
                times.len() - 1
            });
            times[index].follow = Some(Duration::from_secs_f64(follow * moment.wrong[2]));
            (times[index].missed, times[index].catch_up) =
                (caught, Duration::from_secs_f64(catch_up * moment.wrong[2]));
        }
        let verify = world.verify(rows, depth(open, positions)) * moment.slow;
        let rejected = verified.iter().any(|verified| verified.accepted < verified.guesses.len());
        let rollback = if rejected { world.rollback * slow } else { 0.0 };
        true_seconds += verify + rollback;
        let outcome = Outcome {
            sequences: &sequences,
            verified: &verified,
            drafters: &times,
            verify: Duration::from_secs_f64(verify * moment.wrong[0]),
            sample: Duration::ZERO,
            rollback: Duration::from_secs_f64(rollback * moment.wrong[3]),
        };
        controller.observe(&outcome);
        let judged = |chain: &Chain<'_>| {
            let (text, guesses) = (open[chain.sequence], chain.guesses);
            let drafted = texts[text].draft(guesses.first().map_or(0, |guess| guess.drafter), positions[text]);
            RecordedChain::new(chain, right(&drafted[..guesses.len()]))
        };
        let mut recorded = RecordedRound {
            begins: std::mem::take(begins),
            rows: 64,
            sequences: sequences.iter().map(Into::into).collect(),
            chains: chains.iter().map(judged).collect(),
            free,
            decision: Decision::new(plan, choice),
            drafters: times.iter().map(Into::into).collect(),
            verify: outcome.verify,
            sample: outcome.sample,
            rollback: outcome.rollback,
            shadows: Vec::new(),
        };
        for (index, text) in open.iter().enumerate() {
            for (drafter, spec) in world.drafters.iter().enumerate() {
                let judged = verified[index].guesses.iter().any(|guess| guess.drafter == drafter);
                if spec.kind != DrafterKind::Free || judged {
                    continue;
                }
                for place in positions[*text]..=positions[*text] + accepted[index] {
                    if let Some(said) = texts[*text].draft(drafter, place).first() {
                        controller.shadow(*text, drafter, said.evidence, said.right);
                        recorded.shadows.push((*text, drafter, said.evidence, said.right));
                    }
                }
            }
        }
        recording.rounds.push(recorded);
        Round { seconds: true_seconds, accepted }
    }
}
