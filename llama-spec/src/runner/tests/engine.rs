//! Faults under an engine: who is told what, and what can still be done.

use super::support::{EAGLE3, Kind, MTP, PLAIN, RECURRENT, SIMPLE, context};
use crate::engine::{Engine, Request, Response};
use crate::error::{DecodeError, Error};
use crate::generate::{Event, StopReason};
use crate::runner::{Call, Fault, Faults};
use crate::token::Token;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) fn engine(kind: Kind, slots: u32, faults: Faults) -> Engine {
    let mut builder = Engine::builder(kind.target()).context(context(slots));
    if let Some(draft) = kind.draft() {
        builder = builder.draft(draft);
    }
    builder.faults = faults;
    builder.speculation(kind.config()).build().unwrap_or_else(|error| panic!("{}: {error}", kind.name))
}

/// Fails once when the call is made after the engine was armed.
struct Trap {
    armed: Arc<AtomicUsize>,
}

impl Trap {
    const SAFE: usize = 0;
    const ARMED: usize = 1;

    fn new(call: Call, act: impl Fn() -> Option<Fault> + Send + Sync + 'static) -> (Self, Faults) {
        let armed = Arc::new(AtomicUsize::new(Self::SAFE));
        let theirs = Arc::clone(&armed);
        let faults = Faults::new(move |at| match at == call {
            true if theirs.compare_exchange(1, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() => act(),
            _ => None,
        });
        (Self { armed }, faults)
    }

    fn arm(&self) {
        self.armed.store(Self::ARMED, Ordering::SeqCst);
    }

    fn went_off(&self) -> bool {
        self.armed.load(Ordering::SeqCst) == Self::SAFE
    }
}

fn ask(engine: &Engine, kind: Kind, text: &str, count: u32) -> Response {
    engine.generate(Request::tokens(kind.tokens(text)).greedy().max_tokens(count)).unwrap()
}

/// The tokens of an answer and how it ended.
fn collect(response: Response) -> (Vec<Token>, Result<StopReason, Error>) {
    let mut tokens = Vec::new();
    for event in response {
        match event {
            Ok(Event::Token { token, .. }) => tokens.push(token),
            Ok(Event::Finished { reason, .. }) => return (tokens, Ok(reason)),
            Ok(_) => {}
            Err(error) => return (tokens, Err(error)),
        }
    }
    panic!("a response without an end");
}

/// The engine has failed: everybody is told why, nothing hangs, and another can be made.
fn is_told_to_all(kind: Kind, slots: u32, trap: &Trap, faults: Faults, reason: &str) {
    let what = format!("{}, {slots} slots, {reason}", kind.name);
    let engine = engine(kind, slots, faults);
    let mut running = ask(&engine, kind, "The quick brown fox", 200);
    while !matches!(running.next(), Some(Ok(Event::Token { .. }))) {}
    let others: Vec<_> = (0..6).map(|_| ask(&engine, kind, "The quick brown fox jumps", 200)).collect();
    let many = Request::tokens(kind.tokens("abc")).greedy().max_tokens(200);
    let many = engine.generate_many(many, 3).unwrap();
    trap.arm();
    for response in others.into_iter().chain(many) {
        let (tokens, end) = collect(response);
        assert!(tokens.len() <= 200, "{what}");
        match end {
            Err(Error::EngineFailed { reason: why }) => assert!(why.contains(reason), "{what}: {why}"),
            // It was over by then.
            Ok(_) => {}
            Err(error) => panic!("{what}: {error}"),
        }
    }
    assert!(trap.went_off(), "{what}: the call was never made");
    assert!(engine.failure().is_some_and(|why| why.contains(reason)), "{what}: {:?}", engine.failure());
    assert!(matches!(engine.generate("abc"), Err(Error::EngineFailed { .. })), "{what}");
    assert!(matches!(running.save(), Err(Error::EngineFailed { .. })), "{what}");
    assert!(engine.drain(std::time::Duration::from_secs(5)), "{what}");
    drop(engine);
    assert!(running.save().is_err(), "{what}");

    let next = self::engine(kind, slots, Faults::default());
    let (tokens, end) = collect(ask(&next, kind, "The quick brown fox", 40));
    assert_eq!(tokens, kind.oracle(&kind.tokens("The quick brown fox"), 40), "{what}: {end:?}");
}

#[test]
fn a_broken_backend_is_told_to_all() {
    for kind in [PLAIN, SIMPLE, MTP, EAGLE3] {
        for slots in [1, 3] {
            let (trap, faults) = Trap::new(Call::Decode, || Some(Fault::Fatal));
            is_told_to_all(kind, slots, &trap, faults, "made to fail by a test");
        }
    }
}

#[test]
fn a_broken_backend_is_told_to_all_when_it_computes_again() {
    let (trap, faults) = Trap::new(Call::Replay, || Some(Fault::Fatal));
    is_told_to_all(RECURRENT, 3, &trap, faults, "made to fail by a test");
}

#[test]
fn a_panic_of_the_thread_is_told_to_all() {
    for call in [Call::Decode, Call::Follow, Call::Begin, Call::Draft, Call::Accept, Call::Verify, Call::RemoveTarget] {
        let (trap, faults) = Trap::new(call, || panic!("a test lets it panic"));
        is_told_to_all(SIMPLE, 3, &trap, faults, "a fault in the engine: a test lets it panic");
    }
    for call in [Call::CopyMemory, Call::ClearSlot] {
        let (trap, faults) = Trap::new(call, || panic!("a test lets it panic"));
        is_told_to_all(SIMPLE, 3, &trap, faults, "a fault in the engine: a test lets it panic");
    }
}

/// Those in the batch end with an error that says so; whoever waits or comes later has the right text.
#[test]
fn an_aborted_decode_costs_those_in_its_batch_only() {
    for kind in [PLAIN, SIMPLE, MTP, EAGLE3] {
        let (trap, faults) = Trap::new(Call::Decode, || Some(Fault::Aborted));
        let engine = engine(kind, 2, faults);
        let mut first = ask(&engine, kind, "The quick brown fox", 200);
        while !matches!(first.next(), Some(Ok(Event::Token { .. }))) {}
        let others: Vec<_> = (0..5).map(|_| ask(&engine, kind, "abc", 40)).collect();
        trap.arm();
        let expected = kind.oracle(&kind.tokens("abc"), 40);
        let mut aborted = 0;
        for response in others {
            let (tokens, end) = collect(response);
            assert!(expected.starts_with(&tokens), "{}", kind.name);
            match end {
                Ok(StopReason::MaxTokens) => assert_eq!(tokens, expected, "{}", kind.name),
                Err(Error::Decode(DecodeError::Aborted)) => aborted += 1,
                other => panic!("{}: {other:?}", kind.name),
            }
        }
        aborted += usize::from(matches!(collect(first).1, Err(Error::Decode(DecodeError::Aborted))));
        assert!(trap.went_off() && (1..=2).contains(&aborted), "{}: {aborted}", kind.name);
        assert_eq!(engine.failure(), None);
        assert_eq!(engine.stats().failed, aborted as u64);
    }
}
