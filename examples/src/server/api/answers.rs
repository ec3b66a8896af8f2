//! Answers as they come from the engine: several tasks as one, and whole answers for clients that do not stream.

use super::ApiState;
use super::backend::Answers;
use super::error::ApiError;
use crate::server::access;
use crate::server::tenant::Tenant;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures_util::stream::{self, StreamExt};
use llama_spec::generate::StopReason;
use llama_spec::spec::Stats;
use llama_spec::supervise::task::{Finish, TokenUpdate};
use llama_spec::supervise::{Task, Update};
use std::convert::Infallible;

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Client {
    /// Where the tokens of the request are counted, if somebody wants to know.
    meter: Option<access::Tokens>,
    tenant: Tenant,
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let tenant = parts.extensions.get().cloned().unwrap_or_default();
        Ok(Self { meter: parts.extensions.get().cloned(), tenant })
    }
}

/// Begins all tasks. The answers of the second are numbered after those of the first, and so on. If one of the tasks is not
/// taken, none is.
pub(super) fn submit(api: &ApiState, tasks: Vec<Task>, client: Client) -> Result<(Answers, u32), ApiError> {
    let Client { meter, tenant } = client;
    let mut first = 0;
    let mut all = Vec::with_capacity(tasks.len());
    for mut task in tasks {
        task.request.tenant = tenant.name().map(str::to_owned);
        let (offset, count) = (first, task.answers);
        let answers = api.backend().submit(task)?.map(move |(answer, update)| (answer.saturating_add(offset), update));
        all.push(answers.boxed());
        first += count;
    }
    let counted = stream::select_all(all).inspect(move |(_, update)| {
        if let (Some(tokens), Ok(Update::Tokens(new))) = (&meter, update) {
            tokens.add(new.len() as u64);
        }
    });
    Ok((counted.boxed(), first))
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Whole {
    /// Tokens of its prompt.
    pub(super) prompt: u64,
    /// All of its text, what a parser took for tool calls included.
    pub(super) text: String,
    /// Its tokens, if they are wanted.
    pub(super) tokens: Vec<TokenUpdate>,
    /// Tokens that were dropped from the context to make room.
    pub(super) dropped: usize,
    pub(super) finish: Box<Finish>,
}

/// Waits for all answers.
///
/// # Errors
/// What broke off one of them; the others are then cancelled.
pub(super) async fn collect(mut answers: Answers, count: u32, tokens: bool) -> Result<Vec<Whole>, ApiError> {
    let mut parts: Vec<Part> = (0..count).map(|_| Part::default()).collect();
    let mut open = count;
    while open > 0 {
        let Some((answer, update)) = answers.next().await else { return Err(ApiError::broken_off()) };
        let Some(part) = parts.get_mut(answer as usize).filter(|part| part.finish.is_none()) else { continue };
        let update = update?;
        if is_cancelled(&update) {
            return Err(ApiError::broken_off());
        }
        part.add(update, tokens);
        open -= u32::from(part.finish.is_some());
    }
    parts.into_iter().map(|part| part.whole().ok_or_else(ApiError::broken_off)).collect()
}

/// Whether an answer ended because somebody else wanted it to: what there is of it is not what was asked for.
pub(super) fn is_cancelled(update: &Update) -> bool {
    matches!(update, Update::Finished(finish) if finish.reason == StopReason::Cancelled)
}

#[derive(Debug, Default)]
struct Part {
    prompt: u64,
    text: String,
    tokens: Vec<TokenUpdate>,
    dropped: usize,
    finish: Option<Box<Finish>>,
}

impl Part {
    fn add(&mut self, update: Update, keep: bool) {
        match update {
            Update::Begun { prompt } => self.prompt = prompt.len() as u64,
            Update::Tokens(tokens) => {
                tokens.iter().for_each(|token| self.text.push_str(&token.text));
                if keep {
                    self.tokens.extend(tokens);
                }
            }
            Update::Shifted { dropped } => self.dropped += dropped,
            Update::Finished(finish) => {
                self.text.push_str(&finish.text);
                self.finish = Some(finish);
            }
            _ => {}
        }
    }

    fn whole(self) -> Option<Whole> {
        let Self { prompt, text, tokens, dropped, finish } = self;
        Some(Whole { prompt, text, tokens, dropped, finish: finish? })
    }
}

/// The numbers of several answers: prompts, and what one of them had in memory, count once for each task.
#[derive(Debug, Default)]
pub(super) struct Total {
    pub(super) stats: Stats,
    pub(super) prompt: u64,
    /// Answers of each task.
    each: u32,
}

impl Total {
    pub(super) fn new(each: u32) -> Self {
        Self { each: each.max(1), ..Self::default() }
    }

    /// Adds the answer with this number.
    pub(super) fn add(&mut self, answer: u32, prompt: u64, stats: &Stats) {
        self.stats.add(stats);
        if answer.is_multiple_of(self.each) {
            self.prompt += prompt;
        }
    }
}
