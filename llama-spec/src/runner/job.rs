//! One text that is being generated: what it was asked for and how far it has come.

use super::answer::Answer;
use super::offer::Offer;
use crate::engine::{Priority, Request};
use crate::generate::ContextFull;
use crate::lookup::Shelf;
use crate::sample::Sampler;
use crate::spec::{DraftLength, Drafter, Factory, Forced, Methods, Stats};
use crate::token::Token;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A text that is to be generated, or is being generated in a slot.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    /// Prompt and answer so far. All but the last are in the memory of a slot when a round begins.
    pub(crate) tokens: Vec<Token>,
    pub(crate) prompt: Vec<Token>,
    /// All that was sampled, what ended the text included.
    pub(crate) generated: Vec<Token>,
    /// What was asked for, where an engine was asked.
    pub(crate) request: Option<Arc<Request>>,
    pub(crate) sampler: Sampler,
    pub(crate) answer: Answer,
    pub(crate) drafting: Drafting,
    pub(crate) context_full: ContextFull,
    pub(crate) priority: Priority,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancelled: Arc<AtomicBool>,
    /// Other answers to the same prompt, which take over what was computed of it.
    pub(crate) siblings: Vec<Self>,
    /// Memory to begin with, saved from another one.
    pub(crate) restore: Option<Restore>,
    /// The texts that lookup looks at beside its own. While the job is in a slot, the lookup of the slot has it.
    pub(crate) shelf: Option<Shelf>,
    pub(crate) stats: Stats,
    pub(crate) times: Times,
    pub(crate) span: tracing::Span,
    /// Times in a row that its memory was computed anew without a token in between.
    pub(super) recomputed: u32,
}

/// What the memories of a slot hold for a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restore {
    pub(crate) target: Vec<u8>,
    pub(crate) draft: Vec<u8>,
    pub(crate) drafter: Vec<u8>,
    /// How many tokens they hold.
    pub(crate) tokens: usize,
}

/// Who may draft for a text, and how much.
#[derive(Debug)]
pub(crate) struct Drafting {
    /// Methods of llama.cpp.
    pub(crate) methods: Methods,
    /// The longest draft in tokens.
    pub(crate) limit: usize,
    pub(crate) length: DraftLength,
    pub(crate) own: Vec<OwnDrafter>,
    /// What the grammar of the text forces, if it has one.
    pub(crate) forced: Option<Forced>,
}

/// When things happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) submitted: Instant,
    /// When it first got a slot.
    pub(crate) started: Option<Instant>,
    /// When tokens came last.
    pub(crate) last_token: Option<Instant>,
}

impl Job {
    pub(crate) fn new(id: u64, prompt: Vec<Token>, sampler: Sampler, answer: Answer, drafting: Drafting) -> Self {
        let stats = Stats { prompt_tokens: prompt.len() as u64, ..Stats::default() };
        let times = Times { submitted: Instant::now(), started: None, last_token: None };
        Self {
            id,
            tokens: prompt.clone(),
            prompt,
            generated: Vec::new(),
            request: None,
            sampler,
            answer,
            drafting,
            context_full: ContextFull::default(),
            priority: Priority::default(),
            deadline: None,
            cancelled: Arc::default(),
            siblings: Vec::new(),
            restore: None,
            shelf: None,
            stats,
            times,
            span: tracing::Span::none(),
            recomputed: 0,
        }
    }

    /// Sampled last, and not yet in the memory.
    pub(super) fn last(&self) -> Token {
        // A job has a prompt of at least one token.
        self.tokens[self.tokens.len() - 1]
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.answer.is_unheard()
    }

    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The jobs of one request, each by itself.
    pub(crate) fn take_siblings(&mut self) -> Vec<Self> {
        std::mem::take(&mut self.siblings)
    }

    /// Notes that it got a slot.
    pub(super) fn note_start(&mut self, now: Instant) {
        if self.times.started.is_none() {
            self.times.started = Some(now);
            self.stats.queue = now - self.times.submitted;
        }
    }

    /// Notes that a step since `start` was, if it has tokens, one of generating.
    pub(super) fn note_step(&mut self, start: Instant) {
        if self.times.last_token.is_some() {
            self.stats.generation += start.elapsed();
        }
    }

    /// Notes that `count` tokens came.
    pub(super) fn note_tokens(&mut self, count: usize, now: Instant, total: &mut Stats) {
        match self.times.last_token.replace(now) {
            None => {
                let time = now - self.times.submitted;
                self.stats.time_to_first_token = Some(time);
                total.time_to_first_token = total.time_to_first_token.max(Some(time));
            }
            Some(before) => {
                // What comes in one round is counted as if it had come evenly.
                let each = (now - before) / count.max(1) as u32;
                for stats in [&mut self.stats, total] {
                    (0..count).for_each(|_| stats.inter_token.record(each));
                }
            }
        }
    }
}

impl Drafting {
    /// Tells the user's drafters of the text, from its beginning.
    pub(super) fn begin(&mut self, tokens: &[Token]) {
        self.own.iter_mut().for_each(|one| {
            one.run(|drafter| drafter.begin(tokens));
        });
    }

    /// Tells them of new tokens.
    pub(super) fn extend(&mut self, tokens: &[Token]) {
        self.own.iter_mut().for_each(|one| {
            one.run(|drafter| drafter.extend(tokens));
        });
        self.forced.iter_mut().for_each(|forced| forced.extend(tokens));
    }

    /// Tells the drafter of this number what became of its draft.
    pub(super) fn outcome(&mut self, number: u8, drafted: usize, accepted: usize) {
        if let Some(one) = self.own.iter_mut().find(|one| one.number == number) {
            one.run(|drafter| drafter.outcome(drafted, accepted));
        }
    }
}

/// A user's drafter at work on one text.
pub(crate) struct OwnDrafter {
    pub(crate) number: u8,
    draws: bool,
    /// None after it panicked.
    drafter: Option<Box<dyn Drafter>>,
}

impl OwnDrafter {
    pub(crate) fn new(number: u8, factory: &Factory) -> Self {
        let mut one = Self { number, draws: factory.draws, drafter: None };
        match shielded(|| factory.make()) {
            Some(drafter) => one.drafter = Some(drafter),
            None => one.give_up(),
        }
        one
    }

    /// Lets it fill in an offer; what it had proposed when it panicked is dropped.
    pub(super) fn propose(&mut self, limit: usize, offer: &mut Offer) {
        offer.draws = self.draws;
        if self.run(|drafter| drafter.propose(limit, &mut offer.draft)).is_none() {
            offer.draft.clear();
        }
    }

    /// Runs foreign code. A panic ends with it: the drafter is not asked again.
    fn run<T>(&mut self, call: impl FnOnce(&mut dyn Drafter) -> T) -> Option<T> {
        let drafter = self.drafter.as_deref_mut()?;
        let result = shielded(|| call(drafter));
        if result.is_none() {
            self.give_up();
        }
        result
    }

    fn give_up(&mut self) {
        tracing::warn!(drafter = self.number, "a drafter panicked and is not asked again for this text");
        self.let_go();
    }

    /// Dropping it is foreign code, too.
    fn let_go(&mut self) {
        let drafter = self.drafter.take();
        shielded(|| drop(drafter));
    }
}

impl Drop for OwnDrafter {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// What foreign code gives, or nothing if it panics. Whatever state a panic leaves behind is dropped by whoever asked.
fn shielded<T>(call: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => Some(result),
        Err(panic) => {
            // It may be anything, even something that panics when it is dropped.
            std::mem::forget(panic);
            None
        }
    }
}

impl std::fmt::Debug for OwnDrafter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnDrafter").field("number", &self.number).finish_non_exhaustive()
    }
}
