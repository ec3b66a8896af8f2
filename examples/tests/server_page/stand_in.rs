//! A server that serves the page, and answers as the test has told it to.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The server; it ends with the test's runtime.
#[derive(Debug)]
pub(crate) struct StandIn {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    told: Mutex<Told>,
    /// One permit lets one [`Step::Wait`] pass.
    gate: Semaphore,
    /// One permit for each stream that the client closed before its end.
    closed: Semaphore,
}

#[derive(Debug)]
struct Told {
    status: Value,
    inspect: Value,
    key: Option<String>,
    answers: VecDeque<Answer>,
    asked: Vec<Value>,
}

/// What comes next in a stream.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// `data:` and this.
    Chunk(Value),
    /// These bytes.
    Raw(Vec<u8>),
    /// Nothing until [`StandIn::go_on`].
    Wait,
    /// The connection breaks.
    Break,
}

/// What one request is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Events. What marks their end is a step too.
    Stream(Vec<Step>),
    /// A status, how long to wait before asking again, and a body.
    Refusal(u16, Option<u32>, String),
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        let told = Told {
            status: ready(),
            inspect: json!({ "verdict": "works", "target": {}, "draft": null, "checks": [] }),
            key: None,
            answers: VecDeque::new(),
            asked: Vec::new(),
        };
        let shared = Arc::new(Shared { told: told.into(), gate: Semaphore::new(0), closed: Semaphore::new(0) });
        let router = Router::new()
            .route("/status", get(status))
            .route("/inspect", get(inspect))
            .route("/v1/chat/completions", post(answer))
            .merge(llama_spec_examples::server::page::routes())
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Changes what `/status` answers.
    pub(crate) fn status(&self, change: impl FnOnce(&mut Value)) {
        change(&mut self.shared.told.lock().unwrap().status);
    }

    pub(crate) fn inspect(&self, report: Value) {
        self.shared.told.lock().unwrap().inspect = report;
    }

    pub(crate) fn key(&self, key: Option<&str>) {
        self.shared.told.lock().unwrap().key = key.map(str::to_owned);
    }

    /// What the next request that has no answer yet gets.
    pub(crate) fn answer(&self, answer: Answer) {
        self.shared.told.lock().unwrap().answers.push_back(answer);
    }

    pub(crate) fn stream(&self, steps: impl IntoIterator<Item = Step>) {
        self.answer(Answer::Stream(steps.into_iter().collect()));
    }

    /// Lets a waiting stream go on.
    pub(crate) fn go_on(&self) {
        self.shared.gate.add_permits(1);
    }

    /// Waits until the client has closed a stream before its end.
    pub(crate) async fn closed(&self) {
        self.shared.closed.acquire().await.unwrap().forget();
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.shared.told.lock().unwrap().asked.clone()
    }
}

async fn status(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.told.lock().unwrap().status.clone())
}

async fn inspect(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let told = shared.told.lock().unwrap();
    if refused(&told, &headers) { no_key() } else { Json(told.inspect.clone()).into_response() }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let answer = {
        let mut told = shared.told.lock().unwrap();
        if refused(&told, &headers) {
            return no_key();
        }
        told.asked.push(body);
        told.answers.pop_front().expect("the test has no answer for this request")
    };
    match answer {
        Answer::Stream(steps) => {
            let open = Open { shared, steps: steps.into(), over: false };
            let body = Body::from_stream(stream::unfold(open, Open::next));
            ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
        Answer::Refusal(status, after, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            if let Some(after) = after {
                response.headers_mut().insert(header::RETRY_AFTER, after.into());
            }
            response
        }
    }
}

fn refused(told: &Told, headers: &HeaderMap) -> bool {
    let wanted = told.key.as_ref().map(|key| format!("Bearer {key}"));
    wanted.is_some_and(|wanted| headers.get(header::AUTHORIZATION).is_none_or(|given| *given != *wanted))
}

fn no_key() -> Response {
    let error =
        json!({ "error": { "message": "an API key is needed", "type": "authentication_error", "code": "no_key" } });
    (StatusCode::UNAUTHORIZED, Json(error)).into_response()
}

/// A stream that is being sent.
struct Open {
    shared: Arc<Shared>,
    steps: VecDeque<Step>,
    over: bool,
}

impl Open {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        loop {
            let Some(step) = self.steps.pop_front() else {
                self.over = true;
                return None;
            };
            let bytes = match step {
                Step::Chunk(chunk) => Ok(format!("data: {chunk}\n\n").into()),
                Step::Raw(bytes) => Ok(bytes.into()),
                Step::Wait => {
                    self.shared.gate.acquire().await.unwrap().forget();
                    continue;
                }
                Step::Break => {
                    self.over = true;
                    Err(io::Error::other("the test breaks the connection"))
                }
            };
            return Some((bytes, self));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.over {
            self.shared.closed.add_permits(1);
        }
    }
}

/// A piece of the answer: what the client is to show, and the tokens that were generated meanwhile.
pub(crate) fn piece(delta: Value, tokens: &[(&str, &str)]) -> Step {
    Step::Chunk(json!({ "object": "chat.completion.chunk", "choices": [
        { "index": 0, "delta": delta, "finish_reason": null, "token_details": details(tokens) }
    ] }))
}

/// Tokens whose texts are the answer.
pub(crate) fn tokens(tokens: &[(&str, &str)]) -> Step {
    let text: String = tokens.iter().map(|(text, _)| *text).collect();
    piece(json!({ "content": text }), tokens)
}

fn details(tokens: &[(&str, &str)]) -> Vec<Value> {
    let detail = |(text, source): &(&str, &str)| {
        json!({ "id": 100 + text.len(), "text": text, "source": source, "logprob": -0.5, "top": [
            { "id": 100 + text.len(), "text": text, "logprob": -0.5 },
            { "id": 7, "text": " other", "logprob": -1.5 },
        ] })
    };
    tokens.iter().map(detail).collect()
}

/// The chunks that end an answer.
pub(crate) fn end() -> [Step; 3] {
    [
        Step::Chunk(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop", "token_details": [] }] })),
        Step::Chunk(json!({
            "choices": [],
            "usage": { "prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46 },
            "timings": { "predicted_n": 34, "predicted_ms": 200.0, "predicted_per_second": 170.0 },
            "speculation": { "requested": "auto", "effective": ["draft-simple"], "reason": "the draft is a language model",
                "drafted": 40, "accepted": 30, "drafted_per_position": [20, 20], "accepted_per_position": [18, 12] },
        })),
        done(),
    ]
}

pub(crate) fn done() -> Step {
    Step::Raw(b"data: [DONE]\n\n".to_vec())
}

/// What `/status` says of an engine that works.
fn ready() -> Value {
    json!({
        "state": "ready", "reason": null, "progress": null,
        "model": { "id": "zoo target", "draft": "zoo draft", "description": "llama 510 thousand F32", "context": 4096,
            "slots": 2, "vocabulary": 261, "chat_template": true },
        "speculation": { "active": true, "requested": "auto", "effective": ["draft-simple"],
            "reason": "the draft is a language model" },
        "last_decode": { "age_ms": 12, "ok": true }, "restarts": 0, "recoveries": [],
        "plain_tokens_per_second": 100.0, "speedup": 1.4,
        "requests": { "running": 1, "queued": 0, "finished": 10, "cancelled": 2, "failed": 0 },
        "totals": { "generated": 100, "drafted": 80, "accepted": 60, "rounds": 40, "drafts": 30,
            "drafted_per_position": [30, 25, 25], "accepted_per_position": [27, 20, 13], "generation_seconds": 1.5 },
        "slots": [{ "busy": true, "tokens": 1024 }, { "busy": false, "tokens": 0 }],
    })
}
