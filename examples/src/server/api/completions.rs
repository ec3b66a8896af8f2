//! `POST /v1/completions`.

use super::answers::{self, Client, Total, Whole};
use super::chat::finish_reason;
use super::common::{Common, Stamp};
use super::error::ApiError;
use super::fields::Fields;
use super::logprobs::Columns;
use super::speculation::Plan;
use super::sse::{self, Frames, Out};
use super::{ApiState, numbers, prompt};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use llama_spec::spec::Speculation;
use llama_spec::supervise::task::{Finish, TokenUpdate};
use llama_spec::supervise::{Task, Update};
use serde_json::{Value, json};

/// Continues texts.
pub(super) async fn handle(
    State(api): State<ApiState>,
    client: Client,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    let snapshot = api.backend().status();
    let (prompts, _) = prompt::take(&mut fields, &api, &snapshot)?;
    refuse_what_there_is_not(&mut fields)?;
    let echo = fields.flag("echo")?;
    let logprobs = wanted_logprobs(&mut fields, echo)?;
    let mut common = Common::take(&mut fields, &snapshot)?;
    common.sampling.take_grammar(&mut fields)?;
    check_best(&mut fields, common.answers)?;
    let (stream, each, usage, pace) = (common.stream, common.answers, common.include_usage, common.pace(&api));
    let plan = common.speculation.clone().plan(&snapshot)?;
    let mut request = common.request(&plan, api.backend()).await?;
    request.logprobs = logprobs;
    let mut tasks = Vec::with_capacity(prompts.len());
    let mut echoes = Vec::with_capacity(prompts.len());
    for asked in prompts {
        let mut request = request.clone();
        request.prompt = asked.resolve(api.backend()).await?;
        echoes.push(if echo { prompt::text(&request.prompt, api.backend()).await? } else { String::new() });
        tasks.push(Task::text(request).answers(each));
    }
    let shown =
        Shown { stamp: Stamp::new("cmpl", api.model(&snapshot)), plan, echoes, each, logprobs: logprobs.is_some() };
    let (answers, count) = answers::submit(&api, tasks, client)?;
    if stream {
        return sse::respond(answers, count, TextFrames::new(shown, count, usage), pace).await;
    }
    let wholes = answers::collect(answers, count, shown.logprobs).await?;
    Ok(Json(shown.completion(wholes)).into_response())
}

fn refuse_what_there_is_not(fields: &mut Fields) -> Result<(), ApiError> {
    if fields.take::<String>("suffix")?.is_some_and(|suffix| !suffix.is_empty()) {
        return Err(ApiError::unsupported("suffix", "filling in before a suffix is not possible"));
    }
    Ok(())
}

/// As many as are asked for are made, so the best are all of them.
fn check_best(fields: &mut Fields, answers: u32) -> Result<(), ApiError> {
    match fields.take::<u32>("best_of")? {
        Some(best_of) if best_of != answers => {
            Err(ApiError::unsupported("best_of", format!("choosing among {best_of} answers is not possible")))
        }
        _ => Ok(()),
    }
}

/// How many log-probabilities are asked for beside each token's own; nothing for none at all.
fn wanted_logprobs(fields: &mut Fields, echo: bool) -> Result<Option<u32>, ApiError> {
    let top = match fields.value("logprobs") {
        // llama-server's, beside OpenAI's number.
        None | Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(0),
        Some(number) => Some(super::fields::read::<u32>("logprobs", number)?),
    };
    let param = if top.is_some() { "logprobs" } else { "n_probs" };
    match top.or(fields.take::<u32>("n_probs")?.filter(|top| *top > 0)) {
        Some(top @ 101..) => Err(ApiError::invalid(param, format!("`{param}` is {top}; expected 0 to 100"))),
        Some(_) if echo => {
            let message = "the prompt has no log-probabilities here, so they cannot come together with `echo`";
            Err(ApiError::unsupported("echo", message))
        }
        top => Ok(top),
    }
}

/// What all answers of a request share.
struct Shown {
    stamp: Stamp,
    plan: Plan,
    /// What comes before the answers to each prompt.
    echoes: Vec<String>,
    /// Answers to each prompt.
    each: u32,
    logprobs: bool,
}

impl Shown {
    fn echo(&self, answer: u32) -> &str {
        self.echoes.get((answer / self.each) as usize).map_or("", String::as_str)
    }

    fn columns(&self, answer: u32) -> Columns {
        Columns::new(self.echo(answer).chars().count())
    }

    fn completion(&self, wholes: Vec<Whole>) -> Value {
        let mut total = Total::new(self.each);
        let mut speculation = Speculation::default();
        let mut choices = Vec::with_capacity(wholes.len());
        for (index, whole) in (0..).zip(wholes) {
            total.add(index, whole.prompt, &whole.finish.stats);
            let logprobs = self.logprobs.then(|| {
                let mut columns = self.columns(index);
                whole.tokens.iter().for_each(|token| columns.push(token));
                columns.drain()
            });
            choices.push(json!({
                "text": format!("{}{}", self.echo(index), whole.text),
                "index": index,
                "logprobs": logprobs,
                "finish_reason": finish_reason(&whole.finish, false),
            }));
            speculation = whole.finish.speculation;
        }
        let mut answer = self.stamp.object("text_completion");
        answer["choices"] = choices.into();
        answer["usage"] = numbers::usage(total.prompt, &total.stats);
        answer["timings"] = numbers::timings(&total.stats);
        answer["speculation"] = self.plan.told(&speculation, &total.stats);
        answer
    }
}

/// The answers in chunks.
struct TextFrames {
    shown: Shown,
    usage: bool,
    prompts: Vec<u64>,
    columns: Vec<Columns>,
    total: Total,
    speculation: Speculation,
}

impl TextFrames {
    fn new(shown: Shown, count: u32, usage: bool) -> Self {
        let columns = (0..count).map(|answer| shown.columns(answer)).collect();
        let total = Total::new(shown.each);
        Self { shown, usage, prompts: vec![0; count as usize], columns, total, speculation: Speculation::default() }
    }

    fn chunk(&self, answer: u32, text: &str, logprobs: Option<Value>, reason: Option<&str>) -> Value {
        let mut chunk = self.shown.stamp.object("text_completion");
        chunk["choices"] = json!([{ "text": text, "index": answer, "logprobs": logprobs, "finish_reason": reason }]);
        chunk
    }

    fn tokens(&mut self, answer: u32, tokens: &[TokenUpdate], out: &mut Out) {
        let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
        let logprobs = self.shown.logprobs.then(|| {
            let columns = &mut self.columns[answer as usize];
            tokens.iter().for_each(|token| columns.push(token));
            columns.drain()
        });
        if !text.is_empty() || logprobs.is_some() {
            out.value(&self.chunk(answer, &text, logprobs, None));
        }
    }

    fn finished(&mut self, answer: u32, finish: &Finish, out: &mut Out) {
        self.total.add(answer, self.prompts[answer as usize], &finish.stats);
        self.speculation = finish.speculation.clone();
        let mut chunk = self.chunk(answer, &finish.text, None, Some(finish_reason(finish, false)));
        chunk["timings"] = numbers::timings(&finish.stats);
        chunk["speculation"] = self.shown.plan.told(&finish.speculation, &finish.stats);
        out.value(&chunk);
    }
}

impl Frames for TextFrames {
    fn update(&mut self, answer: u32, update: Update, out: &mut Out) {
        match update {
            Update::Begun { prompt } => {
                self.prompts[answer as usize] = prompt.len() as u64;
                let echo = self.shown.echo(answer);
                if !echo.is_empty() {
                    out.value(&self.chunk(answer, echo, None, None));
                }
            }
            Update::Tokens(tokens) => self.tokens(answer, &tokens, out),
            Update::Paused { .. } => out.paused(),
            Update::Resumed => out.resumed(),
            Update::Finished(finish) => self.finished(answer, &finish, out),
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Out) {
        if self.usage {
            let mut chunk = self.shown.stamp.object("text_completion");
            chunk["choices"] = json!([]);
            chunk["usage"] = numbers::usage(self.total.prompt, &self.total.stats);
            chunk["timings"] = numbers::timings(&self.total.stats);
            chunk["speculation"] = self.shown.plan.told(&self.speculation, &self.total.stats);
            out.value(&chunk);
        }
        out.text("[DONE]");
    }
}
