//! A run of the controller as it was: what it was asked and what came of that. Kept as JSON, so that a real run can be
//! looked at again; recorded here from the simulator.

use super::super::chain::{Chain, DrafterIndex, DrafterKind, DrafterSpec, Evidence, Guess, Sequence};
use super::super::controller::{ControlSettings, Controller};
use super::super::cost::Costs;
use super::super::plan::{Choice, DrafterTimes, Outcome, Plan, Verified};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the controller was made of, and its rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Recording {
    pub(super) drafters: Vec<DrafterSpec>,
    pub(super) costs: Costs,
    pub(super) rounds: Vec<RecordedRound>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RecordedRound {
    /// Slots in which a text began before the round.
    pub(super) begins: Vec<usize>,
    /// The most rows of the batch.
    pub(super) rows: usize,
    pub(super) sequences: Vec<RecordedSequence>,
    /// The free ones come first; they were there when the round was planned.
    pub(super) chains: Vec<RecordedChain>,
    pub(super) free: usize,
    pub(super) decision: Decision,
    pub(super) drafters: Vec<RecordedTimes>,
    pub(super) verify: Duration,
    pub(super) sample: Duration,
    pub(super) rollback: Duration,
    /// What drafters that were not asked would have said first, and whether that was right: slot, drafter, evidence,
    /// right.
    pub(super) shadows: Vec<(usize, DrafterIndex, Evidence, bool)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RecordedSequence {
    slot: usize,
    depth: usize,
    limit: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RecordedChain {
    sequence: usize,
    /// Drafter and evidence of each token.
    guesses: Vec<(DrafterIndex, Evidence)>,
    /// How many of them, from the first on, were right.
    pub(super) right: usize,
}

/// What the controller decided in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// The drafter that ran, and how far it might go for each text.
    pub(super) drafter: Option<DrafterIndex>,
    pub(super) limits: Vec<usize>,
    pub(super) follow: Vec<bool>,
    /// For each text the chain and how much of it was verified.
    pub(super) picks: Vec<(Option<usize>, usize)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RecordedTimes {
    drafter: DrafterIndex,
    sequences: usize,
    steps: usize,
    draft: Duration,
    follow: Option<Duration>,
    missed: usize,
    catch_up: Duration,
}

impl From<&Sequence> for RecordedSequence {
    fn from(&Sequence { slot, depth, limit }: &Sequence) -> Self {
        Self { slot, depth, limit }
    }
}

impl From<&DrafterTimes> for RecordedTimes {
    fn from(&DrafterTimes { drafter, sequences, steps, draft, follow, missed, catch_up }: &DrafterTimes) -> Self {
        Self { drafter, sequences, steps, draft, follow, missed, catch_up }
    }
}

impl RecordedChain {
    pub(super) fn new(chain: &Chain<'_>, right: usize) -> Self {
        let guesses = chain.guesses.iter().map(|guess| (guess.drafter, guess.evidence)).collect();
        Self { sequence: chain.sequence, guesses, right }
    }
}

impl Decision {
    pub(super) fn new(plan: &Plan, choice: &Choice) -> Self {
        Self {
            drafter: plan.drafter,
            limits: plan.drafts.iter().map(|draft| draft.limit).collect(),
            follow: plan.follow.clone(),
            picks: choice.picks.iter().map(|pick| (pick.chain, pick.length)).collect(),
        }
    }
}

impl Recording {
    /// Lets a new controller decide on what was recorded. Whatever it decides, it is told what came of the decisions in
    /// the recording: nobody knows what others would have taken.
    pub(super) fn replay(&self) -> Vec<Decision> {
        let mut controller = Controller::new(ControlSettings::default(), &self.drafters, self.costs.clone());
        self.rounds.iter().map(|round| round.replay(&self.drafters, &mut controller)).collect()
    }
}

impl RecordedRound {
    fn replay(&self, specs: &[DrafterSpec], controller: &mut Controller) -> Decision {
        self.begins.iter().for_each(|slot| controller.begin(*slot, 0));
        let sequences: Vec<Sequence> = self
            .sequences
            .iter()
            .map(|&RecordedSequence { slot, depth, limit }| Sequence { slot, depth, limit })
            .collect();
        let guess = |&(drafter, evidence): &(DrafterIndex, Evidence)| Guess { drafter, evidence };
        let guesses: Vec<Vec<Guess>> =
            self.chains.iter().map(|chain| chain.guesses.iter().map(guess).collect()).collect();
        let chains: Vec<Chain<'_>> = self
            .chains
            .iter()
            .zip(&guesses)
            .map(|(chain, guesses)| Chain { sequence: chain.sequence, guesses })
            .collect();
        let (mut plan, mut choice) = (Plan::default(), Choice::default());
        controller.plan(self.rows, &sequences, &chains[..self.free], &mut plan);
        for chain in &chains[self.free..] {
            for (place, guess) in chain.guesses.iter().enumerate() {
                if specs[guess.drafter].kind == DrafterKind::Stepwise {
                    controller.go_on(chain.sequence, place, guess.evidence);
                }
            }
        }
        controller.choose(&sequences, &chains, &mut choice);
        let decision = Decision::new(&plan, &choice);

        let verified = self.decision.picks.iter().map(|(chain, length)| match *chain {
            Some(chain) => {
                Verified { guesses: &guesses[chain][..*length], accepted: self.chains[chain].right.min(*length) }
            }
            None => Verified::default(),
        });
        let times = |times: &RecordedTimes| {
            let RecordedTimes { drafter, sequences, steps, draft, follow, missed, catch_up } = *times;
            DrafterTimes { drafter, sequences, steps, draft, follow, missed, catch_up }
        };
        controller.observe(&Outcome {
            sequences: &sequences,
            verified: &verified.collect::<Vec<_>>(),
            drafters: &self.drafters.iter().map(times).collect::<Vec<_>>(),
            verify: self.verify,
            sample: self.sample,
            rollback: self.rollback,
        });
        for (slot, drafter, evidence, right) in &self.shadows {
            controller.shadow(*slot, *drafter, *evidence, *right);
        }
        decision
    }
}

mod tests {
    use super::super::random::Random;
    use super::super::strategy::Controlled;
    use super::super::texts::{Course, Tells, lookup, lookup_drafts, model, model_drafts, text};
    use super::super::world::{World, curves};
    use super::*;

    /// Two texts with lookup and a model.
    fn record(length: usize) -> Recording {
        let world = World::new(&curves()[3].1, vec![lookup(), model(8)]);
        let texts = [1, 2].map(|seed| {
            let mut random = Random::new(seed);
            text(vec![
                lookup_drafts(length, 0.4, &mut random),
                model_drafts(length, Course::Turns(0.9, 0.4, 50), Tells::Margin, 0.98, &mut random),
            ])
        });
        let mut controlled = Controlled::new(&world, 3);
        super::super::run(&world, &texts, &mut controlled, 3);
        controlled.recording
    }

    /// Its output is the recording in `recorded.json`.
    #[test]
    #[ignore = "only to record anew"]
    fn print_a_recording() {
        println!("{}", serde_json::to_string(&record(100)).expect("numbers and names"));
    }

    #[test]
    fn a_replay_decides_as_the_run_did() {
        let recording = record(600);
        let json = serde_json::to_string(&recording).expect("numbers and names");
        let read: Recording = serde_json::from_str(&json).expect("what was written");
        let decisions: Vec<Decision> = recording.rounds.iter().map(|round| round.decision.clone()).collect();
        assert!(decisions.iter().any(|decision| decision.drafter.is_some()));
        assert!(decisions.iter().any(|decision| decision.drafter.is_none()));
        assert_eq!(read.replay(), decisions);
    }

    #[test]
    fn the_same_recording_gives_the_same_decisions() {
        let recording: Recording = serde_json::from_str(include_str!("recorded.json")).expect("a recording");
        let decisions = recording.replay();
        assert_eq!(decisions, recording.replay());
        assert_eq!(decisions.len(), recording.rounds.len());
        for (round, decision) in recording.rounds.iter().zip(&decisions) {
            let rows: usize = decision.picks.iter().map(|(_, length)| 1 + length).sum();
            assert!(rows <= round.rows);
            for (text, (chain, length)) in decision.picks.iter().enumerate() {
                let fits = chain.is_some_and(|chain| {
                    round.chains[chain].sequence == text && *length <= round.chains[chain].guesses.len()
                });
                assert!(fits || *length == 0, "{decision:?}");
            }
        }
        let right: usize = recording.rounds.iter().flat_map(|round| &round.chains).map(|chain| chain.right).sum();
        assert!(right > 0 && decisions.iter().any(|decision| decision.picks.iter().any(|(_, length)| *length > 0)));
    }
}
