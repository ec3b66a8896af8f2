//! Engines that wait or break down, texts that are not wanted any more, and what can be asked meanwhile.

use super::support::{BREAKS, DAWDLES, GATE, SLOW, Told, WAITS, Worker, greedy, load};
use crate::generate::StopReason;
use crate::supervise::Load;
use crate::supervise::task::{Problem, ProblemKind, Question, Reply};
use crate::supervise::wire::{FromWorker, Pulse, ToWorker};
use std::sync::PoisonError;
use std::time::Duration;

fn pulse(worker: &mut Worker) -> Pulse {
    worker.wait("a pulse", |said| match said {
        FromWorker::Pulse(pulse) => Some(*pulse.clone()),
        _ => None,
    })
}

fn ask(worker: &mut Worker, question: Question) -> Result<Reply, Problem> {
    worker.say(ToWorker::Ask { id: 99, question });
    worker.wait("a reply", |said| match said {
        FromWorker::Reply { id: 99, reply } => Some(reply.clone()),
        _ => None,
    })
}

fn check(worker: &mut Worker) -> Result<(), String> {
    worker.say(ToWorker::Check);
    checked(worker)
}

fn checked(worker: &mut Worker) -> Result<(), String> {
    worker.wait("a check", |said| match said {
        FromWorker::Checked(outcome) => Some(outcome.clone()),
        _ => None,
    })
}

#[test]
fn while_the_engine_waits_it_is_told_and_questions_are_answered() {
    let mut worker = Worker::loaded(Load { queue: WAITS, ..load("target") });
    let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    worker.start(1, greedy("Hello", 60));
    worker.start(2, greedy("Hello", 60));
    let mut steps = Vec::new();
    // Longer than numbers are kept, so that the last ones are those of the step that waits.
    while steps.len() < 8 || steps[steps.len() - 4..] != [steps[steps.len() - 1]; 4] {
        let pulse = pulse(&mut worker);
        // The second text may come when the step of the first already waits.
        if pulse.stats.running >= 1 {
            steps.push(pulse.stats.steps);
        }
    }
    let text = "Hello".to_owned();
    let question = Question::Tokenize { text: text.clone(), add_special: false, parse_special: false };
    let Ok(Reply::Tokens(tokens)) = ask(&mut worker, question) else { panic!("no tokens") };
    assert_eq!(tokens.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>(), text.as_bytes());
    let tokens = tokens.into_iter().map(|(token, _)| token).collect();
    assert_eq!(ask(&mut worker, Question::Detokenize { tokens }), Ok(Reply::Text(text)));
    // Real work is to show whether it works, and does not until it goes on.
    worker.say(ToWorker::Check);
    let before = pulse(&mut worker);
    assert!(!worker.said().iter().any(|said| matches!(said, FromWorker::Checked(_))));
    drop(gate);
    assert_eq!(checked(&mut worker), Ok(()));
    for id in [1, 2] {
        let rest = worker.told(id, 0);
        assert_eq!(rest.end().reason, StopReason::MaxTokens, "{before:?}");
    }
}

#[test]
fn a_check_generates() {
    let mut worker = Worker::new();
    assert!(check(&mut worker).is_err());
    worker.load(load("target"));
    assert_eq!(check(&mut worker), Ok(()));
    while pulse(&mut worker).stats.total.generated_tokens < 2 {}
}

#[test]
fn what_breaks_down_is_told_once_and_can_be_replaced() {
    let mut worker = Worker::loaded(Load { queue: BREAKS, ..load("target") });
    for id in 1..5 {
        worker.start(id, greedy("Hello", 60));
    }
    let poisoned = |said: &FromWorker| match said {
        FromWorker::Poisoned(reason) => Some(reason.clone()),
        _ => None,
    };
    let reason = worker.wait("the end", poisoned);
    assert!(reason.contains("made to fail by a test"), "{reason}");
    worker.start(5, greedy("Hello", 60));
    assert_eq!(worker.problem(5).kind, ProblemKind::Unavailable);
    assert!(check(&mut worker).is_err());
    let said = worker.said();
    // Nobody is told that a text has ended which another engine can go on with.
    let told = |said: &FromWorker| matches!(said, FromWorker::Broken { id: 1..5, .. }) || poisoned(said).is_some();
    assert!(!said.iter().any(told), "{said:?}");
    worker.load(load("target"));
    worker.start(6, greedy("Hello", 60));
    assert_eq!(worker.told(6, 0).tokens.len(), 60);
    assert!(!worker.said().iter().any(|said| poisoned(said).is_some()));
}

#[test]
fn what_is_cancelled_makes_room() {
    let mut load = load("target");
    load.context.slots = 1;
    load.context.length_per_slot = 32_000;
    let mut worker = Worker::loaded(load);
    worker.start(1, greedy("Hello", 30_000));
    let mut first = Told::default();
    worker.follow((1, 0), &mut first, |told| told.tokens.len() > 3);
    worker.start(2, greedy("Hello", 30_000));
    worker.start(3, greedy("Hello", 5));
    worker.say(ToWorker::Cancel { id: 2 });
    worker.say(ToWorker::Cancel { id: 1 });
    worker.say(ToWorker::Cancel { id: 77 });
    worker.follow((1, 0), &mut first, |_| false);
    assert_eq!(first.end().reason, StopReason::Cancelled);
    assert!(first.tokens.len() < 30_000);
    assert_eq!(worker.told(2, 0).end().reason, StopReason::Cancelled);
    assert_eq!(worker.told(3, 0).end().reason, StopReason::MaxTokens);
}

#[test]
fn another_load_ends_texts() {
    let mut load = load("target");
    load.context.length_per_slot = 32_000;
    let mut worker = Worker::loaded(load);
    worker.start(1, greedy("Hello", 30_000));
    let mut told = Told::default();
    worker.follow((1, 0), &mut told, |told| told.tokens.len() > 3);
    // Even one that fails.
    worker.say(ToWorker::Load { load: Box::new(Load::new("no-such-file.gguf")), restarts: 0 });
    worker.follow((1, 0), &mut told, |_| false);
    assert_eq!(told.problem.map(|problem| problem.kind), Some(ProblemKind::Unavailable));
    assert!(check(&mut worker).is_err());
}

/// Whoever prepares for ever is given up, and others come through.
#[test]
fn what_takes_long_to_prepare_is_refused() {
    let limit = Duration::from_secs(3);
    let mut worker = Worker::with_limit(limit);
    worker.load(Load { queue: DAWDLES, ..load("target") });
    let slow = SLOW.lock().unwrap_or_else(PoisonError::into_inner);
    for id in [1, 2, 3] {
        worker.start(id, greedy("Hello", 4));
    }
    for id in [1, 2] {
        let problem = worker.problem(id);
        assert!(problem.kind == ProblemKind::Invalid && problem.message.contains("took longer"), "{problem}");
    }
    assert_eq!(worker.told(3, 0).tokens.len(), 4);
    drop(slow);
    worker.start(4, greedy("Hello", 4));
    assert_eq!(worker.told(4, 0).tokens.len(), 4);
    // What came too late is generated for nobody.
    assert!(!worker.said().iter().any(|said| matches!(said, FromWorker::Update { id: 1 | 2, .. })));
}
