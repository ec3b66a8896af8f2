//! A day of traffic in ten minutes: many clients, random requests, random faults, engines that break down and are made anew. No
//! answer is lost or wrong, nothing waits for ever, and memory does not grow.
//!
//! The time that matters to an engine, how long a drafter rests, goes [`FASTER`] times as fast as usual. Seed and length are
//! taken from `LLAMA_SPEC_SOAK_SEED` and `LLAMA_SPEC_SOAK_MINUTES`; `cargo xtask soak` sets them.

use super::soak_client::{Client, Journal, Tally};
use super::support::{ASSISTANT, CHAIN, DFLASH, EAGLE3, Kind, MTP, PLAIN, RECURRENT, SIMPLE, context};
use crate::engine::{Engine, Request, VerifyRows};
use crate::error::Error;
use crate::probe::Probe;
use crate::runner::{Call, Clock, Fault, Faults};
use llama_spec_tests::rng::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KINDS: [Kind; 8] = [SIMPLE, MTP, EAGLE3, CHAIN, RECURRENT, DFLASH, ASSISTANT, PLAIN];
const CLIENTS: u64 = 4;
/// Ten minutes are a day.
const FASTER: u32 = 144;
/// The longest that a request may take, on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(60);
/// Growth of resident memory after everything has been made once: what allocators keep, and no more with time.
const MAY_GROW: u64 = 48 << 20;

/// How an engine ends.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// All requests are done.
    Drained,
    /// It is dropped with requests that wait.
    Dropped,
    /// Its backend breaks down.
    Fatal,
    /// Its thread panics.
    Panic,
}

/// Faults at random, and a deadly one on demand.
struct Chaos {
    deadly: AtomicU8,
    rng: Mutex<Rng>,
    journal: Arc<Journal>,
    made: Mutex<BTreeMap<String, u64>>,
}

impl Chaos {
    const PEACE: u8 = 0;
    const FATAL: u8 = 1;
    const PANIC: u8 = 2;
    /// While an engine is made.
    const ASLEEP: u8 = 3;

    fn at(&self, call: Call) -> Option<Fault> {
        let fault = match self.deadly.load(Ordering::SeqCst) {
            Self::PANIC if call == Call::Verify => panic!("the soak lets it panic"),
            Self::FATAL if call.decodes() => Some(Fault::Fatal),
            Self::ASLEEP => None,
            _ => self.by_chance(call),
        };
        if let Some(fault) = fault {
            self.journal.note(format!("{call:?} {fault:?}"));
            *self.made.lock().unwrap().entry(format!("{call:?} {fault:?}")).or_default() += 1;
        }
        fault
    }

    fn by_chance(&self, call: Call) -> Option<Fault> {
        let mut rng = self.rng.lock().unwrap();
        let one_in = |chance: usize, rng: &mut Rng| rng.below(chance) == 0;
        match call {
            // After these nothing can be done.
            Call::ClearSlot | Call::ClearAll => None,
            Call::Decode | Call::Replay => one_in(500, &mut rng).then(|| match rng.below(4) {
                0 => Fault::Fails,
                1 => Fault::Aborted,
                _ => Fault::NoRoom,
            }),
            Call::Verify => one_in(2000, &mut rng).then_some(Fault::Fails),
            _ => one_in(200, &mut rng).then_some(Fault::Fails),
        }
    }
}

/// What a soak came to.
#[derive(Debug, Default)]
struct Report {
    engines: BTreeMap<String, u64>,
    faults: BTreeMap<String, u64>,
    /// Resident bytes after each engine.
    memory: Vec<u64>,
}

fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    pages.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}

fn build(kind: Kind, rng: &mut Rng, chaos: &Arc<Chaos>, clock: &Clock) -> Engine {
    let slots = 1 + rng.below(4) as u32;
    let context = context(slots).unified_kv(rng.below(3) == 0);
    chaos.journal.note(format!("{}: {slots} slots, shared cells: {}", kind.name, context.unified_kv));
    let mut builder = Engine::builder(kind.target()).context(context).queue(1 + rng.below(8)).probe(Probe::Off);
    if let Some(draft) = kind.draft() {
        builder = builder.draft(draft);
    }
    if rng.below(3) == 0 {
        builder = builder.verify_rows(VerifyRows::AtMost(1 + rng.below(12) as u32));
    }
    let theirs = Arc::clone(chaos);
    builder.faults = Faults::new(move |call| theirs.at(call));
    builder.clock = clock.clone();
    builder.speculation(kind.config()).build().unwrap_or_else(|error| panic!("{}: {error}", kind.name))
}

/// The life of one engine.
fn live(kind: Kind, seed: u64, life: Duration, tally: &Arc<Tally>, report: &mut Report) {
    let mut rng = Rng::new(seed, "soak engine", 0);
    let chaos = Arc::new(Chaos {
        deadly: AtomicU8::new(Chaos::ASLEEP),
        rng: Mutex::new(Rng::new(seed, "soak faults", 0)),
        journal: Arc::default(),
        made: Mutex::default(),
    });
    let clock = Clock::default();
    let engine = Arc::new(build(kind, &mut rng, &chaos, &clock));
    chaos.deadly.store(Chaos::PEACE, Ordering::SeqCst);
    let death = [Death::Drained, Death::Drained, Death::Dropped, Death::Fatal, Death::Panic][rng.below(5)];
    *report.engines.entry(format!("{} {death:?}", kind.name)).or_default() += 1;
    let (end, dying) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let jobs_before = tally.jobs();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = Client::new(
                kind,
                Arc::clone(&engine),
                Rng::new(seed, "soak client", number),
                Arc::clone(tally),
                Arc::clone(&chaos.journal),
            );
            let (end, dying) = (Arc::clone(&end), Arc::clone(&dying));
            let pulse = client.pulse();
            (pulse, std::thread::spawn(move || client.run(&end, &dying)))
        })
        .collect();
    let begin = Instant::now();
    let mut last = begin;
    while clients.iter().any(|(_, thread)| !thread.is_finished()) {
        std::thread::sleep(Duration::from_millis(20));
        let now = Instant::now();
        clock.put_forward((now - last) * (FASTER - 1));
        last = now;
        if now - begin > life && !dying.load(Ordering::SeqCst) && !end.load(Ordering::SeqCst) {
            match death {
                Death::Drained | Death::Dropped => end.store(true, Ordering::SeqCst),
                Death::Fatal | Death::Panic => {
                    dying.store(true, Ordering::SeqCst);
                    let deadly = if matches!(death, Death::Fatal) { Chaos::FATAL } else { Chaos::PANIC };
                    chaos.deadly.store(deadly, Ordering::SeqCst);
                }
            }
        }
        for (pulse, _) in &clients {
            assert!(pulse.silent_for() < WATCHDOG, "{}, seed {seed}: a request never ends", kind.name);
        }
    }
    for (_, thread) in clients {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let engine = Arc::into_inner(engine).expect("the clients have gone");
    match death {
        Death::Drained => {
            assert!(engine.drain(WATCHDOG), "{}, seed {seed}: it cannot be drained", kind.name);
            let stats = engine.stats();
            assert_eq!((stats.running, stats.queued), (0, 0), "{}, seed {seed}: {stats}", kind.name);
            let ended = stats.finished + stats.cancelled + stats.expired + stats.failed;
            assert_eq!(ended, tally.jobs() - jobs_before, "{}, seed {seed}: texts were lost: {stats}", kind.name);
            assert!(stats.total.accepted <= stats.total.drafted, "{stats}");
        }
        Death::Dropped => {
            let request = || Request::tokens(kind.tokens("The end")).greedy().max_tokens(200);
            let left: Vec<_> = (0..6).filter_map(|_| engine.generate(request()).ok()).collect();
            drop(engine);
            for response in left {
                match response.output() {
                    Ok(_) | Err(Error::ShuttingDown | Error::Sample { .. } | Error::Decode(_)) => {}
                    Err(error) => panic!("{}, seed {seed}: {error}", kind.name),
                }
            }
        }
        Death::Fatal | Death::Panic => {
            assert!(engine.failure().is_some(), "{}, seed {seed}: it lives", kind.name);
            assert!(matches!(engine.generate("abc"), Err(Error::EngineFailed { .. })));
        }
    }
    for (fault, count) in chaos.made.lock().unwrap().iter() {
        *report.faults.entry(fault.clone()).or_default() += count;
    }
    report.memory.extend(resident());
}

/// Runs for so long, each engine for a share of it. Nobody else may use memory if that is to be looked at.
fn soak(total: Duration, seed: u64, alone: bool) {
    println!("seed {seed}, {total:?}, which stand for {:?}", total * FASTER);
    let tally = Arc::new(Tally::default());
    let mut report = Report::default();
    // Each kind three times and more.
    let life = (total / (KINDS.len() as u32 * 4)).min(Duration::from_secs(10));
    let begin = Instant::now();
    let mut round = 0;
    while begin.elapsed() < total {
        let kind = KINDS[round as usize % KINDS.len()];
        live(kind, seed.wrapping_add(round), life, &tally, &mut report);
        round += 1;
    }
    println!("{tally}\nengines {:#?}\nfaults {:#?}", report.engines, report.faults);
    println!("MiB {:?}", report.memory.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>());
    assert!(tally.whole() > 0, "nothing was generated");
    // After two engines of each kind, everything has been made that is kept.
    let warm = report.memory.iter().skip(2 * KINDS.len() - 1).take(KINDS.len()).max();
    if let (true, Some(warm), Some(last)) = (alone, warm, report.memory.last()) {
        assert!(*last <= warm + MAY_GROW, "memory grew from {} to {} MiB", warm >> 20, last >> 20);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Another one each time.
fn seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    number("LLAMA_SPEC_SOAK_SEED").unwrap_or_else(|| since.map_or(1, |time| time.as_millis() as u64))
}

#[test]
fn soak_short() {
    soak(Duration::from_secs(15), seed(), false);
}

/// Alone in its process: `cargo xtask soak`.
#[test]
#[ignore = "takes ten minutes"]
fn soak_long() {
    let minutes = number("LLAMA_SPEC_SOAK_MINUTES").unwrap_or(10);
    soak(Duration::from_secs(minutes * 60), seed(), true);
}
