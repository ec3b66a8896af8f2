//! What the requests to generate have in common.

use super::backend::{Backend, Snapshot};
use super::error::ApiError;
use super::fields::Fields;
use super::sampling::Sampling;
use super::speculation::{Plan, Wanted};
use super::sse::Pace;
use super::{ApiState, bias, sampling};
use llama_spec::engine::Request;
use serde_json::{Map, Value, json};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most answers to one prompt.
const MAX_ANSWERS: u32 = 128;

/// The fields that all have.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) sampling: Sampling,
    pub(super) speculation: Wanted,
    /// Answers to each prompt.
    pub(super) answers: u32,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Whether the progress of the prompt is wanted.
    pub(super) progress: bool,
    /// The time between signs of life in seconds, if it is to be another; negative for none.
    ping: Option<i64>,
}

impl Common {
    /// Takes them.
    pub(super) fn take(fields: &mut Fields, snapshot: &Snapshot) -> Result<Self, ApiError> {
        let mut stream_options = Fields::new(fields.take::<Map<String, Value>>("stream_options")?.unwrap_or_default());
        let answers = fields.first::<u32>(&["n", "n_cmpl"])?.unwrap_or(1);
        if !(1..=MAX_ANSWERS).contains(&answers) {
            return Err(ApiError::invalid("n", format!("`n` is {answers}; expected 1 to {MAX_ANSWERS}")));
        }
        Ok(Self {
            sampling: Sampling::take(fields, snapshot.context())?,
            speculation: Wanted::take(fields)?,
            answers,
            stream: fields.flag("stream")?,
            include_usage: stream_options
                .flag("include_usage")
                .map_err(|error| error.about("stream_options.include_usage"))?,
            progress: fields.flag("return_progress")?,
            ping: fields.take("sse_ping_interval")?,
        })
    }

    /// When events are written.
    pub(super) fn pace(&self, api: &ApiState) -> Pace {
        let keep_alive = match self.ping {
            None => api.options().keep_alive,
            Some(seconds) => u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs),
        };
        Pace { keep_alive, first: api.options().first_step }
    }

    /// A request with everything but its prompt.
    pub(super) async fn request(self, plan: &Plan, backend: &dyn Backend) -> Result<Request, ApiError> {
        let Sampling { mut options, bias, max_tokens, stop, deadline } = self.sampling;
        bias::apply(bias, &mut options, backend).await?;
        sampling::check(&options)?;
        let mut request = Request::prompt("").sampler(options).stop(stop);
        request.options.max_tokens = max_tokens;
        request.deadline = deadline;
        request.drafting = plan.drafting.clone();
        Ok(request)
    }
}

/// What tells an answer from others.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    id: String,
    created: u64,
    model: String,
}

impl Stamp {
    pub(super) fn new(kind: &str, model: String) -> Self {
        Self { id: id(&format!("{kind}-")), created: now(), model }
    }

    /// The fields with which every object begins.
    pub(super) fn object(&self, object: &str) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": concat!("llama-spec-", env!("CARGO_PKG_VERSION")),
        })
    }
}

/// An id that has not been given before, nor by a server before this one, as far as chance goes.
pub(super) fn id(kind: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The keys of a new state are random.
    let random = RandomState::new();
    format!("{kind}{:016x}{:08x}", random.hash_one(count), count as u32)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
