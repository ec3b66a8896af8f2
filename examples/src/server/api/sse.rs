//! Answers as server-sent events.
//!
//! A client that reads slowly slows nothing down but itself: the next step of an answer is taken when the last one was
//! written, and waits with the engine until then. When the client is gone, the body is dropped, and the answers with it.

use super::answers;
use super::backend::Answers;
use super::error::ApiError;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use llama_spec::supervise::{Problem, Update};
use serde_json::Value;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

/// Turns the steps of answers into the events of one of the interfaces.
pub(super) trait Frames: Send + 'static {
    /// What a step of an answer gives.
    fn update(&mut self, answer: u32, update: Update, out: &mut Out);

    /// What is written when all answers have ended.
    fn end(&mut self, out: &mut Out);
}

/// Events that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Out(VecDeque<Event>);

impl Out {
    /// A JSON value.
    pub(super) fn value(&mut self, value: &Value) {
        self.text(value.to_string());
    }

    /// A line of text that is no JSON.
    pub(super) fn text(&mut self, line: impl AsRef<str>) {
        self.0.push_back(Event::default().data(line));
    }

    /// The engine is being restarted, in a line that clients pass over.
    pub(super) fn paused(&mut self) {
        self.comment("the engine is being restarted");
    }

    /// The engine goes on, in a line that clients pass over.
    pub(super) fn resumed(&mut self) {
        self.comment("the engine goes on");
    }

    fn comment(&mut self, line: &str) {
        self.0.push_back(Event::default().comment(line));
    }
}

/// When something is written although there is nothing to tell, and how long the status of the response waits for the first
/// step of the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) keep_alive: Option<Duration>,
    pub(super) first: Duration,
}

/// Streams the answers.
///
/// # Errors
/// When the first thing that is heard of them is that there are none: then the response has a status that says so.
pub(super) async fn respond(
    mut answers: Answers,
    count: u32,
    frames: impl Frames,
    pace: Pace,
) -> Result<Response, ApiError> {
    let first = match tokio::time::timeout(pace.first, answers.next()).await {
        Ok(None) => return Err(ApiError::broken_off()),
        Ok(Some((_, Err(problem)))) => return Err(problem.into()),
        Ok(Some(step)) => Some(step),
        Err(_) => None,
    };
    let answers = stream::iter(first).chain(answers).boxed();
    let events = Events { answers: Some(answers), open: vec![true; count as usize], frames, out: Out::default() };
    let events = stream::unfold(events, |mut events| async {
        events.next().await.map(|event| (Ok::<_, Infallible>(event), events))
    });
    let mut response = match pace.keep_alive {
        Some(interval) => Sse::new(events).keep_alive(KeepAlive::new().interval(interval)).into_response(),
        None => Sse::new(events).into_response(),
    };
    // nginx would collect the events and hand them on in one piece.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

struct Events<F> {
    /// Nothing when they have ended.
    answers: Option<Answers>,
    open: Vec<bool>,
    frames: F,
    out: Out,
}

impl<F: Frames> Events<F> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.out.0.pop_front() {
                return Some(event);
            }
            let step = self.answers.as_mut()?.next().await;
            self.step(step);
        }
    }

    fn step(&mut self, step: Option<(u32, Result<Update, Problem>)>) {
        match step {
            Some((_, Ok(update))) if answers::is_cancelled(&update) => self.break_off(ApiError::broken_off()),
            Some((answer, Ok(update))) => {
                let Some(open) = self.open.get_mut(answer as usize).filter(|open| **open) else { return };
                *open = !matches!(update, Update::Finished(_));
                self.frames.update(answer, update, &mut self.out);
                if !self.open.contains(&true) {
                    self.frames.end(&mut self.out);
                    self.answers = None;
                }
            }
            // No mark of a good end follows, so that nobody takes what came for the whole.
            Some((_, Err(problem))) => self.break_off(problem.into()),
            None => self.break_off(ApiError::broken_off()),
        }
    }

    fn break_off(&mut self, error: ApiError) {
        self.out.value(&error.body());
        self.answers = None;
    }
}
