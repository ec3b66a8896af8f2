//! The `speculation` of a request, and what answers tell about it.

use super::backend::Snapshot;
use super::error::ApiError;
use super::fields::{self, Fields};
use llama_spec::engine::{Drafters, RequestDrafting};
use llama_spec::spec::{DraftLength, Method, Speculation, Stats};
use serde_json::{Value, json};

/// The longest draft that can be asked for, in tokens.
const MAX_DRAFT: i64 = 1024;

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    mode: Mode,
    draft_max: Option<u32>,
    length: Option<DraftLength>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Auto,
    Off,
    Methods(Vec<Method>),
}

/// What is made of it with the engine as it is.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) drafting: RequestDrafting,
    wanted: Mode,
    /// Methods that the engine was made for and does not have now.
    lost: Vec<Method>,
}

impl Wanted {
    /// Takes the field: `"auto"`, `"off"`, names of methods in a text or a list, or an object with `mode`, `methods`, `draft_max`
    /// and `draft_length`. llama-server's `speculative.n_max` is as good as `draft_max`.
    pub(super) fn take(fields: &mut Fields) -> Result<Self, ApiError> {
        let mut wanted = match fields.value("speculation") {
            None => Self::default(),
            Some(Value::Object(object)) => Self::object(Fields::new(object))?,
            Some(value) => Self { mode: mode("speculation", value)?, ..Self::default() },
        };
        let others = fields.take::<i64>("speculative.n_max")?;
        wanted.draft_max = wanted.draft_max.or(draft_max("speculative.n_max", others)?);
        Ok(wanted)
    }

    fn object(mut object: Fields) -> Result<Self, ApiError> {
        let named = object.value("mode").map(|value| mode("speculation.mode", value)).transpose()?;
        let methods = object.value("methods").map(|value| mode("speculation.methods", value)).transpose()?;
        let longest = object.take("draft_max")?;
        let length = object.value("draft_length").map(draft_length).transpose()?;
        if let Some(unknown) = object.left() {
            let message = format!("`{unknown}` is none of `mode`, `methods`, `draft_max` and `draft_length`");
            return Err(ApiError::unsupported(format!("speculation.{unknown}"), message));
        }
        let mode = match (named, methods) {
            (Some(Mode::Off), Some(methods)) if methods != Mode::Off => {
                return Err(ApiError::invalid("speculation.methods", "methods make no sense when the mode is off"));
            }
            (named, methods) => methods.or(named).unwrap_or_default(),
        };
        Ok(Self { mode, draft_max: draft_max("speculation.draft_max", longest)?, length })
    }

    /// What is to be asked of this engine. Methods that it was to have and has lost are left out, since the text is the same
    /// without them.
    ///
    /// # Errors
    /// For a method that it was never to have.
    pub(super) fn plan(self, snapshot: &Snapshot) -> Result<Plan, ApiError> {
        let mut drafting = RequestDrafting::default();
        drafting.draft_max = self.draft_max;
        drafting.length = self.length;
        let mut lost = Vec::new();
        drafting.drafters = match &self.mode {
            Mode::Auto => Drafters::Auto,
            Mode::Off => Drafters::Off,
            Mode::Methods(methods) if snapshot.info.is_none() => Drafters::Methods(methods.clone()),
            Mode::Methods(methods) => {
                let Speculation { requested, effective, .. } = &snapshot.speculation;
                let (there, missing): (Vec<_>, Vec<_>) = methods.iter().partition(|name| effective.contains(name));
                if let Some(unknown) = missing.iter().find(|method| !requested.contains(method)) {
                    let loaded = if effective.is_empty() { "none".into() } else { names(effective).join(", ") };
                    let message = format!("this server was not started with {unknown}; it has: {loaded}");
                    return Err(ApiError::unsupported("speculation.methods", message));
                }
                lost = missing;
                if there.is_empty() { Drafters::Off } else { Drafters::Methods(there) }
            }
        };
        Ok(Plan { drafting, wanted: self.mode, lost })
    }
}

impl Plan {
    /// The block in answers: what was asked for, what was in force and why, and what came of it.
    pub(super) fn told(&self, speculation: &Speculation, stats: &Stats) -> Value {
        let own = (0..speculation.own_drafters).map(|number| format!("own-{number}"));
        let all = || own.chain(speculation.effective.iter().map(Method::to_string)).collect::<Vec<_>>();
        let engine = speculation.reason.clone();
        let (mode, requested, effective, reason) = match &self.wanted {
            Mode::Auto => ("auto", names(&speculation.requested), all(), engine),
            Mode::Off => ("off", Vec::new(), Vec::new(), Some("switched off by the request".into())),
            Mode::Methods(methods) => {
                let there = methods.iter().filter(|method| speculation.effective.contains(method));
                let there = there.map(Method::to_string).collect::<Vec<_>>();
                let lost =
                    || (!self.lost.is_empty()).then(|| format!("not loaded now: {}", names(&self.lost).join(", ")));
                let reason = if there.len() == methods.len() { None } else { engine.or_else(lost) };
                ("methods", names(methods), there, reason)
            }
        };
        json!({
            "mode": mode,
            "requested": requested,
            "effective": effective,
            "reason": reason,
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "drafted_per_position": stats.drafted_per_position,
            "accepted_per_position": stats.accepted_per_position,
            "drafts": stats.drafts,
            "rounds": stats.rounds,
        })
    }
}

fn mode(param: &str, value: Value) -> Result<Mode, ApiError> {
    let list = match value {
        Value::Bool(true) => return Ok(Mode::Auto),
        Value::Bool(false) => return Ok(Mode::Off),
        Value::String(word) => match word.as_str() {
            "auto" | "on" | "methods" if word != "methods" || param.ends_with("mode") => return Ok(Mode::Auto),
            "off" | "none" => return Ok(Mode::Off),
            list => list.split(',').map(|name| name.trim().to_owned()).collect(),
        },
        value => fields::read::<Vec<String>>(param, value)?,
    };
    let methods: Result<Vec<Method>, ApiError> = list
        .iter()
        .map(|name| {
            name.parse().map_err(|_| {
                let known = names(&Method::ALL).join(", ");
                ApiError::invalid(param, format!("`{name}` is none of: auto, off, {known}"))
            })
        })
        .collect();
    methods.map(|methods| if methods.is_empty() { Mode::Off } else { Mode::Methods(methods) })
}

fn draft_max(param: &str, tokens: Option<i64>) -> Result<Option<u32>, ApiError> {
    match tokens {
        None => Ok(None),
        Some(tokens) if (0..=MAX_DRAFT).contains(&tokens) => Ok(u32::try_from(tokens).ok()),
        Some(tokens) => Err(ApiError::invalid(param, format!("`{param}` is {tokens}; expected 0 to {MAX_DRAFT}"))),
    }
}

fn draft_length(length: Value) -> Result<DraftLength, ApiError> {
    let fixed =
        || length.as_u64().filter(|tokens| *tokens <= MAX_DRAFT as u64).map(|tokens| DraftLength::Fixed(tokens as u32));
    match length.as_str() {
        Some("adaptive") => Ok(DraftLength::Adaptive),
        _ => fixed().ok_or_else(|| {
            let message =
                format!("`speculation.draft_length` is neither \"adaptive\" nor a number from 0 to {MAX_DRAFT}");
            ApiError::invalid("speculation.draft_length", message)
        }),
    }
}

fn names(methods: &[Method]) -> Vec<String> {
    methods.iter().map(Method::to_string).collect()
}
