//! The fields of a conversation: messages, tools and the form of the answer, as a request to a chat template.

use super::error::ApiError;
use super::fields::{self, Fields};
use super::schema::{self, Budget};
use super::{hostile, sampling};
use llama_spec::chat::{ChatRequest, Continuation, Message, ReasoningFormat, Role, Tool, ToolChoice};
use serde_json::{Map, Value};

const MAX_MESSAGES: usize = 16_384;
const MAX_TOOLS: usize = 1024;

/// Takes the fields. `template` is the one of the loaded model, if that is known.
pub(super) fn take(fields: &mut Fields, template: Option<&str>) -> Result<ChatRequest, ApiError> {
    let mut request = ChatRequest::new(messages(fields, template)?);
    let tools = tools(fields)?;
    (request.tools, request.tool_choice) = tool_choice(fields, tools)?;
    request.parallel_tool_calls = fields.flag("parallel_tool_calls")?;
    form(fields, &mut request)?;
    reasoning(fields, &mut request)?;
    request.add_generation_prompt = fields.take("add_generation_prompt")?.unwrap_or(true);
    if let Some(continuation) = fields.take::<Continuation>("continue_final_message")? {
        request.continue_final_message = continuation;
        if continuation != Continuation::No {
            request.add_generation_prompt = false;
        }
    }
    check(&request)?;
    Ok(request)
}

fn messages(fields: &mut Fields, template: Option<&str>) -> Result<Vec<Message>, ApiError> {
    let values: Vec<Map<String, Value>> = fields.require("messages")?;
    if values.is_empty() || values.len() > MAX_MESSAGES {
        return Err(ApiError::invalid("messages", format!("1 to {MAX_MESSAGES} messages are needed")));
    }
    let knows_developer = template.is_none_or(|template| template.contains("developer"));
    let mut messages = Vec::with_capacity(values.len());
    for (index, mut value) in values.into_iter().enumerate() {
        let place = format!("messages[{index}]");
        if let Some(Value::Array(parts)) = value.get_mut("content") {
            parts
                .iter_mut()
                .enumerate()
                .try_for_each(|(part, value)| check_part(&format!("{place}.content[{part}]"), value))?;
        }
        // Clients send back what they got, with fields that no template reads.
        ["refusal", "audio", "annotations", "function_call"].iter().for_each(|name| {
            value.retain(|field, value| field != name || !value.is_null());
        });
        if value.contains_key("audio") || value.contains_key("function_call") {
            let message = "`audio` and the outdated `function_call` are not possible in messages";
            return Err(ApiError::unsupported(place, message));
        }
        check_content(&place, &value)?;
        let mut message: Message = fields::read(&place, Value::Object(value))?;
        if message.role == Role::Developer && !knows_developer {
            message.role = Role::System;
        }
        if message.content.is_none() && message.tool_calls.is_empty() {
            return Err(ApiError::invalid(format!("{place}.content"), "the message says nothing and calls no tool"));
        }
        messages.push(message);
    }
    Ok(messages)
}

/// Content is text, parts, or nothing beside tool calls.
fn check_content(place: &str, message: &Map<String, Value>) -> Result<(), ApiError> {
    match message.get("content") {
        None | Some(Value::Null | Value::String(_) | Value::Array(_)) => Ok(()),
        Some(_) => {
            let place = format!("{place}.content");
            Err(ApiError::invalid(&*place, format!("`{place}` is text or a list of parts")))
        }
    }
}

/// A part must be text. What was refused before, in a conversation with another model, is text too.
fn check_part(place: &str, part: &mut Value) -> Result<(), ApiError> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "text" if part.get("text").is_some_and(Value::is_string) => Ok(()),
        "tool_reference" if part.get("name").is_some_and(Value::is_string) => Ok(()),
        "refusal" if part.get("refusal").is_some_and(Value::is_string) => {
            *part = serde_json::json!({ "type": "text", "text": part["refusal"] });
            Ok(())
        }
        "text" | "tool_reference" | "refusal" | "" => {
            Err(ApiError::invalid(place, format!("`{place}` must be like {{\"type\": \"text\", \"text\": \"...\"}}")))
        }
        kind => {
            let message = format!("parts of type `{kind}` are not possible: this server reads only text");
            Err(ApiError::unsupported(format!("{place}.type"), message))
        }
    }
}

fn tools(fields: &mut Fields) -> Result<Vec<Tool>, ApiError> {
    for name in ["functions", "function_call"] {
        if fields.value(name).is_some() {
            return Err(ApiError::unsupported(name, format!("`{name}` is outdated: use `tools` and `tool_choice`")));
        }
    }
    let values: Vec<Map<String, Value>> = fields.take("tools")?.unwrap_or_default();
    if values.len() > MAX_TOOLS {
        return Err(ApiError::invalid("tools", format!("at most {MAX_TOOLS} tools are taken")));
    }
    let mut tools: Vec<Tool> = Vec::with_capacity(values.len());
    let mut budget = Budget::default();
    for (index, mut value) in values.into_iter().enumerate() {
        let place = format!("tools[{index}]");
        match value.get("type").and_then(Value::as_str) {
            Some("function") | None => value.insert("type".into(), "function".into()),
            Some(kind) => {
                let message = format!("tools of type `{kind}` are not possible: only functions are");
                return Err(ApiError::unsupported(format!("{place}.type"), message));
            }
        };
        if let Some(function) = value.get_mut("function").and_then(Value::as_object_mut) {
            function.retain(|_, value| !value.is_null());
        }
        let tool: Tool = fields::read(&place, Value::Object(value))?;
        let param = format!("{place}.function.parameters");
        budget.check(&param, &tool.parameters)?;
        if tool.name.is_empty() || tool.name.len() > 256 || tools.iter().any(|known| known.name == tool.name) {
            let param = format!("{place}.function.name");
            return Err(ApiError::invalid(param, "each tool has a name of its own, of up to 256 bytes"));
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// The tools that may be called and whether they are. Where one is named, or some are, the others are not shown.
fn tool_choice(fields: &mut Fields, tools: Vec<Tool>) -> Result<(Vec<Tool>, ToolChoice), ApiError> {
    let param = "tool_choice";
    let (choice, named) = match fields.value(param) {
        None => return Ok((tools, ToolChoice::Auto)),
        Some(Value::Object(object)) => named(Fields::new(object))?,
        Some(word) => (fields::read(param, word)?, None),
    };
    let tools = match named {
        None => tools,
        Some(names) => {
            let known = |name: &&String| tools.iter().any(|tool| tool.name == **name);
            if let Some(unknown) = names.iter().find(|name| !known(name)) {
                return Err(ApiError::invalid(param, format!("`{unknown}` is none of the tools")));
            }
            tools.into_iter().filter(|tool| names.contains(&tool.name)).collect()
        }
    };
    if choice == ToolChoice::Required && tools.is_empty() {
        return Err(ApiError::invalid(param, "there are no tools to call"));
    }
    // Without tools the choice does not matter, and some clients always send one.
    Ok((tools, choice))
}

/// A choice that names tools: one, or those that are allowed.
fn named(mut choice: Fields) -> Result<(ToolChoice, Option<Vec<String>>), ApiError> {
    let kind: String = choice.require("type").map_err(|error| error.about("tool_choice.type"))?;
    let function_name = |mut object: Fields| -> Result<String, ApiError> {
        let mut function = Fields::new(object.require("function")?);
        function.require("name").map_err(|error| error.about("tool_choice.function.name"))
    };
    match kind.as_str() {
        "function" => Ok((ToolChoice::Required, Some(vec![function_name(choice)?]))),
        "allowed_tools" => {
            let mut allowed = Fields::new(choice.require("allowed_tools")?);
            let mode = allowed.take::<ToolChoice>("mode")?.unwrap_or_default();
            let tools: Vec<Map<String, Value>> = allowed.require("tools")?;
            let names = tools.into_iter().map(|tool| function_name(Fields::new(tool))).collect::<Result<_, _>>()?;
            Ok((mode, Some(names)))
        }
        other => {
            let message = format!("`{other}` is none of `function` and `allowed_tools`");
            Err(ApiError::unsupported("tool_choice.type", message))
        }
    }
}

/// What the answer must look like.
fn form(fields: &mut Fields, request: &mut ChatRequest) -> Result<(), ApiError> {
    let asked = sampling::response_schema(fields)?;
    let (param, schema) = match fields.value("json_schema") {
        Some(schema) => ("json_schema", Some(schema)),
        None => ("response_format", asked),
    };
    request.json_schema = schema.map(|schema| schema::of_answer(param, schema)).transpose()?;
    if request.tool_choice == ToolChoice::Required {
        // All of the answer is calls then, and llama.cpp would take the schema for it.
        request.json_schema = None;
    }
    request.grammar = fields.take::<String>("grammar")?.filter(|grammar| !grammar.is_empty());
    if let Some(grammar) = &request.grammar {
        hostile::check_grammar("grammar", grammar)?;
    }
    Ok(())
}

/// Whether the model thinks, and where that goes.
fn reasoning(fields: &mut Fields, request: &mut ChatRequest) -> Result<(), ApiError> {
    if let Some(format) = fields.take::<ReasoningFormat>("reasoning_format")? {
        request.reasoning_format = format;
    }
    let mut arguments: Map<String, Value> = fields.take("chat_template_kwargs")?.unwrap_or_default();
    if let Some(effort) = fields.take::<String>("reasoning_effort")? {
        if effort == "none" {
            request.enable_thinking = false;
        }
        arguments.entry("reasoning_effort").or_insert(Value::String(effort));
    }
    // llama-server has it among the arguments of the template, others beside them.
    if let Some(thinks) = arguments.remove("enable_thinking") {
        request.enable_thinking = fields::read("chat_template_kwargs.enable_thinking", thinks)?;
    }
    request.enable_thinking = fields.take("enable_thinking")?.unwrap_or(request.enable_thinking);
    request.template_arguments = arguments;
    Ok(())
}

/// What contradicts itself.
fn check(request: &ChatRequest) -> Result<(), ApiError> {
    let calls = !request.tools.is_empty() && request.tool_choice != ToolChoice::None;
    if request.grammar.is_some() && (request.json_schema.is_some() || calls) {
        let message = "a grammar cannot come together with a JSON schema or with tools, which bring their own";
        return Err(ApiError::invalid("grammar", message));
    }
    let by_model = request.messages.last().is_some_and(|last| last.role == Role::Assistant);
    if request.continue_final_message != Continuation::No && !by_model {
        return Err(ApiError::invalid("continue_final_message", "the last message is not the assistant's"));
    }
    Ok(())
}
