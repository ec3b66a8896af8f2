//! Taking an answer apart while it is being generated.

use super::message::{Content, Message, Role};
use super::template::{chat_error, parse};
use super::tool::ToolCall;
use crate::error::{Failure, Result};
use crate::ffi::chat::RawChat;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a piece of the answer added to the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// To its reasoning.
    Reasoning(String),
    /// To its content.
    Content(String),
    /// To one of its tool calls.
    ToolCall {
        /// Which one, counted from zero.
        index: usize,
        /// The id, when it became known.
        id: Option<String>,
        /// The name, when it became known or longer: all of it so far.
        name: Option<String>,
        /// What the arguments became longer by.
        arguments: String,
    },
}

/// Takes an answer apart into content, reasoning and tool calls.
///
/// ```
/// use llama_spec::Model;
/// use llama_spec::chat::{ChatRequest, ChatTemplate, Delta, Message};
/// use llama_spec_tests::zoo::Llama;
///
/// let model = Model::load(Llama::target(1).cached()?)?;
/// let rendered = ChatTemplate::chatml(&model)?.render(&ChatRequest::new(vec![Message::user("Hello!")]))?;
/// let mut parser = rendered.answer_parser()?;
/// assert_eq!(parser.feed("Good ", false)?, [Delta::Content("Good ".into())]);
/// assert_eq!(parser.feed("day.", true)?, [Delta::Content("day.".into())]);
/// assert_eq!(parser.message(), &Message::assistant("Good day."));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct AnswerParser {
    raw: RawChat,
    message: Message,
    finished: bool,
}

/// What the shim writes; see shim.h.
#[derive(Deserialize)]
struct Form {
    message: MessageForm,
    #[serde(default)]
    deltas: Vec<DeltaForm>,
}

#[derive(Deserialize)]
struct MessageForm {
    #[serde(default)]
    content: String,
    #[serde(default)]
    reasoning_content: String,
    #[serde(default)]
    tool_calls: Vec<CallForm>,
}

#[derive(Default, Deserialize)]
struct CallForm {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Deserialize)]
struct DeltaForm {
    #[serde(default)]
    content: String,
    #[serde(default)]
    reasoning_content: String,
    #[serde(default)]
    tool_call_index: Option<usize>,
    #[serde(default)]
    tool_call: Option<CallForm>,
}

impl AnswerParser {
    pub(super) fn new(raw: RawChat) -> Self {
        let message = Message { content: None, ..Message::assistant("") };
        Self { raw, message, finished: false }
    }

    /// Adds a piece of the answer, of complete characters, and gives what it added to the message. Text that may be the
    /// beginning of a tag is held back until it is clear what it is. With `last` the answer is complete.
    ///
    /// All of the answer is parsed again each time; with very long answers, feed several tokens at once.
    ///
    /// # Errors
    /// [`Error::Chat`](crate::Error::Chat) when the answer does not have the form the template asks for: then what is known is
    /// in [`message`](Self::message), and the text can be shown as it is. Also after the last piece.
    pub fn feed(&mut self, piece: &str, last: bool) -> Result<Vec<Delta>> {
        if self.finished {
            return Err(chat_error(Failure::new("the answer has already ended")));
        }
        self.finished = last;
        let form: Form = parse(&self.raw.feed(piece, last).map_err(chat_error)?)?;
        self.message.content = Some(form.message.content).filter(|text| !text.is_empty()).map(Content::Text);
        self.message.reasoning_content = Some(form.message.reasoning_content).filter(|text| !text.is_empty());
        self.message.tool_calls = form.message.tool_calls.into_iter().map(CallForm::call).collect();
        Ok(form.deltas.into_iter().flat_map(DeltaForm::deltas).collect())
    }

    /// The message so far, of the role [`Role::Assistant`].
    pub fn message(&self) -> &Message {
        debug_assert_eq!(self.message.role, Role::Assistant);
        &self.message
    }

    /// The message.
    pub fn into_message(self) -> Message {
        self.message
    }

    /// Whether the last piece has been fed.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
}

impl CallForm {
    fn call(self) -> ToolCall {
        ToolCall { id: known(self.id), name: self.name, arguments: self.arguments }
    }
}

impl DeltaForm {
    fn deltas(self) -> impl Iterator<Item = Delta> {
        let call = self.tool_call_index.map(|index| {
            let CallForm { id, name, arguments } = self.tool_call.unwrap_or_default();
            Delta::ToolCall { index, id: known(id), name: known(name), arguments }
        });
        let reasoning = known(self.reasoning_content).map(Delta::Reasoning);
        reasoning.into_iter().chain(known(self.content).map(Delta::Content)).chain(call)
    }
}

fn known(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl fmt::Debug for AnswerParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerParser")
            .field("message", &self.message)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}
