//! Limits for what clients hand to parsers further down: depth, number and size, checked before anything is made of it.

use super::error::ApiError;
use serde_json::Value;

const MAX_STOPS: usize = 64;
const MAX_STOP_BYTES: usize = 4096;
const MAX_DEPTH: usize = 48;
const MAX_NODES: usize = 20_000;
/// Regular expressions of schemas are turned into rules by a parser that recurses.
const MAX_PATTERN_BYTES: usize = 1000;
const MAX_GRAMMAR_BYTES: usize = 256 * 1024;

/// Checks stop strings: each is looked for after every token.
pub(super) fn check_stops(stops: &[String]) -> Result<(), ApiError> {
    if stops.len() > MAX_STOPS || stops.iter().any(|stop| stop.len() > MAX_STOP_BYTES) {
        let message = format!("at most {MAX_STOPS} stop strings of up to {MAX_STOP_BYTES} bytes are taken");
        return Err(ApiError::invalid("stop", message));
    }
    Ok(())
}

/// Checks a JSON Schema: the grammar made of it grows with each level.
pub(super) fn check_schema(param: &str, schema: &Value) -> Result<(), ApiError> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(ApiError::invalid(param, "a JSON schema is an object"));
    }
    let refuse = |what: String| Err(ApiError::invalid(param, format!("the schema {what}")));
    let mut nodes = 0;
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        if depth > MAX_DEPTH || nodes > MAX_NODES {
            return refuse(format!("nests more than {MAX_DEPTH} levels deep or has more than {MAX_NODES} parts"));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                let pattern = fields.get("pattern").and_then(Value::as_str);
                if pattern.is_some_and(|pattern| pattern.len() > MAX_PATTERN_BYTES) {
                    return refuse(format!("has a pattern of more than {MAX_PATTERN_BYTES} bytes"));
                }
                open.extend(fields.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks a GBNF grammar, which is read by a parser that recurses at each parenthesis.
pub(super) fn check_grammar(param: &str, grammar: &str) -> Result<(), ApiError> {
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
    use serde_json::json;

    #[test]
    fn schemas_are_bounded() {
        let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "items": inner }));
        assert!(check_schema("s", &nested(40)).is_ok());
        assert!(check_schema("s", &nested(60)).is_err());
        assert!(check_schema("s", &json!({ "enum": vec![1; MAX_NODES] })).is_err());
        assert!(check_schema("s", &json!({ "pattern": "(".repeat(MAX_PATTERN_BYTES + 1) })).is_err());
        assert!(check_schema("s", &json!("no schema")).is_err());
    }

    #[test]
    fn grammars_are_bounded() {
        let nested = |depth: usize| format!("root ::= {}\"a\"{}", "(".repeat(depth), ")".repeat(depth));
        assert!(check_grammar("g", &nested(40)).is_ok());
        assert!(check_grammar("g", &nested(60)).is_err());
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
