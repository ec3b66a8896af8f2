//! `/tokenize`, `/detokenize` and `/apply-template`.

use crate::server::api::error::ApiError;
use crate::server::api::fields::Fields;
use crate::server::api::{ApiState, conversation, prompt};
use axum::Json;
use axum::extract::State;
use llama_spec::Token;
use llama_spec::supervise::{Question, Reply};
use serde_json::{Value, json};

/// A text in tokens.
pub(in crate::server::api) async fn tokenize(
    State(api): State<ApiState>,
    mut fields: Fields,
) -> Result<Json<Value>, ApiError> {
    let text: String = fields.require("content")?;
    api.check_prompt("content", text.len())?;
    let add_special = fields.flag("add_special")?;
    let parse_special = fields.take("parse_special")?.unwrap_or(true);
    let pieces = fields.flag("with_pieces")?;
    let question = Question::Tokenize { text, add_special, parse_special };
    let Reply::Tokens(tokens) = api.backend().ask(question).await? else { return Err(ApiError::broken_off()) };
    let tokens = tokens.into_iter().map(|(token, bytes)| match pieces {
        true => json!({ "id": token.id(), "piece": piece(bytes) }),
        false => token.id().into(),
    });
    Ok(Json(json!({ "tokens": tokens.collect::<Vec<Value>>() })))
}

/// Text, or bytes where they are none.
fn piece(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => error.into_bytes().into(),
    }
}

/// The text of tokens.
pub(in crate::server::api) async fn detokenize(
    State(api): State<ApiState>,
    mut fields: Fields,
) -> Result<Json<Value>, ApiError> {
    let tokens: Vec<Token> = fields.require("tokens")?;
    prompt::check_tokens("tokens", &tokens, api.backend().status().vocabulary())?;
    let Reply::Text(text) = api.backend().ask(Question::Detokenize { tokens }).await? else {
        return Err(ApiError::broken_off());
    };
    Ok(Json(json!({ "content": text })))
}

/// A conversation as a prompt.
pub(in crate::server::api) async fn apply_template(
    State(api): State<ApiState>,
    mut fields: Fields,
) -> Result<Json<Value>, ApiError> {
    let snapshot = api.backend().status();
    let template = snapshot.info.as_ref().and_then(|info| info.chat_template.as_deref());
    let chat = conversation::take(&mut fields, template)?;
    api.check_prompt("messages", chat.messages.iter().map(|message| message.text().len()).sum())?;
    let Reply::Text(prompt) = api.backend().ask(Question::Render(Box::new(chat))).await? else {
        return Err(ApiError::broken_off());
    };
    Ok(Json(json!({ "prompt": prompt })))
}
