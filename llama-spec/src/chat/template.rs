//! Chat templates: where they come from, and rendering.

use super::rendered::Rendered;
use super::request::ChatRequest;
use crate::error::{Error, Failure, Result};
use crate::ffi::chat::RawTemplates;
use crate::model::Model;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A chat template, a program in the language Jinja that comes with a model. Cloning it shares it.
///
/// Templates are code of whoever made the model file. llama.cpp runs them in an interpreter of its own that reaches nothing
/// outside, but a hostile one can take long.
#[derive(Clone)]
pub struct ChatTemplate(Arc<RawTemplates>);

impl ChatTemplate {
    /// The model's own template; if it has one for tools besides, that one is used when there are tools.
    ///
    /// # Errors
    /// [`Error::Chat`] when the model has none, or one that is broken.
    pub fn from_model(model: &Model) -> Result<Self> {
        Self::load(model, None)
    }

    /// A template given as text, with the special tokens of the model.
    ///
    /// # Errors
    /// [`Error::Chat`] when the template is broken.
    pub fn from_source(model: &Model, source: &str) -> Result<Self> {
        if source.trim().is_empty() {
            return Err(chat_error(Failure::new("the template is empty")));
        }
        Self::load(model, Some(source))
    }

    /// The ChatML template, for models that were trained with it but do not say so.
    ///
    /// # Errors
    /// [`Error::Chat`] for want of memory.
    pub fn chatml(model: &Model) -> Result<Self> {
        Self::load(model, Some("chatml"))
    }

    fn load(model: &Model, source: Option<&str>) -> Result<Self> {
        match RawTemplates::load(model, source)? {
            Ok(raw) => Ok(Self(Arc::new(raw))),
            Err(failed) if failed.is_refusal() && source.is_none() => {
                let message = "the model has no chat template; give one, or use ChatML if it was trained with that";
                Err(chat_error(Failure::new(message)))
            }
            Err(failed) => Err(chat_error(failed)),
        }
    }

    /// The model it was made for.
    pub fn model(&self) -> &Model {
        self.0.model()
    }

    /// Its text.
    ///
    /// # Errors
    /// [`Error::Chat`] for want of memory.
    pub fn source(&self) -> Result<String> {
        self.0.source().map_err(chat_error)
    }

    /// What it has a place for, as llama.cpp finds out by trying: `supports_tools`, `supports_tool_calls`,
    /// `supports_system_role`, `supports_parallel_tool_calls` and others, each true or false.
    ///
    /// # Errors
    /// [`Error::Chat`] for want of memory.
    pub fn capabilities(&self) -> Result<Map<String, Value>> {
        parse(&self.0.capabilities().map_err(chat_error)?)
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`Error::Setting`] when parts of the request contradict each other, [`Error::Chat`] when the template refuses the
    /// conversation, with its words, and [`Error::Busy`] when those of other requests take too long: one is rendered at a time.
    pub fn render(&self, request: &ChatRequest) -> Result<Rendered> {
        request.validate()?;
        let inputs = serde_json::to_string(request).map_err(|error| chat_error(Failure::new(error.to_string())))?;
        Rendered::new(Arc::clone(&self.0), inputs, request.grammar.clone())
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate").field("model", &self.model().path()).finish_non_exhaustive()
    }
}

pub(super) fn chat_error(failure: impl Into<Failure>) -> Error {
    Error::Chat { failure: failure.into() }
}

/// Reads what the shim wrote.
pub(super) fn parse<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json)
        .map_err(|error| chat_error(Failure::new(format!("llama.cpp's answer is not understood: {error}"))))
}
