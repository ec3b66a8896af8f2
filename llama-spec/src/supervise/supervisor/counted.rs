//! The numbers of an answer that several workers had a part in.
//!
//! A worker tells the numbers of an answer at its end. Of one that died, only what it delivered is known: its tokens, who drafted
//! those that were accepted, and when they came. Drafted tokens that were not accepted, and times within a round, are not.

use crate::engine::Midway;
use crate::spec::{Source, Stats};
use crate::supervise::task::TokenUpdate;
use std::time::Duration;

/// What was delivered of an answer. Times count from when its task came.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// By workers that are gone.
    earlier: Option<Stats>,
    /// By the present one.
    present: Stats,
    first_token: Option<Duration>,
    /// The present worker's first and last round.
    rounds: Option<(Duration, Duration)>,
}

impl Counted {
    /// Notes a round that came at this time.
    pub(super) fn round(&mut self, tokens: &[TokenUpdate], time: Duration) {
        let accepted: Vec<Source> = tokens.iter().map(|token| token.source).take_while(|one| one.is_draft()).collect();
        self.present.rounds += 1;
        if !accepted.is_empty() {
            self.present.count_draft(&accepted, accepted.len());
        }
        self.first_token.get_or_insert(time);
        let first = self.rounds.map_or(time, |(first, _)| first);
        self.rounds = Some((first, time));
    }

    /// The worker is gone: what it delivered is all that will be known of its part.
    pub(super) fn interrupted(&mut self) {
        let mut part = std::mem::take(&mut self.present);
        if let Some((first, last)) = self.rounds.take() {
            part.generation = last.saturating_sub(first);
        }
        self.earlier.get_or_insert_default().add(&part);
    }

    /// Makes the numbers of the worker that ended the answer those of all workers.
    pub(super) fn complete(&self, stats: &mut Stats, midway: &Midway) {
        let Some(earlier) = &self.earlier else { return };
        stats.add(earlier);
        // To the last worker, what was generated before may have been prompt.
        stats.prompt_tokens = midway.prompt.len() as u64;
        stats.cached_tokens = stats.cached_tokens.min(stats.prompt_tokens);
        stats.generated_tokens = midway.generated.len() as u64;
        stats.time_to_first_token = self.first_token.or(stats.time_to_first_token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Method;
    use crate::token::Token;

    fn token(source: Source) -> TokenUpdate {
        let token = Token::new(1);
        TokenUpdate { token, bytes: vec![1], text: String::new(), source, logprob: None, deltas: Vec::new() }
    }

    #[test]
    fn parts_are_added_up() {
        let drafted = Source::Drafted(Method::DraftSimple);
        let midway =
            Midway { prompt: vec![Token::new(1); 7], generated: vec![Token::new(1); 9], dropped: 0, sampler: None };
        let mut counted = Counted::default();
        let seconds = Duration::from_secs;
        counted.round(&[token(drafted), token(drafted), token(Source::Target)], seconds(2));
        counted.round(&[token(Source::Target)], seconds(3));
        counted.interrupted();
        counted.round(&[token(drafted), token(Source::Target)], seconds(10));
        let mut stats = Stats {
            prompt_tokens: 11,
            generated_tokens: 5,
            rounds: 3,
            generation: seconds(4),
            time_to_first_token: Some(seconds(1)),
            ..Stats::default()
        };
        stats.count_draft(&[drafted; 3], 1);
        counted.complete(&mut stats, &midway);
        assert_eq!((stats.prompt_tokens, stats.generated_tokens, stats.rounds), (7, 9, 5));
        assert_eq!((stats.drafts, stats.drafted, stats.accepted), (2, 5, 3));
        assert_eq!((stats.generation, stats.time_to_first_token), (seconds(5), Some(seconds(2))));
    }

    #[test]
    fn the_numbers_of_one_worker_stay_as_they_are() {
        let midway = Midway { prompt: Vec::new(), generated: Vec::new(), dropped: 0, sampler: None };
        let mut counted = Counted::default();
        counted.round(&[token(Source::Target)], Duration::from_secs(1));
        let told = Stats { prompt_tokens: 3, generated_tokens: 2, ..Stats::default() };
        let mut stats = told.clone();
        counted.complete(&mut stats, &midway);
        assert_eq!(stats, told);
    }
}
