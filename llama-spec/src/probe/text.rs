//! The prompt of a probe: ordinary words, then a passage that comes again and again.

use crate::token::Token;
use crate::vocab::Vocab;

const ORDINARY: &str = "This is the log of the weather station on the northern pier. Every entry gives the hour, the wind and the \
                        sea, in this order, as the keeper saw them.\n";
const PASSAGE: &str = "At noon the wind is calm, the sky is clear and the sea is blue. At night the wind is strong, the sky is \
                       dark and the sea is black.\n";

/// A prompt of `length` tokens, the last of which have been there before.
pub(super) fn prompt(vocab: Vocab<'_>, length: usize) -> Vec<Token> {
    let mut tokens = vocab.tokenize(ORDINARY).unwrap_or_default();
    let mut passage = vocab.tokenize_plain(PASSAGE).unwrap_or_default();
    if passage.is_empty() {
        // A vocabulary that cannot write this has other tokens that will do.
        let any = (0..vocab.len() as i32).map(Token::new);
        passage =
            any.filter(|token| !vocab.is_control(*token) && !vocab.is_end_of_generation(*token)).take(16).collect();
    }
    // In a short prompt, too, something must come again.
    tokens.truncate((length / 4).max(1));
    passage.truncate((length / 3).max(1));
    let missing = length.saturating_sub(tokens.len());
    tokens.extend(passage.iter().cycle().take(missing));
    tokens.truncate(length);
    tokens
}
