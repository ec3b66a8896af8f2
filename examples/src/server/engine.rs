//! What the server needs of its engine: a start, an end, and the API over it.

use super::plan::Plan;
use crate::failure::Failure;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The engine behind the API.
#[derive(Debug)]
pub(super) struct Engine {
    plan: Plan,
    stopping: Arc<AtomicBool>,
}

impl Engine {
    /// Begins to load.
    pub(super) fn start(plan: Plan) -> Self {
        Self { plan, stopping: Arc::default() }
    }

    /// Everything that is served.
    pub(super) fn router(&self) -> Router {
        let stopping = self.stopping.clone();
        let ready = move || {
            let stopping = stopping.load(Ordering::SeqCst);
            let (status, state) =
                if stopping { (StatusCode::SERVICE_UNAVAILABLE, "stopping") } else { (StatusCode::OK, "ready") };
            std::future::ready((status, Json(json!({"state": state}))))
        };
        let models = Json(json!({"object": "list", "data": [{"id": self.plan.name, "object": "model"}]}));
        Router::new()
            .route("/health", get(|| std::future::ready(Json(json!({"status": "ok"})))))
            .route("/ready", get(ready))
            .route("/v1/models", get(move || std::future::ready(models.clone())))
    }

    /// Waits until it serves for the first time.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) async fn first_load(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes nothing more, and ends when all answers have, or their time is over.
    pub(super) async fn shutdown(&self, _grace: Duration) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}
