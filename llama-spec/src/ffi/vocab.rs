//! Calls on a vocabulary, which lives inside its model.

use super::backend::text;
use super::model::RawModel;
use super::status::{Failed, fill};
use crate::token::Token;
use llama_sys as sys;

pub(crate) fn size(model: &RawModel) -> u32 {
    // SAFETY: the vocabulary lives as long as its model, which is borrowed.
    unsafe { sys::llama_vocab_n_tokens(model.vocab()) }.max(0) as u32
}

pub(crate) fn kind(model: &RawModel) -> u32 {
    // SAFETY: as in `size`.
    unsafe { sys::llama_vocab_type(model.vocab()) }
}

/// One of the special tokens, if the vocabulary has it.
pub(crate) fn special(
    model: &RawModel,
    which: unsafe extern "C" fn(*const sys::llama_vocab) -> sys::llama_token,
) -> Option<Token> {
    // SAFETY: the functions passed here are the getters of llama.h that take a vocabulary; it lives as in `size`.
    let token = unsafe { which(model.vocab()) };
    (token != sys::LLAMA_TOKEN_NULL).then_some(Token::new(token))
}

/// One of the flags of the vocabulary.
pub(crate) fn flag(model: &RawModel, which: unsafe extern "C" fn(*const sys::llama_vocab) -> bool) -> bool {
    // SAFETY: as in `special`.
    unsafe { which(model.vocab()) }
}

/// `token` is inside the vocabulary.
pub(crate) fn is_end_of_generation(model: &RawModel, token: Token) -> bool {
    // SAFETY: as in `size`, and the caller has checked the token.
    unsafe { sys::llama_vocab_is_eog(model.vocab(), token.id()) }
}

/// `token` is inside the vocabulary.
pub(crate) fn is_control(model: &RawModel, token: Token) -> bool {
    // SAFETY: as in `size`, and the caller has checked the token.
    unsafe { sys::llama_vocab_is_control(model.vocab(), token.id()) }
}

/// The token's text as the file has it. `token` is inside the vocabulary.
pub(crate) fn raw_text(model: &RawModel, token: Token) -> String {
    // SAFETY: as in `size`, and the caller has checked the token; the text belongs to the vocabulary and is copied.
    unsafe { text(sys::llama_vocab_get_text(model.vocab(), token.id())) }
}

pub(crate) fn tokenize(
    model: &RawModel,
    text: &[u8],
    add_special: bool,
    parse_special: bool,
) -> Result<Vec<Token>, Failed> {
    let guess = text.len() / 3 + 8;
    // SAFETY: text and buffer are given with their lengths, and the vocabulary lives as in `size`.
    let ids = fill(guess, |buffer, capacity, needed| unsafe {
        sys::lsys_tokenize(
            model.vocab(),
            text.as_ptr().cast(),
            text.len(),
            add_special,
            parse_special,
            buffer,
            capacity,
            needed,
        )
    })?;
    Ok(ids.into_iter().map(Token::new).collect())
}

pub(crate) fn piece(model: &RawModel, token: Token, special: bool) -> Result<Vec<u8>, Failed> {
    // SAFETY: the buffer is given with its length, and the vocabulary lives as in `size`.
    fill(16, |buffer: *mut u8, capacity, needed| unsafe {
        sys::lsys_token_to_piece(model.vocab(), token.id(), special, buffer.cast(), capacity, needed)
    })
}
