//! What the owner of the machine may read and a client may not: where files are, and lines of logs.

use serde_json::Value;

/// The first line of a message, with folders cut off from paths.
pub(super) fn line(text: &str) -> String {
    paths(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim())
}

/// A text in which every absolute path is only the name of its file.
pub(super) fn paths(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars() {
        if c.is_whitespace() || "\"'`()[]{}<>,;=".contains(c) {
            out.push_str(name(&word));
            word.clear();
            out.push(c);
        } else {
            word.push(c);
        }
    }
    out.push_str(name(&word));
    out
}

/// As [`paths`], in every text of a value.
pub(super) fn within(value: &mut Value) {
    match value {
        Value::String(text) => *text = paths(text),
        Value::Array(items) => items.iter_mut().for_each(within),
        Value::Object(fields) => fields.values_mut().for_each(within),
        _ => {}
    }
}

/// What is left of a word: of a path, its last part.
fn name(word: &str) -> &str {
    let drive = word.len() > 2 && word.as_bytes()[0].is_ascii_alphabetic() && word[1..].starts_with(":\\");
    if !word.starts_with('/') && !word.starts_with("\\\\") && !drive {
        return word;
    }
    let end = word.trim_end_matches([':', '.', '/', '\\']);
    let start = end.rfind(['/', '\\']).map_or(0, |at| at + 1);
    // A lone slash, or what stands for a fraction, is no path.
    if start <= 1 && !drive { word } else { &word[start..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_cut_off() {
        assert_eq!(paths("cannot open \"/srv/me/a.gguf\": gone"), "cannot open \"a.gguf\": gone");
        assert_eq!(paths("/srv/models/a.gguf: no such file"), "a.gguf: no such file");
        assert_eq!(paths("C:\\models\\a.gguf broke"), "a.gguf broke");
        assert_eq!(paths("model=/x/y/z.gguf, draft=(/x/w.gguf)"), "model=z.gguf, draft=(w.gguf)");
    }

    #[test]
    fn other_text_stays() {
        for text in ["60 tokens/s, and/or", "a / b", "/ready", "POST /v1 it", "\u{e4}\u{f6} \u{4e2d}:\u{6587}", ""] {
            assert_eq!(paths(text), text);
        }
    }

    #[test]
    fn one_line_is_enough() {
        assert_eq!(line("\nthe worker died\nggml: assert at /src/ggml.c:1"), "the worker died");
    }

    #[test]
    fn values_are_searched() {
        let mut value = serde_json::json!({ "a": ["/x/y/b.gguf"], "c": { "d": "/e/f" }, "n": 1 });
        within(&mut value);
        assert_eq!(value, serde_json::json!({ "a": ["b.gguf"], "c": { "d": "f" }, "n": 1 }));
    }
}
