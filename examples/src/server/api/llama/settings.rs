//! `/props`, and the settings of an answer under llama-server's names.

use crate::server::api::ApiState;
use crate::server::api::backend::Snapshot;
use axum::Json;
use axum::extract::State;
use llama_spec::engine::Request;
use llama_spec::sample::{Dry, DynamicTemperature, Grammar, Mirostat, Stage, Xtc};
use serde_json::{Value, json};

/// What does not change from one request to the next.
pub(in crate::server::api) async fn props(State(api): State<ApiState>) -> Json<Value> {
    let snapshot = api.backend().status();
    let info = snapshot.info.as_ref();
    let load = snapshot.effective.as_ref().or(snapshot.requested.as_ref());
    let file = load.and_then(|load| load.model.file_name()).map(|name| name.to_string_lossy().into_owned());
    let text = |token: Option<&(llama_spec::Token, String)>| token.map(|(_, text)| text.clone());
    Json(json!({
        "default_generation_settings": {
            "n_ctx": snapshot.context(),
            "speculative": snapshot.speculation.is_active(),
            "params": of(&Request::prompt(""), &snapshot),
        },
        "total_slots": info.map_or(0, |info| info.slots),
        "model_alias": api.model(&snapshot),
        // Where it is on this machine is nobody's business.
        "model_path": file,
        "chat_template": info.and_then(|info| info.chat_template.as_deref()),
        "bos_token": text(info.and_then(|info| info.bos.as_ref())),
        "eos_token": text(info.and_then(|info| info.eos.as_ref())),
        "modalities": { "vision": false, "audio": false },
        "build_info": format!("b{}", llama_spec::sys::LLAMA_CPP_BUILD),
        "is_sleeping": false,
    }))
}

/// The settings of a request. What is off has the number that means off there.
pub(in crate::server::api) fn of(request: &Request, snapshot: &Snapshot) -> Value {
    let options = &request.options;
    let sampler = &options.sampler;
    let seed = sampler.seed.unwrap_or(u32::MAX);
    let limit = options.max_tokens.map_or(-1, i64::from);
    let dynamic = sampler.dynamic_temperature;
    let dynamic = dynamic.unwrap_or(DynamicTemperature { range: 0.0, ..DynamicTemperature::default() });
    let xtc = sampler.xtc.unwrap_or(Xtc { probability: 0.0, ..Xtc::default() });
    let dry = sampler.dry.clone().unwrap_or(Dry { multiplier: 0.0, ..Dry::default() });
    let (mirostat, tau, eta) = match sampler.mirostat {
        Mirostat::Off => (0, 5.0, 0.1),
        Mirostat::V1 { tau, eta } => (1, tau, eta),
        Mirostat::V2 { tau, eta } => (2, tau, eta),
    };
    let grammar = match &sampler.grammar {
        Some(Grammar::Gbnf(gbnf)) => gbnf.as_str(),
        _ => "",
    };
    let bias: Vec<_> = sampler
        .logit_bias
        .iter()
        .map(|entry| json!([entry.token.id(), short(entry.bias)]))
        .chain(sampler.banned.iter().map(|token| json!([token.id(), false])))
        .collect();
    json!({
        "n_predict": limit,
        "max_tokens": limit,
        "seed": seed,
        "temperature": short(sampler.temperature),
        "dynatemp_range": short(dynamic.range),
        "dynatemp_exponent": short(dynamic.exponent),
        "top_k": sampler.top_k,
        "top_p": short(sampler.top_p),
        "min_p": short(sampler.min_p),
        "top_n_sigma": sampler.top_n_sigma.map_or(-1.0, short),
        "xtc_probability": short(xtc.probability),
        "xtc_threshold": short(xtc.threshold),
        "typical_p": short(sampler.typical_p),
        "repeat_last_n": sampler.penalties.last_n,
        "repeat_penalty": short(sampler.penalties.repeat),
        "presence_penalty": short(sampler.penalties.presence),
        "frequency_penalty": short(sampler.penalties.frequency),
        "dry_multiplier": short(dry.multiplier),
        "dry_base": short(dry.base),
        "dry_allowed_length": dry.allowed_length,
        "dry_penalty_last_n": dry.last_n,
        "dry_sequence_breakers": dry.breakers,
        "mirostat": mirostat,
        "mirostat_tau": short(tau),
        "mirostat_eta": short(eta),
        "adaptive_target": sampler.adaptive_p.map_or(-1.0, |adaptive| short(adaptive.target)),
        "adaptive_decay": sampler.adaptive_p.map_or(0.9, |adaptive| short(adaptive.decay)),
        "stop": options.stop,
        "ignore_eos": sampler.ignore_eos,
        "logit_bias": bias,
        "n_probs": request.logprobs.unwrap_or(0),
        "min_keep": sampler.min_keep,
        "grammar": grammar,
        "samplers": sampler.stages.iter().map(|stage| stage_name(*stage)).collect::<Vec<_>>(),
        "t_max_predict_ms": request.deadline.map_or(0, |time| time.as_millis() as u64),
        "speculative.n_max": request.drafting.draft_max.or(longest(snapshot)),
    })
}

/// The longest draft that is made.
fn longest(snapshot: &Snapshot) -> Option<u32> {
    snapshot.effective.as_ref()?.speculation.as_ref().map(|config| config.draft_max)
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Penalties => "penalties",
        Stage::Dry => "dry",
        Stage::TopNSigma => "top_n_sigma",
        Stage::TopK => "top_k",
        Stage::TypicalP => "typ_p",
        Stage::TopP => "top_p",
        Stage::MinP => "min_p",
        Stage::Xtc => "xtc",
        Stage::Temperature => "temperature",
        Stage::Infill => "infill",
        _ => "other",
    }
}

/// The number as it was written: an f32 has no more digits than these.
fn short(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| f64::from(number))
}
