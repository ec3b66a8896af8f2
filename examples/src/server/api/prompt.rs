//! `prompt` in its forms: a text, tokens, both mixed, and lists of these.

use super::ApiState;
use super::backend::{Backend, Snapshot};
use super::error::ApiError;
use super::fields::{self, Fields};
use llama_spec::Token;
use llama_spec::engine::Prompt;
use llama_spec::supervise::{Question, Reply};
use serde_json::Value;

/// One prompt as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Token(Token),
}

/// Takes the field: the prompts, and whether there is a list of them.
pub(super) fn take(fields: &mut Fields, api: &ApiState, snapshot: &Snapshot) -> Result<(Vec<Asked>, bool), ApiError> {
    let (prompts, list) = match fields.value("prompt").ok_or_else(|| fields::missing("prompt"))? {
        // Numbers in the list are tokens of one prompt; without any, it is a list of prompts.
        Value::Array(items) if !items.is_empty() && !items.iter().any(Value::is_number) => {
            let most = api.options().prompts;
            if items.len() > most {
                return Err(ApiError::invalid("prompt", format!("at most {most} prompts are taken at once")));
            }
            let read = items.into_iter().enumerate().map(|(index, item)| one(&format!("prompt[{index}]"), item));
            (read.collect::<Result<Vec<_>, _>>()?, true)
        }
        one_prompt => (vec![one("prompt", one_prompt)?], false),
    };
    for prompt in &prompts {
        prompt.check(snapshot.vocabulary())?;
    }
    api.check_prompt("prompt", prompts.iter().map(Asked::bytes).sum())?;
    Ok((prompts, list))
}

fn one(param: &str, value: Value) -> Result<Asked, ApiError> {
    match value {
        Value::String(text) => Ok(Asked(vec![Piece::Text(text)])),
        Value::Array(items) => {
            let pieces = items.into_iter().enumerate().map(|(index, item)| piece(&format!("{param}[{index}]"), item));
            pieces.collect::<Result<_, _>>().map(Asked)
        }
        // llama-server's form for prompts with pictures; without any, it is a text.
        Value::Object(object) => {
            let mut object = Fields::new(object);
            let media: Vec<Value> = object.take("multimodal_data")?.unwrap_or_default();
            if !media.is_empty() {
                let message = "this server reads only text";
                return Err(ApiError::unsupported(format!("{param}.multimodal_data"), message));
            }
            let text =
                object.require("prompt_string").map_err(|error| error.about(format!("{param}.prompt_string")))?;
            Ok(Asked(vec![Piece::Text(text)]))
        }
        _ => Err(ApiError::invalid(param, format!("`{param}` must be a text, or a list of tokens and texts"))),
    }
}

fn piece(param: &str, value: Value) -> Result<Piece, ApiError> {
    match value {
        Value::String(text) => Ok(Piece::Text(text)),
        Value::Number(number) => {
            let id = number.as_i64().and_then(|id| i32::try_from(id).ok()).filter(|id| *id >= 0);
            let wrong = || ApiError::invalid(param, format!("`{param}` is {number}, which is no token"));
            id.map(|id| Piece::Token(Token::new(id))).ok_or_else(wrong)
        }
        _ => Err(ApiError::invalid(param, format!("`{param}` must be a token or a text"))),
    }
}

impl Asked {
    fn bytes(&self) -> usize {
        let bytes = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { size_of::<Token>() };
        self.0.iter().map(bytes).sum()
    }

    fn check(&self, vocabulary: Option<u32>) -> Result<(), ApiError> {
        let tokens = self.0.iter().filter_map(|piece| if let Piece::Token(token) = piece { Some(token) } else { None });
        check_tokens("prompt", tokens, vocabulary)
    }

    /// As the engine takes it. A text within tokens is turned into tokens first, with the tokens that begin a text only where
    /// it comes first.
    pub(super) async fn resolve(self, backend: &dyn Backend) -> Result<Prompt, ApiError> {
        if let [Piece::Text(text)] = &self.0[..] {
            return Ok(Prompt::Text(text.clone()));
        }
        let mut tokens = Vec::new();
        for (index, piece) in self.0.into_iter().enumerate() {
            match piece {
                Piece::Token(token) => tokens.push(token),
                Piece::Text(text) => {
                    let question = Question::Tokenize { text, add_special: index == 0, parse_special: true };
                    let Reply::Tokens(found) = backend.ask(question).await? else { return Err(ApiError::broken_off()) };
                    tokens.extend(found.into_iter().map(|(token, _)| token));
                }
            }
        }
        Ok(Prompt::Tokens(tokens))
    }
}

/// The text of a prompt.
pub(super) async fn text(prompt: &Prompt, backend: &dyn Backend) -> Result<String, ApiError> {
    match prompt {
        Prompt::Text(text) => Ok(text.clone()),
        Prompt::Tokens(tokens) => match backend.ask(Question::Detokenize { tokens: tokens.clone() }).await? {
            Reply::Text(text) => Ok(text),
            _ => Err(ApiError::broken_off()),
        },
        _ => Ok(String::new()),
    }
}

/// Tokens must be of the vocabulary, where that is known.
pub(super) fn check_tokens<'a>(
    param: &str,
    tokens: impl IntoIterator<Item = &'a Token>,
    vocabulary: Option<u32>,
) -> Result<(), ApiError> {
    let Some(vocabulary) = vocabulary else { return Ok(()) };
    let foreign = |token: &&Token| u32::try_from(token.id()).map_or(true, |id| id >= vocabulary);
    match tokens.into_iter().find(foreign) {
        Some(token) => {
            let message = format!("{} is no token: the vocabulary has {vocabulary}", token.id());
            Err(ApiError::invalid(param, message))
        }
        None => Ok(()),
    }
}
