//! What an engine is asked for.

use super::Priority;
use crate::chat::Rendered;
use crate::error::{Error, Result};
use crate::generate::{ContextFull, GenerateOptions};
use crate::sample::SamplerOptions;
use crate::spec::{DraftLength, Method, Methods, SpecConfig};
use crate::token::Token;
use crate::vocab::Vocab;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most tokens whose log-probabilities are reported with each token.
const TOP_LOGPROBS: u32 = 100;

/// A text to continue, and how.
///
/// ```
/// use llama_spec::{Engine, ModelFile, Request, SamplerOptions};
/// # let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
/// # let engine = Engine::builder(target).build()?;
/// let request = Request::prompt("Once upon a time")
///     .sampler(SamplerOptions::default().temperature(0.6).seed(7))
///     .max_tokens(16)
///     .stop(["\n\n"]);
/// let output = engine.generate(request)?.output()?;
/// println!("{} ({:?})", output.text, output.reason);
/// # Ok::<_, llama_spec::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// What to continue.
    pub prompt: Prompt,
    /// How tokens are chosen, and where the text ends.
    pub options: GenerateOptions,
    /// Who may draft for it. Default: everybody that the engine has.
    pub drafting: RequestDrafting,
    /// How urgent it is.
    pub priority: Priority,
    /// How long it may take, waiting included. What was generated until then is the answer.
    pub deadline: Option<Duration>,
    /// Report the log-probability of each token, and of so many of the most probable ones, at most 100: of the target's own
    /// distribution, before anything is filtered or penalised. Default: no.
    pub logprobs: Option<u32>,
    /// What happens when prompt and answer fill the context.
    pub context_full: ContextFull,
    /// Report after the tokens of each round where the sampler stands ([`Event::Checkpoint`](crate::Event::Checkpoint)), so that
    /// the text can go on from there in another process. Default: no.
    #[serde(default)]
    pub checkpoints: bool,
    /// For whom it is: where an engine has a [store](crate::EngineBuilder::lookup_store), its text is kept for other requests of the
    /// same tenant and of nobody else. Any name will do. Default: none; all requests without one share their texts.
    #[serde(default)]
    pub tenant: Option<String>,
}

/// A text to continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Prompt {
    /// Text; special tokens are added and recognised as by [`Vocab::tokenize`].
    Text(String),
    /// Tokens as they are.
    Tokens(Vec<Token>),
}

/// Who may draft for a request, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct RequestDrafting {
    /// Who may draft.
    pub drafters: Drafters,
    /// The longest draft in tokens; the engine's own limit holds as well. 0 is as good as [`Drafters::Off`].
    pub draft_max: Option<u32>,
    /// How long drafts are. Default: as the engine was [told](SpecConfig::length).
    pub length: Option<DraftLength>,
}

/// Who may draft for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Drafters {
    /// Everybody that the engine has.
    #[default]
    Auto,
    /// Nobody.
    Off,
    /// These methods of those that the engine was made with.
    Methods(Vec<Method>),
    /// The engine's own drafter with this number, in the order in which they were added.
    Own(u8),
}

impl Request {
    /// Continues a text, with the usual sampling.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self::new(Prompt::Text(text.into()))
    }

    /// Continues tokens.
    pub fn tokens(tokens: impl Into<Vec<Token>>) -> Self {
        Self::new(Prompt::Tokens(tokens.into()))
    }

    /// Continues a conversation that a chat template has rendered: with its stop strings, and its grammar if it has one. The
    /// parser for the answer is [`Rendered::answer_parser`].
    ///
    /// # Errors
    /// [`Error::Tokenize`](crate::Error::Tokenize) for a mark of the template that cannot be turned into tokens.
    pub fn chat(rendered: &Rendered, vocab: Vocab<'_>) -> Result<Self> {
        let mut visible = Vec::new();
        for mark in rendered.preserved_tokens() {
            // What is several tokens is text, and shown anyway.
            if let [token] = vocab.tokenize_with(mark.as_bytes(), false, true)?[..] {
                visible.push(token);
            }
        }
        let request = Self::prompt(rendered.prompt()).stop(rendered.stops().iter().cloned()).visible(visible);
        let sampler = rendered.apply(request.options.sampler.clone());
        Ok(request.sampler(sampler))
    }

    fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            options: GenerateOptions::default(),
            drafting: RequestDrafting::default(),
            priority: Priority::default(),
            deadline: None,
            logprobs: None,
            context_full: ContextFull::default(),
            checkpoints: false,
            tenant: None,
        }
    }

    /// Sets [`Request::options`](field@Request::options) as a whole.
    pub fn options(mut self, options: GenerateOptions) -> Self {
        self.options = options;
        self
    }

    /// Takes the most probable token each time.
    pub fn greedy(self) -> Self {
        self.sampler(SamplerOptions::greedy())
    }

    /// Chooses tokens in this way.
    pub fn sampler(mut self, sampler: SamplerOptions) -> Self {
        self.options.sampler = sampler;
        self
    }

    /// The most tokens to generate. Default: until the context is full.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.options.max_tokens = Some(tokens);
        self
    }

    /// Strings that end the text; they are not part of it.
    pub fn stop(mut self, strings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.stop = strings.into_iter().map(Into::into).collect();
        self
    }

    /// Control tokens whose text is part of the answer.
    pub fn visible(mut self, tokens: impl Into<Vec<Token>>) -> Self {
        self.options.visible = tokens.into();
        self
    }

    /// Who may draft for it.
    pub fn drafters(mut self, drafters: Drafters) -> Self {
        self.drafting.drafters = drafters;
        self
    }

    /// The longest draft in tokens.
    pub fn draft_max(mut self, tokens: u32) -> Self {
        self.drafting.draft_max = Some(tokens);
        self
    }

    /// How long drafts are.
    pub fn draft_length(mut self, length: DraftLength) -> Self {
        self.drafting.length = Some(length);
        self
    }

    /// How urgent it is.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// How long it may take, waiting included.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// Reports log-probabilities, with those of the `top` most probable tokens.
    pub fn logprobs(mut self, top: u32) -> Self {
        self.logprobs = Some(top);
        self
    }

    /// What happens when prompt and answer fill the context.
    pub fn context_full(mut self, policy: ContextFull) -> Self {
        self.context_full = policy;
        self
    }

    /// Reports where the sampler stands after each round.
    pub fn checkpoints(mut self, checkpoints: bool) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// For whom it is.
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.tenant = Some(name.into());
        self
    }

    /// The prompt in tokens.
    pub(crate) fn prompt_tokens(&self, vocab: Vocab<'_>) -> Result<Vec<Token>> {
        match &self.prompt {
            Prompt::Text(text) => vocab.tokenize(text),
            Prompt::Tokens(tokens) => Ok(tokens.clone()),
        }
    }

    /// Checks what no other type checks.
    pub(crate) fn validate(&self) -> Result<()> {
        match self.logprobs {
            Some(top) if top > TOP_LOGPROBS => {
                let expected = format!("0 to {TOP_LOGPROBS}");
                Err(Error::Setting { setting: "logprobs", value: top.to_string(), expected })
            }
            _ => Ok(()),
        }
    }

    /// The methods that may draft for it, of those an engine has, and its own drafters by number.
    ///
    /// # Errors
    /// [`Error::Speculation`] for a drafter that the engine does not have.
    pub(crate) fn allowed(&self, config: &SpecConfig, own: usize) -> Result<(Methods, Vec<u8>)> {
        let loaded = Methods::of(&config.methods);
        let all = || (0..own as u8).collect();
        let missing = |method: String| {
            let loaded = if config.is_off() { "none".into() } else { config.names() };
            let own = if own == 0 { "none".into() } else { own.to_string() };
            let reason = format!("this engine was not made with it; it has: {loaded}; own drafters: {own}");
            Err(Error::Speculation { method, reason })
        };
        match &self.drafting.drafters {
            Drafters::Auto => Ok((loaded, all())),
            Drafters::Off => Ok((Methods::NONE, Vec::new())),
            Drafters::Own(number) if usize::from(*number) < own => Ok((Methods::NONE, vec![*number])),
            Drafters::Own(number) => missing(format!("own drafter {number}")),
            Drafters::Methods(methods) => match methods.iter().find(|method| !loaded.contains(**method)) {
                Some(method) => missing(method.to_string()),
                None => Ok((Methods::of(methods), Vec::new())),
            },
        }
    }
}

impl From<&str> for Request {
    fn from(text: &str) -> Self {
        Self::prompt(text)
    }
}

impl From<String> for Request {
    fn from(text: String) -> Self {
        Self::prompt(text)
    }
}
