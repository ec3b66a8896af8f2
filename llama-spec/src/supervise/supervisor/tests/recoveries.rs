//! Workers that die, hang, break down, refuse and lie.

use super::fake::{End, Loading, Script, Stage};
use super::{LONG, builder, expected, seen_one, task, until, until_ready};
use crate::spec::{Method, SpecConfig, Speculation};
use crate::supervise::load::Load;
use crate::supervise::policy::Policy;
use crate::supervise::status::State;
use crate::supervise::task::{ProblemKind, Question, Reply};
use crate::supervise::wire::{RefusalKind, ToWorker};
use crate::supervise::{Supervisor, SupervisorBuilder};
use pollster::block_on;
use std::time::Duration;

fn drafting() -> Speculation {
    let methods = vec![Method::NgramMod, Method::DraftSimple];
    Speculation { requested: methods.clone(), effective: methods, ..Speculation::default() }
}

fn start(builder: SupervisorBuilder, stage: &Stage) -> Supervisor {
    builder.fake(stage.clone()).start().unwrap()
}

#[test]
fn a_crash_takes_the_draft_away_and_keeps_what_was_asked_for() {
    let stage = Stage::new([Script { speculation: drafting(), ..Script::ends_after(6, End::Dies) }]);
    let load = Load { draft: Some("draft.gguf".into()), ..Load::new("target.gguf") };
    let supervisor = start(Supervisor::builder(load.clone()), &stage);
    until_ready(&supervisor);
    let answer = seen_one(supervisor.submit(task(20)).unwrap());
    assert_eq!((&answer.tokens, answer.pauses), (&expected(20), 1));
    let told = answer.finish.unwrap().speculation;
    let reason = told.reason.as_deref().unwrap_or_default();
    assert!(reason.starts_with("runtime_error: the worker died"), "{reason}");
    assert_eq!(told.requested, drafting().requested);

    let status = supervisor.status();
    assert!(matches!(&status.state, State::Degraded { .. }), "{:?}", status.state);
    assert_eq!((status.requested.as_ref(), status.restarts), (Some(&load), 1));
    let effective = status.effective.unwrap();
    assert_eq!((effective.draft, effective.speculation.unwrap().methods), (None, vec![Method::NgramMod]));
    assert_eq!(status.speculation.requested, drafting().requested);
    assert_eq!(status.recoveries.len(), 1);
    assert!(status.log.contains(&"the last words of worker 0".into()), "{:?}", status.log);
    let second = &stage.loads()[1][0];
    assert_eq!((&second.0.draft, second.1), (&None, 1));
    assert!(status.last_decode.unwrap().ok);
}

#[test]
fn what_is_poisoned_is_killed_and_replaced() {
    let stage = Stage::new([Script::ends_after(4, End::Poisoned)]);
    let supervisor = start(builder(), &stage);
    until_ready(&supervisor);
    assert_eq!(seen_one(supervisor.submit(task(10)).unwrap()).tokens, expected(10));
    assert_eq!(stage.killed(), [0]);
}

#[test]
fn what_hangs_is_killed_and_replaced() {
    let stage = Stage::new([Script::ends_after(4, End::Hangs), Script::loads(Loading::Hangs)]);
    let supervisor = start(builder().patience(Duration::from_millis(200)), &stage);
    until_ready(&supervisor);
    assert_eq!(seen_one(supervisor.submit(task(10)).unwrap()).tokens, expected(10));
    assert_eq!(stage.killed(), [0, 1]);
}

#[test]
fn what_dies_at_once_again_and_again_is_given_up() {
    let policy = Policy { crashes: 3, first_pause: Duration::from_millis(2), ..Policy::default() };
    let stage = Stage::new((0..20).map(|_| Script::ends_after(0, End::Dies)));
    let supervisor = start(builder().policy(policy), &stage);
    until_ready(&supervisor);
    let answer = seen_one(supervisor.submit(task(3)).unwrap());
    let problem = answer.problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::Unavailable);
    assert!(!problem.message.contains('/'), "{problem}");
    let status = supervisor.status();
    assert!(matches!(&status.state, State::Failed { .. }), "{:?}", status.state);
    assert_eq!(stage.told().len(), 4);
    assert_eq!(supervisor.submit(task(1)).unwrap_err().kind, ProblemKind::Unavailable);
    assert_eq!(block_on(supervisor.ask(question())).unwrap_err().kind, ProblemKind::Unavailable);
}

#[test]
fn a_pair_that_cannot_work_is_told_at_once() {
    for kind in [RefusalKind::Pair, RefusalKind::File, RefusalKind::Setting] {
        let stage = Stage::new([Script::loads(Loading::Refused(kind))]);
        let supervisor = start(builder(), &stage);
        let refused = block_on(supervisor.first_load()).unwrap_err();
        assert_eq!((refused.kind, refused.message.as_str()), (kind, "no: /a/path"));
        assert_eq!(stage.told().len(), 1);
        let State::Failed { reason } = supervisor.status().state else { panic!("{:?}", supervisor.status()) };
        assert!(!reason.contains('/'), "{reason}");
    }
}

#[test]
fn less_is_tried_when_the_start_fails() {
    let scripts = [Script::loads(Loading::Refused(RefusalKind::Trial)), Script::loads(Loading::Dies)];
    let stage = Stage::new(scripts);
    let load = Load { speculation: Some(SpecConfig::new([Method::NgramMod])), ..Load::new("target.gguf") };
    let supervisor = start(Supervisor::builder(load.clone()), &stage);
    block_on(supervisor.first_load()).unwrap();
    let status = supervisor.status();
    assert!(matches!(status.state, State::Degraded { .. }), "{:?}", status.state);
    assert_eq!(status.requested, Some(load));
    assert!(status.effective.unwrap().speculation.unwrap().methods.is_empty());
    assert_eq!((stage.told().len(), status.recoveries.len()), (3, 2));
}

#[test]
fn a_worker_of_another_version_is_not_talked_to() {
    let stage = Stage::new((0..2).map(|_| Script { version: 999, ..Script::default() }));
    let supervisor = start(builder(), &stage);
    let refused = block_on(supervisor.first_load()).unwrap_err();
    assert!(refused.message.contains("speaks version 999"), "{refused}");
    until(&supervisor, "killed", |_| stage.killed() == [0]);
}

#[test]
fn texts_do_not_go_on_with_another_model() {
    let other = Script { identity: 1, ..Script::ends_after(8, End::Dies) };
    let stage = Stage::new([Script::ends_after(4, End::Dies), other, Script { identity: 1, ..Script::default() }]);
    let supervisor = start(builder(), &stage);
    until_ready(&supervisor);
    let begun = seen_one(supervisor.submit(task(20)).unwrap());
    assert_eq!((begun.problem.unwrap().kind, begun.tokens), (ProblemKind::Interrupted, expected(3)));
    // It is the model now: from then on texts go on with it.
    until_ready(&supervisor);
    assert_eq!(seen_one(supervisor.submit(task(20)).unwrap()).tokens, expected(20));
    let status = supervisor.status();
    assert_eq!((status.restarts, status.info.unwrap().identity), (2, 1));
    let told = status.recoveries.iter().filter(|recovery| recovery.what.contains("not the one it was")).count();
    assert_eq!(told, 1, "{:?}", status.recoveries);
}

#[test]
fn tasks_and_questions_wait_while_it_recovers() {
    let policy = Policy { crashes: 9, first_pause: Duration::from_millis(100), ..Policy::default() };
    let stage = Stage::new([Script::ends_after(1, End::Dies), Script::ends_after(0, End::Dies)]);
    let supervisor = start(builder().policy(policy), &stage);
    until_ready(&supervisor);
    let first = supervisor.submit(task(5)).unwrap();
    until(&supervisor, "recovering", |supervisor| matches!(supervisor.status().state, State::Recovering { .. }));
    let second = supervisor.submit(task(4)).unwrap();
    let reply = block_on(supervisor.ask(question())).unwrap();
    assert_eq!(seen_one(first).tokens, expected(5));
    let second = seen_one(second);
    assert_eq!((second.tokens, second.pauses), (expected(4), 0));
    assert_eq!(reply, Reply::Text("worker 2".into()));
}

#[test]
fn what_waits_is_bounded() {
    let load = Load { queue: 3, ..Load::new("target.gguf") };
    let stage = Stage::default();
    let supervisor = start(Supervisor::builder(load), &stage);
    until_ready(&supervisor);
    stage.hold(true);
    let kept: Vec<_> = (0..4).map(|_| supervisor.submit(task(2)).unwrap()).collect();
    assert_eq!(supervisor.submit(task(2)).unwrap_err().kind, ProblemKind::Busy);
    stage.hold(false);
    kept.into_iter().for_each(|answers| assert_eq!(seen_one(answers).tokens, expected(2)));
    assert!(supervisor.submit(task(2)).is_ok());
}

#[test]
fn an_idle_engine_that_cannot_generate_is_replaced() {
    let stage = Stage::new([Script { check: Err("no numbers in /a/path".into()), ..Script::default() }]);
    // Nothing was decoded when it was loaded, so it is tried at once.
    let supervisor = start(builder(), &stage);
    until(&supervisor, "replaced", |_| stage.told().len() == 2);
    until_ready(&supervisor);
    assert_eq!(stage.killed(), [0]);
    let what = &supervisor.status().recoveries[0].what;
    assert!(what.contains("cannot generate") && !what.contains('/'), "{what}");
    until(&supervisor, "tried", |supervisor| supervisor.status().last_decode.is_some_and(|last| last.ok));
}

#[test]
fn an_idle_engine_is_tried_from_time_to_time() {
    let stage = Stage::default();
    let supervisor = start(builder().check_every(Duration::from_millis(5)), &stage);
    let checks = |stage: &Stage| stage.told()[0].iter().filter(|message| **message == ToWorker::Check).count();
    until(&supervisor, "tried", |_| !stage.told().is_empty() && checks(&stage) >= 3);
}

#[test]
fn counters_never_go_down() {
    let stage = Stage::new([Script::ends_after(12, End::Dies)]);
    let supervisor = start(builder(), &stage);
    until_ready(&supervisor);
    let (mut last, mut steps) = (0, 0);
    for _ in supervisor.submit(task(40)).unwrap() {
        let now = supervisor.status().stats.total.generated_tokens;
        assert!(now >= last, "{now} after {last}");
        (last, steps) = (now, steps + 1);
    }
    assert!(steps > 40 && last >= 10, "{steps} steps, {last} tokens");
}

#[test]
fn waiting_has_an_end() {
    let policy = Policy { first_pause: LONG, ..Policy::default() };
    let stage = Stage::new([Script::ends_after(3, End::Dies), Script::loads(Loading::Dies)]);
    let supervisor = start(builder().policy(policy), &stage);
    until_ready(&supervisor);
    let mut task = task(50);
    task.request.deadline = Some(Duration::from_millis(300));
    let answer = seen_one(supervisor.submit(task).unwrap());
    let finish = answer.finish.unwrap();
    assert_eq!(finish.reason, crate::StopReason::Deadline);
    assert_eq!((answer.tokens, finish.stats.generated_tokens), (expected(2), 2));
}

fn question() -> Question {
    Question::Tokenize { text: "p".into(), add_special: true, parse_special: false }
}
