//! Tools that a model may call, and its calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A function the model may call. Written to JSON it has the form of OpenAI's interface.
///
/// ```
/// use llama_spec::chat::Tool;
/// let parameters = serde_json::json!({ "type": "object", "properties": { "city": { "type": "string" } } });
/// let tool = Tool::new("weather", "The weather of a city", parameters);
/// assert_eq!(serde_json::to_value(&tool)?["function"]["name"], "weather");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "ToolForm", into = "ToolForm")]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, in words for the model.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether its description is held back until a message refers to it, for templates that know this.
    pub defer_loading: bool,
}

impl Tool {
    /// A tool with these parameters, given as a JSON Schema of an object.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters, defer_loading: false }
    }
}

/// A call of a tool. Written to JSON it has the form of OpenAI's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "CallForm", into = "CallForm")]
pub struct ToolCall {
    /// Which call it is, for the result to refer to. Models give one only where their template has a place for it.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// Its arguments: the text of a JSON object, or the beginning of it while the answer is being generated.
    pub arguments: String,
}

impl ToolCall {
    /// A call with these arguments, given as the text of a JSON object.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: None, name: name.into(), arguments: arguments.into() }
    }

    /// Sets the id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

/// Whether tools are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// As the model likes.
    #[default]
    Auto,
    /// At least one call must come.
    Required,
    /// No calls; the tools are still described.
    None,
}

/// The kind of tool; OpenAI's interface has others, templates do not.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Function,
}

#[derive(Serialize, Deserialize)]
struct ToolForm {
    r#type: Kind,
    function: FunctionForm,
}

#[derive(Serialize, Deserialize)]
struct FunctionForm {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default = "no_parameters")]
    parameters: Value,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    defer_loading: bool,
}

fn no_parameters() -> Value {
    serde_json::json!({ "type": "object", "properties": {} })
}

impl From<ToolForm> for Tool {
    fn from(ToolForm { function, .. }: ToolForm) -> Self {
        let FunctionForm { name, description, parameters, defer_loading } = function;
        Self { name, description, parameters, defer_loading }
    }
}

impl From<Tool> for ToolForm {
    fn from(Tool { name, description, parameters, defer_loading }: Tool) -> Self {
        Self { r#type: Kind::Function, function: FunctionForm { name, description, parameters, defer_loading } }
    }
}

#[derive(Serialize, Deserialize)]
struct CallForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    r#type: Kind,
    function: CalledForm,
}

#[derive(Serialize, Deserialize)]
struct CalledForm {
    name: String,
    arguments: Arguments,
}

/// OpenAI's interface has text here; some clients send the object itself.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Arguments {
    Text(String),
    Object(serde_json::Map<String, Value>),
}

impl From<CallForm> for ToolCall {
    fn from(CallForm { id, function, .. }: CallForm) -> Self {
        let arguments = match function.arguments {
            Arguments::Text(text) => text,
            Arguments::Object(object) => Value::Object(object).to_string(),
        };
        Self { id, name: function.name, arguments }
    }
}

impl From<ToolCall> for CallForm {
    /// A call without arguments gets an empty object, since templates parse them.
    fn from(ToolCall { id, name, arguments }: ToolCall) -> Self {
        let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        Self { id, r#type: Kind::Function, function: CalledForm { name, arguments: Arguments::Text(arguments) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_have_the_form_of_openai() {
        let tool = Tool::new("add", "Adds", json!({ "type": "object" }));
        let form = json!({ "type": "function", "function": {
            "name": "add", "description": "Adds", "parameters": { "type": "object" }
        }});
        assert_eq!(serde_json::to_value(&tool).unwrap(), form);
        assert_eq!(serde_json::from_value::<Tool>(form).unwrap(), tool);
        let short: Tool = serde_json::from_value(json!({ "type": "function", "function": { "name": "now" } })).unwrap();
        assert_eq!(short, Tool::new("now", "", json!({ "type": "object", "properties": {} })));
    }

    #[test]
    fn other_kinds_of_tools_are_refused() {
        assert!(serde_json::from_value::<Tool>(json!({ "type": "web_search", "function": { "name": "x" } })).is_err());
        assert!(serde_json::from_value::<Tool>(json!({ "type": "function" })).is_err());
    }

    #[test]
    fn arguments_may_be_an_object() {
        let form = json!({ "type": "function", "function": { "name": "add", "arguments": { "a": 1 } } });
        assert_eq!(serde_json::from_value::<ToolCall>(form).unwrap(), ToolCall::new("add", r#"{"a":1}"#));
        let none = serde_json::to_value(ToolCall::new("now", "")).unwrap();
        assert_eq!(none["function"]["arguments"], "{}");
    }
}
