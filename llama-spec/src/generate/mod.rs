//! Generating text with one sequence on the caller's thread: plain or speculative, the same text either way.

mod build;
mod event;
mod generation;

pub use build::GeneratorBuilder;
pub use event::{ContextFull, Event, StopReason};
pub use generation::Generation;

use crate::error::{Error, Result};
use crate::lookup::Store;
use crate::model::Model;
use crate::runner::{Answer, Drafting, Job, Kept, Runner};
use crate::sample::{Sampler, SamplerOptions};
use crate::spec::{Forced, Methods, Speculation, Stats};
use crate::token::Token;
use crate::vocab::Vocab;
use serde::{Deserialize, Serialize};

/// Generates text, one request after the other, and keeps what two requests in a row have in common.
///
/// ```
/// use llama_spec::{Generator, Model, GenerateOptions};
/// use llama_spec::spec::{Method, SpecConfig};
///
/// let target = Model::load(llama_spec_tests::zoo::file("target"))?;
/// let draft = Model::load(llama_spec_tests::zoo::file("draft-0.8"))?;
/// let speculation = SpecConfig::new([Method::DraftSimple]).fixed_length(4);
/// let mut generator = Generator::builder(&target).draft(&draft).speculation(speculation).build()?;
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
    runner: Runner,
    speculation: Speculation,
    /// Where texts are kept for lookup.
    store: Option<Store>,
    /// The numbers of the generations that are over.
    stats: Stats,
    /// The contexts broke down in the last generation.
    broken: bool,
}

impl Generator {
    /// Options for generating with this target.
    pub fn builder(target: &Model) -> GeneratorBuilder {
        GeneratorBuilder::new(target)
    }

    /// The target.
    pub fn model(&self) -> &Model {
        self.runner.model()
    }

    /// Room for prompt and answer together, in tokens.
    pub fn context_length(&self) -> u32 {
        self.runner.target().length_per_slot()
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
        check_prompt(self.model().vocab(), &prompt, self.context_length())?;
        let mut sampler = Sampler::new(self.model(), &options.sampler)?;
        prompt.iter().try_for_each(|token| sampler.accept_prompt(*token))?;
        if std::mem::take(&mut self.broken) {
            self.runner.restart().map_err(|broken| Error::Context { failure: broken.0 })?;
        }
        let (sender, events) = async_channel::unbounded();
        let config = self.runner.config();
        let limit = config.draft_max as usize;
        let drafting = Drafting {
            methods: Methods::of(&config.methods),
            limit,
            length: config.length,
            own: Vec::new(),
            forced: if config.is_off() { None } else { Forced::new(self.model(), &options.sampler) },
        };
        let answer = Answer::new(sender, options.max_tokens, &options.stop).with_visible(options.visible);
        let mut job = Job::new(0, prompt.clone(), sampler, answer, drafting);
        job.shelf = self.store.as_ref().map(|store| store.shelf(""));
        Ok(Generation::new(self, prompt, job, events))
    }

    /// Tells of texts that are over, and keeps them for lookup.
    fn tell_ends(&mut self) {
        self.runner.tell_ends();
        self.runner.take_kept().iter().for_each(Kept::put);
    }
}

/// Whether a prompt can be continued.
pub(crate) fn check_prompt(vocab: Vocab<'_>, prompt: &[Token], context: u32) -> Result<()> {
    if prompt.is_empty() {
        return Err(Error::EmptyPrompt);
    }
    if prompt.len() >= context as usize {
        return Err(Error::PromptTooLong { tokens: prompt.len(), context: context as usize });
    }
    prompt.iter().try_for_each(|token| vocab.check(*token).map(drop))
}

/// What to generate.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
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
