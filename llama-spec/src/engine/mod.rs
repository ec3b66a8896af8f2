//! Many texts at once: an engine on a thread of its own, which takes requests and streams events.
//!
//! An [`Engine`] owns models, contexts and drafters. Requests wait in a bounded queue, get a slot, and are then generated
//! side by side: each step computes a piece of one prompt and one round for all texts whose prompt is known (continuous
//! batching). The text of a request does not depend on what else is going on, nor on who drafts.

mod builder;
pub(crate) mod health;
mod keeper;
mod metrics;
mod midway;
mod queue;
mod request;
mod response;
mod saved;
mod stats;
mod worker;

#[cfg(test)]
pub(crate) use builder::tried;
pub use builder::{EngineBuilder, Loading, ModelSource, VerifyRows};
pub(crate) use builder::{ModelShelf, Place};
pub use midway::Midway;
pub use queue::Priority;
pub use request::{Drafters, Prompt, Request, RequestDrafting};
pub use response::{Canceller, Output, Response};
pub use saved::SavedState;
pub use stats::{EngineStats, SlotStats};

use crate::error::{Error, Result};
use crate::generate::check_prompt;
use crate::lookup::Store;
use crate::model::Model;
use crate::probe::ProbeReport;
use crate::runner::{Answer, Drafting, Job, OwnDrafter};
use crate::sample::Sampler;
use crate::spec::{Factory, Forced, Method, SpecConfig, Speculation};
use crate::token::Token;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::Shared;

/// Answers that can be asked for at once: each takes memory while it waits.
pub(crate) const MOST_ANSWERS: u32 = 1024;

/// Generates many texts at once, speculatively where that is possible.
///
/// It can be shared by threads; dropping it ends what still runs.
///
/// ```
/// use llama_spec::{Engine, ModelFile, Request};
/// # use llama_spec_tests::zoo;
///
/// let target = ModelFile::open(zoo::file("target"))?;
/// let draft = ModelFile::open(zoo::file("draft-0.8"))?;
/// let engine = Engine::builder(target).draft(draft).slots(4).build()?;
/// for event in engine.generate(Request::prompt("Hello").max_tokens(20))? {
///     print!("{}", event?.text());
/// }
/// println!("{}", engine.stats());
/// # // Whether drafts pay with models that small is for the machine to say.
/// # let fixed = Request::prompt("Hello").max_tokens(20).draft_length(llama_spec::spec::DraftLength::Fixed(4));
/// # engine.generate(fixed)?.output()?;
/// # assert!(engine.stats().total.accepted > 0);
/// # Ok::<_, llama_spec::Error>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    model: Model,
    config: SpecConfig,
    own: Vec<Factory>,
    shape: Shape,
    report: Option<ProbeReport>,
    ids: AtomicU64,
}

/// What does not change while an engine lives.
#[derive(Clone, Copy, Debug)]
struct Shape {
    slots: u32,
    context: u32,
    rows: u32,
}

/// How a text begins.
#[derive(Clone, Copy)]
enum Origin<'a> {
    /// With its prompt; which answer to it.
    New { answer: u32 },
    /// Where it was saved.
    Saved(&'a SavedState),
    /// Where its tokens end.
    Midway(&'a Midway),
}

impl Engine {
    /// Options for an engine that generates with this target: a file that was opened, or a model that is loaded.
    pub fn builder(target: impl Into<ModelSource>) -> EngineBuilder {
        EngineBuilder::new(target.into())
    }

    /// The target.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Texts that are generated at once.
    pub fn slots(&self) -> u32 {
        self.shape.slots
    }

    /// Room for prompt and answer together, in tokens.
    pub fn context_length(&self) -> u32 {
        self.shape.context
    }

    /// The most tokens that are verified in one batch, all texts together; see [`VerifyRows`].
    pub fn verify_rows(&self) -> u32 {
        self.shape.rows
    }

    /// What was found when it was tried before it served; nothing if it was not.
    pub fn probe(&self) -> Option<&ProbeReport> {
        self.report.as_ref()
    }

    /// What speculation came to: what was asked for, what is in force now, and why if they differ. Without any there is always a
    /// reason.
    pub fn speculation(&self) -> Speculation {
        let mut speculation = self.shared.speculation();
        if !speculation.is_active() && speculation.reason.is_none() {
            speculation.reason = Some("no speculation was asked for".into());
        }
        speculation
    }

    /// Its numbers, as of the last fraction of a second. It answers at once, however busy the engine is.
    pub fn stats(&self) -> EngineStats {
        self.shared.stats()
    }

    /// Where texts are kept for later requests: the store it was [given](EngineBuilder::lookup_store), if its methods include
    /// [`Method::Lookup`].
    pub fn lookup_store(&self) -> Option<&Store> {
        self.shared.store.as_ref()
    }

    /// Why it has failed, if it has. It then takes no requests.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Continues a text.
    ///
    /// # Errors
    /// [`Error::Busy`] when the queue is full, [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::Tokenize`],
    /// [`Error::Speculation`] for a drafter the engine does not have, [`Error::ShuttingDown`], [`Error::EngineFailed`], and what
    /// [`Sampler::new`] refuses.
    pub fn generate(&self, request: impl Into<Request>) -> Result<Response> {
        let request = request.into();
        let (job, response) = self.job(&request, 0)?;
        self.shared.submit(job, request.priority)?;
        Ok(response)
    }

    /// Gives several answers to one request. Its prompt is computed once; with a seed, the answers have that seed and the
    /// following ones. They count as one in the queue.
    ///
    /// ```
    /// # use llama_spec::{Engine, ModelFile, Request, SamplerOptions};
    /// # let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
    /// # let engine = Engine::builder(target).slots(3).context_per_slot(256).build()?;
    /// let request = Request::prompt("Hello").sampler(SamplerOptions::default().temperature(1.5).seed(1)).max_tokens(10);
    /// let outputs: Vec<_> = engine.generate_many(request, 3)?.into_iter().map(|answer| answer.output()).collect();
    /// # let outputs = outputs.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// # assert_eq!(outputs.len(), 3);
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Engine::generate`], and [`Error::Setting`] for more than 1024 answers.
    pub fn generate_many(&self, request: impl Into<Request>, answers: u32) -> Result<Vec<Response>> {
        let request = request.into();
        if answers == 0 {
            return Ok(Vec::new());
        }
        if answers > MOST_ANSWERS {
            let expected = format!("0 to {MOST_ANSWERS}");
            return Err(Error::Setting { setting: "answers", value: answers.to_string(), expected });
        }
        let (mut first, response) = self.job(&request, 0)?;
        let mut responses = vec![response];
        for answer in 1..answers {
            let (job, response) = self.job(&request, answer)?;
            first.siblings.push(job);
            responses.push(response);
        }
        self.shared.submit(first, request.priority)?;
        Ok(responses)
    }

    /// Goes on with a text that [`Response::save`] saved, in this process or another: the events are those of the tokens
    /// that were still to come.
    ///
    /// ```
    /// # use llama_spec::engine::SavedState;
    /// # use llama_spec::{ContextOptions, Engine, ModelFile, Request};
    /// # let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
    /// # let context = ContextOptions::default().threads(1).length_per_slot(3000);
    /// # let engine = Engine::builder(&target).context(context.clone()).build()?;
    /// # let elsewhere = Engine::builder(&target).context(context).build()?;
    /// let mut response = engine.generate(Request::prompt("Hello").greedy().max_tokens(2500))?;
    /// for event in response.by_ref().take(3) {
    ///     event?;
    /// }
    /// let bytes = response.save()?.to_bytes()?;
    /// drop(response); // it is not wanted here any more
    ///
    /// let saved = SavedState::from_bytes(&bytes)?;
    /// let rest = elsewhere.resume(&saved)?.output()?;
    /// assert_eq!(saved.generated().len() + rest.tokens.len(), 2500);
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::State`] when it was saved with other models or does not fit this engine; else as [`Engine::generate`].
    pub fn resume(&self, state: &SavedState) -> Result<Response> {
        let request = state.request();
        let (mut job, response) = self.prepare(request, state.prompt().to_vec(), Origin::Saved(state))?;
        state.fill(&mut job);
        self.shared.submit(job, request.priority)?;
        Ok(response)
    }

    /// Takes no more requests and waits until those it has are done. False if that takes longer than `longest`; they go on
    /// nevertheless.
    pub fn drain(&self, longest: Duration) -> bool {
        self.shared.drain(longest)
    }

    /// Ends what still runs, with [`Error::ShuttingDown`], and waits for the thread.
    pub fn shutdown(self) {}

    fn job(&self, request: &Request, answer: u32) -> Result<(Job, Response)> {
        let prompt = request.prompt_tokens(self.model.vocab())?;
        self.prepare(request, prompt, Origin::New { answer })
    }

    /// Everything that can be refused is refused here, on the thread of whoever asks.
    fn prepare(&self, request: &Request, prompt: Vec<Token>, origin: Origin<'_>) -> Result<(Job, Response)> {
        self.shared.check()?;
        request.validate()?;
        match origin {
            Origin::New { .. } => {}
            Origin::Saved(state) => state.check(&self.model, self.shape.context)?,
            Origin::Midway(midway) => midway.check(self, request.context_full)?,
        }
        check_prompt(self.model.vocab(), &prompt, self.shape.context)?;
        let (methods, own) = request.allowed(&self.config, self.own.len())?;
        let limit = request.drafting.draft_max.unwrap_or(u32::MAX).min(self.config.draft_max) as usize;
        let sampler = match origin {
            Origin::Saved(state) => state.sampler(&self.model)?,
            Origin::Midway(midway) => midway.sampler(self, &request.options.sampler)?,
            Origin::New { answer } => {
                let mut sampler = Sampler::new(&self.model, &request.options.sampler.for_answer(answer))?;
                prompt.iter().try_for_each(|token| sampler.accept_prompt(*token))?;
                sampler
            }
        };
        let own = match limit {
            0 => Vec::new(),
            _ => own
                .iter()
                .filter_map(|number| Some(OwnDrafter::new(*number, self.own.get(usize::from(*number))?)))
                .collect(),
        };
        let (sender, events) = async_channel::unbounded();
        let reply = Answer::new(sender, request.options.max_tokens, &request.options.stop)
            .with_visible(request.options.visible.clone())
            .with_logprobs(request.logprobs)
            .with_checkpoints(request.checkpoints);
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let length = request.drafting.length.unwrap_or(self.config.length);
        let speculates = limit > 0 && !(methods.is_empty() && own.is_empty());
        // A text that goes on midway would have to be shown what the grammar has seen of it.
        let forced = match origin {
            Origin::New { .. } if speculates => Forced::new(&self.model, &request.options.sampler),
            _ => None,
        };
        let drafting = Drafting { methods, limit, length, own, forced };
        let mut job = Job::new(id, prompt.clone(), sampler, reply, drafting);
        job.context_full = request.context_full;
        job.priority = request.priority;
        job.deadline = request.deadline.and_then(|time| Instant::now().checked_add(time));
        job.request = Some(Arc::new(request.clone()));
        job.shelf = self
            .lookup_store()
            .filter(|_| limit > 0 && methods.contains(Method::Lookup))
            .map(|store| store.shelf(request.tenant.as_deref().unwrap_or_default()));
        job.span = tracing::debug_span!("request", id, prompt = prompt.len());
        let response = Response::new(id, prompt, events, Arc::clone(&job.cancelled), Arc::clone(&self.shared));
        Ok((job, response))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop();
        // A drafter may be the last one that holds the engine. Its thread then ends by itself.
        if let Some(thread) = self.thread.take().filter(|_| !self.shared.is_own_thread()) {
            // Its panics are caught and told to those who wait.
            let _ = thread.join();
        }
    }
}
