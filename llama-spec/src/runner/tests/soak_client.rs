//! Somebody who asks an engine for texts, in all ways there are, and knows what the answers must be.

use super::support::Kind;
use crate::engine::{Drafters, Engine, Priority, Request, Response, SavedState};
use crate::error::{DecodeError, Error};
use crate::generate::{ContextFull, Event, StopReason};
use crate::token::Token;
use llama_spec_tests::rng::Rng;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What all clients count together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Texts that an engine took.
    jobs: AtomicU64,
    tokens: AtomicU64,
    whole: AtomicU64,
    cancelled: AtomicU64,
    dropped: AtomicU64,
    late: AtomicU64,
    no_room: AtomicU64,
    failed: AtomicU64,
    busy: AtomicU64,
    shifted: AtomicU64,
    resumed: AtomicU64,
    engine_failed: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Tally {
    pub(super) fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::Relaxed)
    }

    pub(super) fn whole(&self) -> u64 {
        self.whole.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(f, "texts {}, tokens {}: whole {}, ", get(&self.jobs), get(&self.tokens), get(&self.whole))?;
        write!(f, "cancelled {}, dropped {}, late {}, ", get(&self.cancelled), get(&self.dropped), get(&self.late))?;
        write!(f, "no room {}, failed {}, ", get(&self.no_room), get(&self.failed))?;
        write!(f, "with their engine {}; refused {}, ", get(&self.engine_failed), get(&self.busy))?;
        write!(f, "shifts {}, resumed {}", get(&self.shifted), get(&self.resumed))
    }
}

/// The last things that happened to an engine, for the message of a failure.
#[derive(Debug, Default)]
pub(super) struct Journal(Mutex<VecDeque<String>>);

impl Journal {
    pub(super) fn note(&self, what: String) {
        let mut last = self.0.lock().unwrap();
        if last.len() >= 60 {
            // The first says what the engine is.
            last.remove(1);
        }
        last.push_back(what);
    }
}

/// When a client last heard something.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<Instant>);

impl Pulse {
    fn beat(&self) {
        *self.0.lock().unwrap() = Instant::now();
    }

    pub(super) fn silent_for(&self) -> Duration {
        self.0.lock().unwrap().elapsed()
    }
}

/// One text, and how far it is followed.
struct Plan {
    prompt: Vec<Token>,
    request: Request,
    count: usize,
    keep: Option<usize>,
    deadline: bool,
    act: Act,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompt, request, count, keep, deadline, act } = self;
        let who = &request.drafting;
        write!(f, "{} + {count} tokens, keep {keep:?}, late {deadline}, {act:?}, {who:?}", prompt.len())
    }
}

/// What is done in the middle of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    CancelAfter(usize),
    DropAfter(usize),
    SaveAfter(usize),
}

pub(super) struct Client {
    kind: Kind,
    engine: Arc<Engine>,
    rng: Rng,
    tally: Arc<Tally>,
    pulse: Arc<Pulse>,
    journal: Arc<Journal>,
}

impl Client {
    pub(super) fn new(kind: Kind, engine: Arc<Engine>, rng: Rng, tally: Arc<Tally>, journal: Arc<Journal>) -> Self {
        Self { kind, engine, rng, tally, pulse: Arc::new(Pulse(Mutex::new(Instant::now()))), journal }
    }

    pub(super) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Asks until it is told to end. When the engine is `dying`, its failure is the end.
    pub(super) fn run(mut self, end: &AtomicBool, dying: &AtomicBool) {
        while !end.load(Ordering::SeqCst) {
            self.pulse.beat();
            match self.one() {
                Ok(()) => {}
                Err(Error::Busy { .. }) => {
                    count(&self.tally.busy);
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(Error::EngineFailed { .. }) if dying.load(Ordering::SeqCst) => return,
                Err(error) => panic!("{}: {error}", self.kind.name),
            }
        }
    }

    fn one(&mut self) -> Result<(), Error> {
        let plan = self.plan();
        if self.rng.below(8) == 0 {
            let answers = 2 + self.rng.below(3) as u32;
            let responses = self.engine.generate_many(plan.request.clone(), answers)?;
            self.journal.note(format!("{answers} answers {plan:?}"));
            self.tally.jobs.fetch_add(answers.into(), Ordering::Relaxed);
            return responses.into_iter().try_for_each(|response| self.follow(response, &plan));
        }
        let response = self.engine.generate(plan.request.clone())?;
        self.journal.note(format!("{} {plan:?}", response.id()));
        count(&self.tally.jobs);
        self.follow(response, &plan)
    }

    fn plan(&mut self) -> Plan {
        let rng = &mut self.rng;
        let begins =
            ["The quick brown fox jumps over the lazy dog", "abc", "The quick brown cat", "0123456789", "x y z"];
        let mut prompt = self.kind.tokens(begins[rng.below(begins.len())]);
        let more = [0, 0, rng.below(20), rng.below(100)][rng.below(4)];
        prompt.extend(self.kind.oracle(&prompt, more));
        let keep = (rng.below(8) == 0).then(|| rng.below(40));
        let count = match keep {
            Some(_) => 100 + rng.below(250),
            None => {
                let most = [4, 30, 90][rng.below(3)];
                1 + rng.below(most)
            }
        };
        let mut request = Request::tokens(prompt.clone()).greedy().max_tokens(count as u32);
        request = request.priority([Priority::Low, Priority::Normal, Priority::High][rng.below(3)]);
        if let Some(keep) = keep {
            request = request.context_full(ContextFull::Shift { keep: keep as u32 });
        }
        match rng.below(6) {
            0 => request = request.drafters(Drafters::Off),
            1 => request = request.draft_max(rng.below(7) as u32),
            2 if !self.kind.methods.is_empty() => {
                let method = self.kind.methods[rng.below(self.kind.methods.len())];
                request = request.drafters(Drafters::Methods(vec![method]));
            }
            _ => {}
        }
        let deadline = rng.below(12) == 0;
        if deadline {
            request = request.deadline(Duration::from_millis(rng.below(60) as u64));
        }
        let act = match rng.below(10) {
            0 => Act::CancelAfter(rng.below(count)),
            1 => Act::DropAfter(rng.below(count)),
            2 | 3 => Act::SaveAfter(rng.below(count)),
            _ => Act::Nothing,
        };
        Plan { prompt, request, count, keep, deadline, act }
    }

    /// Reads an answer to its end, or as far as it is wanted, and compares it.
    fn follow(&mut self, response: Response, plan: &Plan) -> Result<(), Error> {
        self.follow_from(response, plan, plan.prompt.clone(), plan.count, plan.act)
    }

    fn follow_from(
        &mut self,
        mut response: Response,
        plan: &Plan,
        mut context: Vec<Token>,
        count_left: usize,
        act: Act,
    ) -> Result<(), Error> {
        let name = self.kind.name;
        let mut expected: VecDeque<Token> = self.kind.oracle(&context, count_left).into();
        let (mut seen, mut cancelled) = (0, false);
        loop {
            match act {
                Act::CancelAfter(after) if seen >= after && !cancelled => {
                    cancelled = true;
                    response.canceller().cancel();
                }
                Act::DropAfter(after) if seen >= after => {
                    count(&self.tally.dropped);
                    return Ok(());
                }
                Act::SaveAfter(after) if seen >= after => return self.save(response, plan),
                _ => {}
            }
            let event = response.next().unwrap_or_else(|| panic!("{name}: an answer without an end"));
            self.pulse.beat();
            match event {
                Ok(Event::Token { token, .. }) => {
                    let right = expected.pop_front();
                    assert_eq!(
                        Some(token),
                        right,
                        "{name}: token {seen} of {} of {} after {context:?}; {:#?}",
                        plan.count,
                        response.id(),
                        self.journal
                    );
                    context.push(token);
                    seen += 1;
                    count(&self.tally.tokens);
                }
                Ok(Event::Shifted { dropped }) => {
                    let keep = plan.keep.unwrap_or_else(|| panic!("{name}: shifted without having been asked"));
                    let keep = keep.min(self.engine.context_length() as usize / 2).min(context.len());
                    context.drain(keep..keep + dropped);
                    expected = self.kind.oracle(&context, expected.len()).into();
                    count(&self.tally.shifted);
                }
                Ok(Event::Finished { reason, .. }) => {
                    let counter = match reason {
                        StopReason::MaxTokens => {
                            assert!(expected.is_empty(), "{name}: {} tokens are missing", expected.len());
                            &self.tally.whole
                        }
                        StopReason::Cancelled if cancelled => &self.tally.cancelled,
                        StopReason::Deadline if plan.deadline => &self.tally.late,
                        // Decoding was made to find no room.
                        StopReason::ContextFull => &self.tally.no_room,
                        other => panic!("{name}: it ended with {other}"),
                    };
                    count(counter);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error @ Error::EngineFailed { .. }) => {
                    count(&self.tally.engine_failed);
                    return Err(error);
                }
                Err(Error::Sample { .. } | Error::Decode(DecodeError::Refused { .. } | DecodeError::Aborted)) => {
                    count(&self.tally.failed);
                    return Ok(());
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }

    /// Saves a text, gives it up, and goes on with it from the bytes.
    fn save(&mut self, response: Response, plan: &Plan) -> Result<(), Error> {
        let saved = match response.save() {
            Ok(saved) => saved,
            // It has ended, or waits for a slot, or was made to fail.
            Err(Error::State { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        drop(response);
        count(&self.tally.dropped);
        let saved = SavedState::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        if plan.keep.is_some() {
            // What was shifted before is not known here.
            return Ok(());
        }
        let mut context = saved.prompt().to_vec();
        context.extend_from_slice(saved.generated());
        let expected = self.kind.oracle(saved.prompt(), saved.generated().len());
        assert_eq!(saved.generated(), expected, "{}: saved", self.kind.name);
        let response = self.engine.resume(&saved)?;
        self.journal.note(format!("{} resumes {} tokens", response.id(), context.len()));
        count(&self.tally.jobs);
        count(&self.tally.resumed);
        let left = plan.count.saturating_sub(saved.generated().len());
        self.follow_from(response, plan, context, left, Act::Nothing)
    }
}
