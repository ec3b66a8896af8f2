//! What users ask for while texts run, and while something goes wrong.

use super::fake::{End, Loading, Script, Stage};
use super::{builder, expected, seen_one, task, until, until_ready};
use crate::generate::StopReason;
use crate::supervise::load::Load;
use crate::supervise::policy::Policy;
use crate::supervise::status::State;
use crate::supervise::supervisor::{Running, Supervisor};
use crate::supervise::task::{ProblemKind, Update};
use crate::supervise::wire::{RefusalKind, ToWorker};
use pollster::block_on;
use std::thread;
use std::time::Duration;

fn started(stage: &Stage) -> Supervisor {
    let supervisor = builder().fake(stage.clone()).start().unwrap();
    until_ready(&supervisor);
    supervisor
}

#[test]
fn a_load_waits_for_what_runs() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    stage.hold(true);
    let running = supervisor.submit(task(9)).unwrap();
    let other = supervisor.clone();
    let loading = thread::spawn(move || block_on(other.load(Load::new("other.gguf"), Running::Finish)));
    // The text is not finished, so that nothing else can be loaded yet; what comes now waits for the other model.
    let later = supervisor.submit(task(3)).unwrap();
    stage.hold(false);
    let running = seen_one(running);
    assert_eq!((running.tokens, running.pauses), (expected(9), 0));
    loading.join().unwrap().unwrap();
    assert_eq!(seen_one(later).tokens, expected(3));
    assert_eq!(supervisor.status().requested.unwrap().model.to_str(), Some("other.gguf"));
    assert_eq!(supervisor.status().restarts, 0, "a planned stop is no crash");
}

#[test]
fn a_load_can_cancel_what_runs() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    stage.hold(true);
    let running = supervisor.submit(task(9)).unwrap();
    let other = supervisor.clone();
    let loading = thread::spawn(move || block_on(other.reload(Running::Cancel)));
    assert_eq!(seen_one(running).problem.unwrap().kind, ProblemKind::Unavailable);
    stage.hold(false);
    loading.join().unwrap().unwrap();
    assert_eq!(stage.loads()[1][0].1, 0, "a reload is no restart");
}

#[test]
fn a_draft_comes_and_goes_in_the_same_worker() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    block_on(supervisor.set_draft(Some("draft.gguf".into()), None, Running::Finish)).unwrap();
    block_on(supervisor.set_draft(None, None, Running::Finish)).unwrap();
    let loads = stage.loads();
    let drafts: Vec<_> = loads[0].iter().map(|(load, _)| load.draft.is_some()).collect();
    assert_eq!((loads.len(), drafts), (1, vec![false, true, false]));
    assert_eq!(seen_one(supervisor.submit(task(3)).unwrap()).tokens, expected(3));
}

#[test]
fn the_users_load_wins_over_a_recovery() {
    let policy =
        Policy { first_pause: Duration::from_secs(600), longest_pause: Duration::from_secs(600), ..Policy::default() };
    let stage = Stage::new([Script::ends_after(4, End::Dies), Script::ends_after(0, End::Dies)]);
    let supervisor = builder().policy(policy).fake(stage.clone()).start().unwrap();
    until_ready(&supervisor);
    let running = supervisor.submit(task(9)).unwrap();
    // After the second crash it would wait for ten minutes.
    until(&supervisor, "twice down", |supervisor| supervisor.status().recoveries.len() == 2);
    block_on(supervisor.reload(Running::Finish)).unwrap();
    let running = seen_one(running);
    assert_eq!((running.tokens, running.pauses), (expected(9), 1));

    // The same with another model: what was under way cannot go on.
    let stage = Stage::new([Script::ends_after(4, End::Dies), Script::loads(Loading::Hangs)]);
    let supervisor = started(&stage);
    let running = supervisor.submit(task(9)).unwrap();
    until(&supervisor, "down", |supervisor| matches!(supervisor.status().state, State::Recovering { .. }));
    block_on(supervisor.load(Load::new("other.gguf"), Running::Finish)).unwrap();
    let running = seen_one(running);
    assert_eq!((running.problem.unwrap().kind, running.tokens), (ProblemKind::Interrupted, expected(3)));
    assert_eq!(supervisor.status().state, State::Ready);
    assert_eq!(stage.killed(), [1]);
}

#[test]
fn a_pending_load_is_obeyed_when_the_worker_dies_first() {
    let stage = Stage::new([Script::ends_after(6, End::Dies)]);
    let supervisor = started(&stage);
    stage.hold(true);
    let running = supervisor.submit(task(9)).unwrap();
    let other = supervisor.clone();
    let loading = thread::spawn(move || block_on(other.reload(Running::Finish)));
    stage.hold(false);
    let running = seen_one(running);
    assert_eq!(running.tokens, expected(9));
    loading.join().unwrap().unwrap();
    assert_eq!(supervisor.status().state, State::Ready);
}

#[test]
fn nothing_is_loaded_after_an_unload() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    block_on(supervisor.unload(Running::Finish)).unwrap();
    let status = supervisor.status();
    assert_eq!((status.state, status.requested, status.process), (State::Unloaded, None, None));
    assert_eq!(supervisor.submit(task(1)).unwrap_err().kind, ProblemKind::Unavailable);
    assert_eq!(block_on(supervisor.set_draft(None, None, Running::Finish)).unwrap_err().kind, ProblemKind::Invalid);
    // It is remembered what that was.
    assert_eq!(status.last_requested, Some(Load::new("target.gguf")));
    block_on(supervisor.reload(Running::Finish)).unwrap();
    assert_eq!(supervisor.status().requested, status.last_requested);
    assert_eq!(seen_one(supervisor.submit(task(2)).unwrap()).tokens, expected(2));
}

#[test]
fn what_cannot_be_loaded_is_told_to_who_asked_and_gone_back_from() {
    let former = Load::new("target.gguf");
    for refuses in [Loading::Refused(RefusalKind::File), Loading::Refused(RefusalKind::Setting)] {
        let stage = Stage::new([Script::default(), Script::loads_first(refuses)]);
        let supervisor = started(&stage);
        let why = block_on(supervisor.load(Load::new("no.gguf"), Running::Finish)).unwrap_err();
        assert_eq!(why.kind, ProblemKind::Unavailable);
        assert!(!why.message.contains('/'), "{why}");
        until_ready(&supervisor);
        assert_eq!(supervisor.status().requested.as_ref(), Some(&former));
        assert_eq!(seen_one(supervisor.submit(task(3)).unwrap()).tokens, expected(3));
    }
    // With nothing left to take from it.
    let stage = Stage::new([
        Script::default(),
        Script::loads(Loading::Dies),
        Script::loads(Loading::Dies),
        Script::loads(Loading::Dies),
    ]);
    let supervisor = started(&stage);
    block_on(supervisor.load(Load::new("no.gguf"), Running::Finish)).unwrap_err();
    until_ready(&supervisor);
    assert_eq!(supervisor.status().requested.as_ref(), Some(&former));
    let loads = stage.loads();
    let models: Vec<_> = loads.iter().map(|loads| loads[0].0.model.to_str().unwrap()).collect();
    assert_eq!(models, ["target.gguf", "no.gguf", "no.gguf", "no.gguf", "target.gguf"]);
}

#[test]
fn the_last_command_wins() {
    let stage = Stage::new([Script::default(), Script::loads(Loading::Hangs)]);
    let supervisor = started(&stage);
    let other = supervisor.clone();
    let first = thread::spawn(move || block_on(other.load(Load::new("slow.gguf"), Running::Finish)));
    until(&supervisor, "loading", |_| stage.told().len() == 2);
    block_on(supervisor.load(Load::new("other.gguf"), Running::Finish)).unwrap();
    assert_eq!(first.join().unwrap().unwrap_err().kind, ProblemKind::Unavailable);
    assert_eq!(stage.killed(), [1]);
}

#[test]
fn a_cancelled_task_ends_here_and_there() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    let mut answers = supervisor.submit(task(50_000)).unwrap();
    while !matches!(answers.next(), Some((0, Ok(Update::Tokens(_))))) {}
    stage.hold(true);
    answers.canceller().cancel();
    let last = answers.by_ref().last().unwrap().1.unwrap();
    assert!(matches!(last, Update::Finished(finish) if finish.reason == StopReason::Cancelled));
    let dropped = supervisor.submit(task(50_000)).unwrap();
    drop(dropped);
    let cancels =
        |stage: &Stage| stage.told()[0].iter().filter(|message| matches!(message, ToWorker::Cancel { .. })).count();
    until(&supervisor, "cancelled", |_| cancels(&stage) == 2);
    stage.hold(false);
    assert_eq!(seen_one(supervisor.submit(task(2)).unwrap()).tokens, expected(2));
}

#[test]
fn a_client_that_does_not_read_has_an_end() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    let sleeping = supervisor.submit(task(1_000_000)).unwrap();
    until(&supervisor, "given up", |_| {
        stage.told()[0].iter().any(|message| matches!(message, ToWorker::Cancel { .. }))
    });
    let seen = seen_one(sleeping);
    assert_eq!(seen.problem.unwrap().kind, ProblemKind::Interrupted);
    assert!(seen.tokens.len() >= 65_000, "{}", seen.tokens.len());
}

#[test]
fn a_shutdown_lets_texts_end_within_its_grace() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    stage.hold(true);
    let running = supervisor.submit(task(5)).unwrap();
    let other = supervisor.clone();
    let down = thread::spawn(move || block_on(other.shutdown(Duration::from_secs(600))));
    until(&supervisor, "stopping", |supervisor| supervisor.status().state == State::Stopping);
    assert_eq!(supervisor.submit(task(1)).unwrap_err().kind, ProblemKind::Unavailable);
    stage.hold(false);
    assert_eq!(seen_one(running).tokens, expected(5));
    down.join().unwrap();
    assert_eq!((stage.told().len(), stage.killed()), (1, vec![]));

    let stage = Stage::default();
    let supervisor = started(&stage);
    stage.hold(true);
    let running = supervisor.submit(task(5)).unwrap();
    block_on(supervisor.shutdown(Duration::from_millis(10)));
    assert_eq!(seen_one(running).problem.unwrap().kind, ProblemKind::Unavailable);
    block_on(supervisor.shutdown(Duration::ZERO));
}

#[test]
fn dropping_it_ends_everything() {
    let stage = Stage::default();
    let supervisor = started(&stage);
    stage.hold(true);
    let running = supervisor.submit(task(5)).unwrap();
    drop(supervisor);
    assert_eq!(seen_one(running).problem.unwrap().kind, ProblemKind::Unavailable);
    assert_eq!(stage.killed(), [0]);
}
