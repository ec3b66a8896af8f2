//! What speculation brought, in numbers.

use super::{Histogram, Source};
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
    /// By who drafted, for each position in the draft: (tokens drafted, tokens accepted). Where a source's tokens are hardly
    /// accepted any more, its drafts are too long. A source that goes on behind the draft of another one has no tokens at the
    /// first positions.
    pub per_source_and_position: Vec<(Source, Vec<(u64, u64)>)>,
    /// Drafts that were lost because a drafter failed. The text is the same without them.
    pub failures: u64,
    /// Time spent waiting to be started.
    pub queue: Duration,
    /// Time from the request to its first token, the wait included; of several added up, the longest.
    pub time_to_first_token: Option<Duration>,
    /// Times between a token and the next, as the reader sees them: tokens accepted together come at once.
    pub inter_token: Histogram,
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

    /// Drafted tokens that the target did not accept.
    pub fn rejected(&self) -> u64 {
        self.drafted.saturating_sub(self.accepted)
    }

    /// How many times as fast as without speculation it was, if the target alone takes `plain_token` for a token: the time
    /// that all tokens would have taken alone, by the time they took. Below 1, speculation costs more than it brings.
    pub fn speedup(&self, plain_token: Duration) -> Option<f64> {
        ratio(self.generated_tokens as f64 * plain_token.as_secs_f64(), self.generation.as_secs_f64())
    }

    /// By who drafted: tokens drafted, and tokens accepted.
    pub fn per_source(&self) -> impl Iterator<Item = (Source, u64, u64)> {
        self.per_source_and_position.iter().map(|(source, counts)| {
            let sum = |of: fn(&(u64, u64)) -> u64| counts.iter().map(of).fold(0, u64::saturating_add);
            (*source, sum(|count| count.0), sum(|count| count.1))
        })
    }

    /// For each position of the drafts of this source, the share of the tokens there that were accepted.
    pub fn acceptance_of(&self, source: Source) -> Vec<f64> {
        let known = self.per_source_and_position.iter().find(|(known, _)| *known == source);
        let counts = known.map(|(_, counts)| counts.as_slice()).unwrap_or_default();
        counts.iter().map(|(drafted, accepted)| ratio(*accepted as f64, *drafted as f64).unwrap_or(0.0)).collect()
    }

    /// Notes a round with a draft whose tokens were drafted by these, of which the first `accepted` were right.
    pub(crate) fn count_draft(&mut self, sources: &[Source], accepted: usize) {
        let (drafted, accepted) = (sources.len(), accepted.min(sources.len()));
        self.drafts += 1;
        self.drafted += drafted as u64;
        self.accepted += accepted as u64;
        if self.drafted_per_position.len() < drafted {
            self.drafted_per_position.resize(drafted, 0);
            self.accepted_per_position.resize(drafted, 0);
        }
        self.drafted_per_position[..drafted].iter_mut().for_each(|count| *count += 1);
        self.accepted_per_position[..accepted].iter_mut().for_each(|count| *count += 1);
        for (position, source) in sources.iter().enumerate() {
            if let Some(counts) = self.positions_of(*source, position + 1).get_mut(position) {
                counts.0 += 1;
                counts.1 += u64::from(position < accepted);
            }
        }
    }

    /// The counts of a source, of at least this many positions.
    fn positions_of(&mut self, source: Source, positions: usize) -> &mut [(u64, u64)] {
        let all = &mut self.per_source_and_position;
        let index = all.iter().position(|(known, _)| *known == source).unwrap_or_else(|| {
            all.push((source, Vec::new()));
            all.len() - 1
        });
        let counts = &mut all[index].1;
        counts.resize(counts.len().max(positions), (0, 0));
        counts
    }

    /// Adds the numbers of another generation.
    pub fn add(&mut self, other: &Self) {
        for (mine, other) in [
            (&mut self.prompt_tokens, other.prompt_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.generated_tokens, other.generated_tokens),
            (&mut self.rounds, other.rounds),
            (&mut self.drafts, other.drafts),
            (&mut self.drafted, other.drafted),
            (&mut self.accepted, other.accepted),
            (&mut self.failures, other.failures),
        ] {
            *mine = mine.saturating_add(other);
        }
        for (mine, others) in [
            (&mut self.drafted_per_position, &other.drafted_per_position),
            (&mut self.accepted_per_position, &other.accepted_per_position),
        ] {
            mine.resize(mine.len().max(others.len()), 0);
            mine.iter_mut().zip(others).for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        }
        for (source, others) in &other.per_source_and_position {
            for (mine, other) in self.positions_of(*source, others.len()).iter_mut().zip(others) {
                *mine = (mine.0.saturating_add(other.0), mine.1.saturating_add(other.1));
            }
        }
        for (mine, other) in [
            (&mut self.queue, other.queue),
            (&mut self.prefill, other.prefill),
            (&mut self.draft, other.draft),
            (&mut self.verify, other.verify),
            (&mut self.sample, other.sample),
            (&mut self.rollback, other.rollback),
            (&mut self.generation, other.generation),
        ] {
            *mine = mine.saturating_add(other);
        }
        self.time_to_first_token = self.time_to_first_token.max(other.time_to_first_token);
        self.inter_token.add(&other.inter_token);
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
    use crate::spec::Method;
    use proptest::prelude::*;

    const SOURCES: [Source; 3] =
        [Source::Drafted(Method::NgramMod), Source::Drafted(Method::DraftSimple), Source::Own(1)];

    proptest! {
        /// However the rounds fall, the numbers fit together, and adding parts gives the whole.
        #[test]
        fn counts_are_consistent(
            rounds in proptest::collection::vec((proptest::collection::vec(0usize..3, 1..9), 0usize..9), 0..50),
            cut in 0usize..50,
        ) {
            let all = |rounds: &[(Vec<usize>, usize)]| {
                let mut stats = Stats::default();
                for (by, accepted) in rounds {
                    let sources: Vec<Source> = by.iter().map(|by| SOURCES[*by]).collect();
                    stats.count_draft(&sources, *accepted);
                    let duration = Duration::from_millis(by.len() as u64);
                    stats.time_to_first_token = stats.time_to_first_token.max(Some(duration));
                    stats.inter_token.record(duration);
                    stats.queue += duration;
                    stats.failures += *accepted as u64;
                }
                stats
            };
            let stats = all(&rounds);
            prop_assert_eq!(stats.drafted_per_position.iter().sum::<u64>(), stats.drafted);
            prop_assert_eq!(stats.accepted_per_position.iter().sum::<u64>(), stats.accepted);
            prop_assert_eq!(stats.rejected() + stats.accepted, stats.drafted);
            prop_assert_eq!(stats.per_source().map(|(_, drafted, _)| drafted).sum::<u64>(), stats.drafted);
            prop_assert_eq!(stats.per_source().map(|(_, _, accepted)| accepted).sum::<u64>(), stats.accepted);
            prop_assert!(stats.accepted_per_position.windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert!(stats.acceptance_per_position().iter().all(|share| (0.0..=1.0).contains(share)));
            let cut = cut.min(rounds.len());
            let mut sum = all(&rounds[..cut]);
            sum.add(&all(&rounds[cut..]));
            sum.per_source_and_position.sort();
            let mut whole = stats;
            whole.per_source_and_position.sort();
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
        assert_eq!(stats.speedup(Duration::from_millis(1)), None);
        assert_eq!(stats.to_string(), "0 tokens, nothing drafted");
    }

    #[test]
    fn a_speedup_compares_with_the_target_alone() {
        let generation = Duration::from_secs(2);
        let stats = Stats { generated_tokens: 100, generation, ..Stats::default() };
        assert_eq!(stats.speedup(Duration::from_millis(50)), Some(2.5));
        assert_eq!(stats.speedup(Duration::from_millis(10)), Some(0.5));
    }

    #[test]
    fn each_source_has_its_own_positions() {
        let mut stats = Stats::default();
        stats.count_draft(&[SOURCES[0]; 2], 1);
        stats.count_draft(&[SOURCES[0]], 1);
        stats.count_draft(&[SOURCES[2]; 3], 0);
        assert_eq!(stats.acceptance_of(SOURCES[0]), [1.0, 0.0]);
        assert_eq!(stats.acceptance_of(SOURCES[2]), [0.0; 3]);
        assert_eq!(stats.acceptance_of(SOURCES[1]), [0.0; 0]);
    }

    #[test]
    fn each_token_counts_for_the_one_who_drafted_it() {
        let mut stats = Stats::default();
        stats.count_draft(&[SOURCES[1], SOURCES[1], SOURCES[0], SOURCES[0]], 3);
        assert_eq!((stats.drafts, stats.drafted, stats.accepted), (1, 4, 3));
        let of: Vec<_> = stats.per_source().collect();
        assert_eq!(of, [(SOURCES[1], 2, 2), (SOURCES[0], 2, 1)]);
        assert_eq!(stats.per_source_and_position[1].1, [(0, 0), (0, 0), (1, 1), (1, 0)]);
    }

    #[test]
    fn adding_the_largest_numbers_does_not_overflow() {
        let mut stats = Stats { drafted: u64::MAX, generation: Duration::MAX, ..Stats::default() };
        stats.add(&stats.clone());
        assert_eq!((stats.drafted, stats.generation), (u64::MAX, Duration::MAX));
    }
}
