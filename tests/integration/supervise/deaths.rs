//! Workers that die, hang and are stopped while texts run: the texts are those of an undisturbed engine.

use crate::hostile::{Deed, Plan};
use crate::support::{
    PROMPTS, builder, drafted, greedy, load, read, same, serving, signal, submit, undisturbed, until, until_serving,
    varied,
};
use llama_spec::Request;
use llama_spec::supervise::{Policy, ProblemKind, State, Supervisor, Task};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn eight(tokens: u32) -> Vec<Request> {
    PROMPTS.map(|prompt| greedy(prompt, tokens)).to_vec()
}

/// Runs these texts while something happens, and compares them. They all had to be under way by then.
fn endures(supervisor: &Supervisor, requests: &[Request], happens: impl Fn(&Supervisor) + Sync) {
    let expected = undisturbed("recall", requests);
    let under_way = AtomicUsize::new(0);
    let all = requests.len();
    let look = |_: usize, seen: &crate::support::Seen| {
        // Once for each text.
        if seen.output.tokens.len() >= 10 && seen.pauses == 0 && under_way.fetch_add(1, Ordering::SeqCst) == all * 3 {
            happens(supervisor);
        }
    };
    let seen = read(submit(supervisor, requests), look);
    assert!(same(&seen, &expected) > 0, "nobody was disturbed: {:?}", supervisor.status());
    assert!(supervisor.status().restarts > 0);
}

/// It serves with less than what was asked for, and says why.
fn is_degraded(supervisor: &Supervisor) {
    until_serving(supervisor);
    let status = supervisor.status();
    assert!(matches!(status.state, State::Degraded { .. }), "{status:?}");
    let reason = status.speculation.reason.unwrap_or_default();
    assert!(reason.starts_with("runtime_error: "), "{reason}");
    assert_eq!(status.speculation.requested, status.requested.unwrap().speculation.unwrap().methods);
    assert_eq!(status.effective.unwrap().draft, None);
    assert!(!status.recoveries.is_empty());
}

pub(crate) fn a_killed_worker_costs_no_text() {
    // Slow enough to be caught in the middle.
    let plan = Plan { deed: Deed::Slow, step: 1, workers: 1 };
    let supervisor = serving(builder(plan.put_into(drafted(8))));
    endures(&supervisor, &eight(400), |supervisor| signal("KILL", supervisor.status().process.unwrap()));
    is_degraded(&supervisor);
    let status = supervisor.status();
    assert_eq!(status.restarts, 1);
    assert!(status.recoveries[0].what.contains("signal 9"), "{:?}", status.recoveries);
    let seen = read(submit(&supervisor, &[greedy("abc", 5)]), |_, _| ());
    let told = seen[0].speculation.clone().unwrap();
    assert!(told.reason.unwrap_or_default().starts_with("runtime_error: "), "{seen:?}");
}

pub(crate) fn an_abort_in_the_draft_path_costs_no_text() {
    for step in [1, 7, 100] {
        let plan = Plan { deed: Deed::Abort, step, workers: 1 };
        let supervisor = serving(builder(plan.put_into(drafted(8))));
        let requests = eight(300);
        let seen = read(submit(&supervisor, &requests), |_, _| ());
        same(&seen, &undisturbed("recall", &requests));
        is_degraded(&supervisor);
        let status = supervisor.status();
        assert_eq!(status.restarts, 1, "{status:?}");
        assert!(status.log.iter().any(|line| line.starts_with("as planned: abort")), "{:?}", status.log);
    }
}

pub(crate) fn one_that_dies_again_at_once_costs_no_text() {
    // Twice with the draft and twice without, each time in the middle or at the beginning.
    for step in [1, 40] {
        let plan = Plan { deed: Deed::Abort, step, workers: 4 };
        let supervisor = serving(builder(plan.put_into(drafted(4))));
        let requests = eight(200);
        let seen = read(submit(&supervisor, &requests), |_, _| ());
        same(&seen, &undisturbed("recall", &requests));
        assert_eq!(supervisor.status().restarts, 4);
    }
}

pub(crate) fn one_that_hangs_costs_no_text() {
    let plan = Plan { deed: Deed::Hang, step: 50, workers: 1 };
    let supervisor = serving(builder(plan.put_into(drafted(4))).patience(Duration::from_secs(2)));
    let requests = eight(200);
    let seen = read(submit(&supervisor, &requests), |_, _| ());
    assert!(same(&seen, &undisturbed("recall", &requests)) > 0);
    is_degraded(&supervisor);
    let what = &supervisor.status().recoveries[0].what;
    assert!(what.starts_with("the worker made no progress for "), "{what}");
}

pub(crate) fn one_that_is_stopped_costs_no_text() {
    let plan = Plan { deed: Deed::Slow, step: 1, workers: 1 };
    let supervisor = serving(builder(plan.put_into(drafted(8))).patience(Duration::from_secs(3)));
    endures(&supervisor, &eight(400), |supervisor| {
        signal("STOP", supervisor.status().process.unwrap());
        // It is told at once, however dead the worker is.
        assert!(supervisor.status().state.is_serving());
    });
    is_degraded(&supervisor);
}

pub(crate) fn seeded_texts_go_on_as_they_would_have() {
    let requests: Vec<_> = PROMPTS.iter().zip(7..).map(|(prompt, seed)| varied(prompt, seed, 200)).collect();
    let expected = undisturbed("recall", &requests);
    for (step, plain) in [(30, true), (30, false), (200, false)] {
        let plan = Plan { deed: Deed::Abort, step, workers: 2 };
        let load = if plain { load("recall", 8) } else { drafted(8) };
        let supervisor = serving(builder(plan.put_into(load)));
        let seen = read(submit(&supervisor, &requests), |_, _| ());
        assert!(same(&seen, &expected) > 0, "{step}, {plain}");
        assert_eq!(supervisor.status().restarts, 2);
    }
}

pub(crate) fn several_answers_go_on() {
    let plan = Plan { deed: Deed::Abort, step: 60, workers: 2 };
    let supervisor = serving(builder(plan.put_into(load("recall", 2))));
    let answers = supervisor.submit(Task::text(varied("abc", 5, 100)).answers(5)).unwrap();
    let mut seen: Vec<_> = (0..5).map(|_| crate::support::Seen::default()).collect();
    answers.for_each(|(answer, step)| seen[answer as usize].note(step));
    let alone: Vec<_> = (5..10).map(|seed| varied("abc", seed, 100)).collect();
    same(&seen, &undisturbed("recall", &alone));
    assert_eq!(supervisor.status().restarts, 2);
}

pub(crate) fn one_that_cannot_be_helped_is_given_up() {
    let plan = Plan { deed: Deed::Abort, step: 1, workers: u64::MAX };
    let mut policy = Policy::default();
    policy.crashes = 2;
    policy.first_pause = Duration::from_millis(10);
    let supervisor = serving(builder(plan.put_into(load("recall", 2))).policy(policy));
    let seen = read(submit(&supervisor, &eight(20)), |_, _| ());
    for seen in &seen {
        let problem = seen.problem.as_ref().unwrap();
        assert_eq!(problem.kind, ProblemKind::Unavailable);
        assert!(!problem.message.contains(".gguf") && !problem.message.contains("as planned"), "{problem}");
    }
    let status = supervisor.status();
    assert!(matches!(status.state, State::Failed { .. }), "{status:?}");
    assert!(status.log.iter().any(|line| line.starts_with("as planned: abort")), "{:?}", status.log);
    assert_eq!(status.process, None);
}

pub(crate) fn an_idle_worker_that_dies_is_replaced() {
    let supervisor = serving(builder(load("target", 1)));
    for _ in 0..2 {
        let before = supervisor.status();
        signal("KILL", before.process.unwrap());
        until(&supervisor, "replaced", |supervisor| {
            let status = supervisor.status();
            status.restarts > before.restarts && status.state.is_serving()
        });
        assert_ne!(supervisor.status().process, before.process);
        let seen = read(submit(&supervisor, &[greedy("abc", 4)]), |_, _| ());
        assert_eq!(seen[0].output.text, "defg");
    }
}
