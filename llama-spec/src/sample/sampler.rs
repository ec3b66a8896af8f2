//! The sampler: options put to work on the rows of a context.

use super::candidate::{Candidate, Candidates};
use super::options::SamplerOptions;
use super::prepare::Prepared;
use crate::context::Context;
use crate::error::{Error, Failure, Result};
use crate::ffi::sampler::RawSampler;
use crate::ffi::status::Failed;
use crate::model::Model;
use crate::token::Token;
use std::fmt;
use std::sync::Arc;

/// Chooses tokens from rows of logits, and remembers the text so far: for penalties, for the grammar, for the reasoning
/// budget.
///
/// It is told of every token of the text by [`accept_prompt`](Self::accept_prompt) and [`accept`](Self::accept), in order;
/// [`verify`](Self::verify) does that by itself. It can be moved to another thread and not be shared by two.
///
/// ```
/// use llama_spec::sample::{Sampler, SamplerOptions};
/// use llama_spec::{Batch, ContextOptions, Model, Slot};
/// use llama_spec_tests::zoo::Llama;
///
/// let model = Model::load(Llama::target(1).cached()?)?;
/// let mut context = model.context(&ContextOptions::default().length_per_slot(64))?;
/// let prompt = model.vocab().tokenize("abc")?;
/// let mut batch = Batch::new();
/// batch.push_prompt(&prompt, 0, Slot::FIRST);
/// context.decode(&batch)?;
///
/// let mut sampler = Sampler::new(&model, &SamplerOptions::greedy())?;
/// let token = sampler.sample(&context, batch.len() - 1)?;
/// sampler.accept(token)?;
/// assert_eq!(model.vocab().text(&[token]), "d");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Sampler {
    raw: RawSampler,
    model: Model,
    options: Arc<SamplerOptions>,
    /// The token of the last `sample`, until something is accepted.
    pending: Option<Token>,
    /// Something was sampled since the handle was made, so that its candidates are its own.
    has_candidates: bool,
    /// An accept failed half-way, and the parts of the sampler no longer agree on the text.
    broken: bool,
}

impl Sampler {
    /// A sampler for contexts of `model`.
    ///
    /// # Errors
    /// [`Error::Setting`] for an option out of range, [`Error::Sample`] for a grammar or a schema that llama.cpp refuses,
    /// with its words.
    pub fn new(model: &Model, options: &SamplerOptions) -> Result<Self> {
        Self::with_options(model, Arc::new(options.clone()))
    }

    fn with_options(model: &Model, options: Arc<SamplerOptions>) -> Result<Self> {
        let prepared = Prepared::new(model, &options)?;
        let raw = RawSampler::new(model, &options, &prepared).map_err(sample_error)?;
        Ok(Self { raw, model: model.clone(), options, pending: None, has_candidates: false, broken: false })
    }

    /// Its options.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// The model it belongs to.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Chooses a token from the logits after entry `entry` of the context's last batch. The text does not change until it is
    /// accepted; random numbers are used up.
    ///
    /// # Errors
    /// [`Error::Sample`] when the context is of another model, the entry had no output, the logits are not numbers, or
    /// grammar, bias and filters together leave no token.
    pub fn sample(&mut self, context: &Context, entry: usize) -> Result<Token> {
        self.check(context)?;
        (self.pending, self.has_candidates) = (None, false);
        let token = self.raw.sample(context, entry, self.options.grammar_first).map_err(sample_error)?;
        self.has_candidates = true;
        let ruled_out = |candidate: &Candidate| candidate.logit == f32::NEG_INFINITY;
        if self.candidates(false)?.selected().is_none_or(ruled_out) {
            return Err(refusal("no token is allowed here: grammar, bias and filters together rule out all of them"));
        }
        self.pending = Some(token);
        Ok(token)
    }

    /// Tells it that `token` was generated.
    ///
    /// # Errors
    /// [`Error::Sample`] when the token is outside the vocabulary, or does not fit the grammar; after the latter it must be
    /// [`reset`](Self::reset). With a grammar, a token that ends generation is only accepted right after it was sampled.
    pub fn accept(&mut self, token: Token) -> Result<()> {
        let sampled = self.pending.take() == Some(token);
        // llama.cpp aborts when the text ends where the grammar does not; what was sampled has been checked.
        if self.is_constrained() && !sampled && self.model.vocab().is_end_of_generation(token) {
            return Err(refusal(
                "a token that ends generation must be sampled before it is accepted, to fit the grammar",
            ));
        }
        self.tell(token, true)
    }

    /// Tells it that `token` is part of the prompt. Penalties see it; grammar and reasoning budget do not.
    ///
    /// # Errors
    /// [`Error::Sample`] when the token is outside the vocabulary.
    pub fn accept_prompt(&mut self, token: Token) -> Result<()> {
        self.pending = None;
        self.tell(token, false)
    }

    /// Compares a draft with what this sampler chooses. Goes through `entries`, the entries of the context's last batch after
    /// which logits were asked for: one for each drafted token, and one more. At each it samples and accepts a token; it stops
    /// behind the first one that is not the drafted one or ends the text, else behind the last entry.
    ///
    /// The accepted tokens are put into `accepted`, in place of what was there: `n` drafted ones and one more. The tokens are
    /// exactly those that would have been sampled without a draft.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and when there is not one entry more than drafted tokens. After an error in the middle the
    /// sampler must be [`reset`](Self::reset).
    pub fn verify(
        &mut self,
        context: &Context,
        entries: &[usize],
        draft: &[Token],
        accepted: &mut Vec<Token>,
    ) -> Result<()> {
        accepted.clear();
        self.check_draft(context, entries, draft)?;
        if self.is_constrained() {
            return self.verify_by_steps(context, entries, draft, accepted);
        }
        let done = self.raw.verify(context, entries, draft, accepted);
        self.after_verify(done)
    }

    /// As [`verify`](Self::verify), for drafts whose tokens were drawn: `distributions` has, for each drafted token, the
    /// candidates it was drawn from with their probabilities. A token is accepted with the probability `min(1, p / q)`, and a
    /// rejected one is replaced by a draw from what `p` has beyond `q` (Leviathan et al. 2023, arXiv 2211.17192). The text
    /// has the same distribution as without a draft, though with the same seed it is another text.
    ///
    /// A sampler that is greedy, or has a grammar or reasoning tags, compares as [`verify`](Self::verify) does; that is
    /// lossless as well.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and when there is not one distribution for each drafted token.
    pub fn verify_rejection(
        &mut self,
        context: &Context,
        entries: &[usize],
        draft: &[Token],
        distributions: &[&[Candidate]],
        accepted: &mut Vec<Token>,
    ) -> Result<()> {
        accepted.clear();
        self.check_draft(context, entries, draft)?;
        if distributions.len() != draft.len() {
            let (given, wanted) = (distributions.len(), draft.len());
            return Err(refusal(format!("{given} distributions for {wanted} drafted tokens")));
        }
        if self.options.is_greedy() || self.is_constrained() {
            return self.verify(context, entries, draft, accepted);
        }
        let done = self.raw.verify_rejection(context, entries, draft, distributions, accepted);
        self.after_verify(done)
    }

    /// What was left of the last row that was sampled; nothing before the first one, and in a fresh clone. `sorted` puts the
    /// most probable first. Probabilities are there unless the sampler [is greedy](SamplerOptions::is_greedy).
    ///
    /// # Errors
    /// [`Error::Sample`] when llama.cpp refuses.
    pub fn candidates(&mut self, sorted: bool) -> Result<Candidates<'_>> {
        match self.has_candidates {
            true => self.raw.candidates(sorted).map_err(sample_error),
            false => Ok(Candidates { all: &[], selected: None }),
        }
    }

    /// Makes it as it was when it was new: no text, the grammar at its start, and the random numbers from the beginning (or
    /// from a new one if no seed was set).
    ///
    /// # Errors
    /// As [`Sampler::new`], in practice only for want of memory.
    pub fn reset(&mut self) -> Result<()> {
        *self = Self::with_options(&self.model, Arc::clone(&self.options))?;
        Ok(())
    }

    /// A sampler that goes on from here in the same way.
    ///
    /// # Errors
    /// [`Error::Sample`] with [`adaptive_p`](field@SamplerOptions::adaptive_p), which llama.cpp cannot copy.
    pub fn try_clone(&self) -> Result<Self> {
        if self.options.adaptive_p.is_some() {
            return Err(refusal(
                "llama.cpp cannot copy the state of adaptive_p; make a new sampler and tell it the text",
            ));
        }
        let raw = self.raw.try_clone().map_err(sample_error)?;
        let (model, options, broken) = (self.model.clone(), Arc::clone(&self.options), self.broken);
        Ok(Self { raw, model, options, pending: self.pending, has_candidates: false, broken })
    }

    /// The seed in use; the one that was drawn if none was set. `None` if nothing is drawn.
    pub fn seed(&self) -> Option<u32> {
        self.raw.seed()
    }

    /// The chain in llama.cpp's words, such as `logits -> top-k -> temp-ext -> dist`. A question mark is before a stage that
    /// does nothing with these options.
    ///
    /// # Errors
    /// [`Error::Sample`] for want of memory.
    pub fn describe(&self) -> Result<String> {
        self.raw.describe().map_err(sample_error)
    }

    /// Makes a passage of reasoning end here: the next tokens will be the message and the end tag. False when none is going
    /// on, or no [`reasoning_tags`](field@SamplerOptions::reasoning_tags) were set.
    ///
    /// # Errors
    /// [`Error::Sample`] when the sampler must be reset first.
    pub fn end_reasoning(&mut self) -> Result<bool> {
        self.check_whole()?;
        match self.raw.end_reasoning() {
            Ok(()) => Ok(true),
            Err(failed) if failed.is_refusal() => Ok(false),
            Err(failed) => Err(sample_error(failed)),
        }
    }

    /// Whether something besides the chain can rule tokens out. Then each token is checked before it is accepted.
    fn is_constrained(&self) -> bool {
        self.options.grammar.is_some() || self.options.reasoning_tags.is_some()
    }

    fn verify_by_steps(
        &mut self,
        context: &Context,
        entries: &[usize],
        draft: &[Token],
        accepted: &mut Vec<Token>,
    ) -> Result<()> {
        for (step, entry) in entries.iter().enumerate() {
            let token = self.sample(context, *entry).inspect_err(|_| self.broken |= step > 0)?;
            self.accept(token)?;
            accepted.push(token);
            let agreed = draft.get(step) == Some(&token);
            let is_last = step + 1 >= draft.len();
            if !agreed || (!is_last && self.model.vocab().is_end_of_generation(token)) {
                break;
            }
        }
        Ok(())
    }

    fn after_verify(&mut self, done: Result<(), Failed>) -> Result<()> {
        self.pending = None;
        self.has_candidates = done.is_ok();
        done.map_err(|failed| {
            self.broken |= !failed.is_before_the_call();
            sample_error(failed)
        })
    }

    fn tell(&mut self, token: Token, generated: bool) -> Result<()> {
        self.check_whole()?;
        if !self.model.vocab().contains(token) {
            return Err(refusal(format!("token {} is outside the vocabulary", token.id())));
        }
        self.raw.accept(token, generated).map_err(|failed| {
            self.broken |= !failed.is_before_the_call();
            sample_error(failed)
        })
    }

    fn check_draft(&self, context: &Context, entries: &[usize], draft: &[Token]) -> Result<()> {
        self.check(context)?;
        if entries.len() != draft.len() + 1 {
            let (given, wanted) = (entries.len(), draft.len() + 1);
            return Err(refusal(format!(
                "{given} entries given, {wanted} needed: one for each drafted token and one more"
            )));
        }
        Ok(())
    }

    fn check(&self, context: &Context) -> Result<()> {
        self.check_whole()?;
        if !context.model().is_same(&self.model) {
            return Err(refusal("the context belongs to another model than the sampler"));
        }
        context.require_results()
    }

    fn check_whole(&self) -> Result<()> {
        match self.broken {
            true => Err(refusal("an earlier call failed in the middle of the text: reset the sampler first")),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler").field("options", &self.options).field("broken", &self.broken).finish_non_exhaustive()
    }
}

fn refusal(message: impl Into<String>) -> Error {
    Error::Sample { failure: Failure::new(message) }
}

fn sample_error(failed: impl Into<Failure>) -> Error {
    Error::Sample { failure: failed.into() }
}
