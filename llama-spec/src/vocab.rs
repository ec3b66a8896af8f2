//! Vocabularies: text to tokens and back.

use crate::error::{Error, Result};
use crate::ffi::model::RawModel;
use crate::ffi::vocab as ffi;
use crate::token::Token;
use llama_sys as sys;
use std::fmt;

/// The vocabulary of a model, borrowed from it.
#[derive(Clone, Copy)]
pub struct Vocab<'m> {
    model: &'m RawModel,
}

/// How a vocabulary makes tokens of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names are those of the algorithms")]
pub enum VocabKind {
    /// The model has none.
    None,
    SentencePiece,
    Bpe,
    WordPiece,
    Unigram,
    Rwkv,
    /// One that this crate does not know by name.
    Other,
}

impl<'m> Vocab<'m> {
    pub(crate) fn new(model: &'m RawModel) -> Self {
        Self { model }
    }

    /// Tokens in it; their numbers are `0..len`.
    pub fn len(&self) -> u32 {
        ffi::size(self.model)
    }

    /// Whether the model has no vocabulary.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How it makes tokens of text.
    pub fn kind(&self) -> VocabKind {
        match ffi::kind(self.model) {
            sys::LLAMA_VOCAB_TYPE_NONE => VocabKind::None,
            sys::LLAMA_VOCAB_TYPE_SPM => VocabKind::SentencePiece,
            sys::LLAMA_VOCAB_TYPE_BPE => VocabKind::Bpe,
            sys::LLAMA_VOCAB_TYPE_WPM => VocabKind::WordPiece,
            sys::LLAMA_VOCAB_TYPE_UGM => VocabKind::Unigram,
            sys::LLAMA_VOCAB_TYPE_RWKV => VocabKind::Rwkv,
            _ => VocabKind::Other,
        }
    }

    /// The tokens of a prompt: with the begin-of-text token if the model wants one, and with special tokens recognised
    /// by their text. For text of a user that must not become special tokens, see [`Vocab::tokenize_plain`].
    ///
    /// # Errors
    /// [`Error::Tokenize`] when the tokenizer refuses the text.
    pub fn tokenize(&self, text: impl AsRef<[u8]>) -> Result<Vec<Token>> {
        self.tokenize_with(text.as_ref(), true, true)
    }

    /// The tokens of a text alone: nothing is added, and the text of special tokens is taken as plain text.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_plain(&self, text: impl AsRef<[u8]>) -> Result<Vec<Token>> {
        self.tokenize_with(text.as_ref(), false, false)
    }

    /// The tokens of a text, with the choices of [`Vocab::tokenize`] each by itself.
    ///
    /// # Errors
    /// As [`Vocab::tokenize`].
    pub fn tokenize_with(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<Vec<Token>> {
        ffi::tokenize(self.model, text, add_special, parse_special)
            .map_err(|failed| Error::Tokenize { failure: failed.into() })
    }

    /// The bytes of one token; control tokens have none. A token may hold part of a character: see [`crate::text::Utf8Stream`].
    ///
    /// # Errors
    /// [`Error::Setting`] when the token is outside the vocabulary.
    pub fn bytes(&self, token: Token) -> Result<Vec<u8>> {
        self.piece(token, false)
    }

    /// As [`Vocab::bytes`], with the text of control tokens.
    ///
    /// # Errors
    /// As [`Vocab::bytes`].
    pub fn bytes_with_special(&self, token: Token) -> Result<Vec<u8>> {
        self.piece(token, true)
    }

    /// The text of some tokens, control tokens left out and broken characters replaced.
    pub fn text(&self, tokens: &[Token]) -> String {
        let bytes: Vec<u8> = tokens.iter().filter_map(|token| self.bytes(*token).ok()).flatten().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The token's text as the file has it, not decoded.
    ///
    /// # Errors
    /// As [`Vocab::bytes`].
    pub fn raw_text(&self, token: Token) -> Result<String> {
        self.check(token).map(|token| ffi::raw_text(self.model, token))
    }

    /// Whether the token ends generation. A token outside the vocabulary does not.
    pub fn is_end_of_generation(&self, token: Token) -> bool {
        self.contains(token) && ffi::is_end_of_generation(self.model, token)
    }

    /// Whether the token is a control token, which has no text of its own.
    pub fn is_control(&self, token: Token) -> bool {
        self.contains(token) && ffi::is_control(self.model, token)
    }

    /// Whether this is one of its tokens.
    pub fn contains(&self, token: Token) -> bool {
        u32::try_from(token.id()).is_ok_and(|id| id < self.len())
    }

    /// The token that begins a text.
    pub fn bos(&self) -> Option<Token> {
        ffi::special(self.model, sys::llama_vocab_bos)
    }

    /// The token that ends a text.
    pub fn eos(&self) -> Option<Token> {
        ffi::special(self.model, sys::llama_vocab_eos)
    }

    /// The token that ends a turn.
    pub fn eot(&self) -> Option<Token> {
        ffi::special(self.model, sys::llama_vocab_eot)
    }

    /// Whether prompts begin with [`Vocab::bos`].
    pub fn adds_bos(&self) -> bool {
        ffi::flag(self.model, sys::llama_vocab_get_add_bos)
    }

    /// Whether prompts end with [`Vocab::eos`].
    pub fn adds_eos(&self) -> bool {
        ffi::flag(self.model, sys::llama_vocab_get_add_eos)
    }

    fn piece(&self, token: Token, special: bool) -> Result<Vec<u8>> {
        let token = self.check(token)?;
        ffi::piece(self.model, token, special).map_err(|failed| Error::Tokenize { failure: failed.into() })
    }

    pub(crate) fn check(&self, token: Token) -> Result<Token> {
        if self.contains(token) {
            return Ok(token);
        }
        let expected = format!("a token of the vocabulary, 0 to {}", self.len().saturating_sub(1));
        Err(Error::Setting { setting: "token", value: token.id().to_string(), expected })
    }
}

impl fmt::Debug for Vocab<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocab").field("kind", &self.kind()).field("len", &self.len()).finish()
    }
}
