//! `POST /v1/chat/completions`.

use super::answers::{self, Client, Total, Whole};
use super::common::{Common, Stamp};
use super::delta::{Calls, Pieces};
use super::error::ApiError;
use super::fields::Fields;
use super::speculation::Plan;
use super::sse::{self, Frames, Out};
use super::{ApiState, conversation, logprobs, numbers};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use llama_spec::generate::StopReason;
use llama_spec::supervise::task::{Finish, TokenUpdate};
use llama_spec::supervise::{Task, Update};
use serde_json::{Value, json};

/// Answers a conversation.
pub(super) async fn handle(
    State(api): State<ApiState>,
    client: Client,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    let snapshot = api.backend().status();
    let template = snapshot.info.as_ref().and_then(|info| info.chat_template.as_deref());
    let chat = conversation::take(&mut fields, template)?;
    api.check_prompt("messages", chat.messages.iter().map(|message| message.text().len()).sum())?;
    let logprobs = wanted_logprobs(&mut fields)?;
    let modalities: Vec<String> = fields.take("modalities")?.unwrap_or_default();
    if let Some(other) = modalities.iter().find(|modality| *modality != "text") {
        return Err(ApiError::unsupported("modalities", format!("answers of the kind `{other}` are not possible")));
    }
    let common = Common::take(&mut fields, &snapshot)?;
    let (stream, each, usage) = (common.stream, common.answers, common.include_usage);
    let shown = Shown {
        logprobs: logprobs.is_some(),
        details: fields.flag("token_details")?,
        progress: common.progress,
        usage,
    };
    let pace = common.pace(&api);
    let plan = common.speculation.clone().plan(&snapshot)?;
    let mut request = common.request(&plan, api.backend()).await?;
    request.logprobs = logprobs;
    let task = Task::chat(chat, request).answers(each);
    let stamp = Stamp::new("chatcmpl", api.model(&snapshot));
    let (answers, count) = answers::submit(&api, vec![task], client)?;
    if stream {
        let frames = ChatFrames::new(stamp, shown, plan, count);
        return sse::respond(answers, count, frames, pace).await;
    }
    let keep = shown.logprobs || shown.details;
    let wholes = answers::collect(answers, count, keep).await?;
    Ok(Json(completion(&stamp, &shown, &plan, wholes)).into_response())
}

/// How many log-probabilities are asked for beside each token's own; nothing for none at all.
fn wanted_logprobs(fields: &mut Fields) -> Result<Option<u32>, ApiError> {
    let top = fields.take::<u32>("top_logprobs")?;
    let named = top.is_some();
    let llama = fields.take::<u32>("n_probs")?.filter(|top| *top > 0);
    let top = match (fields.flag("logprobs")?, top) {
        (false, Some(1..)) => return Err(ApiError::invalid("top_logprobs", "`logprobs` must be true for it")),
        (true, top) => Some(top.unwrap_or(llama.unwrap_or(0))),
        (false, _) => llama,
    };
    match top {
        Some(top @ 101..) => {
            let param = if named { "top_logprobs" } else { "n_probs" };
            Err(ApiError::invalid(param, format!("`{param}` is {top}; expected 0 to 100")))
        }
        top => Ok(top),
    }
}

/// What the client wants to see beside the text.
#[derive(Clone, Copy, Debug)]
struct Shown {
    logprobs: bool,
    details: bool,
    progress: bool,
    usage: bool,
}

/// The whole answer.
fn completion(stamp: &Stamp, shown: &Shown, plan: &Plan, wholes: Vec<Whole>) -> Value {
    let mut total = Total::new(wholes.len() as u32);
    let mut speculation = None;
    let mut choices = Vec::with_capacity(wholes.len());
    for (index, whole) in wholes.into_iter().enumerate() {
        total.add(index as u32, whole.prompt, &whole.finish.stats);
        speculation = speculation.or_else(|| Some(whole.finish.speculation.clone()));
        choices.push(choice(index, shown, whole));
    }
    let mut answer = stamp.object("chat.completion");
    answer["choices"] = choices.into();
    answer["usage"] = numbers::usage(total.prompt, &total.stats);
    answer["timings"] = numbers::timings(&total.stats);
    answer["speculation"] = plan.told(&speculation.unwrap_or_default(), &total.stats);
    answer
}

fn choice(index: usize, shown: &Shown, whole: Whole) -> Value {
    let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
    let mut calls = 0;
    match &whole.finish.message {
        Some(known) => {
            calls = known.tool_calls.len();
            let text = known.text();
            message["content"] = if text.is_empty() && calls > 0 { Value::Null } else { text.into() };
            if let Some(reasoning) = &known.reasoning_content {
                message["reasoning_content"] = reasoning.as_str().into();
            }
            if calls > 0 {
                let calls = known.tool_calls.iter().map(|call| {
                    let id = call.id.clone().unwrap_or_else(super::delta::call_id);
                    json!({ "id": id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } })
                });
                message["tool_calls"] = calls.collect();
            }
        }
        None => message["content"] = whole.text.as_str().into(),
    }
    let mut choice = json!({
        "index": index,
        "message": message,
        "logprobs": shown.logprobs.then(|| logprobs_of(&whole.tokens)),
        "finish_reason": finish_reason(&whole.finish, calls > 0),
    });
    if shown.details {
        choice["token_details"] = whole.tokens.iter().map(logprobs::details).collect();
    }
    choice
}

fn logprobs_of(tokens: &[TokenUpdate]) -> Value {
    json!({ "content": tokens.iter().filter_map(logprobs::chat).collect::<Vec<_>>(), "refusal": null })
}

/// Why it ended, in OpenAI's words.
pub(super) fn finish_reason(finish: &Finish, calls: bool) -> &'static str {
    match finish.reason {
        StopReason::MaxTokens | StopReason::ContextFull | StopReason::Deadline => "length",
        _ if calls => "tool_calls",
        _ => "stop",
    }
}

/// The answers of a conversation in chunks.
struct ChatFrames {
    stamp: Stamp,
    shown: Shown,
    plan: Plan,
    choices: Vec<Choice>,
    total: Total,
    speculation: llama_spec::spec::Speculation,
    began: std::time::Instant,
}

/// One of the answers.
#[derive(Debug, Default)]
struct Choice {
    prompt: u64,
    calls: Calls,
    /// Whether the chunk that names the role is out.
    opened: bool,
}

impl ChatFrames {
    fn new(stamp: Stamp, shown: Shown, plan: Plan, count: u32) -> Self {
        let choices = (0..count).map(|_| Choice::default()).collect();
        let began = std::time::Instant::now();
        Self { stamp, shown, plan, choices, total: Total::new(count), speculation: Default::default(), began }
    }

    fn chunk(&self, choice: Value) -> Value {
        let mut chunk = self.stamp.object("chat.completion.chunk");
        chunk["choices"] = json!([choice]);
        chunk
    }

    fn aside(&self, name: &str, value: Value) -> Value {
        let mut chunk = self.stamp.object("chat.completion.chunk");
        chunk["choices"] = json!([]);
        chunk[name] = value;
        chunk
    }

    /// The chunk that begins an answer, if it is not out yet.
    fn open(&mut self, answer: u32, out: &mut Out) {
        if !std::mem::replace(&mut self.choices[answer as usize].opened, true) {
            let delta = json!({ "role": "assistant", "content": "" });
            out.value(&self.chunk(json!({ "index": answer, "delta": delta, "logprobs": null, "finish_reason": null })));
        }
    }

    fn tokens(&mut self, answer: u32, tokens: &[TokenUpdate], out: &mut Out) {
        let mut pieces = Pieces::default();
        let calls = &mut self.choices[answer as usize].calls;
        tokens.iter().flat_map(|token| &token.deltas).for_each(|delta| pieces.add(delta, calls));
        let (logprobs, details) = (self.shown.logprobs, self.shown.details);
        if pieces.is_empty() && !logprobs && !details {
            return;
        }
        let logprobs = logprobs.then(|| logprobs_of(tokens));
        let mut choice = json!({
            "index": answer, "delta": pieces.value(), "logprobs": logprobs, "finish_reason": null,
        });
        if details {
            choice["token_details"] = tokens.iter().map(super::logprobs::details).collect();
        }
        out.value(&self.chunk(choice));
    }

    fn finished(&mut self, answer: u32, finish: &Finish, out: &mut Out) {
        let mut pieces = Pieces::default();
        let choice = &mut self.choices[answer as usize];
        finish.deltas.iter().for_each(|delta| pieces.add(delta, &mut choice.calls));
        choice.calls.end(&mut pieces);
        let (prompt, calls) = (choice.prompt, choice.calls.any());
        self.total.add(answer, prompt, &finish.stats);
        self.speculation = finish.speculation.clone();
        if !pieces.is_empty() {
            let delta = pieces.value();
            out.value(&self.chunk(json!({ "index": answer, "delta": delta, "logprobs": null, "finish_reason": null })));
        }
        let reason = finish_reason(finish, calls);
        let mut chunk = self.chunk(json!({ "index": answer, "delta": {}, "logprobs": null, "finish_reason": reason }));
        chunk["timings"] = numbers::timings(&finish.stats);
        chunk["speculation"] = self.plan.told(&finish.speculation, &finish.stats);
        out.value(&chunk);
    }
}

impl Frames for ChatFrames {
    fn update(&mut self, answer: u32, update: Update, out: &mut Out) {
        match update {
            Update::Begun { prompt } => {
                self.choices[answer as usize].prompt = prompt.len() as u64;
                self.open(answer, out);
            }
            Update::Prefill { done, total } if self.shown.progress => {
                let time = numbers::milliseconds(self.began.elapsed());
                let progress = json!({
                    "done": done, "total": total, "processed": done, "cache": 0, "time_ms": time,
                });
                out.value(&self.aside("prompt_progress", progress));
            }
            Update::Tokens(tokens) => {
                self.open(answer, out);
                self.tokens(answer, &tokens, out);
            }
            Update::Paused { reason } => match self.shown.details {
                true => out.value(
                    &self.aside("recovery", json!({ "event": "paused", "reason": super::redact::line(&reason) })),
                ),
                false => out.paused(),
            },
            Update::Resumed => match self.shown.details {
                true => out.value(&self.aside("recovery", json!({ "event": "resumed" }))),
                false => out.resumed(),
            },
            Update::Finished(finish) => {
                self.open(answer, out);
                self.finished(answer, &finish, out);
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Out) {
        if self.shown.usage {
            let mut chunk = self.aside("usage", numbers::usage(self.total.prompt, &self.total.stats));
            chunk["timings"] = numbers::timings(&self.total.stats);
            chunk["speculation"] = self.plan.told(&self.speculation, &self.total.stats);
            out.value(&chunk);
        }
        out.text("[DONE]");
    }
}
