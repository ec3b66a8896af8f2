//! What the steps of an answer add to a message, in OpenAI's form.

use llama_spec::chat::Delta;
use serde_json::{Value, json};

/// What one chunk adds.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    content: String,
    reasoning: String,
    calls: Vec<Value>,
}

/// The tool calls of an answer so far.
///
/// A name can become longer while it is generated, and clients put what they get end to end. So a call is announced when its
/// arguments begin, when the next one does, or at the end.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    name: String,
    announced: bool,
}

impl Pieces {
    /// Adds what the parser found.
    pub(super) fn add(&mut self, delta: &Delta, calls: &mut Calls) {
        match delta {
            Delta::Content(text) => self.content.push_str(text),
            Delta::Reasoning(text) => self.reasoning.push_str(text),
            Delta::ToolCall { index, id, name, arguments } => {
                calls.add(*index, id.as_deref(), name.as_deref(), arguments, self);
            }
            _ => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    /// The `delta` of a chunk.
    pub(super) fn value(self) -> Value {
        let mut delta = json!({});
        if !self.reasoning.is_empty() {
            delta["reasoning_content"] = self.reasoning.into();
        }
        if !self.content.is_empty() {
            delta["content"] = self.content.into();
        }
        if !self.calls.is_empty() {
            delta["tool_calls"] = self.calls.into();
        }
        delta
    }
}

impl Calls {
    /// Whether there is one.
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Announces what was held back.
    pub(super) fn end(&mut self, out: &mut Pieces) {
        self.announce(self.0.len(), out);
    }

    fn add(&mut self, index: usize, id: Option<&str>, name: Option<&str>, arguments: &str, out: &mut Pieces) {
        // Parsers count from zero without gaps; what does not is not taken for a billion calls.
        if index > self.0.len() {
            return;
        }
        if index == self.0.len() {
            self.announce(index, out);
            self.0.push(Call::default());
        }
        let call = &mut self.0[index];
        call.id = id.map(str::to_owned).or(call.id.take());
        call.name = name.map(str::to_owned).unwrap_or(std::mem::take(&mut call.name));
        if !arguments.is_empty() {
            self.announce(index + 1, out);
            out.calls.push(json!({ "index": index, "function": { "arguments": arguments } }));
        }
    }

    /// Announces the first calls, as far as that has not been done.
    fn announce(&mut self, count: usize, out: &mut Pieces) {
        for (index, call) in self.0.iter_mut().take(count).enumerate().filter(|(_, call)| !call.announced) {
            call.announced = true;
            let id = call.id.get_or_insert_with(call_id);
            let function = json!({ "name": call.name, "arguments": "" });
            out.calls.push(json!({ "index": index, "id": id, "type": "function", "function": function }));
        }
    }
}

/// An id for a call to which the model gave none.
pub(super) fn call_id() -> String {
    super::common::id("call_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: usize, id: Option<&str>, name: Option<&str>, arguments: &str) -> Delta {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let value =
            json!({ "tool_call": { "index": index, "id": owned(id), "name": owned(name), "arguments": arguments } });
        serde_json::from_value(value).unwrap()
    }

    fn fed(deltas: &[Delta]) -> Vec<Value> {
        let (mut calls, mut all) = (Calls::default(), Vec::new());
        for delta in deltas {
            let mut pieces = Pieces::default();
            pieces.add(delta, &mut calls);
            all.extend(pieces.calls);
        }
        let mut rest = Pieces::default();
        calls.end(&mut rest);
        all.extend(rest.calls);
        all
    }

    #[test]
    fn a_name_that_grows_is_told_once() {
        let told = fed(&[
            call(0, Some("a1"), Some("get"), ""),
            call(0, None, Some("get_weather"), ""),
            call(0, None, None, "{\"city\""),
            call(0, None, None, ":1}"),
        ]);
        assert_eq!(
            told,
            [
                json!({ "index": 0, "id": "a1", "type": "function", "function": { "name": "get_weather", "arguments": "" } }),
                json!({ "index": 0, "function": { "arguments": "{\"city\"" } }),
                json!({ "index": 0, "function": { "arguments": ":1}" } }),
            ]
        );
    }

    #[test]
    fn calls_without_arguments_are_told_too() {
        let told =
            fed(&[call(0, None, Some("now"), ""), call(1, Some("b"), Some("then"), ""), call(7, None, None, "x")]);
        assert_eq!(told.len(), 2);
        assert!(told[0]["id"].as_str().unwrap().starts_with("call_"));
        assert_eq!((&told[0]["function"]["name"], &told[1]["function"]["name"]), (&json!("now"), &json!("then")));
    }
}
