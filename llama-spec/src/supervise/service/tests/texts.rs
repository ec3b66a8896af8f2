//! Texts: what is told of them, and how they end.

use super::support::{LIMIT, Worker, greedy, load};
use crate::engine::Request;
use crate::generate::StopReason;
use crate::sample::SamplerOptions;
use crate::supervise::task::{ProblemKind, Task};
use crate::supervise::wire::{FromWorker, ToWorker};
use llama_spec_tests::zoo::Llama;
use std::time::Instant;

/// What the target of the zoo says after this.
fn continuation(prompt: &str, tokens: usize) -> String {
    let target = Llama::target(1);
    let vocabulary = target.vocabulary();
    let ids = target.continuation(&vocabulary.tokenize(prompt), tokens);
    String::from_utf8_lossy(&vocabulary.bytes(&ids)).into_owned()
}

#[test]
fn a_text_is_told_token_by_token() {
    let mut worker = Worker::loaded(load("target"));
    worker.start(7, greedy("Hello", 40));
    let told = worker.told(7, 0);
    assert_eq!(told.text(), continuation("Hello", 40));
    assert_eq!((told.end().reason, told.end().stats.generated_tokens), (StopReason::MaxTokens, 40));
    assert!(told.begun && told.tokens.len() == 40);
    assert!(told.end().message.is_none() && told.end().stop.is_none());
}

#[test]
fn pulses_come_while_it_works_and_while_it_does_not() {
    let mut worker = Worker::loaded(load("target"));
    let pulse = |worker: &mut Worker| {
        worker.wait("a pulse", |said| match said {
            FromWorker::Pulse(pulse) => Some(pulse.clone()),
            _ => None,
        })
    };
    assert_eq!(pulse(&mut worker).last_decode, None);
    worker.start(1, greedy("Hello", 20));
    worker.told(1, 0);
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < LIMIT);
        let pulse = pulse(&mut worker);
        if pulse.stats.finished == 1 {
            assert!(pulse.last_decode.is_some_and(|(_, well)| well));
            assert!(pulse.stats.steps > 0 && !pulse.stats.longest_step.is_zero());
            break;
        }
    }
}

#[test]
fn several_answers_have_following_seeds() {
    let mut worker = Worker::loaded(load("target"));
    let sampled = |seed| {
        Request::prompt("Hello")
            .sampler(SamplerOptions::default().temperature(8.0).top_p(1.0).min_p(0.0).seed(seed))
            .max_tokens(12)
    };
    worker.start(1, Task::text(sampled(5)).answers(3));
    let many: Vec<String> = (0..3).map(|answer| worker.told(1, answer).text()).collect();
    worker.start(2, Task::text(sampled(7)));
    assert_eq!(worker.told(2, 0).text(), many[2]);
    assert_ne!(many[0], many[2]);
}

#[test]
fn what_cannot_be_done_is_refused_by_its_kind() {
    let mut worker = Worker::new();
    worker.start(1, greedy("Hello", 1));
    assert_eq!(worker.problem(1).kind, ProblemKind::Unavailable);
    worker.load(load("target"));
    worker.start(2, Task::text(Request::tokens([]).greedy()));
    worker.start(3, greedy(&"abc".repeat(300), 1));
    let bad = SamplerOptions::default().top_p(3.0);
    worker.start(4, Task::text(Request::prompt("Hello").sampler(bad)));
    worker.start(5, greedy("Hello", 1).answers(0));
    let kinds = [2, 3, 4, 5].map(|id| worker.problem(id)).map(|problem| (problem.kind, problem.setting));
    let about = |setting: &str| (ProblemKind::Invalid, Some(setting.to_owned()));
    assert_eq!(kinds, [about("prompt"), (ProblemKind::TooLong, None), about("top_p"), about("answers")]);
    worker.say(ToWorker::Stop);
}
