//! The comparison with llama-server: the same models, threads and prompts, in turn.
//!
//! All candidates are loaded at once and work one at a time, so that whatever else the machine does falls on all of them. Each
//! turn asks everybody the same prompts right after one another; what is quoted are ratios of the same turn. Who goes first
//! changes from turn to turn. No prompt comes twice to the same process, and none is like another: a lookup that remembers the
//! answer to the same question would look better than it is. Prompts are cold on both sides (`cache_prompt` is off and
//! llama-server's cache of prompts, too; ours keeps none of other requests).

mod candidate;
mod client;
mod engine;
mod fleet;
mod machine;
mod options;
mod plot;
mod print;
mod process;
mod quick;
mod results;
mod workload;

pub use candidate::{AUTO, Candidate, PLAIN, Side};
pub use engine::{Written, written};
pub use fleet::Setup;
pub use machine::Facts;
pub use options::Options;
pub use plot::svg;
pub use print::print;
pub use results::{Goal, Memory, Results, Sample};
pub use workload::{Prompt, Sampling, Workload};

use crate::Ratio;
use anyhow::{Context, Result, ensure};
use fleet::{Answers, Fleet};
use indicatif::{ProgressBar, ProgressStyle};
use llama_spec::Model;

/// Answers shorter than this tell nothing about speed.
const SHORTEST: u64 = 8;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Programs and models.
    pub setup: Setup,
    /// Who.
    pub candidates: Vec<Candidate>,
    /// What.
    pub workloads: Vec<Workload>,
    /// Texts at once.
    pub concurrency: Vec<u32>,
    /// Slots, if not as many as texts at once.
    pub slots: Option<u32>,
    /// How often each prompt is asked of each.
    pub rounds: u32,
}

impl Plan {
    /// Runs everything, with a progress bar.
    ///
    /// # Errors
    /// When a model cannot be loaded, or a server is not ready, dies, or refuses a prompt.
    pub fn run(&self) -> Result<Results> {
        let model = Model::load(&self.setup.model)?;
        let style = ProgressStyle::with_template("    {bar:30} {pos}/{len} {elapsed}, {eta} to go; {wide_msg}");
        let bar = ProgressBar::new(self.turns() as u64 * self.candidates.len() as u64);
        let bar = bar.with_style(style.context("progress bar")?);
        let mut results = Results::default();
        for concurrency in self.concurrency.iter().copied() {
            let slots = self.slots.unwrap_or(concurrency);
            ensure!(slots >= concurrency, "{concurrency} texts at once need as many slots, and there are {slots}");
            let setup = Setup { slots, ..self.setup.clone() };
            let mut turn = 0;
            for _ in 0..self.rounds {
                bar.set_message("starting the servers");
                // New processes, since those of the last round know the prompts.
                let mut fleet = setup.start(&self.candidates, &model)?;
                self.warm_up(&mut fleet)?;
                for workload in &self.workloads {
                    for prompts in batches(&workload.prompts, concurrency) {
                        self.turn(&mut fleet, workload, &prompts, turn, &bar, &mut results.samples)?;
                        turn += 1;
                    }
                }
                for (place, candidate) in self.candidates.iter().enumerate() {
                    let peak = fleet.peak_memory(place);
                    let memory =
                        peak.map(|peak_bytes| Memory { concurrency, candidate: candidate.clone(), peak_bytes });
                    results.memory.extend(memory);
                }
            }
        }
        bar.finish_and_clear();
        Ok(results)
    }

    /// Turns of all together.
    fn turns(&self) -> usize {
        let of = |concurrency: &u32| -> usize {
            self.workloads.iter().map(|workload| batches(&workload.prompts, *concurrency).len()).sum()
        };
        self.concurrency.iter().map(of).sum::<usize>() * self.rounds as usize
    }

    /// The first answer of a process takes longer than others: memory is touched, threads are started.
    fn warm_up(&self, fleet: &mut Fleet) -> Result<()> {
        let workload = Workload {
            name: "warm-up".into(),
            about: String::new(),
            max_tokens: 12,
            sampling: Sampling::default(),
            prompts: vec![Prompt::Text { text: "Bells rang over the old town while".into() }],
        };
        (0..self.candidates.len()).try_for_each(|place| fleet.ask(place, &workload, &workload.prompts).map(drop))
    }

    /// Asks everybody the same.
    fn turn(
        &self,
        fleet: &mut Fleet,
        workload: &Workload,
        prompts: &[Prompt],
        turn: usize,
        bar: &ProgressBar,
        samples: &mut Vec<Sample>,
    ) -> Result<()> {
        for step in 0..self.candidates.len() {
            let place = (turn + step) % self.candidates.len();
            let Some(candidate) = self.candidates.get(place) else { continue };
            bar.set_message(format!("{}, {candidate}", workload.name));
            let answers = fleet.ask(place, workload, prompts)?;
            let sample = sample(workload, candidate, turn, &answers);
            bar.inc(1);
            samples.push(sample.with_context(|| format!("{candidate}, workload `{}`", workload.name))?);
        }
        Ok(())
    }
}

/// The prompts in parts of this size; what is left over is left out, unless there are not even so many.
fn batches(prompts: &[Prompt], concurrency: u32) -> Vec<Vec<Prompt>> {
    let size = concurrency as usize;
    let parts: Vec<Vec<Prompt>> = prompts.chunks_exact(size).map(<[Prompt]>::to_vec).collect();
    if parts.is_empty() { vec![prompts.iter().cycle().take(size).cloned().collect()] } else { parts }
}

/// The numbers of a turn.
fn sample(workload: &Workload, candidate: &Candidate, turn: usize, answers: &Answers) -> Result<Sample> {
    let each = &answers.each;
    let tokens: u64 = each.iter().map(|answer| answer.tokens).sum();
    ensure!(tokens >= SHORTEST, "an answer of {tokens} tokens is too short to tell: {:?}", texts(answers));
    let speed = match each.as_slice() {
        [one] => one.speed().context("it came all at once, and tells nothing about speed")?,
        _ => tokens as f64 / answers.time.as_secs_f64(),
    };
    let median = |numbers: Vec<f64>| Ratio::of(numbers).map(|ratio| ratio.median);
    Ok(Sample {
        workload: workload.name.clone(),
        concurrency: u32::try_from(each.len()).unwrap_or(u32::MAX),
        turn,
        candidate: candidate.clone(),
        speed,
        own_speed: median(each.iter().filter_map(|answer| answer.own_speed).collect()),
        first_token_ms: median(each.iter().map(|answer| answer.first.as_secs_f64() * 1e3).collect()).unwrap_or(0.0),
        tokens,
        cached: each.iter().map(|answer| answer.cached).sum(),
        drafted: each.iter().map(|answer| answer.drafted.0).sum(),
        accepted: each.iter().map(|answer| answer.drafted.1).sum(),
        texts: texts(answers),
    })
}

fn texts(answers: &Answers) -> Vec<String> {
    answers.each.iter().map(|answer| answer.text.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Answer;
    use std::time::Duration;

    fn prompts(count: usize) -> Vec<Prompt> {
        (0..count).map(|number| Prompt::Text { text: number.to_string() }).collect()
    }

    #[test]
    fn prompts_are_asked_once_each_in_full_parts() {
        assert_eq!(batches(&prompts(5), 1).len(), 5);
        assert_eq!(batches(&prompts(8), 4), [prompts(8)[..4].to_vec(), prompts(8)[4..].to_vec()]);
        assert_eq!(batches(&prompts(5), 2).len(), 2, "the fifth would be alone");
        assert_eq!(batches(&prompts(2), 3)[0].len(), 3, "too few are taken again");
    }

    fn answers(count: u64) -> Answers {
        let (first, last) = (Duration::from_secs(1), Duration::from_secs(3));
        let one = Answer { tokens: 21, first, last, own_speed: Some(11.0), drafted: (4, 3), ..Answer::default() };
        Answers { each: (0..count).map(|_| one.clone()).collect(), time: Duration::from_secs(4) }
    }

    #[test]
    fn one_text_is_timed_after_its_first_token_and_several_as_a_whole() {
        let workload = Workload::all().unwrap().remove(0);
        let candidate = Candidate::plain(Side::Ours);
        let one = sample(&workload, &candidate, 7, &answers(1)).unwrap();
        assert_eq!((one.speed, one.first_token_ms, one.tokens, one.turn), (10.0, 1000.0, 21, 7));
        let four = sample(&workload, &candidate, 0, &answers(4)).unwrap();
        assert_eq!((four.speed, four.tokens, four.concurrency, four.drafted, four.accepted), (21.0, 84, 4, 16, 12));
    }

    #[test]
    fn what_is_too_short_is_an_error() {
        let workload = Workload::all().unwrap().remove(0);
        let mut short = answers(1);
        short.each[0].tokens = 3;
        let error = sample(&workload, &Candidate::plain(Side::Ours), 0, &short).unwrap_err().to_string();
        assert!(error.contains("too short"), "{error}");
    }
}
