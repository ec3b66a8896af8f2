//! What speculation brought, in numbers.

use super::Method;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Counts and times of one generation, or of several added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the prompt that were still in the memory and not computed again.
    pub cached_tokens: u64,
    /// Tokens generated, without the one that ended the text.
    pub generated_tokens: u64,
    /// Rounds: times the target was run to generate.
    pub rounds: u64,
    /// Rounds in which there was a draft to check.
    pub drafts: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Drafted tokens that the target accepted.
    pub accepted: u64,
    /// Drafts that had a token at each position.
    pub drafted_per_position: Vec<u64>,
    /// Drafted tokens accepted at each position.
    pub accepted_per_position: Vec<u64>,
    /// By method: (tokens drafted, tokens accepted).
    pub per_method: Vec<(Method, u64, u64)>,
    /// Time to compute the prompt.
    pub prefill: Duration,
    /// Time the drafters took, to draft and to follow the target.
    pub draft: Duration,
    /// Time the target took to decode.
    pub verify: Duration,
    /// Time to sample and compare.
    pub sample: Duration,
    /// Time to take rejected tokens out of the memories.
    pub rollback: Duration,
    /// Time from the end of the prompt to the last token.
    pub generation: Duration,
}

impl Stats {
    /// The share of the drafted tokens that were accepted, 0 to 1; nothing if none was drafted.
    pub fn acceptance_rate(&self) -> Option<f64> {
        ratio(self.accepted as f64, self.drafted as f64)
    }

    /// Tokens that a round with a draft gives on average: the accepted ones and the target's own.
    pub fn mean_accepted_length(&self) -> Option<f64> {
        ratio((self.accepted + self.drafts) as f64, self.drafts as f64)
    }

    /// For each position of a draft, the share of the tokens there that were accepted.
    pub fn acceptance_per_position(&self) -> Vec<f64> {
        let pairs = self.accepted_per_position.iter().zip(&self.drafted_per_position);
        pairs.map(|(accepted, drafted)| ratio(*accepted as f64, *drafted as f64).unwrap_or(0.0)).collect()
    }

    /// Tokens generated in a second, the prompt not counted.
    pub fn tokens_per_second(&self) -> Option<f64> {
        ratio(self.generated_tokens as f64, self.generation.as_secs_f64())
    }

    /// Tokens of the prompt computed in a second.
    pub fn prompt_tokens_per_second(&self) -> Option<f64> {
        ratio((self.prompt_tokens - self.cached_tokens.min(self.prompt_tokens)) as f64, self.prefill.as_secs_f64())
    }

    /// Notes a round with a draft of `drafted` tokens, of which the first `accepted` were right.
    pub(crate) fn count_draft(&mut self, method: Method, drafted: usize, accepted: usize) {
        self.drafts += 1;
        self.drafted += drafted as u64;
        self.accepted += accepted as u64;
        if self.drafted_per_position.len() < drafted {
            self.drafted_per_position.resize(drafted, 0);
            self.accepted_per_position.resize(drafted, 0);
        }
        self.drafted_per_position[..drafted].iter_mut().for_each(|count| *count += 1);
        self.accepted_per_position[..accepted].iter_mut().for_each(|count| *count += 1);
        self.add_method(method, drafted as u64, accepted as u64);
    }

    fn add_method(&mut self, method: Method, drafted: u64, accepted: u64) {
        match self.per_method.iter_mut().find(|(known, _, _)| *known == method) {
            Some(entry) => (entry.1, entry.2) = (entry.1 + drafted, entry.2 + accepted),
            None => self.per_method.push((method, drafted, accepted)),
        }
    }

    /// Adds the numbers of another generation.
    pub fn add(&mut self, other: &Self) {
        self.prompt_tokens += other.prompt_tokens;
        self.cached_tokens += other.cached_tokens;
        self.generated_tokens += other.generated_tokens;
        self.rounds += other.rounds;
        self.drafts += other.drafts;
        self.drafted += other.drafted;
        self.accepted += other.accepted;
        for (mine, others) in [
            (&mut self.drafted_per_position, &other.drafted_per_position),
            (&mut self.accepted_per_position, &other.accepted_per_position),
        ] {
            mine.resize(mine.len().max(others.len()), 0);
            mine.iter_mut().zip(others).for_each(|(mine, other)| *mine += other);
        }
        other.per_method.iter().for_each(|(method, drafted, accepted)| self.add_method(*method, *drafted, *accepted));
        self.prefill += other.prefill;
        self.draft += other.draft;
        self.verify += other.verify;
        self.sample += other.sample;
        self.rollback += other.rollback;
        self.generation += other.generation;
    }
}

impl fmt::Display for Stats {
    /// One line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.generated_tokens)?;
        if let Some(rate) = self.tokens_per_second() {
            write!(f, ", {rate:.1} tokens/s")?;
        }
        match (self.acceptance_rate(), self.mean_accepted_length()) {
            (Some(rate), Some(length)) => {
                let percent = rate * 100.0;
                write!(
                    f,
                    ", {}/{} drafted tokens accepted ({percent:.0} %), {length:.2} tokens a draft",
                    self.accepted, self.drafted
                )
            }
            _ => write!(f, ", nothing drafted"),
        }
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the rounds fall, the numbers fit together, and adding parts gives the whole.
        #[test]
        fn counts_are_consistent(rounds in proptest::collection::vec((1usize..9, 0usize..9, 0usize..3), 0..50), cut in 0usize..50) {
            let method = |index: usize| Method::ALL[index];
            let all = |rounds: &[(usize, usize, usize)]| {
                let mut stats = Stats::default();
                rounds.iter().for_each(|(drafted, accepted, by)| stats.count_draft(method(*by), *drafted, (*accepted).min(*drafted)));
                stats
            };
            let stats = all(&rounds);
            prop_assert_eq!(stats.drafted_per_position.iter().sum::<u64>(), stats.drafted);
            prop_assert_eq!(stats.accepted_per_position.iter().sum::<u64>(), stats.accepted);
            prop_assert_eq!(stats.per_method.iter().map(|(_, drafted, _)| drafted).sum::<u64>(), stats.drafted);
            prop_assert!(stats.accepted_per_position.windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert!(stats.acceptance_per_position().iter().all(|share| (0.0..=1.0).contains(share)));
            let cut = cut.min(rounds.len());
            let mut sum = all(&rounds[..cut]);
            sum.add(&all(&rounds[cut..]));
            sum.per_method.sort();
            let mut whole = stats;
            whole.per_method.sort();
            prop_assert_eq!(sum, whole);
        }
    }

    #[test]
    fn rates_of_nothing_are_nothing() {
        let stats = Stats::default();
        assert_eq!(
            (stats.acceptance_rate(), stats.mean_accepted_length(), stats.tokens_per_second()),
            (None, None, None)
        );
        assert_eq!(stats.to_string(), "0 tokens, nothing drafted");
    }
}
