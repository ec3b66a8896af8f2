//! What was measured, and what follows from it.

use super::candidate::{AUTO, Candidate, Side};
use crate::{Ratio, geometric_mean};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One turn of one candidate: some prompts, asked at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The workload.
    pub workload: String,
    /// Prompts asked at once.
    pub concurrency: u32,
    /// Which turn: in each, all candidates were asked the same, one right after the other.
    pub turn: usize,
    /// Who generated.
    pub candidate: Candidate,
    /// Tokens per second by our clock. Of one text: after its first token. Of several at once: all their tokens in the time
    /// from the question to the last answer.
    pub speed: f64,
    /// The middle of the tokens per second that the server itself counted, text by text.
    pub own_speed: Option<f64>,
    /// The middle of the times to the first token, in milliseconds.
    pub first_token_ms: f64,
    /// Tokens generated.
    pub tokens: u64,
    /// Tokens of prompts that were remembered and not computed.
    pub cached: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Drafted tokens that were accepted.
    pub accepted: u64,
    /// The texts.
    pub texts: Vec<String>,
}

/// Memory of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Texts at once.
    pub concurrency: u32,
    /// Who.
    pub candidate: Candidate,
    /// The most that was resident, in bytes, mapped files included.
    pub peak_bytes: u64,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Results {
    /// The turns.
    pub samples: Vec<Sample>,
    /// The memory.
    pub memory: Vec<Memory>,
}

impl Results {
    /// The workloads, in the order in which they were run.
    pub fn workloads(&self) -> Vec<&str> {
        in_order(self.samples.iter().map(|sample| sample.workload.as_str()))
    }

    /// The numbers of texts at once.
    pub fn concurrencies(&self) -> Vec<u32> {
        in_order(self.samples.iter().map(|sample| sample.concurrency))
    }

    /// Those who were compared.
    pub fn candidates(&self) -> Vec<&Candidate> {
        in_order(self.samples.iter().map(|sample| &sample.candidate))
    }

    /// The turns of one candidate with one workload.
    pub fn of<'a>(
        &'a self,
        concurrency: u32,
        workload: &'a str,
        candidate: &'a Candidate,
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            sample.concurrency == concurrency && sample.workload == workload && sample.candidate == *candidate
        })
    }

    /// Tokens per second.
    pub fn speed(&self, concurrency: u32, workload: &str, candidate: &Candidate) -> Option<Ratio> {
        Ratio::of(self.of(concurrency, workload, candidate).map(|sample| sample.speed))
    }

    /// Time to the first token in milliseconds.
    pub fn first_token(&self, concurrency: u32, workload: &str, candidate: &Candidate) -> Option<Ratio> {
        Ratio::of(self.of(concurrency, workload, candidate).map(|sample| sample.first_token_ms))
    }

    /// The speed of one in relation to that of another, turn by turn.
    pub fn ratio(&self, concurrency: u32, workload: &str, one: &Candidate, other: &Candidate) -> Option<Ratio> {
        let others: BTreeMap<usize, f64> =
            self.of(concurrency, workload, other).map(|sample| (sample.turn, sample.speed)).collect();
        let ratios = self.of(concurrency, workload, one).filter_map(|sample| {
            let other = others.get(&sample.turn)?;
            Some(sample.speed / other)
        });
        Ratio::of(ratios)
    }

    /// The geometric mean of [`Results::ratio`] over all workloads; nothing if one is missing.
    pub fn mean(&self, concurrency: u32, one: &Candidate, other: &Candidate) -> Option<f64> {
        let medians: Option<Vec<f64>> = self
            .workloads()
            .into_iter()
            .map(|workload| self.ratio(concurrency, workload, one, other).map(|ratio| ratio.median))
            .collect();
        geometric_mean(medians?)
    }

    /// The settings of llama-server, plain among them.
    pub fn settings(&self) -> Vec<&Candidate> {
        self.candidates().into_iter().filter(|candidate| candidate.side == Side::Theirs).collect()
    }

    /// The one setting of llama-server that is the best over all workloads: with which its speed in relation to that without
    /// speculation has the highest geometric mean.
    pub fn best_fixed(&self, concurrency: u32) -> Option<&Candidate> {
        let plain = Candidate::plain(Side::Theirs);
        let means = self.settings().into_iter().filter_map(|one| Some((one, self.mean(concurrency, one, &plain)?)));
        means.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(candidate, _)| candidate)
    }

    /// The setting of llama-server that is the best for this workload, as if somebody had known.
    pub fn best_of(&self, concurrency: u32, workload: &str) -> Option<&Candidate> {
        let plain = Candidate::plain(Side::Theirs);
        let ratio = |one| self.ratio(concurrency, workload, one, &plain).map(|ratio| ratio.median);
        let medians = self.settings().into_iter().filter_map(|one| Some((one, ratio(one)?)));
        medians.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(candidate, _)| candidate)
    }

    /// How many texts two candidates have in common, and out of how many.
    pub fn same_texts(&self, concurrency: u32, workload: &str, one: &Candidate, other: &Candidate) -> (usize, usize) {
        let others: BTreeMap<usize, &Vec<String>> =
            self.of(concurrency, workload, other).map(|sample| (sample.turn, &sample.texts)).collect();
        let pairs =
            self.of(concurrency, workload, one).filter_map(|sample| Some((&sample.texts, *others.get(&sample.turn)?)));
        let (mut same, mut all) = (0, 0);
        for (ours, theirs) in pairs {
            all += ours.len();
            same += ours.iter().zip(theirs).filter(|(one, other)| one == other).count();
        }
        (same, all)
    }

    /// Memory of a candidate.
    pub fn peak_memory(&self, concurrency: u32, candidate: &Candidate) -> Option<u64> {
        let found = self.memory.iter().filter(|one| one.concurrency == concurrency && one.candidate == *candidate);
        found.map(|one| one.peak_bytes).max()
    }

    /// What is asked of us, and whether it is so.
    pub fn goals(&self) -> Vec<Goal> {
        let (plain, auto) = (Candidate::plain(Side::Ours), Candidate::new(Side::Ours, AUTO));
        let theirs = Candidate::plain(Side::Theirs);
        let workloads = self.workloads();
        let mut goals = Vec::new();
        let mut add = |concurrency: u32, what: &str, found: Option<(bool, String)>| {
            goals.extend(found.map(|(met, found)| Goal { concurrency, what: what.into(), found, met }));
        };
        for concurrency in self.concurrencies() {
            let medians = |one: &Candidate, other: &Candidate| -> Vec<(f64, &str)> {
                let of = |workload: &&'_ str| self.ratio(concurrency, workload, one, other).map(|ratio| ratio.median);
                let medians = workloads.iter().filter_map(|workload| Some((of(workload)?, *workload)));
                medians.collect()
            };
            let lowest = |ratios: Vec<(f64, &str)>, limit: f64| {
                let (ratio, workload) = ratios.into_iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
                Some((ratio >= limit, format!("{ratio:.3} ({workload})")))
            };
            add(concurrency, "ours speculative / plain, lowest: at least 0.98", lowest(medians(&auto, &plain), 0.98));
            add(concurrency, "ours / llama-server, plain, lowest: at least 1", lowest(medians(&plain, &theirs), 1.0));
            if let Some(fixed) = self.best_fixed(concurrency) {
                let ratios = medians(&auto, fixed);
                let (won, all) = (ratios.iter().filter(|(ratio, _)| *ratio >= 1.0).count(), ratios.len());
                let enough = won * 7 >= all * 5;
                let found = format!("{won} of {all} ({})", fixed.setting);
                add(
                    concurrency,
                    "ours at least their best fixed setting: 5 of 7",
                    (all > 0).then_some((enough, found)),
                );
                let mean = self.mean(concurrency, &auto, fixed);
                let mean = mean.map(|mean| (mean > 1.0, format!("{mean:.3} ({})", fixed.setting)));
                add(concurrency, "ours / their best fixed setting, geometric mean: above 1", mean);
            }
            let of_each = |workload: &&str| {
                let best = self.best_of(concurrency, workload)?;
                Some(self.ratio(concurrency, workload, &auto, best)?.median)
            };
            let mean = geometric_mean(workloads.iter().filter_map(of_each));
            let mean = mean.map(|mean| (mean > 1.0, format!("{mean:.3}")));
            add(concurrency, "ours / their best setting for each workload, geometric mean: above 1", mean);
        }
        goals
    }
}

/// Something that is asked of us.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Texts at once.
    pub concurrency: u32,
    /// What.
    pub what: String,
    /// What was measured.
    pub found: String,
    /// Whether that is enough.
    pub met: bool,
}

/// Each once, where it is for the first time.
fn in_order<T: Ord + Clone>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two workloads and three turns; ours is twice as fast with drafts, llama-server is good at one of two.
    pub(in crate::compare) fn example() -> Results {
        let mut results = Results::default();
        let speeds = [
            (
                "code",
                [
                    ("ours", "plain", 10.0),
                    ("ours", "auto", 20.0),
                    ("theirs", "plain", 10.0),
                    ("theirs", "ngram-mod:8", 16.0),
                ],
            ),
            (
                "prose",
                [
                    ("ours", "plain", 10.0),
                    ("ours", "auto", 9.9),
                    ("theirs", "plain", 10.0),
                    ("theirs", "ngram-mod:8", 8.0),
                ],
            ),
        ];
        for (workload, candidates) in speeds {
            for turn in 0..3 {
                for (side, setting, speed) in candidates {
                    let side = if side == "ours" { Side::Ours } else { Side::Theirs };
                    // The machine is slower in each turn, for everybody.
                    let slower = 1.0 + turn as f64;
                    results.samples.push(Sample {
                        workload: workload.into(),
                        concurrency: 1,
                        turn,
                        candidate: Candidate::new(side, setting),
                        speed: speed / slower,
                        own_speed: Some(speed / slower),
                        first_token_ms: 5.0 * slower,
                        tokens: 20,
                        cached: 0,
                        drafted: 10,
                        accepted: 5,
                        texts: vec![if setting == "auto" && turn == 2 { "other" } else { "same" }.into()],
                    });
                }
            }
        }
        results.memory.push(Memory { concurrency: 1, candidate: Candidate::plain(Side::Ours), peak_bytes: 3_000_000 });
        results
    }

    #[test]
    fn ratios_are_those_of_turns_and_not_of_medians() {
        let results = example();
        let (plain, auto) = (Candidate::plain(Side::Ours), Candidate::new(Side::Ours, AUTO));
        let ratio = results.ratio(1, "code", &auto, &plain).unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (2.0, 2.0, 2.0), "the machine's slowness cancels out");
        assert_eq!(results.speed(1, "code", &auto).unwrap().median, 10.0);
        assert_eq!(results.ratio(4, "code", &auto, &plain), None);
        let mean = results.mean(1, &auto, &plain).unwrap();
        assert!((mean - (2.0f64 * 0.99).sqrt()).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn the_best_setting_is_found_over_all_workloads_and_for_each() {
        let results = example();
        assert_eq!(results.best_fixed(1).unwrap().setting, "ngram-mod:8", "1.6 and 0.8");
        assert_eq!(results.best_of(1, "code").unwrap().setting, "ngram-mod:8");
        assert_eq!(results.best_of(1, "prose").unwrap().setting, "plain");
    }

    #[test]
    fn texts_are_compared_one_by_one() {
        let results = example();
        let (plain, auto) = (Candidate::plain(Side::Ours), Candidate::new(Side::Ours, AUTO));
        assert_eq!(results.same_texts(1, "code", &auto, &plain), (2, 3));
        assert_eq!(results.same_texts(1, "code", &plain, &Candidate::plain(Side::Theirs)), (3, 3));
    }

    #[test]
    fn goals_are_judged() {
        let goals = example().goals();
        let met: Vec<(&str, bool)> = goals.iter().map(|goal| (goal.found.as_str(), goal.met)).collect();
        let mean = format!("{:.3}", (1.25f64 * 9.9 / 8.0).sqrt());
        let best = format!("{:.3}", (1.25f64 * 0.99).sqrt());
        assert_eq!(
            met,
            [
                ("0.990 (prose)", true),
                ("1.000 (code)", true),
                ("2 of 2 (ngram-mod:8)", true),
                (format!("{mean} (ngram-mod:8)").as_str(), true),
                (best.as_str(), true),
            ]
        );
    }

    #[test]
    fn nothing_follows_from_nothing() {
        let results = Results::default();
        assert!(results.goals().is_empty() && results.workloads().is_empty());
        assert_eq!(results.best_fixed(1), None);
    }
}
