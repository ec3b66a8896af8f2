//! What generated text must look like.

use crate::error::Result;
use crate::ffi;
use crate::token::Token;
use serde::{Deserialize, Serialize};

/// A form that the generated text must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Grammar {
    /// A grammar in llama.cpp's GBNF, whose start is the rule `root`.
    Gbnf(String),
    /// A JSON Schema; the text is a JSON value of that schema.
    JsonSchema(serde_json::Value),
    /// A GBNF grammar for the text from the first trigger on; what comes before it is free.
    Lazy {
        /// The grammar. It sees the trigger too.
        gbnf: String,
        /// What sets it to work, at least one.
        triggers: Vec<Trigger>,
    },
    /// What a chat template asks for; see [`Rendered::apply`](crate::chat::Rendered::apply).
    Template(TemplateGrammar),
}

impl Grammar {
    /// A grammar in llama.cpp's GBNF.
    pub fn gbnf(text: impl Into<String>) -> Self {
        Self::Gbnf(text.into())
    }
}

/// What sets a lazy grammar to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trigger {
    /// A token.
    Token(Token),
    /// A text.
    Word(String),
    /// A regular expression of C++ (ECMAScript) that is found somewhere in the text; the grammar begins at its first group
    /// that is not empty. It is tried on all of the text after every token, by an engine that recurses, so repetitions are
    /// limited: at most four times `*` or `+`, each behind a character or a class and good for 64 of them, and no `{`.
    Pattern(String),
    /// A regular expression that all of the text so far matches; otherwise as [`Trigger::Pattern`].
    FullPattern(String),
}

/// The grammar of a rendered chat. Unless it is lazy it begins with the
/// [`generation_prompt`](crate::sample::SamplerOptions#structfield.generation_prompt).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateGrammar {
    /// The grammar in GBNF.
    pub gbnf: String,
    /// Whether it waits for a trigger.
    pub lazy: bool,
    /// What sets it to work if it is lazy.
    pub triggers: Vec<Trigger>,
}

/// The GBNF grammar of a JSON Schema.
///
/// ```
/// let schema = serde_json::json!({ "type": "object", "properties": { "age": { "type": "integer" } }, "required": ["age"] });
/// let gbnf = llama_spec::sample::json_schema_to_grammar(&schema)?;
/// assert!(gbnf.contains("root ::="));
/// # Ok::<_, llama_spec::Error>(())
/// ```
///
/// # Errors
/// [`Error::Sample`](crate::Error::Sample) when the schema is not one, or has something no grammar can express.
pub fn json_schema_to_grammar(schema: &serde_json::Value) -> Result<String> {
    ffi::sampler::json_schema_to_grammar(&schema.to_string())
}
