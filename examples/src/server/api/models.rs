//! `/v1/models`: the one model that is served.

use super::ApiState;
use super::backend::Snapshot;
use super::error::ApiError;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::path::Path as FilePath;

/// All models: none while nothing is to be loaded.
pub(super) async fn list(State(api): State<ApiState>) -> Json<Value> {
    let snapshot = api.backend().status();
    let models: Vec<_> = snapshot.requested.is_some().then(|| model(&api, &snapshot)).into_iter().collect();
    Json(json!({ "object": "list", "data": models }))
}

/// The model of this name.
pub(super) async fn one(
    State(api): State<ApiState>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, ApiError> {
    let snapshot = api.backend().status();
    // What is no text is no name.
    let is_it = id.is_ok_and(|Path(id)| id == api.model(&snapshot));
    if snapshot.requested.is_none() || !is_it {
        let message = "there is no model of this name; GET /v1/models tells which there is";
        return Err(ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message).about("model"));
    }
    Ok(Json(model(&api, &snapshot)))
}

fn model(api: &ApiState, snapshot: &Snapshot) -> Value {
    let meta = snapshot.info.as_ref().map(|info| {
        json!({
            "n_vocab": info.vocabulary,
            "n_ctx": info.context,
            "n_ctx_train": info.trained_context,
            "n_embd": info.embedding,
            "n_params": info.parameters,
            "size": info.bytes,
        })
    });
    json!({
        "id": api.model(snapshot),
        "object": "model",
        "created": api.began(),
        "owned_by": "llama-spec",
        "meta": meta,
    })
}

/// The name of the model's file, without what numbers its parts.
pub(super) fn name(snapshot: &Snapshot) -> String {
    let load = snapshot.effective.as_ref().or(snapshot.requested.as_ref());
    load.and_then(|load| file_name(&load.model)).unwrap_or_else(|| "none".into())
}

/// The name of the draft's file, if one is loaded.
pub(super) fn draft_name(snapshot: &Snapshot) -> Option<String> {
    snapshot.effective.as_ref()?.draft.as_deref().and_then(file_name)
}

fn file_name(path: &FilePath) -> Option<String> {
    let name = path.file_stem()?.to_string_lossy().into_owned();
    // Parts are called NAME-00001-of-00003.
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = name.rsplit_once("-of-").filter(|(_, count)| digits(count)).and_then(|(first, _)| {
        first.rsplit_once('-').filter(|(_, part)| digits(part)).map(|(whole, _)| whole.to_owned())
    });
    Some(whole.unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_called_by_their_file() {
        let named = |path: &str| file_name(FilePath::new(path)).unwrap();
        assert_eq!(named("/x/SmolLM2-1.7B-Q4_K_M.gguf"), "SmolLM2-1.7B-Q4_K_M");
        assert_eq!(named("big-00001-of-00003.gguf"), "big");
        assert_eq!(named("one-of-them.gguf"), "one-of-them");
    }
}
