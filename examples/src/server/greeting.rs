//! What a person sees when the server starts and ends: plain lines for people, events where the log is for programs.

use super::config::Flags;
use super::plan::Plan;
use crate::failure::one_line;
use crate::load::names;
use crate::logging::LogFormat;
use crate::output::note;
use llama_spec::file::Description;
use std::net::{IpAddr, SocketAddr};

/// What is going to be loaded.
pub(super) fn plan(flags: &Flags, plan: &Plan) {
    let report = &plan.report;
    let (model, draft) = (file(&report.target), report.draft.as_ref().map(file));
    let methods = match (&plan.doubt, report.effective.as_slice()) {
        (Some(doubt), _) => format!("something simpler: {}", one_line(doubt)),
        (None, []) => "none".to_owned(),
        (None, methods) => names(methods),
    };
    if flags.log_format == LogFormat::Json {
        return tracing::info!(target: "server", model, draft, speculation = methods, "loading");
    }
    note(&format!("model        {model}"));
    if let Some(draft) = draft {
        note(&format!("draft        {draft}"));
    }
    let because = plan.report.reason.as_ref().filter(|_| plan.doubt.is_none());
    let because = because.map(|reason| format!(" ({})", one_line(reason))).unwrap_or_default();
    note(&format!("speculation  {methods}{because}"));
}

/// A file in some words.
fn file(model: &Description) -> String {
    let name = model.path.file_name().unwrap_or(model.path.as_os_str()).to_string_lossy();
    let architecture = model.architecture.as_deref().unwrap_or_default();
    let megabytes = model.weight_bytes as f64 / 1e6;
    one_line(&format!("{name}: {}, {architecture} {}, {megabytes:.1} MB", model.kind, model.quantization))
}

/// Where clients find the server.
pub(super) fn listening(flags: &Flags, address: SocketAddr) {
    let url = url(address);
    match flags.log_format {
        LogFormat::Json => tracing::info!(target: "server", url, "listening"),
        LogFormat::Human => note(&format!("listening on {url}")),
    }
}

/// It generates.
pub(super) fn ready(flags: &Flags, address: SocketAddr, keys: bool) {
    if flags.log_format == LogFormat::Json {
        return tracing::info!(target: "server", "ready");
    }
    let url = url(address);
    let key = if keys { " -H 'Authorization: Bearer KEY'" } else { "" };
    note(&format!("ready: open {url} in a browser, or try"));
    note(&format!("  curl {url}/v1/chat/completions{key} -H 'Content-Type: application/json' \\"));
    note("       -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'");
}

/// It was asked to end.
pub(super) fn stopping(flags: &Flags) {
    let seconds = flags.grace.as_secs_f64();
    match flags.log_format {
        LogFormat::Json => tracing::info!(target: "server", seconds, "stopping"),
        LogFormat::Human => {
            note(&format!("stopping: running answers have {seconds} seconds to end; another signal ends them at once"));
        }
    }
}

/// How the server is reached from its own machine.
fn url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        let own: IpAddr = if address.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1_u16].into() };
        address.set_ip(own);
    }
    format!("http://{address}")
}
