//! `/health`: the process is there. `/ready`: it generates. Both are answered from what is known, also while the engine is busy.

use super::{ApiState, redact, status};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use llama_spec::supervise::State as EngineState;
use serde_json::json;

/// The process answers.
pub(super) async fn alive(State(api): State<ApiState>) -> Response {
    let state = api.backend().status().state;
    Json(json!({ "status": "ok", "state": state.name() })).into_response()
}

/// A request would be answered: 200, and otherwise 503 with what is known of why.
pub(super) async fn ready(State(api): State<ApiState>) -> Response {
    let snapshot = api.backend().status();
    let why = snapshot.unready(api.options().decode_age);
    let body = json!({
        "ready": why.is_none(),
        "state": snapshot.state.name(),
        "reason": why.as_deref().or(snapshot.state.reason()).map(redact::line),
        "progress": status::progress(&snapshot.state),
        "last_decode": status::last_decode(&snapshot),
    });
    if why.is_none() {
        return Json(body).into_response();
    }
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    // What has failed for good does not come back by itself.
    if !matches!(snapshot.state, EngineState::Failed { .. } | EngineState::Unloaded | EngineState::Stopping) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    }
    response
}
