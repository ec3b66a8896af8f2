//! Errors as OpenAI's interface writes them: `{"error": {"message", "type", "param", "code"}}`.

use super::redact;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use llama_spec::Error;
use llama_spec::supervise::{Problem, ProblemKind};
use llama_spec::text::shortened;
use serde_json::{Value, json};

/// The longest message; what is longer quotes the request.
const MAX_MESSAGE: usize = 1000;

/// Why a request is not answered.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
    retry_after: Option<u64>,
}

impl ApiError {
    /// An error with this status; `code` is for programs, `message` for people.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        Self {
            status,
            kind,
            code: Some(code),
            param: None,
            message: shortened(message.into(), MAX_MESSAGE),
            retry_after: None,
        }
    }

    /// A field of the request that makes no sense.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_value", message).about(param)
    }

    /// A field of the request that asks for what this server does not have.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "unsupported_value", message).about(param)
    }

    /// No key, or a wrong one.
    pub fn unauthorized() -> Self {
        let message = "a valid API key is needed: send it as `Authorization: Bearer KEY`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
    }

    /// Nothing generates now, with the time after which asking again is worth while.
    pub fn unavailable(message: impl Into<String>, seconds: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message).retry_after(seconds)
    }

    /// The answer broke off, and nobody knows more.
    pub(super) fn broken_off() -> Self {
        let message = "the answer broke off; ask again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "interrupted", message).retry_after(1)
    }

    /// Adds the field it is about.
    pub fn about(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Adds after how many seconds asking again is worth while.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its body, which also ends a stream that breaks off.
    pub fn body(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }})
    }

    /// What the library refuses before anything is sent to the engine.
    pub(super) fn refused(error: &Error) -> Self {
        match error {
            Error::Setting { setting, value, expected } => {
                let field = field(setting);
                Self::invalid(field, format!("`{field}` is {value}; expected {expected}"))
            }
            other => Self::new(StatusCode::BAD_REQUEST, "invalid_value", other.to_string()),
        }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let Problem { kind, message, setting, .. } = problem;
        let error = match kind {
            ProblemKind::Invalid => Self::new(StatusCode::BAD_REQUEST, "invalid_value", message),
            ProblemKind::TooLong => Self::new(StatusCode::BAD_REQUEST, "context_length_exceeded", message),
            ProblemKind::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message).retry_after(1),
            ProblemKind::Unavailable => Self::unavailable(redact::line(&message), 2),
            ProblemKind::Interrupted => {
                let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "interrupted", redact::line(&message));
                error.retry_after(1)
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", redact::line(&message)),
        };
        match setting.as_deref() {
            // Which of the fields it is, the engine does not know.
            Some("sampler") | None => error,
            // What the template cannot do is no mistake.
            Some("tool_choice") => Self { code: Some("unsupported_value"), ..error }.about("tool_choice"),
            Some(setting) => error.about(field(setting)),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The name that a setting of the library has in requests.
fn field(setting: &str) -> &str {
    match setting {
        "adaptive_p.decay" => "adaptive_decay",
        "adaptive_p.target" => "adaptive_target",
        "answers" => "n",
        "chat" => "messages",
        "dry" | "dry.multiplier" => "dry_multiplier",
        "dry.allowed_length" => "dry_allowed_length",
        "dry.base" => "dry_base",
        "dry.breakers" => "dry_sequence_breakers",
        "dry.last_n" => "dry_penalty_last_n",
        "dynamic_temperature" | "dynamic_temperature.range" => "dynatemp_range",
        "dynamic_temperature.exponent" => "dynatemp_exponent",
        "json_schema" => "response_format",
        "mirostat.eta" => "mirostat_eta",
        "mirostat.tau" => "mirostat_tau",
        "penalties" | "penalties.repeat" => "repeat_penalty",
        "penalties.frequency" => "frequency_penalty",
        "penalties.last_n" => "repeat_last_n",
        "penalties.presence" => "presence_penalty",
        "reasoning_budget" => "reasoning_budget_tokens",
        "stages" => "samplers",
        "template_arguments" => "chat_template_kwargs",
        "xtc" | "xtc.probability" => "xtc_probability",
        "xtc.threshold" => "xtc_threshold",
        other => other,
    }
}
