//! Log-probabilities in the three forms clients know, and what the page shows of each token.

use super::numbers::rounded;
use llama_spec::Token;
use llama_spec::supervise::task::TokenUpdate;
use serde_json::{Value, json};

/// What stands for a probability of zero, which JSON has no logarithm of.
const IMPOSSIBLE: f64 = -9999.0;

/// A token in the form of chat completions.
pub(super) fn chat(update: &TokenUpdate) -> Option<Value> {
    let known = update.logprob.as_ref()?;
    let top: Vec<_> = known.top.iter().map(|(_, bytes, logprob)| entry(bytes, *logprob)).collect();
    let mut entry = entry(&update.bytes, known.logprob);
    entry["top_logprobs"] = top.into();
    Some(entry)
}

fn entry(bytes: &[u8], logprob: f32) -> Value {
    json!({ "token": text(bytes), "logprob": number(logprob), "bytes": bytes })
}

/// A token in llama-server's form.
pub(super) fn llama(update: &TokenUpdate) -> Option<Value> {
    let known = update.logprob.as_ref()?;
    let top: Vec<_> = known.top.iter().map(|(token, bytes, logprob)| numbered(*token, bytes, *logprob)).collect();
    let mut entry = numbered(update.token, &update.bytes, known.logprob);
    entry["top_logprobs"] = top.into();
    Some(entry)
}

fn numbered(token: Token, bytes: &[u8], logprob: f32) -> Value {
    json!({ "id": token.id(), "token": text(bytes), "bytes": bytes, "logprob": number(logprob) })
}

/// A token as the page shows it: who it is from, and what else it could have been.
pub(super) fn details(update: &TokenUpdate) -> Value {
    let top = update.logprob.iter().flat_map(|known| &known.top);
    let top: Vec<_> = top
        .map(|(token, bytes, logprob)| json!({ "id": token.id(), "text": text(bytes), "logprob": number(*logprob) }))
        .collect();
    json!({
        "id": update.token.id(),
        "text": text(&update.bytes),
        "source": update.source.to_string(),
        "logprob": update.logprob.as_ref().map(|known| number(known.logprob)),
        "top": top,
    })
}

/// The old form of completions: four lists side by side.
#[derive(Debug)]
pub(super) struct Columns {
    tokens: Vec<Value>,
    logprobs: Vec<Value>,
    top: Vec<Value>,
    offsets: Vec<Value>,
    /// Characters before the next token.
    offset: usize,
}

impl Columns {
    /// The first token stands after this many characters.
    pub(super) fn new(offset: usize) -> Self {
        Self { tokens: Vec::new(), logprobs: Vec::new(), top: Vec::new(), offsets: Vec::new(), offset }
    }

    pub(super) fn push(&mut self, update: &TokenUpdate) {
        let Some(known) = &update.logprob else { return };
        let top = known.top.iter().map(|(_, bytes, logprob)| (text(bytes), number(*logprob).into())).collect();
        self.tokens.push(text(&update.bytes).into());
        self.logprobs.push(number(known.logprob).into());
        self.top.push(Value::Object(top));
        self.offsets.push(self.offset.into());
        self.offset += update.text.chars().count();
    }

    /// The lists so far, which begin anew.
    pub(super) fn drain(&mut self) -> Value {
        json!({
            "tokens": std::mem::take(&mut self.tokens),
            "token_logprobs": std::mem::take(&mut self.logprobs),
            "top_logprobs": std::mem::take(&mut self.top),
            "text_offset": std::mem::take(&mut self.offsets),
        })
    }
}

/// The bytes as text; `bytes` beside it says what they are where they are no whole characters.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(logprob: f32) -> f64 {
    if logprob.is_finite() { rounded(f64::from(logprob)) } else { IMPOSSIBLE }
}
