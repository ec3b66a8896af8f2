//! Tokens that a grammar leaves no choice about: the fixed parts of a JSON schema, such as the names of its fields.
//!
//! What a grammar forces is text, and several rows of tokens can spell it. The usual one is drafted, without its last token,
//! which may well join with what comes behind. So a draft is not certain to the token, but it costs nothing, and how often it
//! is right is soon known.

use crate::ffi::forced::RawForced;
use crate::model::Model;
use crate::sample::SamplerOptions;
use crate::sample::prepare::Prepared;
use crate::token::Token;

/// The longest text that is looked at, for each token of a draft.
const BYTES: usize = 16;

/// Drafts what the grammar of a text forces.
#[derive(Debug)]
pub(crate) struct Forced {
    raw: RawForced,
    model: Model,
    /// Nothing is known any more: the text went on without the grammar, or it is over.
    lost: bool,
}

impl Forced {
    /// For a text that begins, if these options have a grammar that holds from its first token on.
    pub(crate) fn new(model: &Model, options: &SamplerOptions) -> Option<Self> {
        // While it reasons, the text does not follow the grammar, and a lazy one waits.
        if options.grammar.is_none() || options.reasoning_tags.is_some() {
            return None;
        }
        let prepared = Prepared::new(model, options).ok()?;
        if prepared.grammar.as_ref().is_none_or(|grammar| grammar.lazy) {
            return None;
        }
        let raw = RawForced::new(model, options, &prepared).ok()?;
        Some(Self { raw, model: model.clone(), lost: false })
    }

    /// Tokens were generated.
    pub(crate) fn extend(&mut self, tokens: &[Token]) {
        for token in tokens {
            self.lost = self.lost || self.raw.accept(*token).is_err();
        }
    }

    /// Up to `limit` tokens that spell what must come next.
    pub(crate) fn propose(&mut self, limit: usize, draft: &mut Vec<Token>) {
        draft.clear();
        if self.lost || limit == 0 {
            return;
        }
        let Ok(text) = self.raw.text(limit.saturating_mul(BYTES)) else { return };
        let vocab = self.model.vocab();
        let Ok(tokens) = vocab.tokenize_with(&text, false, false) else { return };
        // Some tokenizers put a space before every text, which the answer does not have.
        let spelled: Option<Vec<Vec<u8>>> = tokens.iter().map(|token| vocab.bytes(*token).ok()).collect();
        if spelled.is_none_or(|pieces| pieces.concat() != text) {
            return;
        }
        let most = tokens.len().saturating_sub(1).min(limit);
        draft.extend_from_slice(&tokens[..most]);
    }
}
