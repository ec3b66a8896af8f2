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
    pub(super) raw: RawSampler,
    model: Model,
    options: Arc<SamplerOptions>,
    /// After how many generated tokens reasoning was ended by hand, which the tokens do not tell.
    pub(super) reasoning_ended: Vec<u64>,
}

impl Sampler {
    /// A sampler for contexts of `model`.
    ///
    /// # Errors
    /// [`Error::Setting`] for an option out of range, [`Error::Sample`] for a grammar or a schema that llama.cpp refuses,
    /// with its words.
    pub fn new(model: &Model, options: &SamplerOptions) -> Result<Self> {
        let prepared = Prepared::new(model, options)?;
        let raw = RawSampler::new(model, options, &prepared).map_err(|failure| Error::Sample { failure })?;
        Ok(Self { raw, model: model.clone(), options: Arc::new(options.clone()), reasoning_ended: Vec::new() })
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
    /// [`Error::NotFinite`] when the logits hold NaN or infinity; [`Error::Sample`] when the context is of another model, the
    /// entry had no output, or grammar, bias and budget together rule out every token.
    pub fn sample(&mut self, context: &Context, entry: usize) -> Result<Token> {
        self.check(context)?;
        self.raw.sample(context, entry, self.options.grammar_first).map_err(sample_error)
    }

    /// Tells it that `token` was generated.
    ///
    /// # Errors
    /// [`Error::Sample`] when the token is outside the vocabulary or does not fit the grammar; nothing has changed then.
    pub fn accept(&mut self, token: Token) -> Result<()> {
        self.raw.accept(token, true).map_err(sample_error)
    }

    /// Tells it that `token` is part of the prompt. Penalties see it; grammar and reasoning budget do not.
    ///
    /// # Errors
    /// [`Error::Sample`] when the token is outside the vocabulary.
    pub fn accept_prompt(&mut self, token: Token) -> Result<()> {
        self.raw.accept(token, false).map_err(sample_error)
    }

    /// Compares a draft with what this sampler chooses. Goes through `entries`, the entries of the context's last batch after
    /// which logits were asked for: one for each drafted token, and one more. At each it samples and accepts a token; it stops
    /// behind the first one that is not the drafted one or ends the text, else behind the last entry.
    ///
    /// The accepted tokens are put into `accepted`, in place of what was there: `n` drafted ones and one more. The tokens are
    /// exactly those that would have been sampled without a draft.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and when there is not one entry more than drafted tokens. After an error, `accepted` has
    /// the tokens that were accepted before it.
    pub fn verify(
        &mut self,
        context: &Context,
        entries: &[usize],
        draft: &[Token],
        accepted: &mut Vec<Token>,
    ) -> Result<()> {
        accepted.clear();
        self.check_draft(context, entries, draft)?;
        self.raw.verify(context, entries, draft, self.options.grammar_first, accepted).map_err(sample_error)
    }

    /// As [`verify`](Self::verify), for drafts whose tokens were drawn: `distributions` has, for each drafted token, the
    /// candidates it was drawn from with their probabilities; an empty one says that the draft was certain. A token is accepted
    /// with the probability `min(1, p / q)`, and a rejected one is replaced by a draw from what `p` has beyond `q` (Leviathan
    /// et al. 2023, arXiv 2211.17192). The text has the same distribution as without a draft, though with the same seed it is
    /// another text. A sampler that [is greedy](SamplerOptions::is_greedy) compares as [`verify`](Self::verify) does.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and when there is not one distribution of probabilities for each drafted token.
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
        let grammar_first = self.options.grammar_first;
        self.raw.verify_rejection(context, entries, draft, distributions, grammar_first, accepted).map_err(sample_error)
    }

    /// What was left of the last row that was sampled, with the probabilities from which the token was drawn. `sorted` puts
    /// the most probable first.
    ///
    /// # Errors
    /// [`Error::Sample`] when this very sampler has not sampled yet, or the last sampling failed.
    pub fn candidates(&mut self, sorted: bool) -> Result<Candidates<'_>> {
        self.raw.candidates(sorted).map_err(sample_error)
    }

    /// Makes it as it was when it was new: no text, the grammar at its start, and the random numbers from the beginning (or
    /// from a new one if no seed was set).
    ///
    /// # Errors
    /// [`Error::Sample`] for want of memory.
    pub fn reset(&mut self) -> Result<()> {
        self.reasoning_ended.clear();
        self.raw.reset().map_err(sample_error)
    }

    /// A sampler that goes on from here in the same way.
    ///
    /// # Errors
    /// [`Error::Sample`] with [`adaptive_p`](field@SamplerOptions::adaptive_p), which llama.cpp cannot copy.
    pub fn try_clone(&self) -> Result<Self> {
        if self.options.adaptive_p.is_some() {
            let message = "llama.cpp cannot copy the state of adaptive_p; make a new sampler and tell it the text";
            return Err(refusal(message));
        }
        let raw = self.raw.try_clone().map_err(sample_error)?;
        let reasoning_ended = self.reasoning_ended.clone();
        Ok(Self { raw, model: self.model.clone(), options: Arc::clone(&self.options), reasoning_ended })
    }

    /// The seed in use; the one that was drawn if none was set. `None` if nothing is drawn.
    pub fn seed(&self) -> Option<u32> {
        self.raw.seed()
    }

    /// The chain in llama.cpp's words, such as `logits -> ?min-tokens -> top-k -> temp-ext -> dist`. A question mark is before a
    /// stage that does nothing with these options.
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
    /// [`Error::Sample`] when llama.cpp refuses.
    pub fn end_reasoning(&mut self) -> Result<bool> {
        match self.raw.end_reasoning() {
            Ok(()) => {
                // Where it cannot be counted, it cannot be saved either.
                self.reasoning_ended.extend(self.raw.counts().map(|counts| counts.generated));
                Ok(true)
            }
            Err(failed) if failed.is_refusal() => Ok(false),
            Err(failed) => Err(sample_error(failed)),
        }
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
        if !context.model().is_same(&self.model) {
            return Err(refusal("the context belongs to another model than the sampler"));
        }
        context.require_results()
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler").field("options", &self.options).finish_non_exhaustive()
    }
}

fn refusal(message: impl Into<String>) -> Error {
    Error::Sample { failure: Failure::new(message) }
}

fn sample_error(failed: Failed) -> Error {
    match failed.is_not_finite() {
        true => Error::NotFinite { failure: failed.into() },
        false => Error::Sample { failure: failed.into() },
    }
}
