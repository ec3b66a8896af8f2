//! Generating text with one sequence: plain or speculative, the same text either way.

mod build;
mod engine;
mod event;
mod round;
mod stop;

pub use build::GeneratorBuilder;
pub use event::{Event, StopReason};
pub use round::Generation;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::sample::{Sampler, SamplerOptions};
use crate::spec::{SpecConfig, Speculation, Stats};
use crate::token::Token;
use engine::Engine;

/// Generates text, one request after the other, and keeps what two requests in a row have in common.
///
/// ```
/// use llama_spec::{Generator, Model, GenerateOptions};
/// use llama_spec::spec::{Method, SpecConfig};
///
/// let target = Model::load(llama_spec_tests::zoo::file("target"))?;
/// let draft = Model::load(llama_spec_tests::zoo::file("draft-0.8"))?;
/// let mut generator = Generator::builder(&target).draft(&draft).speculation(SpecConfig::new([Method::DraftSimple])).build()?;
/// let mut text = String::new();
/// for event in generator.generate("Hello", GenerateOptions::greedy().max_tokens(20))? {
///     text += event?.text();
/// }
/// assert_eq!(text.len(), 20);
/// assert!(generator.stats().accepted > 0);
/// # Ok::<_, llama_spec::Error>(())
/// ```
#[derive(Debug)]
pub struct Generator {
    engine: Engine,
    config: SpecConfig,
    speculation: Speculation,
    /// What the memories hold, in order. Not to be relied on while `dirty`.
    history: Vec<Token>,
    /// A round failed, so the memories are emptied before the next generation.
    dirty: bool,
    stats: Stats,
}

impl Generator {
    /// Options for generating with this target.
    pub fn builder(target: &Model) -> GeneratorBuilder<'_> {
        GeneratorBuilder::new(target)
    }

    /// The target.
    pub fn model(&self) -> &Model {
        self.target().model()
    }

    /// Room for prompt and answer together, in tokens.
    pub fn context_length(&self) -> u32 {
        self.target().length_per_slot()
    }

    /// What speculation came to.
    pub fn speculation(&self) -> &Speculation {
        &self.speculation
    }

    /// The numbers of all generations so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Continues a text. Nothing is computed until the first event is asked for; dropping the iterator cancels.
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::Tokenize`], and what [`Sampler::new`] refuses.
    pub fn generate(&mut self, prompt: &str, options: GenerateOptions) -> Result<Generation<'_>> {
        let tokens = self.model().vocab().tokenize(prompt)?;
        self.generate_tokens(tokens, options)
    }

    /// Continues tokens. A prompt that begins as the last one did, answer included, is computed only from where they differ.
    ///
    /// # Errors
    /// As [`Generator::generate`].
    pub fn generate_tokens(&mut self, prompt: Vec<Token>, options: GenerateOptions) -> Result<Generation<'_>> {
        if prompt.is_empty() {
            return Err(Error::EmptyPrompt);
        }
        let (tokens, context) = (prompt.len(), self.context_length() as usize);
        if tokens >= context {
            return Err(Error::PromptTooLong { tokens, context });
        }
        let vocab = self.model().vocab();
        prompt.iter().try_for_each(|token| vocab.check(*token).map(drop))?;
        let mut sampler = Sampler::new(self.model(), &options.sampler)?;
        prompt.iter().try_for_each(|token| sampler.accept_prompt(*token))?;
        self.keep_common_prefix(&prompt)?;
        Ok(Generation::new(self, prompt, sampler, &options))
    }

    fn target(&self) -> &Context {
        self.engine.target()
    }

    /// Takes out of the memories what is not the beginning of this prompt. At least the prompt's last token is left to
    /// compute, since its logits are needed.
    fn keep_common_prefix(&mut self, prompt: &[Token]) -> Result<()> {
        let common =
            self.history.iter().zip(&prompt[..prompt.len() - 1]).take_while(|(had, wanted)| had == wanted).count();
        if self.dirty {
            self.engine.clear()?;
            self.history.clear();
            self.dirty = false;
        } else if common < self.history.len() {
            self.dirty = true;
            let left = self.engine.cut(&self.history, common)?;
            self.history.truncate(left);
            self.dirty = false;
        }
        Ok(())
    }

    /// A drafter failed: the request goes on without it, and says so.
    fn stop_speculating(&mut self, what: &str, failure: &crate::error::Failure) {
        let reason = format!("{what}: {failure}");
        tracing::warn!(%reason, "speculation is off from here on");
        self.engine.stop();
        self.speculation.effective.clear();
        self.speculation.reason = Some(reason);
    }
}

/// What to generate.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GenerateOptions {
    /// How tokens are chosen.
    pub sampler: SamplerOptions,
    /// The most tokens to generate. Default: until the context is full.
    pub max_tokens: Option<u32>,
    /// Strings that end the text; they are not part of it.
    pub stop: Vec<String>,
    /// Control tokens whose text is part of the answer, such as the marks of a chat template that
    /// [`Rendered::preserved_tokens`](crate::chat::Rendered::preserved_tokens) names. Default: none, control tokens have no
    /// text.
    pub visible: Vec<Token>,
}

impl GenerateOptions {
    /// The most probable token each time.
    pub fn greedy() -> Self {
        Self::sampled(SamplerOptions::greedy())
    }

    /// Tokens chosen by this sampler.
    pub fn sampled(sampler: SamplerOptions) -> Self {
        Self { sampler, ..Self::default() }
    }

    /// Sets [`GenerateOptions::max_tokens`](field@GenerateOptions::max_tokens).
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets [`GenerateOptions::stop`](field@GenerateOptions::stop).
    pub fn stop(mut self, strings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stop = strings.into_iter().map(Into::into).collect();
        self
    }

    /// Sets [`GenerateOptions::visible`](field@GenerateOptions::visible).
    pub fn visible(mut self, tokens: impl Into<Vec<Token>>) -> Self {
        self.visible = tokens.into();
        self
    }
}
