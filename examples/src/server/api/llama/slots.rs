//! `/slots`: what runs now.

use crate::server::api::error::ApiError;
use crate::server::api::{ApiState, numbers};
use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

/// What can be asked for in the address.
#[derive(Debug, Default, Deserialize)]
pub(in crate::server::api) struct Asked {
    /// Anything but `0` turns a server that is busy into one that is not available.
    fail_on_no_slot: Option<String>,
}

/// The slots as they are.
pub(in crate::server::api) async fn handle(
    State(api): State<ApiState>,
    Query(asked): Query<Asked>,
) -> Result<Json<Value>, ApiError> {
    let snapshot = api.backend().status();
    let slots = &snapshot.stats.slots;
    let fails = asked.fail_on_no_slot.is_some_and(|value| value != "0");
    if fails && slots.iter().all(|slot| slot.busy) {
        return Err(ApiError::unavailable("no slot is free", 1));
    }
    let slots = slots.iter().enumerate().map(|(id, slot)| {
        json!({
            "id": id,
            "n_ctx": snapshot.context(),
            "speculative": snapshot.speculation.is_active(),
            "is_processing": slot.busy,
            "n_tokens": slot.tokens,
            "n_prompt_tokens_total": slot.stats.prompt_tokens,
            "n_predicted_total": slot.stats.generated_tokens,
            "n_draft_total": slot.stats.drafted,
            "n_draft_accepted": slot.stats.accepted,
            "timings": numbers::timings(&slot.stats),
        })
    });
    Ok(Json(slots.collect()))
}
