//! What a chat template is asked to render.

use super::message::{Message, null_is_default};
use super::tool::{Tool, ToolChoice};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What happens to the passages in which a model thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningFormat {
    /// They stay in the content, tags and all.
    None,
    /// They go to `reasoning_content`, in whatever way the template marks them.
    #[default]
    Auto,
    /// As [`ReasoningFormat::Auto`].
    Deepseek,
    /// As [`ReasoningFormat::Auto`], but in the content while streaming.
    DeepseekLegacy,
}

/// Whether the last message is to be continued instead of answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "ContinuationForm", into = "ContinuationForm")]
pub enum Continuation {
    /// No.
    #[default]
    No,
    /// Yes: its reasoning if it has nothing else, its content otherwise.
    Auto,
    /// Its content.
    Content,
    /// Its reasoning.
    Reasoning,
}

/// In JSON it is `false`, `true`, or the name of a field.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ContinuationForm {
    Flag(bool),
    Field(ContinuedField),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ContinuedField {
    Content,
    ReasoningContent,
}

impl From<ContinuationForm> for Continuation {
    fn from(form: ContinuationForm) -> Self {
        match form {
            ContinuationForm::Flag(false) => Self::No,
            ContinuationForm::Flag(true) => Self::Auto,
            ContinuationForm::Field(ContinuedField::Content) => Self::Content,
            ContinuationForm::Field(ContinuedField::ReasoningContent) => Self::Reasoning,
        }
    }
}

impl From<Continuation> for ContinuationForm {
    fn from(continuation: Continuation) -> Self {
        match continuation {
            Continuation::No => Self::Flag(false),
            Continuation::Auto => Self::Flag(true),
            Continuation::Content => Self::Field(ContinuedField::Content),
            Continuation::Reasoning => Self::Field(ContinuedField::ReasoningContent),
        }
    }
}

/// A conversation, and how it is to be rendered. The setters take and return the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The conversation so far, at least one message.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it calls them.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Whether it may call several at once. Default: off.
    #[serde(default)]
    pub parallel_tool_calls: bool,
    /// The answer must be a JSON value of this JSON Schema. Not together with `grammar`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    /// The answer must fit this GBNF grammar. Not together with `json_schema` or tools that may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<String>,
    /// Whether the prompt ends with what begins an answer. Default: on.
    #[serde(default = "on")]
    pub add_generation_prompt: bool,
    /// Whether the model may think before it answers, where its template has that choice. Default: on.
    #[serde(default = "on")]
    pub enable_thinking: bool,
    /// What happens to its thoughts.
    #[serde(default)]
    pub reasoning_format: ReasoningFormat,
    /// Further variables of the template, as `chat_template_kwargs` elsewhere.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub template_arguments: Map<String, Value>,
    /// Whether the last message, the model's own, is to be continued.
    #[serde(default)]
    pub continue_final_message: Continuation,
}

fn on() -> bool {
    true
}

macro_rules! setters {
    ($($name:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("Sets [`", stringify!($name), "`](field@Self::", stringify!($name), ").")]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name;
            self
        }
    )*};
}

impl ChatRequest {
    /// A request to answer these messages.
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::default(),
            parallel_tool_calls: false,
            json_schema: None,
            grammar: None,
            add_generation_prompt: true,
            enable_thinking: true,
            reasoning_format: ReasoningFormat::default(),
            template_arguments: Map::new(),
            continue_final_message: Continuation::default(),
        }
    }

    setters! {
        tools: Vec<Tool>,
        tool_choice: ToolChoice,
        parallel_tool_calls: bool,
        add_generation_prompt: bool,
        enable_thinking: bool,
        reasoning_format: ReasoningFormat,
        continue_final_message: Continuation,
    }

    /// Sets [`json_schema`](field@Self::json_schema).
    pub fn json_schema(mut self, schema: Value) -> Self {
        self.json_schema = Some(schema);
        self
    }

    /// Sets [`grammar`](field@Self::grammar).
    pub fn grammar(mut self, gbnf: impl Into<String>) -> Self {
        self.grammar = Some(gbnf.into());
        self
    }

    /// Sets a variable of the template.
    pub fn template_argument(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.template_arguments.insert(name.into(), value.into());
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let refuse = |setting, value: &str, expected: &str| {
            Err(Error::Setting { setting, value: value.to_owned(), expected: expected.to_owned() })
        };
        let calls = !self.tools.is_empty() && self.tool_choice != ToolChoice::None;
        let empty = |message: &&Message| message.content.is_none() && message.tool_calls.is_empty();
        if self.messages.is_empty() {
            return refuse("messages", "[]", "at least one message");
        }
        if self.messages.iter().find(empty).is_some() {
            return refuse("messages", "a message that says nothing", "content or tool calls in each message");
        }
        if self.grammar.is_some() && (self.json_schema.is_some() || calls) {
            return refuse(
                "grammar",
                "set",
                "no json_schema and no tools beside it, since each is a grammar of its own",
            );
        }
        if self.continue_final_message != Continuation::No
            && self.messages.last().is_some_and(|last| last.role != super::Role::Assistant)
        {
            return refuse("continue_final_message", "set", "a last message of the assistant");
        }
        if self.tool_choice == ToolChoice::Required && self.tools.is_empty() {
            return refuse("tool_choice", "required", "at least one tool");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_survive_json() {
        let request = ChatRequest::new(vec![Message::user("Hi")])
            .tools(vec![Tool::new("now", "The time", json!({ "type": "object", "properties": {} }))])
            .tool_choice(ToolChoice::Required)
            .template_argument("level", "high")
            .reasoning_format(ReasoningFormat::DeepseekLegacy)
            .continue_final_message(Continuation::Reasoning);
        let form = serde_json::to_value(&request).unwrap();
        assert_eq!(form["reasoning_format"], "deepseek-legacy");
        assert_eq!(form["continue_final_message"], "reasoning_content");
        assert_eq!(form["tool_choice"], "required");
        assert_eq!(serde_json::from_value::<ChatRequest>(form).unwrap(), request);
        let short: ChatRequest =
            serde_json::from_value(json!({ "messages": [{ "role": "user", "content": "Hi" }] })).unwrap();
        assert_eq!(short, ChatRequest::new(vec![Message::user("Hi")]));
    }

    #[test]
    fn contradictions_are_named() {
        let refused = |request: ChatRequest| match request.validate() {
            Err(Error::Setting { setting, .. }) => setting,
            other => panic!("{request:?} gave {other:?}"),
        };
        let request = || ChatRequest::new(vec![Message::user("Hi")]);
        let tool = || vec![Tool::new("now", "", json!({}))];
        assert_eq!(refused(ChatRequest::new(vec![])), "messages");
        assert_eq!(refused(ChatRequest::new(vec![Message::calls(vec![])])), "messages");
        assert_eq!(refused(request().grammar("root ::= \"a\"").json_schema(json!({}))), "grammar");
        assert_eq!(refused(request().grammar("root ::= \"a\"").tools(tool())), "grammar");
        assert_eq!(refused(request().continue_final_message(Continuation::Auto)), "continue_final_message");
        assert_eq!(refused(request().tool_choice(ToolChoice::Required)), "tool_choice");
        assert!(request().grammar("root ::= \"a\"").tools(tool()).tool_choice(ToolChoice::None).validate().is_ok());
    }
}
