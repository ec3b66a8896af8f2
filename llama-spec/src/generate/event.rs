//! What a generation reports.

use crate::spec::Source;
use crate::token::Token;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A step of a generation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Part of the prompt was computed: this many of its tokens, of that many.
    Prefill {
        /// Tokens done.
        done: usize,
        /// Tokens to do.
        total: usize,
    },
    /// A token was generated.
    Token {
        /// The token.
        token: Token,
        /// The characters that are complete by now; empty while a character or a possible stop string is incomplete.
        text: String,
        /// Where it came from.
        source: Source,
    },
    /// The generation ended.
    Finished {
        /// Why.
        reason: StopReason,
        /// Text that was held back until now.
        text: String,
    },
}

impl Event {
    /// The text of this step, often empty. Together these are the answer.
    pub fn text(&self) -> &str {
        match self {
            Self::Prefill { .. } => "",
            Self::Token { text, .. } | Self::Finished { text, .. } => text,
        }
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model ended the text.
    EndOfText,
    /// As many tokens were generated as were asked for.
    MaxTokens,
    /// There is no room left in the context.
    ContextFull,
    /// A stop string came up.
    StopString,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndOfText => "end of text",
            Self::MaxTokens => "token limit",
            Self::ContextFull => "context full",
            Self::StopString => "stop string",
        })
    }
}
