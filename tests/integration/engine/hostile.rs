//! What nobody should ask for: absurd sizes, forged states, drafters that meddle with the engine. Every one ends with an
//! answer or a typed error, and the engine serves on.

use crate::scripted::Slow;
use crate::support::{alone, builder, context, ids, model, oracle, varied};
use crate::table::greedy;
use llama_spec::engine::{Drafters, Priority, Prompt, SavedState, VerifyRows};
use llama_spec::probe::Probe;
use llama_spec::spec::{Draft, Drafter, Method, Source, SpecConfig};
use llama_spec::{ContextFull, ContextOptions, Engine, Error, Event, Request, StopReason, Token};
use llama_spec_tests::zoo::Llama;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

/// Longer than anything here takes, and short enough to wait for.
const LONG: Duration = Duration::from_secs(20);

/// Runs something on another thread; a hang is a failure.
fn within<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(call()));
    result.recv_timeout(LONG).unwrap()
}

fn still_serves(engine: &Engine) {
    assert_eq!(alone(engine, greedy("abc", 3)).tokens.len(), 3);
    assert_eq!(engine.failure(), None);
}

#[test]
fn many_answers_of_no_token() {
    for slots in [1, 3] {
        let engine = Arc::new(builder("target", slots).probe(Probe::Off).build().unwrap());
        let theirs = Arc::clone(&engine);
        let reasons = within(move || {
            let responses = theirs.generate_many(greedy("abc", 0), 4).unwrap();
            responses.into_iter().map(|response| response.output().unwrap().reason).collect::<Vec<_>>()
        });
        assert_eq!(reasons, [Some(StopReason::MaxTokens); 4]);
        assert!(matches!(engine.generate_many(greedy("abc", 1), u32::MAX), Err(Error::Setting { .. })));
        assert!(engine.generate_many(greedy("abc", 1), 0).unwrap().is_empty());
        still_serves(&engine);
    }
}

#[test]
fn waits_without_an_end() {
    let engine = builder("target", 1).queue(0).probe_budget(Duration::MAX).build().unwrap();
    // There is a slot for each as soon as the one before has ended.
    for _ in 0..20 {
        let output = alone(&engine, greedy("abc", 5).deadline(Duration::MAX));
        assert_eq!(output.tokens.len(), 5);
    }
    let response = engine.generate(greedy("abc", 20)).unwrap();
    let engine = within(move || {
        assert!(engine.drain(Duration::MAX));
        engine
    });
    assert_eq!(response.output().unwrap().tokens.len(), 20);
    assert!(matches!(engine.generate("a"), Err(Error::ShuttingDown)));
    assert!(engine.drain(Duration::ZERO));
    let endless = builder("target", 2).queue(usize::MAX).probe(Probe::Off).build().unwrap();
    still_serves(&endless);
}

#[test]
fn absurd_sizes() {
    let sizes = [
        ("256 slots, a batch of one", ContextOptions::default().slots(256).length_per_slot(1).batch(1).micro_batch(1)),
        ("256 slots", ContextOptions::default().slots(256).length_per_slot(2).batch(256).micro_batch(4)),
        ("one cache", ContextOptions::default().slots(5).length_per_slot(1).batch(5).micro_batch(1).unified_kv(true)),
        ("no slot", ContextOptions::default().slots(0)),
        ("257 slots", ContextOptions::default().slots(257)),
        ("no batch", ContextOptions::default().batch(0).micro_batch(0).length_per_slot(16)),
        ("a batch per slot", ContextOptions::default().slots(7).length_per_slot(2).batch(7).micro_batch(1)),
        ("no end of room", ContextOptions::default().slots(256).length_per_slot(u32::MAX)),
        ("no end of batches", ContextOptions::default().length_per_slot(64).batch(u32::MAX).micro_batch(u32::MAX)),
        ("no end of snapshots", ContextOptions::default().length_per_slot(64).snapshots(u32::MAX)),
    ];
    for (what, options) in sizes {
        for target in ["target", "mamba"] {
            let builder = Engine::builder(model(target)).context(options.clone().threads(1));
            let builder = builder.verify_rows(VerifyRows::AtMost(0)).drafter(|| Slow(Duration::ZERO));
            let engine = match builder.build() {
                Ok(engine) => engine,
                Err(error) => {
                    let typed = matches!(error, Error::Setting { .. } | Error::Context { .. } | Error::Incompatible(_));
                    assert!(typed, "{what}, {target}: {error}");
                    continue;
                }
            };
            assert!(engine.verify_rows() >= 1);
            let token = Token::new(70);
            for policy in [ContextFull::Stop, ContextFull::Shift { keep: u32::MAX }, ContextFull::Shift { keep: 0 }] {
                let request = |max| Request::tokens([token]).greedy().max_tokens(max).context_full(policy);
                let outputs: Vec<_> = (0..5).map(|_| engine.generate(request(7))).collect();
                for output in outputs {
                    match output {
                        Ok(response) => {
                            let output = response.output();
                            assert!(output.as_ref().is_ok_and(|output| output.tokens.len() <= 7), "{what}: {output:?}");
                        }
                        Err(error) => assert!(matches!(error, Error::PromptTooLong { .. }), "{what}: {error}"),
                    }
                }
            }
            assert_eq!(engine.failure(), None, "{what}, {target}");
        }
    }
}

#[test]
fn absurd_requests_from_elsewhere() {
    let engine = builder("target", 2).drafter(|| Slow(Duration::ZERO)).build().unwrap();
    let good = serde_json::to_value(greedy("abc", 3)).unwrap();
    for (pointer, value) in [
        ("/prompt", json!({"tokens": [-1]})),
        ("/prompt", json!({"tokens": [i32::MIN, i32::MAX]})),
        ("/prompt", json!({"tokens": vec![70; 5000]})),
        ("/prompt", json!({"text": "\0\0\u{feff}\u{10ffff}"})),
        ("/prompt", json!({"text": "x".repeat(100_000)})),
        ("/deadline", json!({"secs": u64::MAX, "nanos": 999_999_999})),
        ("/deadline", json!({"secs": 0, "nanos": 0})),
        ("/logprobs", json!(100)),
        ("/logprobs", json!(u32::MAX)),
        ("/drafting", json!({"drafters": {"own": 255}, "draft-max": u32::MAX})),
        ("/drafting", json!({"drafters": {"methods": []}, "draft-max": u32::MAX})),
        ("/drafting", json!({"drafters": {"methods": ["draft-mtp", "draft-mtp"]}})),
        ("/options/max_tokens", json!(u32::MAX)),
        ("/options/stop", json!(["", "", "\0", "x".repeat(1 << 20)])),
        ("/options/visible", json!([-1, i32::MAX, i32::MIN])),
        ("/options/sampler/temperature", json!(-1e30)),
        ("/options/sampler/top_k", json!(i32::MIN)),
        ("/context_full", json!({"shift": {"keep": u32::MAX}})),
    ] {
        let mut request = good.clone();
        *request.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} in {good}")) = value;
        let Ok(request) = serde_json::from_value::<Request>(request) else { continue };
        match engine.generate(request.clone()) {
            Ok(mut response) => {
                assert!(
                    response.by_ref().take(40).all(|event| event.is_ok()),
                    "{pointer}: {:.200}",
                    format!("{request:?}")
                );
            }
            Err(error) => assert!(!matches!(error, Error::EngineFailed { .. }), "{pointer}: {error}"),
        }
        still_serves(&engine);
    }
    assert!(matches!(good.pointer("/prompt/text"), Some(Value::String(_))));
    assert_eq!(Prompt::Text("abc".into()), greedy("abc", 1).prompt);
}

/// Bytes of a saved text with another head, and a checksum that is right.
fn forged(bytes: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let mut head = serde_json::from_slice(&bytes[16..16 + length]).unwrap();
    change(&mut head);
    let head = serde_json::to_vec(&head).unwrap();
    let mut forged = bytes[..12].to_vec();
    forged.extend_from_slice(&(head.len() as u32).to_le_bytes());
    forged.extend_from_slice(&head);
    forged.extend_from_slice(&bytes[16 + length..bytes.len() - 8]);
    let sum = forged
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    forged.extend_from_slice(&sum.to_le_bytes());
    forged
}

#[test]
fn forged_states_do_not_end_the_engine() {
    let draft = model("draft-0.8");
    for target in ["target", "mamba"] {
        let slow = builder(target, 1).probe(Probe::Off).drafter(|| Slow(Duration::from_millis(2))).build().unwrap();
        let mut others = vec![builder(target, 2).probe(Probe::Off).build().unwrap()];
        if target == "target" {
            let with =
                builder(target, 2).draft(&draft).speculation(SpecConfig::new([Method::DraftSimple]).fixed_length(4));
            others.push(with.build().unwrap());
        }
        let mut response = slow.generate(greedy("The quick brown fox", 200)).unwrap();
        assert_eq!(response.by_ref().filter(|event| matches!(event, Ok(Event::Token { .. }))).take(3).count(), 3);
        let bytes = response.save().unwrap().to_bytes().unwrap();
        drop(response);
        assert!(SavedState::from_bytes(&forged(&bytes, |_| {})).is_ok());
        let never = json!({"secs": u64::MAX, "nanos": 0});
        for (pointer, value) in [
            ("/held", json!(0)),
            ("/held", json!(1)),
            ("/held", json!(2)),
            ("/held", json!(u64::MAX)),
            ("/tokens", json!([])),
            ("/tokens", json!([70])),
            ("/tokens", json!(vec![70; 23])),
            ("/tokens", json!(vec![70; 512])),
            ("/tokens", json!(vec![70; 100_000])),
            ("/tokens", json!(vec![-5; 30])),
            ("/prompt", json!([])),
            ("/prompt", json!([-1])),
            ("/generated", json!([])),
            ("/generated", json!(vec![i32::MAX; 3])),
            ("/generated", json!(vec![70; 100_000])),
            ("/lengths", json!([0, 0, 0])),
            ("/lengths", json!([u64::MAX, 1, 1])),
            ("/lengths", json!([0, 1, 2])),
            ("/sampler/draws", json!(u64::MAX)),
            ("/sampler/prompt", json!(u64::MAX)),
            ("/sampler/seed", json!(7)),
            ("/stats/generation", never.clone()),
            ("/stats/verify", never.clone()),
            ("/stats/rounds", json!(u64::MAX)),
            ("/stats/generated_tokens", json!(u64::MAX)),
            ("/stats/drafted_per_position", json!([1, 1, 1, 1, 1, 1, 1, 1, 1])),
            ("/stats/inter_token/sum", never),
            ("/request/options/max_tokens", json!(0)),
            ("/request/logprobs", json!(u32::MAX)),
            ("/request/deadline", json!({"secs": u64::MAX, "nanos": 0})),
            ("/request/context_full", json!({"shift": {"keep": u32::MAX}})),
        ] {
            let bytes = forged(&bytes, |head| {
                *head.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
            });
            let Ok(state) = SavedState::from_bytes(&bytes) else { continue };
            for engine in &others {
                if let Ok(response) = engine.resume(&state) {
                    let broken = response.take(60).find_map(Result::err);
                    assert!(broken.is_none(), "{target}, {pointer} {value:.80}: {broken:?}");
                }
                still_serves(engine);
            }
        }
    }
}

#[test]
fn a_state_in_a_smaller_context() {
    let slow = builder("target", 1).probe(Probe::Off).drafter(|| Slow(Duration::from_millis(2))).build().unwrap();
    let mut response = slow.generate(greedy(&"x".repeat(300), 200)).unwrap();
    assert_eq!(response.by_ref().filter(|event| matches!(event, Ok(Event::Token { .. }))).take(3).count(), 3);
    let state = response.save().unwrap();
    let small = builder("target", 1).context(context(1).length_per_slot(2)).probe(Probe::Off).build().unwrap();
    let refused = small.resume(&state).map(drop).unwrap_err();
    assert!(matches!(refused, Error::State { .. } | Error::PromptTooLong { .. }), "{refused}");
}

/// What a drafter does when it is asked for the first time.
type Deed = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// Does something to the engine that it drafts for.
struct Meddler {
    deed: Deed,
    /// Dropped with the drafter.
    _engine: Option<Arc<Engine>>,
}

impl Drafter for Meddler {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, _: usize, _: &mut Draft) {
        let deed = self.deed.lock().unwrap().take();
        if let Some(deed) = deed {
            deed();
        }
    }
}

#[test]
fn a_drafter_that_uses_its_engine() {
    let (deed, home) = (Deed::default(), Arc::new(OnceLock::<Arc<Engine>>::new()));
    let (theirs, inner) = (Arc::clone(&deed), Arc::clone(&home));
    let make = move || Meddler { deed: Arc::clone(&theirs), _engine: inner.get().cloned() };
    let engine = Arc::new(builder("target", 2).probe(Probe::Off).drafter(make).build().unwrap());
    let (said, heard) = mpsc::channel();
    let first = engine.generate(greedy("abc", 30)).unwrap();
    let mine = Arc::clone(&engine);
    *deed.lock().unwrap() = Some(Box::new(move || {
        let mut response = mine.generate(greedy("a", 4).drafters(Drafters::Off).priority(Priority::High)).unwrap();
        // Neither can come while this goes on.
        let (save, event) = (response.save().map(drop), response.next());
        let stats = mine.stats();
        said.send((save, event, stats)).unwrap();
        drop(mine);
    }));
    let second = engine.generate(greedy("xyz", 30)).unwrap();
    let (save, event, _) = heard.recv_timeout(LONG).unwrap();
    assert!(matches!(save, Err(Error::State { .. })), "{save:?}");
    assert!(matches!(event, Some(Err(Error::State { .. }))), "{event:?}");
    for response in [first, second] {
        assert_eq!(within(move || response.output()).unwrap().tokens.len(), 30);
    }
    still_serves(&engine);
}

/// The last one that holds the engine is a drafter, and goes with its text.
#[test]
fn an_engine_that_is_dropped_by_its_drafter() {
    let home = Arc::new(OnceLock::<std::sync::Weak<Engine>>::new());
    let inner = Arc::clone(&home);
    let make = move || Meddler { deed: Deed::default(), _engine: inner.get().and_then(std::sync::Weak::upgrade) };
    let engine = Arc::new(builder("target", 1).probe(Probe::Off).drafter(make).build().unwrap());
    home.set(Arc::downgrade(&engine)).unwrap();
    let response = engine.generate(greedy("abc", 200)).unwrap();
    let other = engine.generate(greedy("abc", 200)).unwrap();
    let weak = Arc::downgrade(&engine);
    drop(engine);
    // Either waits for its own end only.
    assert_eq!(within(move || response.output()).unwrap().tokens.len(), 200);
    assert_eq!(within(move || other.output()).unwrap().tokens.len(), 200);
    within(move || {
        while weak.strong_count() > 0 {
            std::thread::yield_now();
        }
    });
}

/// Whoever waits for an event may ask for more as soon as it is woken, on the engine's thread.
#[test]
fn a_waker_that_uses_the_engine() {
    struct Asks(Arc<Engine>, mpsc::Sender<usize>);

    impl std::task::Wake for Asks {
        fn wake(self: Arc<Self>) {
            let asked = self.0.generate_many(greedy("a", 0), 2).unwrap();
            let _ = self.1.send(asked.len());
        }
    }

    let engine = builder("target", 1).probe(Probe::Off).drafter(|| Slow(Duration::from_millis(2))).build().unwrap();
    let engine = Arc::new(engine);
    let (said, heard) = mpsc::channel();
    let _first = engine.generate(greedy("abc", 10)).unwrap();
    let mut second = std::pin::pin!(engine.generate(greedy("abc", 0)).unwrap());
    let waker = Arc::new(Asks(Arc::clone(&engine), said)).into();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(futures_core::Stream::poll_next(second.as_mut(), &mut context).is_pending());
    assert_eq!(heard.recv_timeout(LONG), Ok(2));
    still_serves(&engine);
}

/// Says that tokens were drawn from what they cannot have been drawn from.
struct Liar(usize);

impl Drafter for Liar {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        self.0 += 1;
        let (this, other) = (Token::new(70), Token::new(71));
        let twice = [(this, 0.5), (this, 0.5)];
        let many: Vec<_> = (0..100_000).map(|id| (Token::new(id % 128), 1e-5)).collect();
        let tiny = [(this, f32::MIN_POSITIVE), (other, 1.0)];
        for at in 0..limit + 3 {
            match (self.0 + at) % 8 {
                0 => draft.push_drawn(this, &twice),
                1 => draft.push_drawn(this, &many),
                2 => draft.push_drawn(this, &tiny),
                3 => draft.push_drawn(this, &[]),
                4 => draft.push_drawn(this, &[(this, f32::INFINITY)]),
                5 => draft.push_drawn(other, &[(this, 1.0)]),
                6 => draft.push(Token::new(i32::MIN)),
                _ => draft.push_drawn(this, &[(this, 1.0), (Token::new(-1), 0.0)]),
            }
        }
    }
}

#[test]
fn distributions_that_are_lies() {
    let engine = builder("target", 3).probe(Probe::Off).drawing_drafter(|| Liar(0)).build().unwrap();
    let requests = (0..6).map(|seed| Request::prompt("abc").sampler(varied(seed)).max_tokens(60).logprobs(100));
    for output in crate::support::together(&engine, requests.collect()) {
        assert!(output.tokens.len() == 60 || output.reason == Some(StopReason::EndOfText));
        assert!(output.logprobs.iter().all(|one| one.logprob.is_finite() && one.top.len() <= 100));
    }
    still_serves(&engine);
}

#[test]
fn drafts_without_an_end() {
    for longest in [0, 1025, u32::MAX] {
        for config in [SpecConfig::off(), SpecConfig::new([Method::NgramMod]).fixed_length(12)] {
            let asked = builder("target", 2).speculation(config.draft_max(longest)).drafter(|| Liar(0));
            match asked.probe(Probe::Off).build() {
                Ok(engine) => still_serves(&engine),
                Err(error) => assert!(matches!(error, Error::Setting { .. } | Error::Incompatible(_)), "{error}"),
            }
        }
        let degraded =
            builder("target", 2).speculation(SpecConfig::new([Method::NgramMod]).fixed_length(12).draft_max(longest));
        match degraded.degrade(true).drafter(|| Liar(0)).build() {
            Ok(engine) => still_serves(&engine),
            Err(error) => assert!(matches!(error, Error::Setting { .. } | Error::Incompatible(_)), "{error}"),
        }
    }
}

/// Proposes what is no token, and panics.
struct Breaks;

impl Drafter for Breaks {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, _: usize, draft: &mut Draft) {
        draft.push(Token::new(-1));
        panic!("in the middle of a draft");
    }
}

/// Proposes the same token always.
struct Same;

impl Drafter for Same {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, _: usize, draft: &mut Draft) {
        draft.push(Token::new(3));
    }
}

#[test]
fn a_drafter_that_breaks_stands_in_nobodys_way() {
    let fixed = || SpecConfig::off().fixed_length(12);
    let engine = builder("target", 1).drafter(|| Breaks).drafter(|| Same).speculation(fixed()).build().unwrap();
    let output = alone(&engine, greedy("abc", 30));
    assert_eq!(ids(&output), oracle(&Llama::target(1), engine.model(), "abc", 30));
    let asked: Vec<_> = output.stats.per_source().map(|(source, drafted, _)| (source, drafted > 0)).collect();
    assert_eq!(asked, [(Source::Own(1), true)]);
    let engine = builder("target", 1).drafter(|| Breaks).speculation(fixed()).build().unwrap();
    assert_eq!(alone(&engine, greedy("abc", 30)).tokens, output.tokens);
}

#[test]
fn too_many_drafters() {
    let all = (0..33).fold(builder("target", 1), |builder, _| builder.drafter(|| Slow(Duration::ZERO)));
    assert!(matches!(all.build(), Err(Error::Setting { .. })));
}

/// Requests, drops, cancels and saves from all sides, while the engine is drained and ended.
#[test]
fn an_end_in_the_middle_of_everything() {
    for round in 0..12u64 {
        let engine = builder("target", 2).probe(Probe::Off).queue(3).build().unwrap();
        std::thread::scope(|scope| {
            for number in 0..3u64 {
                let engine = &engine;
                scope.spawn(move || {
                    loop {
                        match engine.generate(greedy("abc", 4 + (number * 7 + round) as u32)) {
                            Ok(mut response) => {
                                let _ = response.next();
                                if number == 1 {
                                    response.canceller().cancel();
                                }
                                let saved = response.save();
                                assert!(matches!(saved, Ok(_) | Err(Error::State { .. } | Error::ShuttingDown)));
                                if number != 2 {
                                    let ended = response.output();
                                    assert!(matches!(ended, Ok(_) | Err(Error::ShuttingDown)), "{ended:?}");
                                }
                            }
                            Err(Error::Busy { .. }) => {}
                            Err(error) => return assert!(matches!(error, Error::ShuttingDown), "{error}"),
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(round * 3));
            assert!(engine.drain(LONG));
        });
        assert_eq!(engine.failure(), None);
    }
    for round in 0..12 {
        let engine = builder("target", 1).probe(Probe::Off).build().unwrap();
        let responses = engine.generate_many(greedy("abc", 400), 3).unwrap();
        std::thread::sleep(Duration::from_millis(round));
        engine.shutdown();
        for response in responses {
            let ended = within(move || (response.save().map(drop), response.output()));
            assert!(matches!(ended, (Err(_), Ok(_) | Err(Error::ShuttingDown))), "{ended:?}");
        }
    }
}
