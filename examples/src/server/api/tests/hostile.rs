//! Every field with every kind of value: it is taken or named, and nothing worse.

use super::completions::text;
use super::fake::{Fake, Script, hello};
use super::*;
use llama_spec::supervise::Reply;
use serde_json::json;

const FIELDS: &[&str] = &[
    "messages",
    "prompt",
    "tools",
    "tool_choice",
    "functions",
    "parallel_tool_calls",
    "response_format",
    "json_schema",
    "grammar",
    "logprobs",
    "top_logprobs",
    "n_probs",
    "n",
    "n_cmpl",
    "best_of",
    "echo",
    "suffix",
    "stop",
    "seed",
    "logit_bias",
    "temperature",
    "dynatemp_range",
    "dynatemp_exponent",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "adaptive_target",
    "adaptive_decay",
    "repeat_penalty",
    "repeat_last_n",
    "frequency_penalty",
    "presence_penalty",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "samplers",
    "min_keep",
    "min_tokens",
    "ignore_eos",
    "max_tokens",
    "max_completion_tokens",
    "n_predict",
    "t_max_predict_ms",
    "stream",
    "stream_options",
    "sse_ping_interval",
    "return_progress",
    "token_details",
    "return_tokens",
    "response_fields",
    "speculation",
    "speculative.n_max",
    "reasoning_format",
    "reasoning_effort",
    "reasoning_budget_tokens",
    "chat_template_kwargs",
    "enable_thinking",
    "add_generation_prompt",
    "continue_final_message",
    "modalities",
    "audio",
    "lora",
    "n_indent",
    "post_sampling_probs",
    "user",
    "metadata",
    "store",
    "service_tier",
    "model",
    "cache_prompt",
    "id_slot",
    "unknown",
];

fn values() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let deep_object = (0..100).fold(json!({}), |inner, _| json!({ "type": "object", "properties": inner }));
    vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(-0.5),
        json!(""),
        json!("x"),
        json!("\u{0}"),
        json!("\u{202e}\u{1f600}"),
        json!("x".repeat(100_000)),
        json!([]),
        json!([null]),
        json!([[]]),
        json!([{}]),
        json!(["", 1, null]),
        json!(vec![1; 10_000]),
        json!({}),
        json!({ "": null }),
        json!({ "type": null }),
        json!({ "type": "function" }),
        json!({ "type": "json_schema", "json_schema": [] }),
        json!({ "mode": {}, "methods": [null] }),
        deep,
        deep_object,
    ]
}

#[tokio::test]
async fn every_field_with_every_kind_of_value() {
    let fake = Fake::ready();
    let router = over(&fake);
    let bases = [
        ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "Hi" }] })),
        ("/v1/completions", json!({ "prompt": "P" })),
        ("/completion", json!({ "prompt": "P" })),
    ];
    let cases = FIELDS.iter().flat_map(|field| values().into_iter().map(move |value| (*field, value)));
    // Each at one of the places, in turn.
    for ((field, value), (path, base)) in cases.zip(bases.iter().cycle()) {
        let mut body = base.clone();
        body[field] = value.clone();
        // As many as can be asked for.
        let steps = if path.contains("chat") { hello } else { text };
        let answers = if ["n", "n_cmpl"].contains(&field) { 128 } else { 1 };
        let prompts = if field == "prompt" { 64 } else { 1 };
        fake.forget();
        (0..prompts).for_each(|_| fake.plays(Script::Play((0..answers).flat_map(steps).collect())));
        (0..2 * prompts).for_each(|_| fake.replies(Ok(Reply::Tokens(Vec::new()))));
        let got = post(&router, path, body).await;
        match got.status.as_u16() {
            200 => assert!(fake.tasks() > 0),
            400 | 413 => {
                let (_, code, _, message) = got.error();
                assert!(!code.is_empty() && message.len() < 1100, "{field} = {value:.100}: {message}");
                assert_eq!(fake.tasks(), 0, "{field} = {value:.100}");
            }
            // The fake answers every question with tokens, also where text was asked for.
            503 if field == "prompt" => {}
            other => panic!("{path}: {other} for {field} = {value:.100}: {:.300}", got.body),
        }
    }
}
