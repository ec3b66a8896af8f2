//! The HTTP interface: OpenAI's, llama-server's own, and what says how the server is.
//!
//! [`router`] answers with the help of a [`Backend`], which is an engine under supervision. What is said of HTTP itself - keys,
//! limits, time - is not here but around it.
//!
//! | file | what it is about |
//! |---|---|
//! | `chat`, `completions` | OpenAI's `/v1/chat/completions` and `/v1/completions` |
//! | `llama/` | llama-server's `/completion`, `/tokenize`, `/props`, `/slots` and others |
//! | `models`, `unsupported` | `/v1/models`, and what there is not, such as `/v1/embeddings` |
//! | `health`, `status`, `inspect`, `metrics` | how the server is |
//! | `admin` | loading and unloading |
//! | `fields`, `conversation`, `prompt`, `sampling`, `bias`, `speculation`, `common`, `hostile`, `schema` | from a request to a task |
//! | `answers`, `sse`, `delta`, `logprobs`, `numbers` | from an answer's steps to a response |
//! | `error`, `redact` | errors, and what they do not say |

mod admin;
mod answers;
mod backend;
mod bias;
mod chat;
mod common;
mod completions;
mod conversation;
mod delta;
mod error;
mod fields;
mod health;
mod hostile;
mod inspect;
mod llama;
mod logprobs;
mod metrics;
mod models;
mod numbers;
mod prompt;
mod redact;
mod sampling;
mod schema;
mod speculation;
mod sse;
mod status;
#[cfg(test)]
mod tests;
mod unsupported;

pub use backend::{Answers, Backend, Snapshot};
pub use error::ApiError;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{get, post};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How the interface behaves.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The name of the model. Default: that of its file.
    pub alias: Option<String>,
    /// Whether models may be loaded and unloaded. Set it only where an API key is asked for, or where only the machine itself is
    /// listened to and its owner allows it.
    pub admin: bool,
    /// Whether the engine runs in a process of its own, which decides what `/inspect` warns of.
    pub supervised: bool,
    /// How old the last good decode may be for the server to be ready. It must be longer than the time between checks of an
    /// engine that is idle.
    pub decode_age: Duration,
    /// The time after which a stream without news gives a sign of life. Default: 15 seconds.
    pub keep_alive: Option<Duration>,
    /// How long a stream waits for its first step before it begins: until then an error has a status of its own.
    pub first_step: Duration,
    /// The longest prompt in bytes.
    pub prompt_bytes: usize,
    /// The most prompts of one request.
    pub prompts: usize,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            alias: None,
            admin: false,
            supervised: true,
            decode_age: Duration::from_secs(60),
            keep_alive: Some(Duration::from_secs(15)),
            first_step: Duration::from_secs(5),
            prompt_bytes: 4 << 20,
            prompts: 64,
        }
    }
}

/// What all requests share.
#[derive(Clone)]
pub struct ApiState(Arc<Shared>);

struct Shared {
    backend: Box<dyn Backend>,
    options: ApiOptions,
    began: u64,
    reports: inspect::Reports,
}

impl ApiState {
    /// An interface to this engine.
    pub fn new(backend: impl Backend, options: ApiOptions) -> Self {
        let reports = inspect::Reports::default();
        Self(Arc::new(Shared { backend: Box::new(backend), options, began: common::now(), reports }))
    }

    /// The engine.
    pub fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    /// How the interface behaves.
    pub fn options(&self) -> &ApiOptions {
        &self.0.options
    }

    /// When the server began, in seconds since 1970.
    fn began(&self) -> u64 {
        self.0.began
    }

    fn reports(&self) -> &inspect::Reports {
        &self.0.reports
    }

    /// The name of the model.
    fn model(&self, snapshot: &Snapshot) -> String {
        self.0.options.alias.clone().unwrap_or_else(|| models::name(snapshot))
    }

    fn check_prompt(&self, param: &str, bytes: usize) -> Result<(), ApiError> {
        let most = self.0.options.prompt_bytes;
        if bytes > most {
            let message = format!("the prompt has {bytes} bytes; at most {most} are taken");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "prompt_too_large", message).about(param));
        }
        Ok(())
    }
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").field("options", &self.0.options).finish_non_exhaustive()
    }
}

/// What other servers have that this one answers with an explanation.
const NOT_THERE: [&str; 9] = [
    "/v1/embeddings",
    "/embeddings",
    "/embedding",
    "/v1/rerank",
    "/v1/reranking",
    "/rerank",
    "/reranking",
    "/infill",
    "/v1/infill",
];

/// The routes. What is not among them is answered with 404 in OpenAI's form, so no other router with a fallback can be merged.
pub fn router(state: ApiState) -> Router {
    let router = Router::new()
        .route("/health", get(health::alive))
        .route("/v1/health", get(health::alive))
        .route("/ready", get(health::ready))
        .route("/status", get(status::handle))
        .route("/inspect", get(inspect::handle))
        .route("/metrics", get(metrics::handle))
        .route("/v1/models", get(models::list))
        .route("/models", get(models::list))
        .route("/v1/models/{id}", get(models::one))
        .route("/v1/chat/completions", post(chat::handle))
        .route("/chat/completions", post(chat::handle))
        .route("/v1/completions", post(completions::handle))
        .route("/completion", post(llama::completion::handle))
        .route("/completions", post(llama::completion::handle))
        .route("/tokenize", post(llama::text::tokenize))
        .route("/detokenize", post(llama::text::detokenize))
        .route("/apply-template", post(llama::text::apply_template))
        .route("/props", get(llama::settings::props))
        .route("/slots", get(llama::slots::handle))
        .route("/admin/load", post(admin::load))
        .route("/admin/reload", post(admin::reload))
        .route("/admin/unload", post(admin::unload))
        .route("/admin/draft", post(admin::draft));
    NOT_THERE
        .into_iter()
        .fold(router, |router, path| router.route(path, post(unsupported::handle)))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

async fn unknown(method: Method, uri: Uri) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown_url", format!("there is nothing at {method} {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} cannot be asked for with {method}", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
