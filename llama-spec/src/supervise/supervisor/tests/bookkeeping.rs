//! No token is lost or told twice, wherever workers end.

use super::fake::{End, Script, Stage};
use super::{builder, expected, seen, task, until_ready};
use crate::supervise::Task;
use crate::supervise::policy::Policy;
use crate::supervise::task::ProblemKind;
use crate::{Request, SamplerOptions};
use proptest::prelude::*;
use std::time::Duration;

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Dies), Just(End::Poisoned), Just(End::Dies)]
}

fn policy() -> Policy {
    Policy { crashes: 1000, first_pause: Duration::ZERO, ..Policy::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn texts_are_whole_whatever_ends_when(
        ends in proptest::collection::vec((0usize..40, end(), 1usize..5), 0..8),
        tasks in proptest::collection::vec((0u32..20, 1u32..4), 1..6),
    ) {
        let scripts = ends.iter().map(|(after, end, round)| Script { round: *round, ..Script::ends_after(*after, *end) });
        let stage = Stage::new(scripts);
        let supervisor = builder().policy(policy()).fake(stage.clone()).start().unwrap();
        until_ready(&supervisor);
        let given: Vec<_> = tasks
            .iter()
            .map(|(tokens, answers)| (*tokens, *answers, supervisor.submit(task(*tokens).answers(*answers)).unwrap()))
            .collect();
        for (tokens, answers, steps) in given {
            for answer in seen(steps, answers as usize) {
                prop_assert_eq!(&answer.tokens, &expected(tokens as usize));
                let finish = answer.finish.as_ref();
                prop_assert!(finish.is_some() && answer.problem.is_none(), "{:?}", answer);
                prop_assert_eq!(answer.pauses, answer.resumptions);
                if answer.pauses > 0 {
                    prop_assert_eq!(finish.unwrap().stats.generated_tokens, u64::from(tokens));
                }
            }
        }
        let workers = stage.told().len();
        prop_assert!(workers <= ends.len() + 1);
        prop_assert_eq!(supervisor.status().restarts, workers as u64 - 1);
    }
}

/// Without a checkpoint, a text goes on only if no seed says how.
#[test]
fn a_seed_without_a_checkpoint_is_not_betrayed() {
    for (seed, interrupted) in [(None, false), (Some(3), true)] {
        let stage = Stage::new([Script { checkpoints: false, ..Script::ends_after(5, End::Dies) }]);
        let supervisor = builder().fake(stage).start().unwrap();
        until_ready(&supervisor);
        let sampler = SamplerOptions { seed, ..SamplerOptions::default() };
        let task = Task::text(Request::prompt("p").sampler(sampler).max_tokens(9));
        let answer = super::seen_one(supervisor.submit(task).unwrap());
        let kind = answer.problem.map(|problem| problem.kind);
        assert_eq!(kind, interrupted.then_some(ProblemKind::Interrupted), "{seed:?}");
        assert_eq!(answer.tokens, expected(if interrupted { 4 } else { 9 }));
    }
}

/// One that breaks off says so, and the others go on.
#[test]
fn an_answer_that_breaks_off_takes_no_other_with_it() {
    let stage = Stage::new([Script::ends_after(7, End::BreaksOff)]);
    let supervisor = builder().fake(stage).start().unwrap();
    until_ready(&supervisor);
    let answers = seen(supervisor.submit(task(6).answers(3)).unwrap(), 3);
    let broken = answers.iter().filter(|answer| answer.problem.is_some()).count();
    assert_eq!(broken, 1);
    assert_eq!(answers.iter().filter(|answer| answer.tokens == expected(6)).count(), 2);
}
