//! Limits for what clients hand to parsers further down: depth, number and size, checked before anything is made of it.

use super::error::ApiError;

const MAX_STOPS: usize = 64;
const MAX_STOP_BYTES: usize = 4096;
const MAX_DEPTH: usize = 48;
const MAX_GRAMMAR_BYTES: usize = 256 * 1024;

/// Checks stop strings: each is looked for after every token.
pub(super) fn check_stops(stops: &[String]) -> Result<(), ApiError> {
    if stops.len() > MAX_STOPS || stops.iter().any(|stop| stop.len() > MAX_STOP_BYTES) {
        let message = format!("at most {MAX_STOPS} stop strings of up to {MAX_STOP_BYTES} bytes are taken");
        return Err(ApiError::invalid("stop", message));
    }
    Ok(())
}

/// Checks a GBNF grammar, which is read by a parser that recurses at each parenthesis.
pub(super) fn check_grammar(param: &str, grammar: &str) -> Result<(), ApiError> {
    if grammar.contains('\0') {
        return Err(ApiError::invalid(param, "the grammar has a NUL character in it"));
    }
    let (mut depth, mut deepest, mut quote, mut escaped) = (0usize, 0, None, false);
    for c in grammar.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some('"'),
            (None, '[') => quote = Some(']'),
            (None, '#') => quote = Some('\n'),
            (None, '(') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if grammar.len() > MAX_GRAMMAR_BYTES || deepest > MAX_DEPTH {
        let message =
            format!("the grammar is longer than {MAX_GRAMMAR_BYTES} bytes or nests more than {MAX_DEPTH} parentheses");
        return Err(ApiError::invalid(param, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_are_bounded() {
        let nested = |depth: usize| format!("root ::= {}\"a\"{}", "(".repeat(depth), ")".repeat(depth));
        assert!(check_grammar("g", &nested(40)).is_ok());
        assert!(check_grammar("g", &nested(60)).is_err());
        assert!(check_grammar("g", "root ::= \"\0\"").is_err());
        let quoted = format!(
            "root ::= \"{}\" [{}] \"\\\"{}\" # {}\n \"x\"",
            "(".repeat(60),
            "(".repeat(60),
            "(".repeat(60),
            "(".repeat(60)
        );
        assert!(check_grammar("g", &quoted).is_ok());
        assert!(check_grammar("g", &" ".repeat(MAX_GRAMMAR_BYTES + 1)).is_err());
    }

    #[test]
    fn stops_are_bounded() {
        assert!(check_stops(&vec!["x".into(); MAX_STOPS]).is_ok());
        assert!(check_stops(&vec!["x".into(); MAX_STOPS + 1]).is_err());
        assert!(check_stops(&["x".repeat(MAX_STOP_BYTES + 1)]).is_err());
    }
}
