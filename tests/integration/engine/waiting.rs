//! Who waits for what: priorities, and programs that do not block.

use crate::scripted::Slow;
use crate::support::{builder, ids, oracle};
use crate::table::greedy;
use futures_core::Stream;
use llama_spec::engine::{Drafters, Priority};
use llama_spec::{Engine, Event, Request, Response};
use llama_spec_tests::zoo::Llama;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// An engine that takes about so long for a token when it is asked to.
fn slow(slots: u32, time: Duration) -> Engine {
    builder("target", slots).drafter(move || Slow(time)).build().unwrap()
}

fn request(tokens: u32, priority: Priority) -> Request {
    greedy("abc", tokens).priority(priority).drafters(Drafters::Own(0))
}

#[test]
fn urgent_requests_go_first_and_nobody_starves() {
    let engine = slow(1, Duration::from_millis(8));
    let start = Instant::now();
    let mut running = engine.generate(request(20, Priority::Normal)).unwrap();
    running.next().unwrap().unwrap();
    let low = engine.generate(request(3, Priority::Low)).unwrap();
    let ended = std::thread::spawn(move || {
        low.output().unwrap();
        Instant::now()
    });
    // There are always some urgent requests that wait: more than one, since this thread may itself have to wait.
    let urgent = || engine.generate(request(6, Priority::High)).unwrap();
    let (mut next, mut served): (VecDeque<_>, _) = ((0..6).map(|_| urgent()).collect(), 0);
    drop(running.output());
    while !ended.is_finished() {
        next.push_back(urgent());
        next.pop_front().unwrap().output().unwrap();
        served += 1;
        assert!(start.elapsed() < Duration::from_secs(30), "the request of low priority starved");
    }
    let waited = ended.join().unwrap() - start;
    assert!(served > 5, "it went before the urgent ones: {served}");
    assert!(waited < Duration::from_secs(12), "it waited for {waited:?}");
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls until there is an event. Gives how often that was in vain.
fn block_on_next(response: &mut Response) -> (Option<llama_spec::Result<Event>>, usize) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut context, mut pending) = (Context::from_waker(&waker), 0);
    loop {
        match Pin::new(&mut *response).poll_next(&mut context) {
            Poll::Ready(event) => return (event, pending),
            Poll::Pending => {
                pending += 1;
                std::thread::park_timeout(Duration::from_secs(20));
            }
        }
    }
}

#[test]
fn a_response_is_a_stream() {
    let engine = slow(2, Duration::from_millis(3));
    let mut responses = [7, 9].map(|tokens| engine.generate(request(tokens, Priority::Normal)).unwrap());
    let (mut tokens, mut waits) = ([Vec::new(), Vec::new()], 0);
    // Both in turns, until both are over.
    let mut open = [true; 2];
    while open.contains(&true) {
        for at in [0, 1] {
            let (event, pending) = block_on_next(&mut responses[at]);
            waits += pending;
            match event.transpose().unwrap() {
                Some(Event::Token { token, .. }) => tokens[at].push(token.id()),
                Some(_) => {}
                None => open[at] = false,
            }
        }
    }
    let expected = oracle(&Llama::target(1), engine.model(), "abc", 9);
    assert_eq!(tokens, [expected[..7].to_vec(), expected]);
    assert!(waits > 0 && waits < 60, "polled {waits} times in vain");
    // It stays at its end.
    assert!(block_on_next(&mut responses[0]).0.is_none());
}

#[test]
fn dropping_a_stream_cancels() {
    let engine = slow(1, Duration::from_millis(2));
    let mut response = engine.generate(request(400, Priority::Normal)).unwrap();
    assert!(matches!(block_on_next(&mut response).0, Some(Ok(_))));
    drop(response);
    let next = engine.generate(request(4, Priority::Normal)).unwrap().output().unwrap();
    assert_eq!(ids(&next), oracle(&Llama::target(1), engine.model(), "abc", 4));
    let stats = engine.stats();
    assert_eq!((stats.cancelled, stats.finished), (1, 1));
    assert!(stats.total.generated_tokens < 200, "{}", stats.total.generated_tokens);
}

/// What waits in another task is told when the engine goes.
#[test]
fn dropping_an_engine_wakes_streams() {
    let engine = slow(1, Duration::from_millis(1));
    let mut waiting = [0, 1].map(|_| engine.generate(request(400, Priority::Normal)).unwrap());
    let dropped = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(engine);
    });
    for response in &mut waiting {
        let error = loop {
            match block_on_next(response).0 {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("it ended without an error"),
            }
        };
        assert!(matches!(error, llama_spec::Error::ShuttingDown), "{error}");
        assert!(block_on_next(response).0.is_none());
    }
    dropped.join().unwrap();
}
