//! What a generation reports.

use crate::sample::{Logprobs, SamplerState};
use crate::spec::{Source, Stats};
use crate::token::Token;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A step of a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
        /// How probable the target found it, if that was asked for.
        logprobs: Option<Logprobs>,
    },
    /// All tokens of a round were reported, if that was asked for ([`Request::checkpoints`](field@crate::Request::checkpoints)):
    /// where the sampler stands now. Nothing when it cannot be saved; see [`Sampler::save`](crate::Sampler::save).
    Checkpoint(Option<Box<SamplerState>>),
    /// The context was full and its older part was dropped, as [`ContextFull::Shift`] says.
    Shifted {
        /// Tokens dropped.
        dropped: usize,
    },
    /// The generation ended.
    Finished {
        /// Why.
        reason: StopReason,
        /// Text that was held back until now.
        text: String,
        /// The numbers of the generation.
        stats: Box<Stats>,
    },
}

impl Event {
    /// The text of this step, often empty. Together these are the answer.
    pub fn text(&self) -> &str {
        match self {
            Self::Prefill { .. } | Self::Checkpoint(_) | Self::Shifted { .. } => "",
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
    /// It was cancelled.
    Cancelled,
    /// Its deadline has passed.
    Deadline,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndOfText => "end of text",
            Self::MaxTokens => "token limit",
            Self::ContextFull => "context full",
            Self::StopString => "stop string",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
        })
    }
}

/// What happens when prompt and answer fill the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ContextFull {
    /// The generation ends with [`StopReason::ContextFull`].
    #[default]
    Stop,
    /// The first `keep` tokens and the newer half of the others are kept, what is between them is dropped, and the generation
    /// goes on. The kept tokens are computed again, so that the text goes on as if they had been the prompt; this works with
    /// every model and drafter.
    Shift {
        /// Tokens at the beginning that stay, such as the system prompt; at most half of the context is kept for them.
        keep: u32,
    },
}
