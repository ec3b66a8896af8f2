//! A rendered conversation: the prompt, and what generating the answer must keep to.

use super::answer::AnswerParser;
use super::template::{chat_error, parse};
use crate::error::Result;
use crate::ffi::chat::{RawChat, RawTemplates};
use crate::sample::{Grammar, ReasoningTags, SamplerOptions, TemplateGrammar, Trigger};
use crate::token::Token;
use llama_sys as sys;
use serde::Deserialize;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What a [`ChatTemplate`](super::ChatTemplate) made of a [`ChatRequest`](super::ChatRequest).
pub struct Rendered {
    templates: Arc<RawTemplates>,
    inputs: String,
    /// The request's own grammar, which most templates pass over.
    grammar: Option<String>,
    form: Form,
    /// The handle this was read from, for the first parser; others render again.
    spare: Mutex<Option<RawChat>>,
}

/// What the shim writes; see shim.h.
#[derive(Debug, Deserialize)]
struct Form {
    prompt: String,
    #[serde(default)]
    grammar: String,
    #[serde(default)]
    grammar_kind: u32,
    #[serde(default)]
    grammar_lazy: bool,
    #[serde(default)]
    triggers: Vec<TriggerForm>,
    #[serde(default)]
    preserved_tokens: Vec<String>,
    #[serde(default)]
    stops: Vec<String>,
    #[serde(default)]
    generation_prompt: String,
    #[serde(default)]
    format: String,
    #[serde(default)]
    supports_thinking: bool,
    #[serde(default)]
    thinking_start: String,
    #[serde(default)]
    thinking_ends: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct TriggerForm {
    kind: u32,
    #[serde(default)]
    value: String,
    #[serde(default)]
    token: Option<i32>,
}

impl Rendered {
    pub(super) fn new(templates: Arc<RawTemplates>, inputs: String, grammar: Option<String>) -> Result<Self> {
        let chat = RawChat::new(&templates, &inputs)?;
        let form = parse(&chat.rendered().map_err(chat_error)?)?;
        Ok(Self { templates, inputs, grammar, form, spare: Mutex::new(Some(chat)) })
    }

    /// The text to generate from. It has the special tokens of the template in it, so tokenize it with
    /// [`Vocab::tokenize`](crate::Vocab::tokenize). A begin-of-text token that the vocabulary adds anyway is left out.
    pub fn prompt(&self) -> &str {
        &self.form.prompt
    }

    /// Texts that end the answer, besides the vocabulary's end-of-generation tokens.
    pub fn stops(&self) -> &[String] {
        &self.form.stops
    }

    /// What the prompt ends with that is already part of the answer's turn.
    pub fn generation_prompt(&self) -> &str {
        &self.form.generation_prompt
    }

    /// The name llama.cpp gives the form of the answer, for logs.
    pub fn format(&self) -> &str {
        &self.form.format
    }

    /// Whether the model has passages of reasoning that can be told from the rest.
    pub fn supports_thinking(&self) -> bool {
        self.form.supports_thinking
    }

    /// How it marks them.
    pub fn reasoning_tags(&self) -> Option<ReasoningTags> {
        let (start, ends) = (&self.form.thinking_start, &self.form.thinking_ends);
        let marked = !start.is_empty() && !ends.is_empty();
        marked.then(|| ReasoningTags { start: start.clone(), ends: ends.clone() })
    }

    /// What the answer must keep to: the schema or grammar of the request, or the form of tool calls.
    pub fn grammar(&self) -> Option<Grammar> {
        let form = &self.form;
        if form.grammar.is_empty() {
            return self.grammar.clone().map(Grammar::Gbnf);
        }
        let (gbnf, lazy) = (form.grammar.clone(), form.grammar_lazy);
        let triggers = form.triggers.iter().filter_map(TriggerForm::trigger).collect();
        // A grammar of the request's own begins with the answer, whatever the template has put before it.
        Some(match form.grammar_kind {
            sys::LSYS_GRAMMAR_USER if lazy => Grammar::Lazy { gbnf, triggers },
            sys::LSYS_GRAMMAR_USER => Grammar::Gbnf(gbnf),
            _ => Grammar::Template(TemplateGrammar { gbnf, lazy, triggers }),
        })
    }

    /// Whether the answer cannot end by itself without a call of a tool; text may come before it. Where calls are
    /// [required](super::ToolChoice::Required), that is so unless the template has no form for them.
    pub fn requires_calls(&self) -> bool {
        let form = &self.form;
        !form.grammar.is_empty() && !form.grammar_lazy && form.grammar_kind == sys::LSYS_GRAMMAR_TOOL_CALLS
    }

    /// Texts of control tokens that are part of the answer, such as those around tool calls: they must be shown to the
    /// [`AnswerParser`], though control tokens have no text otherwise (see
    /// [`Vocab::bytes_with_special`](crate::Vocab::bytes_with_special)).
    pub fn preserved_tokens(&self) -> &[String] {
        &self.form.preserved_tokens
    }

    /// Sets grammar, reasoning tags and generation prompt of these options to what the template asks for. A grammar of your own gives way to
    /// the template's, if it has one.
    pub fn apply(&self, mut options: SamplerOptions) -> SamplerOptions {
        options.grammar = self.grammar().or(options.grammar);
        options.reasoning_tags = self.reasoning_tags().or(options.reasoning_tags);
        options.generation_prompt.clone_from(&self.form.generation_prompt);
        options
    }

    /// A parser for one answer.
    ///
    /// # Errors
    /// [`Error::Chat`](crate::Error::Chat) for want of memory, [`Error::Busy`](crate::Error::Busy) as in
    /// [`ChatTemplate::render`](super::ChatTemplate::render).
    pub fn answer_parser(&self) -> Result<AnswerParser> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let chat = spare.map_or_else(|| RawChat::new(&self.templates, &self.inputs), Ok)?;
        Ok(AnswerParser::new(chat))
    }
}

impl TriggerForm {
    fn trigger(&self) -> Option<Trigger> {
        match self.kind {
            sys::LSYS_TRIGGER_TOKEN => self.token.map(|id| Trigger::Token(Token::new(id))),
            sys::LSYS_TRIGGER_WORD => Some(Trigger::Word(self.value.clone())),
            sys::LSYS_TRIGGER_PATTERN => Some(Trigger::Pattern(self.value.clone())),
            sys::LSYS_TRIGGER_PATTERN_FULL => Some(Trigger::FullPattern(self.value.clone())),
            _ => None,
        }
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendered").field("form", &self.form).finish_non_exhaustive()
    }
}
