//! `logit_bias` in its forms: OpenAI's object from token numbers to numbers, and llama-server's list of pairs in which a
//! token can be a text and `false` rules it out.

use super::backend::Backend;
use super::error::ApiError;
use super::fields::Fields;
use llama_spec::sample::LogitBias;
use llama_spec::supervise::{Question, Reply};
use llama_spec::{SamplerOptions, Token};
use serde_json::Value;

/// The most entries, and bytes of their texts.
const MAX_ENTRIES: usize = 4096;
const MAX_TEXT: usize = 1024;

/// What is to be done to the logit of a token, or to those of all tokens of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bias {
    what: What,
    /// Nothing rules it out.
    number: Option<f32>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Token(Token),
    Text(String),
}

/// Takes the field.
pub(super) fn take(fields: &mut Fields) -> Result<Vec<Bias>, ApiError> {
    let list: Vec<(Value, Value)> = match fields.value("logit_bias") {
        None => return Ok(Vec::new()),
        Some(Value::Object(entries)) => {
            entries.into_iter().map(|(token, number)| (Value::String(token), number)).collect()
        }
        Some(list) => super::fields::read("logit_bias", list)?,
    };
    if list.len() > MAX_ENTRIES {
        return Err(ApiError::invalid("logit_bias", format!("at most {MAX_ENTRIES} entries are taken")));
    }
    list.into_iter().map(|(token, number)| Ok(Bias { what: what(token)?, number: amount(&number)? })).collect()
}

fn what(token: Value) -> Result<What, ApiError> {
    let wrong = || ApiError::invalid("logit_bias", "a token is given by its number, or by a text of up to 1024 bytes");
    match token {
        Value::Number(number) => {
            let id = number.as_i64().and_then(|id| i32::try_from(id).ok()).filter(|id| *id >= 0);
            id.map(|id| What::Token(Token::new(id))).ok_or_else(wrong)
        }
        Value::String(text) => match text.parse::<i32>() {
            Ok(id) if id >= 0 => Ok(What::Token(Token::new(id))),
            // Who writes it means a token, and there is none.
            Ok(_) => Err(wrong()),
            _ if text.is_empty() || text.len() > MAX_TEXT => Err(wrong()),
            _ => Ok(What::Text(text)),
        },
        _ => Err(wrong()),
    }
}

fn amount(number: &Value) -> Result<Option<f32>, ApiError> {
    match number {
        Value::Bool(false) => Ok(None),
        Value::Number(number) => Ok(number.as_f64().map(|number| number as f32)),
        _ => {
            Err(ApiError::invalid("logit_bias", "what is added to a logit is a number, or `false` to rule a token out"))
        }
    }
}

/// Adds them to the options, texts in tokens. A token that comes twice gets the last.
pub(super) async fn apply(
    list: Vec<Bias>,
    options: &mut SamplerOptions,
    backend: &dyn Backend,
) -> Result<(), ApiError> {
    for Bias { what, number } in list {
        let tokens = match what {
            What::Token(token) => vec![token],
            What::Text(text) => tokens(text, backend).await?,
        };
        for token in tokens {
            options.logit_bias.retain(|entry| entry.token != token);
            options.banned.retain(|banned| *banned != token);
            match number {
                Some(bias) => options.logit_bias.push(LogitBias { token, bias }),
                None => options.banned.push(token),
            }
        }
    }
    Ok(())
}

async fn tokens(text: String, backend: &dyn Backend) -> Result<Vec<Token>, ApiError> {
    let question = Question::Tokenize { text, add_special: false, parse_special: false };
    match backend.ask(question).await? {
        Reply::Tokens(tokens) => Ok(tokens.into_iter().map(|(token, _)| token).collect()),
        _ => Err(ApiError::broken_off()),
    }
}
