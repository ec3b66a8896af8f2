//! The interface over an engine that plays a script.

mod admin;
mod chat;
mod completions;
mod errors;
mod fake;
mod health;
mod hostile;
mod llama;
mod streams;

use super::{ApiOptions, ApiState, router};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use fake::Fake;
use futures_util::StreamExt;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

/// Longer than anything takes; a test that waits for it has failed.
const LONG: Duration = Duration::from_secs(60);

/// A router over this engine.
fn over(fake: &Arc<Fake>) -> Router {
    with(fake, |_| {})
}

fn with(fake: &Arc<Fake>, change: impl FnOnce(&mut ApiOptions)) -> Router {
    let mut options = ApiOptions { keep_alive: None, first_step: LONG, ..ApiOptions::default() };
    change(&mut options);
    router(ApiState::new(Arc::clone(fake), options))
}

/// What came back.
#[derive(Debug)]
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The events of a stream: JSON as such, other data as text.
    fn events(&self) -> Vec<Value> {
        assert_eq!(self.headers["content-type"], "text/event-stream");
        let blocks = self.body.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
        let data = blocks.map(|block| block.strip_prefix("data: ").unwrap_or_else(|| panic!("no data: {block:?}")));
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
    }

    /// Status, and the fields of the error.
    fn error(&self) -> (u16, String, Option<String>, String) {
        let error = self.json()["error"].clone();
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
        assert!(error["type"].is_string(), "{error}");
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        let param = text("param");
        (self.status.as_u16(), text("code").unwrap_or_default(), param, text("message").unwrap_or_default())
    }
}

async fn send(router: &Router, request: Request<Body>) -> Got {
    let answered = async {
        let response = router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Got { status: parts.status, headers: parts.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    };
    tokio::time::timeout(LONG, answered).await.expect("an answer")
}

async fn get(router: &Router, path: &str) -> Got {
    send(router, Request::get(path).body(Body::empty()).unwrap()).await
}

fn posting(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path).header("content-type", "application/json").body(body.into()).unwrap()
}

async fn post(router: &Router, path: &str, body: Value) -> Got {
    send(router, posting(path, body.to_string())).await
}

/// The next piece of a body that is being written.
async fn piece(body: &mut axum::body::BodyDataStream) -> Option<Bytes> {
    tokio::time::timeout(LONG, body.next()).await.expect("a piece").map(Result::unwrap)
}

/// The fields of `part` are in `whole`, at every level; lists are equal in length.
fn assert_has(whole: &Value, part: &Value) {
    match (whole, part) {
        (Value::Object(have), Value::Object(want)) => {
            for (name, want) in want {
                let have = have.get(name).unwrap_or_else(|| panic!("no {name} in {whole:#}"));
                assert_has(have, want);
            }
        }
        (Value::Array(have), Value::Array(want)) => {
            assert_eq!(have.len(), want.len(), "{whole:#}");
            have.iter().zip(want).for_each(|(have, want)| assert_has(have, want));
        }
        _ => assert_eq!(whole, part),
    }
}
