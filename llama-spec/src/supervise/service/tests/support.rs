//! A service in this process, and what it says.

use crate::context::ContextOptions;
use crate::engine::{EngineBuilder, Request};
use crate::runner::{Call, Fault, Faults};
use crate::spec::{Draft, Drafter};
use crate::supervise::Load;
use crate::supervise::service::Service;
use crate::supervise::status::Info;
use crate::supervise::task::{Finish, Problem, Task, TokenUpdate, Update};
use crate::supervise::wire::{FromWorker, Midway, Refusal, Standing, TaskId, ToWorker};
use crate::token::Token;
use llama_spec_tests::zoo;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longer than anything takes, for tests that would never end.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

pub(super) struct Worker {
    pub(super) service: Service,
    said: Receiver<FromWorker>,
    /// What was said and nobody has waited for yet.
    kept: Vec<FromWorker>,
}

/// Everything that was said of one answer.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) midway: Midway,
    pub(super) begun: bool,
    pub(super) tokens: Vec<TokenUpdate>,
    pub(super) finish: Option<Finish>,
    pub(super) problem: Option<Problem>,
}

/// Lengths of queues that mark engines which break down, or wait for [`GATE`], at their tenth decode.
pub(super) const BREAKS: usize = 7001;
pub(super) const WAITS: usize = 7002;
/// And one that cannot be made.
pub(super) const PANICS: usize = 7003;
/// And one that waits for [`SLOW`] when the first two texts are prepared for it.
pub(super) const DAWDLES: usize = 7004;

/// Held by who wants engines to wait.
pub(super) static GATE: Mutex<()> = Mutex::new(());
pub(super) static SLOW: Mutex<()> = Mutex::new(());

/// A drafter that never drafts.
struct Nobody;

impl Drafter for Nobody {
    fn begin(&mut self, _text: &[Token]) {}
    fn extend(&mut self, _tokens: &[Token]) {}
    fn propose(&mut self, _limit: usize, _draft: &mut Draft) {}
}

fn customise(mut builder: EngineBuilder, load: &Load, _restarts: u64) -> EngineBuilder {
    let (queue, decodes) = (load.queue, AtomicUsize::new(0));
    assert_ne!(queue, PANICS, "a test lets it panic");
    if queue == DAWDLES {
        let prepared = AtomicUsize::new(0);
        builder = builder.drafter(move || {
            if prepared.fetch_add(1, Ordering::SeqCst) < 2 {
                drop(SLOW.lock().unwrap_or_else(PoisonError::into_inner));
            }
            Nobody
        });
    }
    builder.faults = Faults::new(move |call| {
        if call != Call::Decode || decodes.fetch_add(1, Ordering::SeqCst) != 10 {
            return None;
        }
        if queue == WAITS {
            drop(GATE.lock().unwrap_or_else(PoisonError::into_inner));
        }
        (queue == BREAKS).then_some(Fault::Fatal)
    });
    builder
}

/// A file of the zoo with small contexts.
pub(super) fn load(target: &str) -> Load {
    let context = ContextOptions::default().threads(1).slots(2).length_per_slot(512);
    Load { context, probe: false, ..Load::new(zoo::file(target)) }
}

impl Worker {
    pub(super) fn new() -> Self {
        Self::with_limit(LIMIT)
    }

    /// Requests may take so long to prepare.
    pub(super) fn with_limit(limit: Duration) -> Self {
        crate::supervise::hook(customise);
        let (say, said) = mpsc::channel();
        let service = Service::with_limit(move |message| drop(say.send(message)), limit).unwrap();
        let mut worker = Self { service, said, kept: Vec::new() };
        worker.wait("hello", |said| matches!(said, FromWorker::Hello { .. }).then_some(()));
        worker
    }

    pub(super) fn loaded(load: Load) -> Self {
        let mut worker = Self::new();
        worker.load(load);
        worker
    }

    pub(super) fn load(&mut self, load: Load) -> Info {
        self.say(ToWorker::Load { load: Box::new(load), restarts: 0 });
        self.wait("the load", |said| match said {
            FromWorker::Loaded(info) => Some(*info.clone()),
            FromWorker::NotLoaded(refusal) => panic!("{refusal:?}"),
            _ => None,
        })
    }

    pub(super) fn say(&self, message: ToWorker) {
        self.service.handle(message);
    }

    pub(super) fn start(&self, id: TaskId, task: Task) {
        self.say(ToWorker::Start { id, task: Box::new(task), standing: Vec::new() });
    }

    pub(super) fn go_on(&self, id: TaskId, task: Task, standing: Vec<Standing>) {
        self.say(ToWorker::Start { id, task: Box::new(task), standing });
    }

    /// Waits until something is said; what was said before it stays.
    pub(super) fn wait<T>(&mut self, what: &str, mut wanted: impl FnMut(&FromWorker) -> Option<T>) -> T {
        let found = self.kept.iter().enumerate().find_map(|(place, said)| Some((place, wanted(said)?)));
        if let Some((place, found)) = found {
            self.kept.remove(place);
            return found;
        }
        let start = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(start.elapsed());
            let Ok(said) = self.said.recv_timeout(left) else { panic!("{what}: only {:?}", self.kept) };
            match wanted(&said) {
                Some(found) => return found,
                None => self.kept.push(said),
            }
        }
    }

    /// Adds what is said of an answer until that is so.
    pub(super) fn follow(&mut self, (id, answer): (TaskId, u32), told: &mut Told, until: impl Fn(&Told) -> bool) {
        while !until(told) && told.finish.is_none() && told.problem.is_none() {
            self.wait("an answer", |said| match said {
                FromWorker::Update { id: task, answer: which, update, sampler } if (*task, *which) == (id, answer) => {
                    told.add(update.clone());
                    if matches!(update, Update::Tokens(_)) {
                        told.midway.sampler.clone_from(sampler);
                    }
                    Some(())
                }
                FromWorker::Broken { id: task, answer: which, problem } if (*task, *which) == (id, answer) => {
                    told.problem = Some(problem.clone());
                    Some(())
                }
                _ => None,
            });
        }
    }

    /// All of an answer, and how far it had come after each round.
    pub(super) fn rounds(&mut self, id: TaskId, answer: u32) -> (Told, Vec<Midway>) {
        let (mut told, mut rounds) = (Told::default(), Vec::new());
        while told.finish.is_none() && told.problem.is_none() {
            let tokens = told.tokens.len();
            self.follow((id, answer), &mut told, |told| told.tokens.len() > tokens);
            rounds.push(told.midway.clone());
        }
        (told, rounds)
    }

    /// What the next refused load says.
    pub(super) fn refusal(&mut self) -> Refusal {
        self.wait("a refusal", |said| match said {
            FromWorker::NotLoaded(refusal) => Some(refusal.clone()),
            FromWorker::Loaded(info) => panic!("{info:?}"),
            _ => None,
        })
    }

    /// Forgets what was said, and gives what is so.
    pub(super) fn said(&mut self) -> Vec<FromWorker> {
        self.kept.extend(self.said.try_iter());
        std::mem::take(&mut self.kept)
    }

    /// All of an answer.
    pub(super) fn told(&mut self, id: TaskId, answer: u32) -> Told {
        let mut told = Told::default();
        self.follow((id, answer), &mut told, |_| false);
        told
    }

    pub(super) fn problem(&mut self, id: TaskId) -> Problem {
        let told = self.told(id, 0);
        told.problem.unwrap_or_else(|| panic!("{:?}", told.finish))
    }
}

impl Told {
    fn add(&mut self, update: Update) {
        match update {
            Update::Begun { prompt } => {
                assert!(!self.begun && self.tokens.is_empty());
                self.begun = true;
                self.midway.prompt = prompt;
            }
            Update::Tokens(tokens) => {
                assert!(!tokens.is_empty());
                self.midway.generated.extend(tokens.iter().map(|token| token.token));
                self.tokens.extend(tokens);
            }
            Update::Shifted { dropped } => self.midway.dropped += dropped,
            Update::Finished(finish) => self.finish = Some(*finish),
            _ => {}
        }
    }

    /// The text of all tokens and the end.
    pub(super) fn text(&self) -> String {
        let end = self.finish.as_ref().map_or("", |finish| finish.text.as_str());
        self.tokens.iter().map(|token| token.text.as_str()).chain([end]).collect()
    }

    pub(super) fn end(&self) -> &Finish {
        self.finish.as_ref().unwrap_or_else(|| panic!("{:?}", self.problem))
    }
}

/// Greedy, so many tokens.
pub(super) fn greedy(prompt: &str, tokens: u32) -> Task {
    Task::text(Request::prompt(prompt).greedy().max_tokens(tokens))
}
