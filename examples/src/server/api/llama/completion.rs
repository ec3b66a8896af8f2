//! `/completion`: llama-server's own way to continue texts.

use super::settings;
use crate::server::api::answers::{self, Client, Whole};
use crate::server::api::common::Common;
use crate::server::api::error::ApiError;
use crate::server::api::fields::Fields;
use crate::server::api::speculation::Plan;
use crate::server::api::sse::{self, Frames, Out};
use crate::server::api::{ApiState, logprobs, numbers, prompt};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use llama_spec::generate::StopReason;
use llama_spec::supervise::task::{Finish, TokenUpdate};
use llama_spec::supervise::{Task, Update};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Continues texts.
pub(in crate::server::api) async fn handle(
    State(api): State<ApiState>,
    client: Client,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    let snapshot = api.backend().status();
    let (prompts, list) = prompt::take(&mut fields, &api, &snapshot)?;
    let logprobs = fields.take::<u32>("n_probs")?.filter(|top| *top > 0);
    if let Some(top @ 101..) = logprobs {
        return Err(ApiError::invalid("n_probs", format!("`n_probs` is {top}; expected 0 to 100")));
    }
    let tokens = fields.flag("return_tokens")?;
    let only = fields.take::<Vec<String>>("response_fields")?.unwrap_or_default();
    let mut common = Common::take(&mut fields, &snapshot)?;
    common.sampling.take_grammar(&mut fields)?;
    let (stream, each, progress, pace) = (common.stream, common.answers, common.progress, common.pace(&api));
    let plan = common.speculation.clone().plan(&snapshot)?;
    let mut request = common.request(&plan, api.backend()).await?;
    request.logprobs = logprobs;
    let mut generation = settings::of(&request, &snapshot);
    generation["stream"] = stream.into();
    generation["n_ctx"] = snapshot.context().into();
    let mut tasks = Vec::with_capacity(prompts.len());
    let mut texts = Vec::with_capacity(prompts.len());
    for asked in prompts {
        let mut request = request.clone();
        request.prompt = asked.resolve(api.backend()).await?;
        texts.push(prompt::text(&request.prompt, api.backend()).await?);
        tasks.push(Task::text(request).answers(each));
    }
    let model = api.model(&snapshot);
    let shown = Shown { model, generation, plan, prompts: texts, each, tokens, logprobs: logprobs.is_some(), only };
    let (answers, count) = answers::submit(&api, tasks, client)?;
    if stream {
        let states = (0..count).map(|_| Midway::default()).collect();
        let frames = LlamaFrames { shown, states, progress, began: Instant::now() };
        return sse::respond(answers, count, frames, pace).await;
    }
    let wholes = answers::collect(answers, count, shown.tokens || shown.logprobs).await?;
    let mut results: Vec<Value> = (0..).zip(wholes).map(|(index, whole)| shown.whole(index, whole)).collect();
    let alone = !list && each == 1;
    Ok(match (alone, results.pop()) {
        (true, Some(result)) => Json(result),
        (_, last) => Json(results.into_iter().chain(last).collect()),
    }
    .into_response())
}

/// What all answers of a request share.
struct Shown {
    model: String,
    generation: Value,
    plan: Plan,
    prompts: Vec<String>,
    /// Answers to each prompt.
    each: u32,
    /// Whether the numbers of tokens are wanted.
    tokens: bool,
    logprobs: bool,
    /// The only fields that are wanted; all if it is empty.
    only: Vec<String>,
}

impl Shown {
    fn whole(&self, index: u32, whole: Whole) -> Value {
        let Whole { prompt, text, tokens, dropped, finish } = whole;
        let new_line = text.contains('\n');
        let mut result = self.end(index, prompt, &finish, dropped > 0, new_line);
        result["content"] = text.into();
        if self.tokens {
            result["tokens"] = ids(&tokens);
        }
        if self.logprobs {
            result["completion_probabilities"] = tokens.iter().filter_map(logprobs::llama).collect();
        }
        self.selected(result)
    }

    /// What is known at the end, without text.
    fn end(&self, index: u32, prompt: u64, finish: &Finish, shifted: bool, new_line: bool) -> Value {
        let stats = &finish.stats;
        json!({
            "index": index,
            "content": "",
            "tokens": [],
            "id_slot": -1,
            "stop": true,
            "model": self.model,
            "tokens_predicted": stats.generated_tokens,
            "tokens_evaluated": prompt,
            "tokens_cached": stats.cached_tokens,
            "generation_settings": self.generation,
            "prompt": self.prompts.get((index / self.each) as usize),
            "has_new_line": new_line,
            "truncated": shifted || finish.reason == StopReason::ContextFull,
            "stop_type": stop_type(finish.reason),
            "stopping_word": finish.stop.as_deref().unwrap_or_default(),
            "timings": numbers::timings(stats),
            "speculation": self.plan.told(&finish.speculation, stats),
        })
    }

    /// Only the fields that are wanted. One within another, named with a slash, comes out of it.
    fn selected(&self, result: Value) -> Value {
        if self.only.is_empty() {
            return result;
        }
        let found = |path: &String| {
            let value = path.split('/').try_fold(&result, |value, name| value.get(name))?;
            Some((path.clone(), value.clone()))
        };
        Value::Object(self.only.iter().filter_map(found).collect::<Map<_, _>>())
    }
}

fn ids(tokens: &[TokenUpdate]) -> Value {
    tokens.iter().map(|token| token.token.id()).collect()
}

fn stop_type(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndOfText => "eos",
        StopReason::StopString => "word",
        StopReason::MaxTokens | StopReason::ContextFull | StopReason::Deadline => "limit",
        _ => "none",
    }
}

/// The answers in pieces.
struct LlamaFrames {
    shown: Shown,
    states: Vec<Midway>,
    progress: bool,
    began: Instant,
}

/// What is known of one of the answers.
#[derive(Debug, Default)]
struct Midway {
    prompt: u64,
    predicted: usize,
    shifted: bool,
    new_line: bool,
}

impl LlamaFrames {
    fn piece(&self, answer: u32, text: &str, tokens: &[TokenUpdate]) -> Value {
        let state = &self.states[answer as usize];
        let mut piece = json!({
            "index": answer,
            "content": text,
            "tokens": ids(tokens),
            "stop": false,
            "id_slot": -1,
            "tokens_predicted": state.predicted,
            "tokens_evaluated": state.prompt,
        });
        if self.shown.logprobs {
            piece["completion_probabilities"] = tokens.iter().filter_map(logprobs::llama).collect();
        }
        piece
    }
}

impl Frames for LlamaFrames {
    fn update(&mut self, answer: u32, update: Update, out: &mut Out) {
        let state = &mut self.states[answer as usize];
        match update {
            Update::Begun { prompt } => state.prompt = prompt.len() as u64,
            Update::Shifted { .. } => state.shifted = true,
            Update::Prefill { done, total } if self.progress => {
                let mut piece = self.piece(answer, "", &[]);
                let time = numbers::milliseconds(self.began.elapsed());
                piece["prompt_progress"] = json!({ "total": total, "cache": 0, "processed": done, "time_ms": time });
                out.value(&piece);
            }
            Update::Tokens(tokens) => {
                let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
                state.predicted += tokens.len();
                state.new_line |= text.contains('\n');
                out.value(&self.piece(answer, &text, &tokens));
            }
            Update::Paused { .. } => out.paused(),
            Update::Resumed => out.resumed(),
            Update::Finished(finish) => {
                let new_line = state.new_line || finish.text.contains('\n');
                let (prompt, shifted) = (state.prompt, state.shifted);
                let mut end = self.shown.end(answer, prompt, &finish, shifted, new_line);
                end["content"] = finish.text.as_str().into();
                out.value(&self.shown.selected(end));
            }
            _ => {}
        }
    }

    /// There is no mark of the end beside `stop`.
    fn end(&mut self, _out: &mut Out) {}
}
