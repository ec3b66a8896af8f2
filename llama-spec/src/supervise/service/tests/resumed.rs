//! Texts that another worker had begun: the rest is what it would have been.

use super::support::{Told, Worker, load};
use crate::chat::{ChatRequest, Message};
use crate::engine::Request;
use crate::sample::{Grammar, Mirostat, SamplerOptions};
use crate::supervise::Load;
use crate::supervise::task::{ProblemKind, Task};
use crate::supervise::wire::{Midway, Standing};
use llama_spec_tests::zoo::{self, Llama};

/// With a draft, whose rounds have several tokens.
fn drafted() -> Load {
    let mut load = load("target");
    load.draft = Some(zoo::file("draft-0.8"));
    load
}

/// A few places in the text: its ends and some between.
fn some(rounds: Vec<Midway>) -> Vec<Midway> {
    let (last, step) = (rounds.len() - 1, rounds.len().div_ceil(6));
    rounds.into_iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last).map(|(_, round)| round).collect()
}

/// The task goes on after any of its rounds as if nothing had happened.
fn goes_on(worker: &mut Worker, task: &Task) {
    worker.start(1, task.clone());
    let (whole, rounds) = worker.rounds(1, 0);
    assert!(whole.finish.is_some() && rounds.len() > 2, "{whole:?}");
    for midway in some(rounds) {
        let begun = midway.generated.len();
        worker.go_on(2, task.clone(), vec![Standing::Begun(Box::new(midway))]);
        let rest = worker.told(2, 0);
        let what = format!("{task:?} after {begun} tokens");
        assert!(!rest.begun, "{what}");
        assert_eq!(
            described(&rest),
            described(&Told { tokens: whole.tokens[begun..].to_vec(), ..Told::default() }),
            "{what}"
        );
        let (end, expected) = (rest.end(), whole.end());
        assert_eq!((end.reason, &end.stop, &end.text), (expected.reason, &expected.stop, &expected.text), "{what}");
        assert_eq!((&end.message, &end.deltas), (&expected.message, &expected.deltas), "{what}");
        assert_eq!(end.malformed, expected.malformed, "{what}");
    }
}

/// All that does not depend on who drafted.
fn described(told: &Told) -> Vec<String> {
    let one = |token: &crate::supervise::task::TokenUpdate| {
        format!("{:?} {:?} {:?} {:?}", token.token, token.bytes, token.text, token.deltas)
    };
    told.tokens.iter().map(one).collect()
}

fn sampled(seed: u32) -> Request {
    Request::prompt("Hello")
        .sampler(SamplerOptions::default().temperature(8.0).top_p(1.0).min_p(0.0).seed(seed))
        .max_tokens(60)
}

#[test]
fn greedy_and_seeded_texts_go_on() {
    let mut worker = Worker::loaded(drafted());
    goes_on(&mut worker, &Task::text(Request::prompt("Hello").greedy().max_tokens(60)));
    goes_on(&mut worker, &Task::text(sampled(3).logprobs(2)));
    let grammar = Grammar::gbnf("root ::= [a-z]+");
    goes_on(
        &mut worker,
        &Task::text(Request::prompt("Hello").sampler(SamplerOptions::greedy().grammar(grammar)).max_tokens(40)),
    );
}

#[test]
fn text_that_is_held_back_goes_on() {
    let mut worker = Worker::loaded(drafted());
    let plain = Request::prompt("Hello").greedy().max_tokens(60);
    worker.start(9, Task::text(plain.clone()));
    let text: Vec<char> = worker.told(9, 0).text().chars().collect();
    let piece = |at: usize, length: usize| text[at..at + length].iter().collect::<String>();
    // One that comes to nothing is held back for most of the time; one ends the text.
    let never = format!("{}\u{fffd}", piece(5, 30));
    for stops in [vec![never.clone()], vec![never, piece(42, 6), piece(42, 5)]] {
        let task = Task::text(plain.clone().stop(stops.clone()));
        worker.start(8, task.clone());
        let stop = worker.told(8, 0).end().stop.clone();
        assert_eq!(stop, (stops.len() > 1).then(|| piece(42, 5)));
        goes_on(&mut worker, &task);
    }
}

#[test]
fn characters_that_are_cut_go_on() {
    let model = Llama::target(1).with_cycle("a\u{e9}\u{20ac}\u{1f600}").labelled("service-characters");
    let file = model.cached().unwrap();
    let mut worker = Worker::loaded(Load { model: file, ..load("target") });
    let task = Task::text(Request::prompt("a").greedy().max_tokens(22));
    worker.start(5, task.clone());
    let told = worker.told(5, 0);
    assert!(told.tokens.iter().any(|token| token.text.is_empty()) && told.text().contains('\u{1f600}'));
    assert_eq!(told.tokens.iter().flat_map(|token| token.bytes.clone()).count(), 22);
    goes_on(&mut worker, &task);
}

#[test]
fn conversations_go_on_and_nothing_is_told_twice() {
    let mut worker = Worker::loaded(Load { model: zoo::file("chat"), ..load("target") });
    let chat = ChatRequest::new(vec![Message::user("Hi")]);
    let task = Task::chat(chat.clone(), Request::prompt("").greedy().max_tokens(60));
    goes_on(&mut worker, &task);
    let schema =
        serde_json::json!({ "type": "object", "properties": { "a": { "type": "boolean" } }, "required": ["a"] });
    goes_on(&mut worker, &Task::chat(chat.json_schema(schema), Request::prompt("").greedy().max_tokens(60)));
}

#[test]
fn answers_of_one_task_go_on_each_by_itself() {
    let mut worker = Worker::loaded(load("target"));
    let task = Task::text(sampled(11)).answers(4);
    worker.start(1, task.clone());
    let whole: Vec<(Told, Vec<Midway>)> = (0..4).map(|answer| worker.rounds(1, answer)).collect();
    let midway = |answer: usize, round: usize| Standing::Begun(Box::new(whole[answer].1[round].clone()));
    worker.go_on(2, task.clone(), vec![midway(0, 1), Standing::Fresh, Standing::Ended, midway(3, 5)]);
    let begun = |answer: usize, round: usize| whole[answer].1[round].generated.len();
    for (answer, begun) in [(0, begun(0, 1)), (1, 0), (3, begun(3, 5))] {
        let rest = worker.told(2, answer as u32);
        let tokens: Vec<_> = whole[answer].0.midway.generated[begun..].to_vec();
        assert_eq!(rest.midway.generated, tokens, "{answer}");
        assert_eq!(rest.begun, begun == 0);
    }
    assert!(!worker.said().iter().any(|said| format!("{said:?}").contains("id: 2, answer: 2")));
    // Nothing is left to do.
    worker.go_on(3, task, vec![Standing::Ended, Standing::Ended, Standing::Ended, Standing::Ended]);
    worker.start(4, Task::text(sampled(1)));
    assert!(worker.told(4, 0).finish.is_some());
}

#[test]
fn what_cannot_go_on_is_told_as_interrupted() {
    let mut worker = Worker::loaded(load("target"));
    let task = Task::text(sampled(1).max_tokens(2000));
    worker.start(1, task.clone());
    let (_, rounds) = worker.rounds(1, 0);
    let mut long = rounds[5].clone();
    long.generated = long.generated.repeat(200);
    let mut other = rounds[5].clone();
    other.generated.pop();
    for (id, midway) in [(2, long), (3, other)] {
        worker.go_on(id, task.clone(), vec![Standing::Begun(Box::new(midway))]);
        let problem = worker.problem(id);
        assert_eq!(problem.kind, ProblemKind::Interrupted, "{problem}");
    }
    // A sampler that cannot be saved goes on with other random numbers.
    let mirostat = SamplerOptions::default().seed(1).mirostat(Mirostat::V2 { tau: 5.0, eta: 0.1 });
    let task = Task::text(Request::prompt("Hello").sampler(mirostat).max_tokens(30));
    worker.start(4, task.clone());
    let (_, rounds) = worker.rounds(4, 0);
    assert_eq!(rounds[3].sampler, None);
    worker.go_on(5, task, vec![Standing::Begun(Box::new(rounds[3].clone()))]);
    assert_eq!(worker.told(5, 0).tokens.len() + rounds[3].generated.len(), 30);
}
