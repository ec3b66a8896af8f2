//! The numbers of an answer: `usage` as OpenAI's interface has it, and `timings` under llama-server's names.

use llama_spec::spec::Stats;
use serde_json::{Value, json};
use std::time::Duration;

/// What it cost. `prompt` is counted once, however many answers there are.
pub(super) fn usage(prompt: u64, stats: &Stats) -> Value {
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": stats.generated_tokens,
        "total_tokens": prompt + stats.generated_tokens,
        "prompt_tokens_details": { "cached_tokens": stats.cached_tokens.min(prompt) },
    })
}

/// How long it took. `draft_n` is there only if something was drafted.
pub(super) fn timings(stats: &Stats) -> Value {
    let computed = stats.prompt_tokens.saturating_sub(stats.cached_tokens);
    let mut timings = json!({
        "cache_n": stats.cached_tokens,
        "prompt_n": computed,
        "prompt_ms": milliseconds(stats.prefill),
        "prompt_per_token_ms": each(stats.prefill, computed),
        "prompt_per_second": stats.prompt_tokens_per_second().map(rounded).unwrap_or(0.0),
        "predicted_n": stats.generated_tokens,
        "predicted_ms": milliseconds(stats.generation),
        "predicted_per_token_ms": each(stats.generation, stats.generated_tokens),
        "predicted_per_second": stats.tokens_per_second().map(rounded).unwrap_or(0.0),
    });
    if stats.drafted > 0 {
        timings["draft_n"] = stats.drafted.into();
        timings["draft_n_accepted"] = stats.accepted.into();
    }
    timings
}

/// A time in milliseconds.
pub(super) fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

fn each(time: Duration, count: u64) -> f64 {
    if count == 0 { 0.0 } else { rounded(time.as_secs_f64() * 1e3 / count as f64) }
}

/// Digits beyond the sixth say nothing.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
