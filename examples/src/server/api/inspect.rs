//! `/inspect`: what the program `inspect` says of the files that are loaded, without where they are.

use super::error::ApiError;
use super::{ApiState, redact};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use llama_spec::ModelFile;
use llama_spec::compat::{Conditions, Report};
use llama_spec::supervise::Load;
use serde_json::Value;
use tokio::sync::Mutex;

/// The last report, and what it is about. Headers can be long, so they are read once, and by one at a time.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<Option<(Load, Value)>>);

/// The report of what is to be loaded.
pub(super) async fn handle(State(api): State<ApiState>) -> Result<Json<Value>, ApiError> {
    let none = || ApiError::new(StatusCode::NOT_FOUND, "nothing_loaded", "nothing is loaded");
    let load = api.backend().status().requested.ok_or_else(none)?;
    let mut last = api.reports().0.lock().await;
    if let Some((_, report)) = last.as_ref().filter(|(known, _)| *known == load) {
        return Ok(Json(report.clone()));
    }
    let (asked, supervised) = (load.clone(), api.options().supervised);
    let report = tokio::task::spawn_blocking(move || report(&asked, supervised)).await;
    let report = report.ok().flatten().ok_or_else(|| ApiError::unavailable("the files cannot be read now", 10))?;
    *last = Some((load, report.clone()));
    Ok(Json(report))
}

fn report(load: &Load, supervised: bool) -> Option<Value> {
    let target = ModelFile::open(&load.model).ok()?;
    let draft = match &load.draft {
        Some(draft) => Some(ModelFile::open(draft).ok()?),
        None => None,
    };
    let conditions = Conditions::from(&load.context).split_mode(load.split_mode).supervised(supervised);
    let report = Report::new(&target, draft.as_ref(), load.speculation.as_ref(), &conditions);
    let mut report = serde_json::to_value(report).ok()?;
    redact::within(&mut report);
    Some(report)
}
