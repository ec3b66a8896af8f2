//! Messages of a conversation.

use super::tool::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Who says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions before the conversation.
    System,
    /// As [`Role::System`], for templates that tell them apart.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
    /// Another role that a template knows.
    #[serde(untagged)]
    Other(String),
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// As one text.
    Text(String),
    /// In parts, which templates that take only text get joined by line feeds.
    Parts(Vec<ContentPart>),
}

/// A part of what a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Shows a tool whose description was held back.
    ToolReference {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Content {
    /// The text, parts joined by line feeds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Self::Text(text) => return f.write_str(text),
            Self::Parts(parts) => parts,
        };
        let texts = parts.iter().filter_map(|part| match part {
            ContentPart::Text { text } => Some(text),
            ContentPart::ToolReference { .. } => None,
        });
        for (index, text) in texts.enumerate() {
            f.write_str(if index > 0 { "\n" } else { "" })?;
            f.write_str(text)?;
        }
        Ok(())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One message. Written to JSON it has the form of OpenAI's interface, with `reasoning_content` as DeepSeek added it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What it says; none when it only calls tools.
    #[serde(default)]
    pub content: Option<Content>,
    /// What the model thought before, without its tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The tools the model calls.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call this message is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The name of the tool whose result it is, for templates that want it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Other fields, for templates that read them.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Many clients write `null` for what is not there.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Message {
    /// A message of any role.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self {
            role,
            content: Some(content.into()),
            reasoning_content: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            extra: Map::new(),
        }
    }

    /// Instructions.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Role::System, content)
    }

    /// A message of the person.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// An answer of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// An answer of the model that calls tools.
    pub fn calls(tool_calls: Vec<ToolCall>) -> Self {
        Self { content: None, tool_calls, ..Self::new(Role::Assistant, "") }
    }

    /// The result of the tool call with this id.
    pub fn tool_result(id: impl Into<String>, content: impl Into<Content>) -> Self {
        Self { tool_call_id: Some(id.into()), ..Self::new(Role::Tool, content) }
    }

    /// Adds what the model thought before it answered.
    pub fn reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning_content = Some(reasoning.into());
        self
    }

    /// The content as text; empty if there is none.
    pub fn text(&self) -> String {
        self.content.as_ref().map(Content::to_string).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_have_the_form_of_openai() {
        let cases = [
            (Message::user("Hi"), json!({ "role": "user", "content": "Hi" })),
            (
                Message::calls(vec![ToolCall::new("add", r#"{"a":1}"#).id("c1")]),
                json!({ "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } }
                ]}),
            ),
            (Message::tool_result("c1", "2"), json!({ "role": "tool", "content": "2", "tool_call_id": "c1" })),
            (
                Message::new(Role::Other("critic".into()), "No.").reasoning("Hm."),
                json!({ "role": "critic", "content": "No.", "reasoning_content": "Hm." }),
            ),
            (
                Message::user(Content::Parts(vec![ContentPart::Text { text: "a".into() }])),
                json!({ "role": "user", "content": [{ "type": "text", "text": "a" }] }),
            ),
        ];
        for (message, form) in cases {
            assert_eq!(serde_json::to_value(&message).unwrap(), form);
            assert_eq!(serde_json::from_value::<Message>(form).unwrap(), message);
        }
    }

    #[test]
    fn what_no_template_can_show_is_refused_when_it_is_read() {
        let image = json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "x" } }] });
        assert!(serde_json::from_value::<Message>(image).is_err());
        assert!(serde_json::from_value::<Message>(json!({ "content": "who says it?" })).is_err());
        assert!(serde_json::from_value::<Message>(json!({ "role": "user", "content": 7 })).is_err());
    }

    #[test]
    fn null_is_nothing() {
        let form = json!({ "role": "user", "content": "Hi", "tool_calls": null, "tool_call_id": null, "name": null });
        assert_eq!(serde_json::from_value::<Message>(form).unwrap(), Message::user("Hi"));
    }

    #[test]
    fn other_fields_are_kept() {
        let form = json!({ "role": "user", "content": "Hi", "mood": { "calm": true } });
        let message: Message = serde_json::from_value(form.clone()).unwrap();
        assert_eq!(message.extra["mood"]["calm"], true);
        assert_eq!(serde_json::to_value(message).unwrap(), form);
    }

    #[test]
    fn parts_are_joined_by_line_feeds() {
        let part = |text: &str| ContentPart::Text { text: text.into() };
        let content = Content::Parts(vec![part("a"), ContentPart::ToolReference { name: "t".into() }, part("b")]);
        assert_eq!(content.to_string(), "a\nb");
    }
}
