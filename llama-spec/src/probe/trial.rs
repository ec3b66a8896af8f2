//! The rounds of a probe: texts in all slots at once, compared with the target alone.

use super::deadline::Deadline;
use super::report::{Accepted, Outcome, ProbeReport};
use super::script::Script;
use super::{Terms, rows, text};
use crate::compat::Observed;
use crate::error::{DecodeError, Error};
use crate::generate::Event;
use crate::runner::{Alone, Answer, Drafting, Job, OwnDrafter, Runner};
use crate::sample::{Sampler, SamplerOptions};
use crate::spec::{DraftLength, Factory, Method, Methods, Stats};
use crate::token::Token;
use async_channel::Receiver;
use std::sync::Arc;
use std::time::Duration;

/// Tokens of a prompt that is not longer than a micro-batch.
const SHORT: usize = 48;
/// By how much a long prompt is longer.
const BEYOND: usize = 24;
/// A prompt shorter than this tells nothing.
const LEAST: usize = 4;
/// Tokens that are generated, where they are quick.
const TOKENS: usize = 16;
/// Tokens that are generated at least.
const FEWEST: usize = 8;
/// The longest draft with wrong tokens where the target is slow, but for the first one.
const LATER: usize = 3;
/// A prompt has so many tokens, however slow the target is.
const SHORTEST: usize = 17;
/// The share of the budget for the prompt.
const PROMPT: f64 = 0.15;
/// The share of the budget for the first three rounds of texts; the rest is for the repeated request and the rows.
const ROUNDS: f64 = 0.7;
/// Two logits this close may be in the other order where kernels round differently.
const NEAR_TIE: f32 = 0.5;
/// The same for weights or caches in blocks that share a scale.
const NEAR_TIE_QUANTIZED: f32 = 2.0;
/// A share of accepted tokens below this is that of garbage, given so many drafted ones.
const GARBAGE: f64 = 0.05;
const ENOUGH: u64 = 16;

/// Why a trial does not go on.
enum Stop {
    Failed(String),
    Inconclusive(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

type Step<T = ()> = Result<T, Stop>;

/// Texts that were generated side by side.
struct Texts {
    /// What was tried with them.
    what: String,
    tokens: Vec<Vec<Token>>,
    stats: Stats,
}

pub(super) struct Trial<'r> {
    runner: &'r mut Runner,
    deadline: Deadline,
    report: ProbeReport,
    prompt: Vec<Token>,
    /// Tokens to generate.
    count: usize,
    /// The longest draft with wrong tokens, but for the first.
    later: usize,
    near_tie: f32,
}

impl<'r> Trial<'r> {
    pub(super) fn new(runner: &'r mut Runner, terms: Terms) -> Self {
        let deadline = Deadline::new(terms.budget);
        let methods = runner.config().effective();
        let report = ProbeReport::new(methods, runner.target().slots(), Outcome::Worked);
        let quantized = runner.model().file().is_quantized() || terms.quantized_cache;
        let near_tie = if quantized { NEAR_TIE_QUANTIZED } else { NEAR_TIE };
        Self { runner, deadline, report, prompt: Vec::new(), count: TOKENS, later: usize::MAX, near_tie }
    }

    pub(super) fn run(mut self) -> ProbeReport {
        let rounds = self.rounds();
        let speculates = !self.report.methods.is_empty();
        let mut observed = Observed { fits: Some(true), ..self.observed() };
        self.report.outcome = match rounds {
            Ok(()) => Outcome::Worked,
            Err(Stop::Failed(reason)) => Outcome::Failed { reason },
            Err(Stop::Inconclusive(reason)) => Outcome::Inconclusive { reason },
        };
        observed.rounds_work = match &self.report.outcome {
            Outcome::Worked => Some(true),
            Outcome::Failed { .. } => Some(false),
            Outcome::Inconclusive { .. } => None,
        };
        observed.drafts = self.drafts().filter(|_| speculates);
        self.report.observed = observed;
        self.report.took = self.deadline.elapsed();
        tracing::info!(outcome = %self.report.outcome, took = ?self.report.took, exact_rows = ?self.report.exact_rows, "probe");
        self.report
    }

    /// What was seen when the contexts were made.
    fn observed(&self) -> Observed {
        let (target, draft) = self.runner.rollbacks();
        let model = self.report.methods.iter().any(|method| !method.is_lookup());
        Observed { target_rollback: Some(target), draft_rollback: Some(draft).filter(|_| model), ..Observed::nothing() }
    }

    /// Whether what drafts with a model or with heads drafts anything but garbage; unknown when it drafted too little.
    fn drafts(&self) -> Option<bool> {
        let mut models = self.report.accepted.iter().filter(|one| !one.method.is_lookup());
        let one = models.find(|one| one.drafted >= ENOUGH || one.accepted > 0)?;
        one.rate().map(|rate| rate >= GARBAGE)
    }

    fn rounds(&mut self) -> Step {
        self.plan()?;
        let mut texts = Vec::new();
        let methods = self.report.methods.clone();
        // Models first: what lookup methods generate alone, they do not follow.
        for method in methods.iter().rev() {
            let drafted = self.together(&format!("drafted by {method}"), Methods::of(&[*method]), None)?;
            self.note_accepted(*method, &drafted.stats);
            texts.push(drafted);
        }
        let all = Methods::of(&methods);
        if methods.len() != 1 {
            texts.push(self.together("drafted by all methods", all, None)?);
        }
        let longest = self.runner.longest_draft_of_slot();
        if longest > 0 {
            let known = texts.first().and_then(|texts| texts.tokens.first()).cloned().unwrap_or_default();
            let rejecting = self.together("with wrong drafts", all, Some(&known))?;
            let rounds = rejecting.stats.rounds.max(1) as u32;
            self.report.times.rollback = Some(rejecting.stats.rollback / rounds);
            self.report.rejected = rejecting.stats.rejected();
            texts.push(rejecting);
        }
        match self.deadline.is_past(ROUNDS) {
            true => self.report.skipped.push("a repeated request: out of time".into()),
            false => texts.push(self.together("asked for again", all, None)?),
        }
        let deadline = self.deadline;
        // So many tokens of one slot can be in one batch.
        let room = self.runner.target().length_per_slot() as usize - self.prompt.len();
        let count = self.count.max(self.runner.outputs_per_slot().min(rows::MOST_ROWS).min(room));
        let alone = match self.runner.alone(&self.prompt, count, || deadline.is_over()) {
            // A cache that all slots share may have no room left beside what they hold.
            Err(Error::Decode(DecodeError::NoRoom { .. })) => {
                self.runner.restart().map_err(|broken| Stop::Failed(broken.0.to_string()))?;
                self.runner.alone(&self.prompt, self.count, || deadline.is_over())?
            }
            alone => alone?,
        };
        if alone.rows.is_empty() {
            return Err(late());
        }
        self.report.times.plain_token = Some(rows::median(alone.times.clone()));
        texts.iter().try_for_each(|texts| self.compare(texts, &alone))?;
        if alone.rows.len() < self.count {
            return Err(late());
        }
        self.rows(&alone)
    }

    /// Decides how long prompt and text are, by how fast the target is.
    fn plan(&mut self) -> Step {
        if self.deadline.is_over() {
            return Err(late());
        }
        let target = self.runner.target();
        let length = target.length_per_slot() as usize;
        let micro_batch = target.micro_batch_size() as usize;
        let room = length.saturating_sub(FEWEST + self.runner.longest_draft_of_slot() + 1);
        if room < LEAST {
            return Err(Stop::Inconclusive(format!("a context of {length} tokens is too short to try anything in")));
        }
        let text = text::prompt(self.runner.model().vocab(), SHORT.min(room));
        // The first batch of a context costs more than the others.
        self.runner.time_tokens(&text[..1])?;
        let token = self.runner.time_tokens(&text[..1])?;
        self.late()?;
        let piece = text.len().min(16).min(micro_batch);
        let prompt_token = self.runner.time_tokens(&text[..piece])? / piece as u32;
        self.report.times.prompt_token = Some(prompt_token);
        let budget = self.deadline.budget();
        let affordable = (budget.as_secs_f64() * PROMPT / prompt_token.as_secs_f64().max(1e-9)) as usize;
        self.prompt = text::prompt(self.runner.model().vocab(), text.len().min(affordable.max(SHORTEST)));
        self.report.prompt = self.prompt.len();
        self.shrink(token, prompt_token);
        self.count = self.count.min(length - self.prompt.len());
        let long = micro_batch + BEYOND;
        let times = if self.runner.can_cut() { 1 } else { 5 };
        let takes = prompt_token * (long * times) as u32;
        let fits = long + self.count + self.runner.longest_draft_of_slot() < length;
        let skipped = match () {
            () if long <= self.prompt.len() => None,
            () if !fits => Some("the context is too short for it".to_owned()),
            () if takes > budget.mul_f64(PROMPT) => Some(format!("it would take {takes:.1?}")),
            () => {
                self.prompt = text::prompt(self.runner.model().vocab(), long);
                self.report.prompt = self.prompt.len();
                None
            }
        };
        let skipped = skipped.map(|why| format!("a prompt that is longer than a micro-batch of {micro_batch}: {why}"));
        self.report.skipped.extend(skipped);
        self.late()
    }

    /// Takes shorter drafts, a shorter text and fewer slots until the texts can be expected to fit the budget.
    fn shrink(&mut self, token: Duration, row: Duration) {
        let slots = self.report.slots;
        let longest = self.runner.longest_draft_of_slot();
        let models = self.report.methods.iter().filter(|method| !method.is_lookup()).count();
        // With each method and with all of them, and again; who drafts with a model takes its time, too.
        let texts = (self.report.methods.len() + 2 + 2 * models) as f64;
        let takes = |slots: u32, count: usize, later: usize| {
            let rows = |each: usize| f64::from(slots) * each as f64 * row.as_secs_f64();
            let count = count as f64;
            let drafted = texts * count * token.as_secs_f64().max(rows(2));
            drafted + count * token.as_secs_f64() + rows(longest + 1) + count / 2.0 * rows(later + 1)
        };
        let fewer = std::iter::successors(Some(slots), |slots| Some(slots / 2).filter(|slots| *slots > 0));
        let all = [(slots, TOKENS, longest), (slots, TOKENS, LATER.min(longest))];
        let choices = all.into_iter().chain(fewer.map(|slots| (slots, FEWEST, LATER.min(longest))));
        let limit = self.deadline.left().as_secs_f64() * ROUNDS;
        let fits = choices.clone().find(|(slots, count, later)| takes(*slots, *count, *later) <= limit);
        let (chosen, count, later) = fits.or(choices.last()).unwrap_or((1, FEWEST, 0));
        (self.report.slots, self.count, self.later) = (chosen, count, later);
        if chosen < slots {
            self.report.skipped.push(format!("{} of {slots} slots: out of time", slots - chosen));
        }
    }

    fn late(&self) -> Step {
        if self.deadline.is_over() { Err(late()) } else { Ok(()) }
    }

    /// Generates the text in every slot at once. With what is known of it, a script drafts.
    fn together(&mut self, what: &str, methods: Methods, known: Option<&[Token]>) -> Step<Texts> {
        let script: Option<Arc<[Token]>> = known.map(|known| [&self.prompt[..], known].concat().into());
        let slots = self.report.slots as usize;
        let before = self.runner.total().clone();
        let mut receivers = Vec::new();
        let mut first: Option<Job> = None;
        for index in 0..slots {
            let own = script.iter().map(|text| self.script(text, index)).collect();
            let (job, events) = self.job(index as u64, methods, own)?;
            receivers.push(events);
            match &mut first {
                None => first = Some(job),
                // They take over what was computed of the prompt.
                Some(first) => first.siblings.push(job),
            }
        }
        let mut waiting: Vec<Job> = first.into_iter().collect();
        while !self.runner.is_idle() || !waiting.is_empty() {
            if self.deadline.is_over() {
                drop(self.runner.take_jobs());
                return Err(late());
            }
            while self.runner.has_free_slot()
                && let Some(job) = waiting.pop()
            {
                self.runner.start(job).map_err(|broken| self.failed(what, &broken.0.to_string()))?;
            }
            self.runner.step().map_err(|broken| self.failed(what, &broken.0.to_string()))?;
            waiting.extend(self.runner.take_returned());
            if let Some(wrong) = self.runner.out_of_step() {
                return Err(self.failed(what, &wrong));
            }
        }
        self.runner.tell_ends();
        let mut texts = Texts { what: what.to_owned(), tokens: Vec::new(), stats: Stats::default() };
        for events in receivers {
            texts.tokens.push(self.read(what, &events)?);
        }
        texts.stats = since(&before, self.runner.total());
        if texts.stats.failures > 0 {
            let complaint = self.runner.complaint().unwrap_or("a drafter failed").to_owned();
            return Err(self.failed(what, &complaint));
        }
        Ok(texts)
    }

    fn script(&self, text: &Arc<[Token]>, index: usize) -> OwnDrafter {
        let (text, vocabulary) = (Arc::clone(text), self.runner.model().vocab().len());
        let later = self.later;
        let script = move || Script::new(Arc::clone(&text), vocabulary, index, later);
        OwnDrafter::new(0, &Factory::new(script, false))
    }

    fn job(&self, id: u64, methods: Methods, own: Vec<OwnDrafter>) -> Step<(Job, Receiver<crate::Result<Event>>)> {
        let options = SamplerOptions { ignore_eos: true, ..SamplerOptions::greedy() };
        let sampler = Sampler::new(self.runner.model(), &options)?;
        let (sender, events) = async_channel::unbounded();
        let answer = Answer::new(sender, Some(self.count as u32), &[]);
        // Others may draft as much as the methods, for which the context was made.
        let limit = (self.runner.config().draft_max as usize).min(self.runner.outputs_per_slot().saturating_sub(1));
        Ok((
            Job::new(
                id,
                self.prompt.clone(),
                sampler,
                answer,
                Drafting { methods, limit, length: DraftLength::Fixed(limit as u32), own, forced: None },
            ),
            events,
        ))
    }

    fn read(&self, what: &str, events: &Receiver<crate::Result<Event>>) -> Step<Vec<Token>> {
        let mut tokens = Vec::new();
        while let Ok(event) = events.try_recv() {
            match event {
                Ok(Event::Token { token, .. }) => tokens.push(token),
                Ok(_) => {}
                Err(error) => return Err(self.failed(what, &error.to_string())),
            }
        }
        Ok(tokens)
    }

    fn failed(&self, what: &str, why: &str) -> Stop {
        Stop::Failed(format!("a text {what}: {why}"))
    }

    fn note_accepted(&mut self, method: Method, stats: &Stats) {
        let time = stats.draft.checked_div(u32::try_from(stats.drafted).unwrap_or(u32::MAX));
        self.report.accepted.push(Accepted::new(method, stats.drafted, stats.accepted, time));
    }

    /// All texts must be the one of the target alone, up to a near-tie: behind that there is nothing to compare.
    fn compare(&mut self, texts: &Texts, alone: &Alone) -> Step {
        let expected = &alone.tokens[1..];
        for (slot, tokens) in texts.tokens.iter().enumerate() {
            let differs = expected.iter().zip(tokens).position(|(expected, token)| expected != token);
            self.report.compared += differs.unwrap_or(tokens.len().min(expected.len())) as u64;
            let Some(at) = differs else {
                if tokens.len() < self.count {
                    return Err(self.failed(&texts.what, &format!("it ended after {} tokens", tokens.len())));
                }
                continue;
            };
            let logit = |token: Token| alone.rows[at].get(token.id() as usize).copied().unwrap_or(f32::NEG_INFINITY);
            let margin = logit(expected[at]) - logit(tokens[at]);
            if margin <= self.near_tie {
                self.report.near_ties += 1;
                continue;
            }
            let why = format!(
                "its token {at} in slot {slot} is {:?}, that of the target alone is {:?}, whose logit is higher by {margin:.2}",
                tokens[at], expected[at]
            );
            return Err(self.failed(&texts.what, &why));
        }
        Ok(())
    }

    fn rows(&mut self, alone: &Alone) -> Step {
        let measured = match rows::measure(self.runner, alone, &self.deadline) {
            Ok(measured) => measured,
            // The text was generated nevertheless, so it is only that there is no room for it in several slots at once.
            Err(error @ (Error::State { .. } | Error::Memory { .. } | Error::Decode(DecodeError::NoRoom { .. }))) => {
                self.report.skipped.push(format!("batches of several rows: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.report.skipped.extend(measured.left_out);
        self.report.exact_rows = rows::exact(&measured.rows);
        self.report.rows = measured.rows;
        Ok(())
    }
}

/// What came to some numbers.
fn since(before: &Stats, after: &Stats) -> Stats {
    let time = |of: fn(&Stats) -> Duration| of(after).saturating_sub(of(before));
    Stats {
        rounds: after.rounds - before.rounds,
        drafted: after.drafted - before.drafted,
        accepted: after.accepted - before.accepted,
        failures: after.failures - before.failures,
        draft: time(|stats| stats.draft),
        verify: time(|stats| stats.verify),
        rollback: time(|stats| stats.rollback),
        ..Stats::default()
    }
}

fn late() -> Stop {
    Stop::Inconclusive("out of time".into())
}
