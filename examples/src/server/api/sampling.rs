//! How tokens are chosen: the sampling fields of OpenAI's interface and those that llama-server has beside them.

use super::bias::{self, Bias};
use super::error::ApiError;
use super::fields::Fields;
use super::{hostile, schema};
use llama_spec::SamplerOptions;
use llama_spec::sample::{AdaptiveP, Dry, DynamicTemperature, Grammar, Mirostat, Stage, Xtc};
use serde_json::Value;
use std::time::Duration;

/// What the fields say, as far as it can be said without the vocabulary.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) options: SamplerOptions,
    /// What is to be added to logits.
    pub(super) bias: Vec<Bias>,
    pub(super) max_tokens: Option<u32>,
    pub(super) stop: Vec<String>,
    pub(super) deadline: Option<Duration>,
}

impl Sampling {
    /// Takes the fields. `context` stands for lengths of -1.
    pub(super) fn take(fields: &mut Fields, context: Option<u32>) -> Result<Self, ApiError> {
        refuse_what_there_is_not(fields)?;
        let mut options = SamplerOptions::default();
        options.seed = seed(fields)?;
        let mut number = |name: &str, field: &mut f32| -> Result<(), ApiError> {
            *field = fields.take(name)?.unwrap_or(*field);
            Ok(())
        };
        number("temperature", &mut options.temperature)?;
        number("top_p", &mut options.top_p)?;
        number("min_p", &mut options.min_p)?;
        number("typical_p", &mut options.typical_p)?;
        number("repeat_penalty", &mut options.penalties.repeat)?;
        number("frequency_penalty", &mut options.penalties.frequency)?;
        number("presence_penalty", &mut options.penalties.presence)?;
        // llama-server takes negative temperatures for greedy.
        options.temperature = if options.temperature < 0.0 { 0.0 } else { options.temperature };
        options.top_k = length(fields, "top_k", Some(0))?.unwrap_or(options.top_k);
        options.penalties.last_n = length(fields, "repeat_last_n", context)?.unwrap_or(options.penalties.last_n);
        options.min_keep = length(fields, "min_keep", Some(0))?.unwrap_or(0);
        options.min_tokens = length(fields, "min_tokens", Some(0))?.unwrap_or(0);
        options.ignore_eos = fields.flag("ignore_eos")?;
        options.top_n_sigma = fields.take("top_n_sigma")?.filter(|sigma: &f32| *sigma > 0.0 || sigma.is_nan());
        options.dynamic_temperature = dynamic_temperature(fields)?;
        options.xtc = xtc(fields)?;
        options.mirostat = mirostat(fields)?;
        options.adaptive_p = adaptive(fields)?;
        options.dry = dry(fields, context)?;
        options.stages = stages(fields)?.unwrap_or(options.stages);
        options.reasoning_budget = length(fields, "reasoning_budget_tokens", None)?;
        Ok(Self {
            options,
            bias: bias::take(fields)?,
            max_tokens: max_tokens(fields)?,
            stop: stop(fields)?,
            deadline: deadline(fields)?,
        })
    }

    /// Takes the form that the text must have, where no chat template has a part in it.
    pub(super) fn take_grammar(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let asked = response_schema(fields)?;
        let (param, schema) = match fields.value("json_schema") {
            Some(schema) => ("json_schema", Some(schema)),
            None => ("response_format", asked),
        };
        let grammar = fields.take::<String>("grammar")?.filter(|grammar| !grammar.is_empty());
        self.options.grammar = match (grammar, schema) {
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("grammar", "either a grammar or a JSON schema is possible, not both"));
            }
            (Some(grammar), None) => {
                hostile::check_grammar("grammar", &grammar)?;
                Some(Grammar::Gbnf(grammar))
            }
            (None, Some(schema)) => Some(Grammar::JsonSchema(schema::of_answer(param, schema)?)),
            (None, None) => None,
        };
        Ok(())
    }
}

/// Checks every value against its range.
pub(super) fn check(options: &SamplerOptions) -> Result<(), ApiError> {
    let mut known = options.clone();
    // Its tags are known when the template is rendered.
    known.reasoning_budget = None;
    known.validate().map_err(|error| ApiError::refused(&error))
}

/// The JSON Schema that a `response_format` stands for; none for plain text.
pub(super) fn response_schema(fields: &mut Fields) -> Result<Option<Value>, ApiError> {
    let Some(format) = fields.take::<serde_json::Map<String, Value>>("response_format")? else { return Ok(None) };
    let mut format = Fields::new(format);
    match format.take::<String>("type")?.as_deref() {
        Some("text") | None => Ok(None),
        Some("json_object") => {
            Ok(Some(format.value("schema").unwrap_or_else(|| serde_json::json!({ "type": "object" }))))
        }
        Some("json_schema") => {
            // llama-server also takes the schema without the object around it.
            let mut named = match format.take::<serde_json::Map<String, Value>>("json_schema")? {
                Some(named) => Fields::new(named),
                None => format,
            };
            let schema = named.value("schema");
            schema.map(Some).ok_or_else(|| super::fields::missing("response_format.json_schema.schema"))
        }
        Some(other) => {
            let message = format!("`{other}` is none of `text`, `json_object` and `json_schema`");
            Err(ApiError::unsupported("response_format.type", message))
        }
    }
}

/// A number of tokens; a negative one stands for `negative`.
fn length(fields: &mut Fields, name: &str, negative: Option<u32>) -> Result<Option<u32>, ApiError> {
    match fields.take::<i64>(name)? {
        None => Ok(None),
        Some(number) if number < 0 => Ok(negative),
        Some(number) => match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ApiError::invalid(name, format!("`{name}` is {number}; that is more than there can be"))),
        },
    }
}

/// The seed: -1, and what llama-server writes for it, stand for a new one each time. Longer numbers are folded, since some
/// clients draw 64 bits.
fn seed(fields: &mut Fields) -> Result<Option<u32>, ApiError> {
    let Some(seed) = fields.take::<serde_json::Number>("seed")? else { return Ok(None) };
    let Some(seed) = seed.as_i64().map(|seed| seed as u64).or(seed.as_u64()) else {
        return Err(ApiError::invalid("seed", "`seed` is no whole number"));
    };
    match seed {
        u64::MAX => Ok(None),
        seed if seed == u64::from(u32::MAX) => Ok(None),
        seed => Ok(u32::try_from(seed).ok().or(Some((seed % u64::from(u32::MAX)) as u32))),
    }
}

/// The most tokens to generate.
fn max_tokens(fields: &mut Fields) -> Result<Option<u32>, ApiError> {
    for name in ["max_completion_tokens", "max_tokens", "n_predict"] {
        if let Some(most) = fields.take::<i64>(name)? {
            // -1 is no limit and -2 up to the end of the context, which is the same here.
            return Ok(u32::try_from(most.max(-1)).ok().or((most > 0).then_some(u32::MAX)));
        }
    }
    Ok(None)
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let mut stops = match fields.value("stop") {
        None => Vec::new(),
        Some(Value::String(stop)) => vec![stop],
        Some(list) => super::fields::read::<Vec<String>>("stop", list)?,
    };
    stops.retain(|stop| !stop.is_empty());
    hostile::check_stops(&stops)?;
    Ok(stops)
}

fn deadline(fields: &mut Fields) -> Result<Option<Duration>, ApiError> {
    let most: Option<i64> = fields.take("t_max_predict_ms")?;
    Ok(most.and_then(|most| u64::try_from(most).ok()).filter(|most| *most > 0).map(Duration::from_millis))
}

fn dynamic_temperature(fields: &mut Fields) -> Result<Option<DynamicTemperature>, ApiError> {
    let (range, exponent) = (fields.take::<f32>("dynatemp_range")?, fields.take("dynatemp_exponent")?);
    let exponent = exponent.unwrap_or(DynamicTemperature::default().exponent);
    Ok(range.filter(|range| *range != 0.0).map(|range| DynamicTemperature { range, exponent }))
}

fn xtc(fields: &mut Fields) -> Result<Option<Xtc>, ApiError> {
    let (probability, threshold) = (fields.take::<f32>("xtc_probability")?, fields.take::<f32>("xtc_threshold")?);
    let threshold = threshold.unwrap_or(Xtc::default().threshold);
    // Above one half there is never a second top choice.
    let acts = |probability: &f32| *probability != 0.0 && (threshold <= 0.5 || threshold.is_nan());
    Ok(probability.filter(acts).map(|probability| Xtc { probability, threshold }))
}

fn mirostat(fields: &mut Fields) -> Result<Mirostat, ApiError> {
    let version = fields.take::<i64>("mirostat")?.unwrap_or(0);
    let tau = fields.take("mirostat_tau")?.unwrap_or(5.0);
    let eta = fields.take("mirostat_eta")?.unwrap_or(0.1);
    match version {
        0 => Ok(Mirostat::Off),
        1 => Ok(Mirostat::V1 { tau, eta }),
        2 => Ok(Mirostat::V2 { tau, eta }),
        other => Err(ApiError::invalid("mirostat", format!("`mirostat` is {other}; expected 0, 1 or 2"))),
    }
}

fn adaptive(fields: &mut Fields) -> Result<Option<AdaptiveP>, ApiError> {
    let (target, decay) = (fields.take::<f32>("adaptive_target")?, fields.take("adaptive_decay")?);
    let decay = decay.unwrap_or(AdaptiveP::default().decay);
    Ok(target.filter(|target| *target >= 0.0 || target.is_nan()).map(|target| AdaptiveP { target, decay }))
}

fn dry(fields: &mut Fields, context: Option<u32>) -> Result<Option<Dry>, ApiError> {
    let usual = Dry::default();
    let multiplier: Option<f32> = fields.take("dry_multiplier")?;
    let base = fields.take("dry_base")?.unwrap_or(usual.base);
    let allowed_length = length(fields, "dry_allowed_length", Some(0))?.unwrap_or(usual.allowed_length);
    let last_n = length(fields, "dry_penalty_last_n", context)?.unwrap_or(usual.last_n);
    let breakers = fields.take("dry_sequence_breakers")?.unwrap_or(usual.breakers);
    Ok(multiplier.filter(|multiplier| *multiplier != 0.0 && last_n > 0).map(|multiplier| Dry {
        multiplier,
        base,
        allowed_length,
        last_n,
        breakers,
    }))
}

/// The stages by llama.cpp's names, or by its letters.
fn stages(fields: &mut Fields) -> Result<Option<Vec<Stage>>, ApiError> {
    let names: Vec<String> = match fields.value("samplers") {
        None => return Ok(None),
        Some(Value::String(letters)) => letters.chars().map(String::from).collect(),
        Some(list) => super::fields::read("samplers", list)?,
    };
    let mut stages = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match name.as_str() {
            // It has no place among the others: it draws, after all of them.
            "adaptive_p" | "a" if index + 1 == names.len() => {}
            name => stages.push(stage(name)?),
        }
    }
    Ok(Some(stages))
}

fn stage(name: &str) -> Result<Stage, ApiError> {
    Ok(match name {
        "penalties" | "e" => Stage::Penalties,
        "dry" | "d" => Stage::Dry,
        "top_n_sigma" | "s" => Stage::TopNSigma,
        "top_k" | "k" => Stage::TopK,
        "typ_p" | "typical_p" | "y" => Stage::TypicalP,
        "top_p" | "p" => Stage::TopP,
        "min_p" | "m" => Stage::MinP,
        "xtc" | "x" => Stage::Xtc,
        "temperature" | "t" => Stage::Temperature,
        "infill" | "i" => Stage::Infill,
        other => {
            let known = "penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature, infill, adaptive_p";
            return Err(ApiError::invalid("samplers", format!("`{other}` is none of: {known} (this one last)")));
        }
    })
}

/// Fields that would change the answer and that nothing here can follow.
fn refuse_what_there_is_not(fields: &mut Fields) -> Result<(), ApiError> {
    let set = |value: &Value| match value {
        Value::Bool(set) => *set,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    for (name, why) in [
        ("lora", "this server has no adapters"),
        ("n_indent", "there is no rule for indentation"),
        ("post_sampling_probs", "probabilities are those of the model, before anything is filtered"),
        ("audio", "there are no models for sound"),
        ("web_search_options", "this server does not search"),
    ] {
        if fields.value(name).as_ref().is_some_and(set) {
            return Err(ApiError::unsupported(name, format!("`{name}` is not possible: {why}")));
        }
    }
    Ok(())
}
