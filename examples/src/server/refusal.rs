//! What the server itself answers when a request does not get as far as the API: errors in OpenAI's form.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no key, or a wrong one.
    Unauthorized,
    /// Its body is larger than this many bytes.
    TooLarge(usize),
    /// Its body did not come in time.
    TooSlow,
    /// Its body broke off, or is not what its head says.
    Broken,
    /// So many large bodies are being read that there is no room for another.
    Busy,
    /// Something that should not happen: a panic.
    Internal,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, kind, code, message) = match self {
            Self::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "invalid_request_error",
                "invalid_api_key",
                "a valid key is needed: Authorization: Bearer KEY, or X-Api-Key: KEY".to_owned(),
            ),
            Self::TooLarge(most) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "invalid_request_error",
                "body_too_large",
                format!("the body is larger than {most} bytes"),
            ),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                "invalid_request_error",
                "body_timeout",
                "the body did not come in time".to_owned(),
            ),
            Self::Broken => (
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "body_broken",
                "the body broke off or is badly framed".to_owned(),
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "server_error",
                "busy",
                "too many large requests at once; try again".to_owned(),
            ),
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "server_error",
                "internal_error",
                "something failed that should not; the log of the server says what".to_owned(),
            ),
        };
        let body = Json(json!({"error": {"message": message, "type": kind, "param": null, "code": code}}));
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unauthorized => headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
            Self::Busy => headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1")),
            // What is left of the body is not read, so nothing can follow it.
            Self::TooLarge(_) | Self::TooSlow => headers.insert(header::CONNECTION, HeaderValue::from_static("close")),
            Self::Broken | Self::Internal => None,
        };
        response
    }
}
