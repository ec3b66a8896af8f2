//! What the controller learns from a round.

use super::acceptance::Acceptance;
use super::controller::Controller;
use super::plan::{DrafterTimes, Outcome, Verified};
use super::round::Mode;

/// After so many rounds old times are looked at again.
const AGE: u64 = 2048;

impl Controller {
    /// Learns what a round took and what came of its drafts.
    pub fn observe(&mut self, outcome: &Outcome<'_>) {
        let count = outcome.sequences.len();
        if count == 0 {
            return;
        }
        let drafted: usize = outcome.verified.iter().map(|verified| verified.guesses.len()).sum();
        let tokens = count + outcome.verified.iter().map(|verified| verified.accepted).sum::<usize>();
        self.learn_acceptance(outcome);
        self.models.iter_mut().for_each(Acceptance::settle);
        self.learn_usage(tokens as f64 / count as f64);

        let depth = outcome.sequences.iter().map(|sequence| sequence.depth).sum::<usize>() / count;
        let (drafters, decode) = self.learn_times(outcome, count + drafted, depth);
        let credible = drafters + decode;
        let rounds = tokens as f64 / count as f64;
        self.clock.at(depth);
        let round = self.clock.verify(count, false);
        let plain = if drafted == 0 { decode } else { rounds * round };
        let whole: f64 = outcome.drafters.iter().map(seconds).sum();
        let time = whole + (outcome.verify + outcome.sample + outcome.rollback).as_secs_f64();
        self.purse.enter(time, credible, plain, round);
        self.speed.enter(plain, credible);

        self.drafting = drafted > 0;
        self.since_plain = if drafted == 0 { 0 } else { self.since_plain.saturating_add(1) };
        self.tokens += tokens as u64;
        self.rounds += 1;
        if self.rounds.is_multiple_of(AGE) {
            self.clock.age();
        }
    }

    /// Credible seconds of the drafters, and of the rest.
    fn learn_times(&mut self, outcome: &Outcome<'_>, rows: usize, depth: usize) -> (f64, f64) {
        let mut decode = self.clock.learn_verify(rows, depth, outcome.verify);
        decode += self.clock.learn_sample(rows, outcome.sample);
        let rejected = outcome.verified.iter().any(|verified| verified.accepted < verified.guesses.len());
        if rejected {
            decode += self.clock.learn_rollback(outcome.rollback);
        }
        let mut drafters = 0.0;
        for times in outcome.drafters {
            if times.steps > 0 {
                drafters += self.clock.learn_step(times.drafter, times.sequences, times.steps, times.draft);
            }
            if let Some(follow) = times.follow {
                drafters += self.clock.learn_follow(times.drafter, rows, follow);
            }
            if times.missed > 0 {
                self.clock.learn_catch_up(times.drafter, times.missed, times.catch_up);
                drafters += times.catch_up.as_secs_f64();
            }
        }
        (drafters, decode)
    }

    fn learn_acceptance(&mut self, outcome: &Outcome<'_>) {
        self.scratch.used.clear();
        self.scratch.used.resize(self.specs.len(), false);
        for (text, (sequence, verified)) in outcome.sequences.iter().zip(outcome.verified).enumerate() {
            self.seat(sequence.slot);
            let Verified { guesses, accepted } = *verified;
            let biases = &mut self.biases[sequence.slot];
            for (drafter, bias) in biases.iter_mut().enumerate() {
                if self.usages[drafter].paused {
                    bias.missed += accepted + 1;
                }
                if !guesses.iter().any(|guess| guess.drafter == drafter) {
                    bias.rest(accepted + 1);
                }
            }
            for (place, guess) in guesses.iter().enumerate() {
                let Some(bias) = biases.get_mut(guess.drafter) else { continue };
                let right = place < accepted;
                self.usages[guess.drafter].count(right);
                self.scratch.used[guess.drafter] = true;
                // What stands behind a wrong token was not judged.
                if place <= accepted {
                    self.models[guess.drafter].learn(bias, place, guess.evidence, right);
                }
            }
            if accepted == guesses.len() {
                let mut reached = 1.0;
                for (place, guess) in
                    self.round.left.iter().filter(|left| left.text == text).map(|left| (left.place, left.guess))
                {
                    let Some(bias) = biases.get_mut(guess.drafter) else { continue };
                    reached *= self.models[guess.drafter].unverified(bias, place, guess.evidence, reached);
                }
            }
        }
    }

    fn learn_usage(&mut self, per_text: f64) {
        for (drafter, usage) in self.usages.iter_mut().enumerate() {
            let tried = matches!(self.round.mode, Mode::Try { drafter: tried, .. } if tried == drafter);
            match (tried, self.scratch.used[drafter]) {
                (true, _) => usage.tried(),
                (false, true) => usage.used(),
                (false, false) => usage.unused(per_text),
            }
        }
    }
}

fn seconds(times: &DrafterTimes) -> f64 {
    (times.draft + times.follow.unwrap_or_default() + times.catch_up).as_secs_f64()
}
