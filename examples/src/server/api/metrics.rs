//! `/metrics`: the numbers for Prometheus, with the state of the server and what became of its workers.

use super::ApiState;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;

/// All states, so that each has its line.
const STATES: [&str; 7] = ["starting", "ready", "degraded", "recovering", "failed", "unloaded", "stopping"];

/// Answers at once, from what is known.
pub(super) async fn handle(State(api): State<ApiState>) -> Response {
    let snapshot = api.backend().status();
    let mut page = snapshot.stats.prometheus();
    if !page.ends_with('\n') {
        page.push('\n');
    }
    let ready = u8::from(snapshot.unready(api.options().decode_age).is_none());
    let mut add = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        samples.iter().for_each(|(labels, value)| {
            let _ = writeln!(page, "{name}{labels} {value}");
        });
    };
    let one = |value: String| [(String::new(), value)];
    add("llama_spec_ready", "gauge", "1 if a request would be answered, else 0.", &one(ready.to_string()));
    let states = STATES.map(|state| {
        let on = u8::from(state == snapshot.state.name());
        (format!("{{state=\"{state}\"}}"), on.to_string())
    });
    add("llama_spec_state", "gauge", "1 for the state of the engine, else 0.", &states);
    let help = "Workers that were started in place of others.";
    add("llama_spec_worker_restarts_total", "counter", help, &one(snapshot.restarts.to_string()));
    if let Some((age, _)) = snapshot.last_decode {
        let help = "Time since the engine last decoded something.";
        add("llama_spec_last_decode_age_seconds", "gauge", help, &one(age.as_secs_f64().to_string()));
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}
