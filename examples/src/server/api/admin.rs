//! Loading and unloading at run time. Who may do that may name any file of the machine, so it is for its owner alone.

use super::ApiState;
use super::error::ApiError;
use super::fields::{self, Fields};
use super::redact;
use crate::failure::one_line;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use llama_spec::compat::Conditions;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::supervise::{Load, Running};
use llama_spec::{Error, ModelFile};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

type Done = Result<Json<Value>, ApiError>;

/// Loads another model, or the same with other settings: the fields of a [`Load`] that change, and `running`. What is not
/// named stays, also after the model was unloaded, but a draft and methods go with their model. What cannot work is refused
/// before anything is dropped.
pub(super) async fn load(State(api): State<ApiState>, mut fields: Fields) -> Done {
    allowed(&api)?;
    let running = running(&mut fields)?;
    let load = changed(api.backend().status().last_requested, fields)?;
    loadable(&api, &load).await?;
    api.backend().load(load, running).await?;
    Ok(done(&api))
}

/// Loads again what was asked for.
pub(super) async fn reload(State(api): State<ApiState>, mut fields: Fields) -> Done {
    allowed(&api)?;
    let running = running(&mut fields)?;
    nothing_left(&fields)?;
    if let Some(load) = api.backend().status().last_requested {
        loadable(&api, &load).await?;
    }
    api.backend().reload(running).await?;
    Ok(done(&api))
}

/// Drops what is loaded. Its settings are remembered.
pub(super) async fn unload(State(api): State<ApiState>, mut fields: Fields) -> Done {
    allowed(&api)?;
    let running = running(&mut fields)?;
    nothing_left(&fields)?;
    api.backend().unload(running).await?;
    Ok(done(&api))
}

/// Attaches a draft or detaches it: `draft` is a path or `null`, `spec` the methods if they are not to be what the files are
/// made for.
pub(super) async fn draft(State(api): State<ApiState>, mut fields: Fields) -> Done {
    allowed(&api)?;
    let running = running(&mut fields)?;
    let draft: Option<PathBuf> = fields.take("draft")?;
    let methods = fields.value("spec").map(methods).transpose()?.flatten();
    nothing_left(&fields)?;
    if let Some(load) = api.backend().status().requested {
        loadable(&api, &drafting(load, draft.clone(), methods.clone())).await?;
    }
    api.backend().set_draft(draft, methods, running).await?;
    Ok(done(&api))
}

fn drafting(mut load: Load, draft: Option<PathBuf>, speculation: Option<SpecConfig>) -> Load {
    (load.draft, load.speculation) = (draft, speculation);
    load
}

fn allowed(api: &ApiState) -> Result<(), ApiError> {
    if api.options().admin {
        return Ok(());
    }
    let message = "models are loaded and unloaded only by a server that asks for an API key";
    Err(ApiError::new(StatusCode::FORBIDDEN, "admin_disabled", message))
}

/// Holds the files against the rules and the settings, as the server did when it was started.
async fn loadable(api: &ApiState, load: &Load) -> Result<(), ApiError> {
    let (load, supervised) = (load.clone(), api.options().supervised);
    let checked = tokio::task::spawn_blocking(move || check(&load, supervised)).await;
    checked.unwrap_or_else(|_| Err(("model", "the files could not be looked at".to_owned()))).map_err(|(param, why)| {
        let error = ApiError::new(StatusCode::BAD_REQUEST, "not_loadable", redact::paths(&one_line(&why)));
        error.about(param)
    })
}

/// The field that is to blame, and why.
fn check(load: &Load, supervised: bool) -> Result<(), (&'static str, String)> {
    let open = |param, path| {
        let opened = ModelFile::open(path).and_then(|file| file.require_loadable().map(|()| file));
        opened.map_err(|error: Error| (param, error.to_string()))
    };
    let target = open("model", &load.model)?;
    let draft = load.draft.as_ref().map(|draft| open("draft", draft)).transpose()?;
    load.context.validate().map_err(|error| ("context", error.to_string()))?;
    let conditions = Conditions::from(&load.context).split_mode(load.split_mode).supervised(supervised);
    let choose = || SpecConfig::choose(&target, draft.as_ref(), &conditions);
    let config = load.speculation.clone().unwrap_or_else(choose);
    let asked = load.speculation.is_some() || draft.is_some();
    match config.check(&target, draft.as_ref(), &conditions) {
        // What nobody asked for can be done without, but a model must be one that generates.
        Err(why) if asked || !target.kind().is_generative() => {
            Err((if draft.is_some() { "draft" } else { "model" }, why.to_string()))
        }
        _ => Ok(()),
    }
}

fn done(api: &ApiState) -> Json<Value> {
    let snapshot = api.backend().status();
    Json(json!({ "status": "ok", "state": snapshot.state.name(), "model": api.model(&snapshot) }))
}

fn running(fields: &mut Fields) -> Result<Running, ApiError> {
    match fields.take::<String>("running")?.as_deref() {
        None | Some("finish") => Ok(Running::Finish),
        Some("cancel") => Ok(Running::Cancel),
        Some(other) => Err(ApiError::invalid("running", format!("`{other}` is neither `finish` nor `cancel`"))),
    }
}

/// What is misspelt must not be passed over here.
fn nothing_left(fields: &Fields) -> Result<(), ApiError> {
    match fields.left() {
        Some(unknown) => Err(ApiError::unsupported(unknown, format!("there is no field `{unknown}` here"))),
        None => Ok(()),
    }
}

/// What is loaded, with these fields changed.
fn changed(current: Option<Load>, mut fields: Fields) -> Result<Load, ApiError> {
    let methods = fields.value("spec").map(methods).transpose()?;
    let other_model = fields.value("model");
    let mut load = current.unwrap_or_default();
    if let Some(model) = other_model {
        let model: PathBuf = fields::read("model", model)?;
        if model != load.model {
            (load.draft, load.speculation) = (None, None);
        }
        load.model = model;
    }
    if load.model.as_os_str().is_empty() {
        return Err(fields::missing("model"));
    }
    if let Some(methods) = methods {
        load.speculation = methods;
    }
    let failed = |_| ApiError::new(StatusCode::BAD_REQUEST, "invalid_value", "this load has no form in JSON");
    let Value::Object(mut all) = serde_json::to_value(&load).map_err(failed)? else { return Ok(load) };
    merge("", &mut all, fields.into_map())?;
    serde_path_to_error::deserialize(Value::Object(all)).map_err(|error| {
        let param = error.path().to_string();
        ApiError::invalid(&*param, format!("`{param}`: {}", error.inner()))
    })
}

/// Puts new values in the place of old ones; within objects too, where both are some.
fn merge(place: &str, old: &mut Map<String, Value>, new: Map<String, Value>) -> Result<(), ApiError> {
    for (name, value) in new {
        let path = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        let Some(current) = old.get_mut(&name) else {
            return Err(ApiError::unsupported(&*path, format!("there is no setting `{path}`")));
        };
        match (current, value) {
            (Value::Object(current), Value::Object(value)) => merge(&path, current, value)?,
            (current, value) => *current = value,
        }
    }
    Ok(())
}

/// Names of methods in a text or a list; `auto` for what the files are made for, `none` for none.
fn methods(value: Value) -> Result<Option<SpecConfig>, ApiError> {
    let list = match value {
        Value::String(word) if word == "auto" => return Ok(None),
        Value::String(list) => list,
        list => fields::read::<Vec<String>>("spec", list)?.join(","),
    };
    let list = if list.is_empty() || list == "off" { "none".to_owned() } else { list };
    let methods = Method::parse_list(&list).map_err(|error| ApiError::invalid("spec", error.to_string()))?;
    Ok(Some(SpecConfig::new(methods)))
}
