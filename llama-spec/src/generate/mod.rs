//! Generating text with one sequence: plain or speculative, the same text either way.

mod event;
mod round;
mod stop;

pub use event::{Event, StopReason};
pub use round::Generation;

use crate::context::{Context, ContextOptions};
use crate::error::{Error, Result};
use crate::ffi::speculation::RawSpeculation;
use crate::memory::Rollback;
use crate::model::Model;
use crate::sample::{Sampler, SamplerOptions};
use crate::spec::{Method, SpecConfig, Speculation, Stats};
use crate::token::{Slot, Token};

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
    engine: RawSpeculation,
    config: SpecConfig,
    speculation: Speculation,
    rollback: Rollback,
    /// What the memories hold, in order. Not to be relied on while `dirty`.
    history: Vec<Token>,
    /// A round failed, so the memories are emptied before the next generation.
    dirty: bool,
    stats: Stats,
}

/// How a [`Generator`] is made.
#[derive(Debug)]
pub struct GeneratorBuilder<'m> {
    target: &'m Model,
    draft: Option<&'m Model>,
    config: Option<SpecConfig>,
    context: ContextOptions,
    draft_context: Option<ContextOptions>,
}

impl GeneratorBuilder<'_> {
    /// The methods of speculation. Default: the draft model if there is one, else none.
    pub fn speculation(mut self, config: SpecConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Options of the target's context. One slot is used, whatever they say.
    pub fn context(mut self, options: ContextOptions) -> Self {
        self.context = options;
        self
    }

    /// Options of the draft's context, such as its threads. It always gets the room of the target's. Default: as the target's.
    pub fn draft_context(mut self, options: ContextOptions) -> Self {
        self.draft_context = Some(options);
        self
    }

    /// Makes the contexts and the drafters.
    ///
    /// # Errors
    /// [`Error::Speculation`] when the methods cannot be had with these models, with the reason; else as [`Model::context`].
    pub fn build(self) -> Result<Generator> {
        let default = if self.draft.is_some() { SpecConfig::new([Method::DraftSimple]) } else { SpecConfig::off() };
        let config = self.config.unwrap_or(default);
        config.validate()?;
        let impossible = |reason: &str| Error::Speculation { method: config.names(), reason: reason.to_owned() };
        if let Some(method) =
            config.methods.iter().find(|method| !method.is_lookup() && **method != Method::DraftSimple)
        {
            let reason = "drafting from the target's hidden states is not available for single generations";
            return Err(Error::Speculation { method: method.to_string(), reason: reason.into() });
        }
        match (self.draft, config.needs_draft()) {
            (None, true) => return Err(impossible("it needs a draft model, and none was given")),
            (Some(_), false) if !config.is_off() => {
                return Err(impossible(
                    "a draft model was given, but none of the methods uses it; add draft-simple or leave it out",
                ));
            }
            _ => {}
        }
        let options = self.context.slots(1);
        let mut target = self.target.context(&options)?;
        let rollback = target.probe_rollback()?;
        let engine = if config.is_off() {
            RawSpeculation::plain(target)
        } else {
            if rollback != Rollback::Partial {
                return Err(impossible(
                    "rejected tokens cannot be taken out of this target's memory one by one (it is recurrent or hybrid)",
                ));
            }
            let draft = self.draft.map(|draft| {
                let own = self.draft_context.unwrap_or_else(|| options.clone()).slots(1);
                draft.context(&own.length_per_slot(target.length_per_slot()).batch(target.batch_size()))
            });
            let mut draft = draft.transpose()?;
            if let Some(draft) = &mut draft
                && draft.probe_rollback()? != Rollback::Partial
            {
                return Err(impossible("the draft model is recurrent or hybrid: what it drafted cannot be taken back"));
            }
            let engine = RawSpeculation::new(target, draft, &config);
            engine.map_err(|failed| impossible(&failed.failure.to_string()))?
        };
        let speculation =
            Speculation { requested: config.methods.clone(), effective: in_order(&config.methods), reason: None };
        tracing::info!(requested = %config.names(), active = speculation.is_active(), "speculation");
        let (history, stats) = (Vec::new(), Stats::default());
        Ok(Generator { engine, config, speculation, rollback, history, dirty: false, stats })
    }
}

impl<'m> GeneratorBuilder<'m> {
    /// A draft model of the same vocabulary, for `draft-simple`.
    pub fn draft(mut self, draft: &'m Model) -> Self {
        self.draft = Some(draft);
        self
    }
}

/// The methods in the order in which they are asked, each once.
fn in_order(methods: &[Method]) -> Vec<Method> {
    Method::ALL.into_iter().filter(|method| methods.contains(method)).collect()
}

impl Generator {
    /// Options for generating with this target.
    pub fn builder(target: &Model) -> GeneratorBuilder<'_> {
        GeneratorBuilder { target, draft: None, config: None, context: ContextOptions::default(), draft_context: None }
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
        let cut = common < self.history.len();
        if self.dirty || (cut && (common == 0 || self.rollback != Rollback::Partial)) {
            self.engine.clear()?;
            self.history.clear();
            self.dirty = false;
        } else if cut {
            self.engine.remove(Slot::FIRST, common as u32)?;
            self.history.truncate(common);
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
