//! What a generation came to: a line for people, an object for programs.

use crate::failure::Failure;
use crate::load::names;
use llama_spec::spec::{Speculation, Stats};
use llama_spec::{StopReason, Token};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Ending {
    /// As the library says.
    Stopped(StopReason),
    /// By Ctrl-C.
    Interrupted(Interrupted),
}

/// Ctrl-C, as JSON names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupted {
    /// Ctrl-C.
    Interrupted,
}

impl Ending {
    /// The ending by Ctrl-C.
    pub const INTERRUPTED: Self = Self::Interrupted(Interrupted::Interrupted);
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(reason) => reason.fmt(f),
            Self::Interrupted(_) => f.write_str("interrupted"),
        }
    }
}

/// The object that `generate --json` writes.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The generated text.
    pub text: &'a str,
    /// Its tokens.
    pub tokens: &'a [Token],
    /// Why it ended.
    pub stop_reason: Ending,
    /// Counts, rates and times.
    pub stats: Numbers<'a>,
    /// What speculation came to.
    pub speculation: &'a Speculation,
}

/// Counts, rates and times; null where there is nothing to divide by.
#[derive(Debug, Serialize)]
pub struct Numbers<'a> {
    prompt_tokens: u64,
    cached_tokens: u64,
    generated_tokens: u64,
    prompt_tokens_per_second: Option<f64>,
    tokens_per_second: Option<f64>,
    rounds: u64,
    drafts: u64,
    drafted: u64,
    accepted: u64,
    acceptance_rate: Option<f64>,
    mean_accepted_length: Option<f64>,
    drafted_per_position: &'a [u64],
    accepted_per_position: &'a [u64],
    prefill_ms: f64,
    draft_ms: f64,
    verify_ms: f64,
    sample_ms: f64,
    rollback_ms: f64,
    generation_ms: f64,
    load_ms: f64,
}

impl<'a> Numbers<'a> {
    /// The numbers of a generation, and how long loading took before it.
    pub fn new(stats: &'a Stats, load: Duration) -> Self {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        Self {
            prompt_tokens: stats.prompt_tokens,
            cached_tokens: stats.cached_tokens,
            generated_tokens: stats.generated_tokens,
            prompt_tokens_per_second: stats.prompt_tokens_per_second(),
            tokens_per_second: stats.tokens_per_second(),
            rounds: stats.rounds,
            drafts: stats.drafts,
            drafted: stats.drafted,
            accepted: stats.accepted,
            acceptance_rate: stats.acceptance_rate(),
            mean_accepted_length: stats.mean_accepted_length(),
            drafted_per_position: &stats.drafted_per_position,
            accepted_per_position: &stats.accepted_per_position,
            prefill_ms: milliseconds(stats.prefill),
            draft_ms: milliseconds(stats.draft),
            verify_ms: milliseconds(stats.verify),
            sample_ms: milliseconds(stats.sample),
            rollback_ms: milliseconds(stats.rollback),
            generation_ms: milliseconds(stats.generation),
            load_ms: milliseconds(load),
        }
    }
}

impl Report<'_> {
    /// Writes it to standard output.
    ///
    /// # Errors
    /// As [`Failure::output`].
    pub fn write(&self) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, self).map_err(|error| Failure::output(error.into()))?;
        writeln!(out).and_then(|()| out.flush()).map_err(Failure::output)
    }
}

/// The line for people.
pub fn line(stats: &Stats, speculation: &Speculation, ending: Ending) -> String {
    let mut line = stats.to_string();
    if speculation.is_active() {
        line += &format!(" ({})", names(&speculation.effective));
    }
    line += &format!("; prompt: {} tokens", stats.prompt_tokens);
    if stats.cached_tokens > 0 {
        line += &format!(" ({} cached)", stats.cached_tokens);
    }
    if let Some(rate) = stats.prompt_tokens_per_second() {
        line += &format!(", {rate:.1} tokens/s");
    }
    line + &format!("; ended: {ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use llama_spec::spec::Method;

    #[test]
    fn endings_are_words() {
        let json = |ending: Ending| serde_json::to_value(ending).unwrap();
        assert_eq!(json(Ending::Stopped(StopReason::MaxTokens)), "max-tokens");
        assert_eq!(json(Ending::INTERRUPTED), "interrupted");
    }

    #[test]
    fn the_line_tells_prompt_drafts_and_ending() {
        let stats = Stats {
            prompt_tokens: 10,
            cached_tokens: 4,
            generated_tokens: 20,
            drafts: 4,
            drafted: 16,
            accepted: 12,
            prefill: Duration::from_secs(2),
            generation: Duration::from_secs(4),
            ..Stats::default()
        };
        let method = vec![Method::NgramMod];
        let speculation = Speculation { requested: method.clone(), effective: method, ..Speculation::default() };
        assert_eq!(
            line(&stats, &speculation, Ending::Stopped(StopReason::EndOfText)),
            "20 tokens, 5.0 tokens/s, 12/16 drafted tokens accepted (75 %), 4.00 tokens a draft (ngram-mod); \
             prompt: 10 tokens (4 cached), 3.0 tokens/s; ended: end of text"
        );
    }
}
