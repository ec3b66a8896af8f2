//! Whether what an engine gives is sensible: what its answers and checks tell, and what to do about it.
//!
//! | what | what follows |
//! |---|---|
//! | a request fails that should not, such as for numbers that are not finite | degraded, and a check: a prompt can be to blame |
//! | a check fails | degraded, and another check; after a failed request, or twice in a row, another worker |
//! | [`FAILURES`] requests in a row fail, of [`PROMPTS`] prompts or more, whatever checks say | another worker |
//! | [`PROMPTS`] long answers in a row, each to another prompt, are one token over and over | degraded |
//! | an answer of some length that is not, or a check that succeeds after failures | well again |
//!
//! Small models repeat themselves when they are decoded greedily, whole sentences most of all, and users ask for repetitions. So
//! only single tokens count, in long answers that hold hardly anything else, of several prompts one after the other; and it is
//! told, but no reason to end what works otherwise. A broken device or broken weights look just like that, for every prompt.

use crate::token::Token;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Tokens of an answer from which on a repetition can be told from a whim.
const LONG: usize = 64;
/// Tokens of an answer from which on it shows that an engine is well.
const TELLING: usize = 16;
/// The share of an answer that is one token over and over in a repetition, as a fraction.
const SHARE: (usize, usize) = (9, 10);
/// Prompts that must be concerned.
const PROMPTS: usize = 3;
/// Requests that may fail in a row while checks succeed.
const FAILURES: u32 = 8;
/// So many failed checks in a row show that the engine is of no use.
const CHECKS: u32 = 2;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    Nothing,
    /// Let the engine generate a little, to see whether it can.
    Check,
    /// The engine is of no more use, for this reason.
    Restart(String),
}

/// What is known of how well an engine generates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vitals {
    /// Requests that failed since one succeeded.
    failures: u32,
    /// Some of their prompts, each once.
    failed_prompts: Prompts,
    /// What failed last, while it is not known whether that was the engine's fault.
    unexplained: Option<String>,
    /// Checks that failed since one succeeded.
    failed_checks: u32,
    /// The prompts of answers that were repetitions, since there was another one.
    repeated_prompts: Prompts,
}

impl Vitals {
    /// An answer ended as it should. `is_free` unless a grammar or changed logits chose its tokens: then they say nothing of the
    /// engine but that it works.
    pub(crate) fn answered(&mut self, prompt: &[Token], answer: &[Token], is_free: bool) {
        if !answer.is_empty() {
            (self.failures, self.failed_checks, self.unexplained) = (0, 0, None);
            self.failed_prompts.clear();
        }
        if !is_free || answer.len() < TELLING {
            return;
        }
        if longest_run(answer) * SHARE.1 < answer.len() * SHARE.0 {
            self.repeated_prompts.clear();
        } else if answer.len() >= LONG {
            self.repeated_prompts.add(prompt);
        }
    }

    /// An answer broke off through a fault of the engine, described without paths. What its client could have avoided, what it
    /// cancelled, and the death of a worker do not belong here.
    pub(crate) fn failed(&mut self, prompt: &[Token], what: String) {
        self.failures = self.failures.saturating_add(1);
        self.failed_prompts.add(prompt);
        self.unexplained = Some(what);
    }

    /// A check ended.
    pub(crate) fn checked(&mut self, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => (self.failed_checks, self.unexplained) = (0, None),
            Err(what) => {
                // With a request that failed before, it is the second sign.
                let signs = if self.failures > 0 && self.failed_checks == 0 { CHECKS } else { 1 };
                self.failed_checks = self.failed_checks.saturating_add(signs);
                self.unexplained = Some(what);
            }
        }
    }

    /// Another engine is there, of which nothing is known.
    pub(crate) fn renew(&mut self) {
        *self = Self::default();
    }

    /// Why the engine is not well, if it is not.
    pub(crate) fn degraded(&self) -> Option<String> {
        if let Some(what) = &self.unexplained {
            return Some(format!("the engine failed last time: {what}"));
        }
        let repetitions = self.repeated_prompts.count();
        (repetitions >= PROMPTS).then(|| {
            format!("the last {repetitions} long answers were one token over and over, each to another prompt")
        })
    }

    /// What is to be done now. Stays so until something happens.
    pub(crate) fn advice(&self) -> Advice {
        let why = || self.unexplained.as_deref().unwrap_or("requests fail while checks succeed");
        if self.failed_checks >= CHECKS {
            return Advice::Restart(format!("the engine cannot generate: {}", why()));
        }
        if self.failures >= FAILURES && self.failed_prompts.count() >= PROMPTS {
            return Advice::Restart(format!("{} requests failed in a row: {}", self.failures, why()));
        }
        match self.unexplained {
            Some(_) => Advice::Check,
            None => Advice::Nothing,
        }
    }
}

/// A few different prompts, by a number made of each.
#[derive(Clone, Debug, Default)]
struct Prompts(Vec<u64>);

impl Prompts {
    fn add(&mut self, prompt: &[Token]) {
        let mut hasher = DefaultHasher::new();
        prompt.hash(&mut hasher);
        let number = hasher.finish();
        // More than a few need not be told apart.
        if self.0.len() < 100 && !self.0.contains(&number) {
            self.0.push(number);
        }
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// How often a token stands in a row, at most.
fn longest_run(tokens: &[Token]) -> usize {
    tokens.chunk_by(PartialEq::eq).map(<[_]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(ids: impl IntoIterator<Item = i32>) -> Vec<Token> {
        ids.into_iter().map(Token::new).collect()
    }

    fn prompt(number: i32) -> Vec<Token> {
        tokens([1, number])
    }

    /// One token over and over.
    fn stuck(length: usize) -> Vec<Token> {
        tokens(std::iter::repeat_n(7, length))
    }

    fn sound() -> Vec<Token> {
        tokens(0..100)
    }

    fn restarts(vitals: &Vitals) -> bool {
        matches!(vitals.advice(), Advice::Restart(_))
    }

    #[test]
    fn runs_are_counted() {
        assert_eq!(longest_run(&[]), 0);
        assert_eq!(longest_run(&tokens([1, 1, 2, 2, 2, 1])), 3);
    }

    #[test]
    fn one_token_over_and_over_for_every_prompt_is_told() {
        let mut vitals = Vitals::default();
        for number in 0..2 {
            vitals.answered(&prompt(number), &stuck(100), true);
            assert_eq!(vitals.degraded(), None);
        }
        vitals.answered(&prompt(2), &[tokens([5, 6, 8]), stuck(100)].concat(), true);
        assert!(vitals.degraded().unwrap().contains("one token over and over"));
        assert_eq!(vitals.advice(), Advice::Nothing, "it is no reason to end it");
        vitals.answered(&prompt(3), &sound(), true);
        assert_eq!(vitals.degraded(), None);
    }

    #[test]
    fn other_repetitions_are_not() {
        let sentence = tokens((0..200).map(|index| index % 5));
        let half = [stuck(80), sound()].concat();
        let answers: [(&str, Vec<Token>, bool); 4] = [
            ("short", stuck(LONG - 1), true),
            ("of a sentence", sentence, true),
            ("of part of the answer", half, true),
            ("forced by the request", stuck(500), false),
        ];
        for (name, answer, is_free) in answers {
            let mut vitals = Vitals::default();
            (0..20).for_each(|number| vitals.answered(&prompt(number), &answer, is_free));
            assert_eq!(vitals.degraded(), None, "{name}");
        }
        let mut vitals = Vitals::default();
        (0..20).for_each(|_| vitals.answered(&prompt(1), &stuck(500), true));
        assert_eq!(vitals.degraded(), None, "of one prompt");
        for number in 0..20 {
            vitals.answered(&prompt(number), &stuck(500), true);
            vitals.answered(&prompt(number), &sound()[..TELLING], true);
            assert_eq!(vitals.degraded(), None, "between other answers");
        }
    }

    #[test]
    fn a_failure_is_looked_into() {
        let mut vitals = Vitals::default();
        vitals.failed(&prompt(1), "not finite".into());
        assert_eq!(vitals.advice(), Advice::Check);
        assert_eq!(vitals.degraded().unwrap(), "the engine failed last time: not finite");
        vitals.checked(Ok(()));
        assert_eq!((vitals.advice(), vitals.degraded()), (Advice::Nothing, None), "it was the prompt");
        vitals.failed(&prompt(1), "not finite".into());
        vitals.checked(Err("not finite".into()));
        assert_eq!(vitals.advice(), Advice::Restart("the engine cannot generate: not finite".into()));
        vitals.renew();
        assert_eq!((vitals.advice(), vitals.degraded()), (Advice::Nothing, None));
    }

    #[test]
    fn a_failed_check_is_repeated_first() {
        let mut vitals = Vitals::default();
        vitals.checked(Err("nothing in time".into()));
        assert_eq!(vitals.advice(), Advice::Check);
        assert!(vitals.degraded().is_some());
        vitals.checked(Ok(()));
        assert_eq!((vitals.advice(), vitals.degraded()), (Advice::Nothing, None));
        vitals.checked(Err("nothing in time".into()));
        vitals.answered(&prompt(1), &sound()[..1], true);
        assert_eq!((vitals.advice(), vitals.degraded()), (Advice::Nothing, None), "real work tells as much");
        vitals.checked(Err("nothing in time".into()));
        vitals.checked(Err("nothing in time".into()));
        assert!(restarts(&vitals));
    }

    #[test]
    fn one_bad_prompt_does_not_restart_anything() {
        let mut vitals = Vitals::default();
        for _ in 0..100 {
            vitals.failed(&prompt(1), "not finite".into());
            assert_eq!(vitals.advice(), Advice::Check);
            vitals.checked(Ok(()));
        }
    }

    #[test]
    fn many_do_though_checks_succeed() {
        let mut vitals = Vitals::default();
        for number in 1..FAILURES as i32 {
            vitals.failed(&prompt(number), "not finite".into());
            assert!(!restarts(&vitals));
            vitals.checked(Ok(()));
        }
        let mut other = vitals.clone();
        vitals.failed(&prompt(0), "not finite".into());
        assert_eq!(vitals.advice(), Advice::Restart("8 requests failed in a row: not finite".into()));
        vitals.checked(Ok(()));
        assert!(restarts(&vitals));
        other.answered(&prompt(0), &sound()[..1], false);
        other.failed(&prompt(0), "not finite".into());
        assert_eq!(other.advice(), Advice::Check, "one answer in between");
    }
}
