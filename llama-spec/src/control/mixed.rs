//! Tests of chains in which one drafter goes on behind another.

use super::{Chain, Choice, ControlSettings, Controller, Costs, DrafterKind, DrafterSpec};
use super::{Evidence, Guess, Outcome, Plan, Sequence, Verified};
use std::time::Duration;

const LOOKUP: usize = 0;
const MODEL: usize = 1;
/// Tokens of each drafter in a chain.
const PART: usize = 3;

const SEQUENCE: Sequence = Sequence { slot: 0, depth: 100, limit: 16 };

fn controller() -> Controller {
    controller_of(0.6, false)
}

/// How often what lookup found is right at first, and whether the model can go on behind it.
fn controller_of(found: f32, goes_on: bool) -> Controller {
    let lookup =
        DrafterSpec { kind: DrafterKind::Free, longest: 8, pausable: true, goes_on: false, buckets: vec![found] };
    let model = DrafterSpec { kind: DrafterKind::Stepwise, longest: 8, pausable: true, goes_on, buckets: Vec::new() };
    let time = |rows: u64| Duration::from_micros(20_000 + 1000 * rows);
    let mut costs = (1..=16).fold(Costs::unknown(), |costs, rows| costs.rows(rows as usize, time(rows)));
    costs = costs.drafter(MODEL, Duration::from_millis(2), None);
    let mut controller = Controller::new(ControlSettings::default(), &[lookup, model], costs);
    controller.begin(0, 0);
    controller
}

/// What lookup found, and behind it what the model went on with.
fn chain() -> Vec<Guess> {
    let part = |drafter, evidence| std::iter::repeat_n(Guess { drafter, evidence }, PART);
    part(LOOKUP, Evidence::Bucket(0)).chain(part(MODEL, Evidence::Probability(0.8))).collect()
}

/// A round in which as many tokens are right as `right` says, if they are verified. Returns how many were verified.
fn round(controller: &mut Controller, right: usize) -> usize {
    let guesses = chain();
    let (mut plan, mut choice) = (Plan::default(), Choice::default());
    let chains = [Chain { sequence: 0, guesses: &guesses }];
    controller.plan(16, &[SEQUENCE], &chains, &mut plan);
    controller.choose(&[SEQUENCE], &chains, &mut choice);
    let length = choice.picks[0].length;
    observe(controller, &guesses[..length], right.min(length));
    length
}

fn observe(controller: &mut Controller, guesses: &[Guess], accepted: usize) {
    controller.observe(&Outcome {
        sequences: &[SEQUENCE],
        verified: &[Verified { guesses, accepted }],
        drafters: &[],
        verify: Duration::from_micros(21_000 + 1000 * guesses.len() as u64),
        sample: Duration::ZERO,
        rollback: Duration::ZERO,
    });
}

/// What the controller thinks of the first token of each drafter's part.
fn told(controller: &Controller) -> [f64; 2] {
    let guesses = chain();
    [0, PART].map(|place| {
        let Guess { drafter, evidence } = guesses[place];
        controller.models[drafter].told(&controller.biases[0][drafter], place, evidence)
    })
}

#[test]
fn both_drafters_learn_from_one_chain() {
    let mut controller = controller();
    let before = told(&controller);
    (0..50).for_each(|_| observe(&mut controller, &chain(), PART));
    let after = told(&controller);
    assert!(after[LOOKUP] > before[LOOKUP] + 0.1 && after[LOOKUP] > 0.9, "{before:?} {after:?}");
    assert!(after[MODEL] < before[MODEL] - 0.1 && after[MODEL] < 0.3, "{before:?} {after:?}");
    let drafters = controller.account().drafters;
    assert_eq!((drafters[LOOKUP].drafted, drafters[LOOKUP].accepted), (150, 150));
    assert_eq!((drafters[MODEL].drafted, drafters[MODEL].accepted), (150, 0));
}

#[test]
fn what_stands_behind_the_wrong_token_of_another_drafter_was_not_judged() {
    let mut controller = controller();
    let before = told(&controller);
    (0..50).for_each(|_| observe(&mut controller, &chain(), 0));
    let after = told(&controller);
    assert!(after[LOOKUP] < before[LOOKUP] - 0.2, "{before:?} {after:?}");
    assert_eq!(after[MODEL], before[MODEL]);
}

#[test]
fn a_chain_is_verified_as_far_as_its_drafters_are_good() {
    // How many are right, and how many are worth verifying in the end.
    for (right, worth) in [(2 * PART, 2 * PART..=2 * PART), (PART, PART..=PART), (0, 0..=1)] {
        let mut controller = controller();
        // The first rounds show the controller the whole chain, whatever it thinks of it.
        (0..100).for_each(|_| observe(&mut controller, &chain(), right));
        let lengths: Vec<usize> = (0..100).map(|_| round(&mut controller, right)).collect();
        let usual = lengths.iter().filter(|length| worth.contains(length)).count();
        // Other rounds go without, or look at batches that are not well known.
        assert!(usual >= 75, "{right} right: {lengths:?}");
    }
}

/// What is planned in the first round in which the model drafts.
fn first_plan(found: f32, goes_on: bool) -> Plan {
    let mut controller = controller_of(found, goes_on);
    let free = vec![Guess { drafter: LOOKUP, evidence: Evidence::Bucket(0) }; PART];
    let (mut plan, mut choice) = (Plan::default(), Choice::default());
    for _ in 0..4 {
        let chains = [Chain { sequence: 0, guesses: &free }];
        controller.plan(16, &[SEQUENCE], &chains, &mut plan);
        if plan.drafter.is_some() {
            break;
        }
        controller.choose(&[SEQUENCE], &[], &mut choice);
        observe(&mut controller, &[], 0);
    }
    plan
}

#[test]
fn a_model_goes_on_behind_what_is_believed_more_than_its_own_tokens() {
    let plan = first_plan(0.95, true);
    assert_eq!(plan.drafter, Some(MODEL));
    let draft = plan.drafts[0];
    assert_eq!((draft.behind.chain, draft.behind.length), (Some(0), PART));
    assert!(draft.limit == 8 && draft.aim > 0, "{draft:?}");
}

#[test]
fn a_model_begins_at_the_end_of_the_text_where_it_cannot_go_on_or_knows_better() {
    for (found, goes_on) in [(0.3, true), (0.6, false)] {
        let plan = first_plan(found, goes_on);
        assert_eq!(plan.drafter, Some(MODEL), "{found}");
        assert_eq!((plan.drafts[0].behind.chain, plan.drafts[0].behind.length), (None, 0), "{found}");
    }
}
