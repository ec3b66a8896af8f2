//! `/status`: everything that is known of the engine, for the page and for people.

use super::backend::Snapshot;
use super::numbers::{milliseconds, rounded};
use super::{ApiState, models, redact};
use axum::Json;
use axum::extract::State;
use llama_spec::spec::Method;
use llama_spec::supervise::State as EngineState;
use serde_json::{Value, json};

/// Answers at once, from what is known.
pub(super) async fn handle(State(api): State<ApiState>) -> Json<Value> {
    let snapshot = api.backend().status();
    Json(status(&snapshot, &api.model(&snapshot)))
}

fn status(snapshot: &Snapshot, name: &str) -> Value {
    let stats = &snapshot.stats;
    let total = &stats.total;
    let recoveries = snapshot.recoveries.iter();
    let recoveries: Vec<_> = recoveries
        .map(|(age, what)| json!({ "at_ms_ago": milliseconds(*age) as u64, "what": redact::line(what) }))
        .collect();
    let slots: Vec<_> = stats.slots.iter().map(|slot| json!({ "busy": slot.busy, "tokens": slot.tokens })).collect();
    let speculation = &snapshot.speculation;
    let own = (0..speculation.own_drafters).map(|number| format!("own-{number}"));
    let effective: Vec<_> = own.chain(speculation.effective.iter().map(Method::to_string)).collect();
    json!({
        "state": snapshot.state.name(),
        "reason": snapshot.state.reason().map(redact::line),
        "progress": progress(&snapshot.state),
        "model": model(snapshot, name),
        "speculation": {
            "active": speculation.is_active(),
            "requested": speculation.requested,
            "effective": effective,
            "reason": speculation.reason.as_deref().map(redact::line),
        },
        "last_decode": last_decode(snapshot),
        "restarts": snapshot.restarts,
        "recoveries": recoveries,
        "plain_tokens_per_second": stats.plain_token.map(|time| time.as_secs_f64()).filter(|time| *time > 0.0).map(|time| rounded(1.0 / time)),
        "speedup": stats.speedup().map(rounded),
        "requests": {
            "running": stats.running,
            "queued": stats.queued,
            "finished": stats.finished,
            "cancelled": stats.cancelled,
            "expired": stats.expired,
            "failed": stats.failed,
            "refused": stats.refused,
        },
        "totals": {
            "prompt": total.prompt_tokens,
            "generated": total.generated_tokens,
            "drafted": total.drafted,
            "accepted": total.accepted,
            "rounds": total.rounds,
            "drafts": total.drafts,
            "drafted_per_position": total.drafted_per_position,
            "accepted_per_position": total.accepted_per_position,
            "generation_seconds": rounded(total.generation.as_secs_f64()),
        },
        "slots": slots,
    })
}

fn model(snapshot: &Snapshot, name: &str) -> Option<Value> {
    let info = snapshot.info.as_ref()?;
    Some(json!({
        "id": name,
        "draft": models::draft_name(snapshot),
        "description": info.description,
        "parameters": info.parameters,
        "context": info.context,
        "slots": info.slots,
        "vocabulary": info.vocabulary,
        "chat_template": info.chat_template.is_some(),
    }))
}

/// How far loading is.
pub(super) fn progress(state: &EngineState) -> Option<Value> {
    match state {
        EngineState::Starting { target, draft } => Some(json!({ "target": target, "draft": draft })),
        _ => None,
    }
}

/// The last real decode.
pub(super) fn last_decode(snapshot: &Snapshot) -> Option<Value> {
    snapshot.last_decode.map(|(age, ok)| json!({ "age_ms": milliseconds(age) as u64, "ok": ok }))
}
