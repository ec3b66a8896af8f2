//! Runners on models whose texts are known, and calls that fail.

use crate::context::ContextOptions;
use crate::engine::{Priority, Request};
use crate::error::{Error, Failure, Result};
use crate::generate::{Event, StopReason};
use crate::model::Model;
use crate::runner::{Answer, Broken, Call, Clock, Drafting, Fault, Faults, Job, Runner, Setup};
use crate::sample::{Sampler, SamplerOptions};
use crate::spec::{DraftLength, Method, Methods, NgramMapSettings, Source, SpecConfig, Stats};
use crate::token::Token;
use async_channel::Receiver;
use llama_spec_tests::zoo::{self, Chained, ChainedKind, Family, Llama, Mamba, Qwen35, Transformer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// How many steps a test may take before it is taken for one that never ends.
const WATCHDOG: usize = 20_000;

/// A target, its drafters, and what the target says.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    pub(super) draft: Option<&'static str>,
    pub(super) methods: &'static [Method],
    pub(super) text: fn(&[u32], usize) -> Vec<u32>,
    pub(super) length: DraftLength,
}

macro_rules! texts {
    ($($name:ident: $kind:ty = $model:expr),* $(,)?) => {
        $(
            pub(super) fn $name(prompt: &[u32], count: usize) -> Vec<u32> {
                static MODEL: LazyLock<$kind> = LazyLock::new(|| $model);
                MODEL.continuation(prompt, count)
            }
        )*
    };
}

texts! {
    recall_text: Llama = Llama::target(1).with_recall(),
    plain_text: Llama = Llama::target(1),
    qwen35_text: Qwen35 = Qwen35::target(1),
    mamba_text: Mamba = Mamba::target(1),
    chained_text: Chained = Chained::target(ChainedKind::Mimo2, 1),
    gemma4_text: Llama = Transformer::target(Family::Gemma4, 1).text().clone(),
}

const fn kind(
    name: &'static str,
    target: &'static str,
    draft: Option<&'static str>,
    methods: &'static [Method],
    text: fn(&[u32], usize) -> Vec<u32>,
) -> Kind {
    Kind { name, target, draft, methods, text, length: DraftLength::Fixed(6) }
}

/// Its drafts are as long as the controller wants, and several drafters may have a part in one.
const fn adaptive(kind: Kind) -> Kind {
    Kind { length: DraftLength::Adaptive, ..kind }
}

pub(super) const PLAIN: Kind = kind("plain", "recall", None, &[], recall_text);
pub(super) const SIMPLE: Kind =
    kind("draft-simple", "recall", Some("recall-draft-0.8"), &[Method::DraftSimple], recall_text);
pub(super) const MTP: Kind = kind("mtp", "qwen35-mtp", None, &[Method::DraftMtp], qwen35_text);
pub(super) const CHAINED: Kind = kind("mtp chained", "chained-mtp", None, &[Method::DraftMtp], chained_text);
pub(super) const EAGLE3: Kind = kind("eagle3", "recall", Some("eagle3-recall"), &[Method::DraftEagle3], recall_text);
pub(super) const DFLASH: Kind = kind("dflash", "target", Some("dflash"), &[Method::DraftDflash], plain_text);
pub(super) const DSPARK: Kind = kind("dspark", "target", Some("dspark"), &[Method::DraftDspark], plain_text);
pub(super) const ASSISTANT: Kind =
    kind("assistant", "gemma4", Some("gemma4-assistant"), &[Method::DraftMtp], gemma4_text);
pub(super) const CHAIN: Kind =
    kind("chain", "recall", Some("recall-draft-0.8"), &[Method::NgramSimple, Method::DraftSimple], recall_text);
/// Both memories go back to checkpoints.
pub(super) const RECURRENT: Kind =
    kind("recurrent", "mamba", Some("mamba-draft-0.8"), &[Method::NgramSimple, Method::DraftSimple], mamba_text);
/// Of a hybrid target with a hybrid draft.
pub(super) const HYBRID: Kind = kind("hybrid", "qwen35", Some("qwen35-mtp"), &[Method::DraftSimple], qwen35_text);

pub(super) const MIXED: Kind = adaptive(kind(
    "lookup and draft-simple",
    "target",
    Some("draft-0.8"),
    &[Method::Lookup, Method::DraftSimple],
    plain_text,
));
pub(super) const MIXED_MTP: Kind =
    adaptive(kind("lookup and mtp", "qwen35-mtp", None, &[Method::Lookup, Method::DraftMtp], qwen35_text));
pub(super) const MIXED_EAGLE3: Kind =
    adaptive(kind("lookup and eagle3", "target", Some("eagle3"), &[Method::Lookup, Method::DraftEagle3], plain_text));
pub(super) const MIXED_DFLASH: Kind =
    adaptive(kind("lookup and dflash", "target", Some("dflash"), &[Method::Lookup, Method::DraftDflash], plain_text));
pub(super) const MIXED_RECURRENT: Kind = adaptive(kind(
    "lookups and draft-simple, recurrent",
    "mamba",
    Some("mamba-draft-0.8"),
    &[Method::Lookup, Method::NgramSimple, Method::DraftSimple],
    mamba_text,
));

impl Kind {
    fn load(&self, name: &'static str) -> Model {
        static LOADED: Mutex<Option<HashMap<(&str, bool), Model>>> = Mutex::new(None);
        let mtp = self.methods.contains(&Method::DraftMtp);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let load = || Model::builder(zoo::file(name)).mtp(mtp).load().unwrap_or_else(|error| panic!("{name}: {error}"));
        loaded.get_or_insert_default().entry((name, mtp)).or_insert_with(load).clone()
    }

    pub(super) fn target(&self) -> Model {
        self.load(self.target)
    }

    pub(super) fn draft(&self) -> Option<Model> {
        self.draft.map(|name| self.load(name))
    }

    /// Short lookups, so that they draft even in texts that do not repeat themselves.
    pub(super) fn config(&self) -> SpecConfig {
        let ngrams = NgramMapSettings { lookup: 2, draft: 6, hits_min: 1 };
        let mut config = SpecConfig::new(self.methods).draft_max(6).ngram_simple(ngrams);
        config.length = self.length;
        config.draft_model.max = match self.name {
            "mtp chained" => 3,
            _ => 4,
        };
        config
    }

    pub(super) fn setup(&self, slots: u32, faults: &Faults, clock: &Clock) -> Setup {
        let mut setup = Setup::new(&self.target());
        setup.draft = self.draft();
        setup.config = Some(self.config());
        setup.context = context(slots);
        (setup.faults, setup.clock) = (faults.clone(), clock.clone());
        setup
    }

    pub(super) fn tokens(&self, text: &str) -> Vec<Token> {
        self.target().vocab().tokenize(text).unwrap()
    }

    /// What the target says after these tokens.
    pub(super) fn oracle(&self, prompt: &[Token], count: usize) -> Vec<Token> {
        let prompt: Vec<u32> = prompt.iter().map(|token| token.id() as u32).collect();
        (self.text)(&prompt, count).into_iter().map(|id| Token::new(id as i32)).collect()
    }
}

/// Small enough that prompts come in pieces.
pub(super) fn context(slots: u32) -> ContextOptions {
    ContextOptions::default().length_per_slot(256).slots(slots).threads(1).batch(64).micro_batch(32)
}

/// When a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Once,
    EveryThird,
    /// From the third time on.
    FromThird,
    Always,
}

/// A call that fails, and how often it did.
#[derive(Clone, Debug)]
pub(super) struct Injected {
    pub(super) faults: Faults,
    hits: Arc<AtomicUsize>,
    armed: Arc<AtomicBool>,
}

impl Injected {
    pub(super) fn new(call: Call, fault: Fault, when: When) -> Self {
        let (hits, armed, seen) = (Arc::<AtomicUsize>::default(), Arc::new(AtomicBool::new(true)), AtomicUsize::new(0));
        let (counted, on) = (Arc::clone(&hits), Arc::clone(&armed));
        let faults = Faults::new(move |at| {
            if at != call || !on.load(Ordering::SeqCst) {
                return None;
            }
            let before = seen.fetch_add(1, Ordering::SeqCst);
            let fails = match when {
                When::Once => before == 1,
                When::EveryThird => before % 3 == 1,
                When::FromThird => before >= 2,
                When::Always => true,
            };
            if fails {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            fails.then_some(fault)
        });
        Self { faults, hits, armed }
    }

    pub(super) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    /// From now on nothing fails.
    pub(super) fn stop(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }
}

/// A text that is asked for, and what has come of it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) expected: Vec<Token>,
    events: Receiver<Result<Event>>,
    pub(super) tokens: Vec<Token>,
    /// Who drafted them.
    pub(super) sources: Vec<Source>,
    /// Of the tokens, if that was asked for.
    pub(super) logprobs: Vec<f32>,
    pub(super) end: Option<Result<(StopReason, Stats)>>,
}

impl Asked {
    fn take(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            assert!(self.end.is_none(), "{event:?} after the end");
            match event {
                Ok(Event::Token { token, source, logprobs, .. }) => {
                    self.tokens.push(token);
                    self.sources.push(source);
                    self.logprobs.extend(logprobs.map(|logprobs| logprobs.logprob));
                }
                Ok(Event::Finished { reason, stats, .. }) => self.end = Some(Ok((reason, *stats))),
                Ok(_) => {}
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.tokens == self.expected && matches!(self.end, Some(Ok((StopReason::MaxTokens, _))))
    }

    /// What came is right, though more could have come.
    pub(super) fn is_right(&self) -> bool {
        self.expected.starts_with(&self.tokens)
    }

    pub(super) fn error(&self) -> Option<&Error> {
        match &self.end {
            Some(Err(error)) => Some(error),
            _ => None,
        }
    }

    pub(super) fn stats(&self) -> Option<&Stats> {
        match &self.end {
            Some(Ok((_, stats))) => Some(stats),
            _ => None,
        }
    }
}

/// A runner and who waits for it.
pub(super) struct Table {
    pub(super) kind: Kind,
    pub(super) runner: Runner,
    pub(super) clock: Clock,
    waiting: Vec<Job>,
    pub(super) asked: Vec<Asked>,
    pub(super) broken: Option<Failure>,
    pub(super) steps: usize,
}

impl Table {
    pub(super) fn new(kind: Kind, slots: u32, faults: &Faults) -> Self {
        Self::with(kind, slots, faults, |_| {})
    }

    pub(super) fn with(kind: Kind, slots: u32, faults: &Faults, change: impl FnOnce(&mut Setup)) -> Self {
        let clock = Clock::default();
        let mut setup = kind.setup(slots, faults, &clock);
        change(&mut setup);
        let runner = setup.build().unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        Self { kind, runner, clock, waiting: Vec::new(), asked: Vec::new(), broken: None, steps: 0 }
    }

    /// A job that continues these tokens, everybody allowed to draft.
    pub(super) fn job(&mut self, prompt: Vec<Token>, count: usize) -> Job {
        let expected = self.kind.oracle(&prompt, count);
        self.job_of(prompt, count, expected)
    }

    fn job_of(&mut self, prompt: Vec<Token>, count: usize, expected: Vec<Token>) -> Job {
        let sampler = Sampler::new(self.runner.model(), &SamplerOptions::greedy()).unwrap();
        let (sender, events) = async_channel::unbounded();
        let answer = Answer::new(sender, Some(count as u32), &[]);
        let methods = Methods::of(&self.runner.config().methods);
        let drafting = Drafting { methods, limit: 6, length: self.kind.length, own: Vec::new(), forced: None };
        let mut job = Job::new(self.asked.len() as u64, prompt, sampler, answer, drafting);
        job.priority = Priority::Normal;
        job.request = Some(Arc::new(Request::prompt("")));
        self.asked.push(Asked {
            expected,
            events,
            tokens: Vec::new(),
            sources: Vec::new(),
            logprobs: Vec::new(),
            end: None,
        });
        job
    }

    pub(super) fn ask(&mut self, prompt: &[Token], count: usize) {
        let job = self.job(prompt.to_vec(), count);
        self.waiting.push(job);
    }

    pub(super) fn submit(&mut self, job: Job) {
        self.waiting.push(job);
    }

    /// Asks for the same text so often, the prompt being shared.
    pub(super) fn ask_many(&mut self, prompt: &[Token], count: usize, answers: usize) {
        let mut first = self.job(prompt.to_vec(), count);
        first.siblings = (1..answers).map(|_| self.job(prompt.to_vec(), count)).collect();
        self.waiting.push(first);
    }

    /// Saves a text that is in a slot, and asks for the rest of it anew.
    pub(super) fn save_and_resume(&mut self, id: u64, count: usize) -> Result<bool> {
        let Some((job, saved)) = self.runner.save(id) else { return Ok(false) };
        let (tokens, generated, prompt) = (job.tokens.clone(), job.generated.clone(), job.prompt.clone());
        let saved = saved?;
        if generated.len() >= count {
            return Ok(false);
        }
        let expected = self.kind.oracle(&prompt, count).split_off(generated.len());
        let mut rest = self.job_of(prompt, count - generated.len(), expected);
        rest.tokens = tokens;
        rest.generated = generated;
        rest.restore = Some(saved);
        self.waiting.push(rest);
        Ok(true)
    }

    /// One turn of what an engine's thread does. False when there is nothing left to do.
    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        assert!(self.steps < WATCHDOG, "{}: it never ends", self.kind.name);
        let done = self.turn();
        self.runner.tell_ends();
        self.asked.iter_mut().for_each(Asked::take);
        match done {
            Ok(more) => more,
            Err(broken) => {
                self.broken = Some(broken.0);
                false
            }
        }
    }

    fn turn(&mut self) -> Result<bool, Broken> {
        let mut returned = self.runner.take_returned();
        returned.append(&mut self.waiting);
        self.waiting = returned;
        while self.runner.has_free_slot() && !self.waiting.is_empty() {
            let job = self.waiting.remove(0);
            self.runner.start(job)?;
        }
        if self.runner.is_idle() && self.waiting.is_empty() {
            return Ok(false);
        }
        self.runner.step()?;
        Ok(true)
    }

    /// Steps until everybody has an answer, or the contexts break down.
    pub(super) fn run(&mut self) {
        while self.step() {}
    }
}
