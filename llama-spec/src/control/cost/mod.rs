//! The cost model: what everything in a round takes, from the probe and from every real round.

mod rows;
mod scaled;

use super::effect::{Effect, learn};
use rows::{Curve, RowCosts};
use scaled::{SIZES, Scaled};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A guess for a draft step that was never measured, as a share of a step of the target.
const STEP_GUESS: f64 = 0.2;
/// The same for catching up: so many tokens take as long as a step. Most machines are faster.
const CATCH_UP_GUESS: f64 = 8.0;

/// What is known about the times of a pair of models on a machine. It is worth keeping for the next start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    rows: RowCosts,
    drafters: Vec<DraftCosts>,
    /// To sample one row.
    sample: Option<Effect>,
    /// To take rejected tokens back, when there were any.
    rollback: Option<Effect>,
    /// To process a token of a prompt, in a large batch.
    prompt_token: Option<Effect>,
}

/// Of one drafter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct DraftCosts {
    /// One draft step, or a whole block, by the sequences that draft.
    step: Scaled,
    /// Following the verified batch, by its rows.
    follow: Scaled,
    /// A token that was missed, when it catches up.
    missed: Option<Effect>,
}

impl Costs {
    /// Nothing is known: everything is learned from real rounds.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// What a probe measured: batches of the target by their rows (1 is plain decoding).
    #[must_use]
    pub fn rows(mut self, rows: usize, time: Duration) -> Self {
        self.rows.measured(rows, time);
        self
    }

    /// What a probe measured: taking rejected tokens back.
    #[must_use]
    pub fn rollback(mut self, time: Duration) -> Self {
        self.rollback = Some(Effect::of_seconds(time.as_secs_f64(), 0.2, 0.001));
        self
    }

    /// What a probe measured: a token of a prompt in the target.
    #[must_use]
    pub fn prompt_token(mut self, time: Duration) -> Self {
        self.prompt_token = Some(Effect::of_seconds(time.as_secs_f64(), 0.2, 0.001));
        self
    }

    /// What a probe measured: a draft step of a drafter (a whole block for one that drafts in blocks), and following.
    #[must_use]
    pub fn drafter(mut self, drafter: usize, step: Duration, follow: Option<Duration>) -> Self {
        self.fit(drafter + 1);
        let costs = &mut self.drafters[drafter];
        costs.step = Scaled::expected(step.as_secs_f64());
        if let Some(follow) = follow {
            costs.follow = Scaled::expected(follow.as_secs_f64());
        }
        self
    }

    fn fit(&mut self, drafters: usize) {
        self.drafters.resize_with(self.drafters.len().max(drafters), DraftCosts::default);
    }

    /// What comes out of a file may be damaged or of other drafters.
    fn is_sound(&self) -> bool {
        let singles = [&self.sample, &self.rollback, &self.prompt_token];
        let drafter = |costs: &DraftCosts| {
            costs.step.is_sound() && costs.follow.is_sound() && costs.missed.iter().all(Effect::is_sound)
        };
        self.rows.is_sound() && self.drafters.iter().all(drafter) && singles.into_iter().flatten().all(Effect::is_sound)
    }
}

/// The costs at work: with the drift of the machine, and the curve at the depth of the round.
#[derive(Debug)]
pub(super) struct Clock {
    costs: Costs,
    /// All times are so many times longer now: heat, other processes.
    drift: Effect,
    curve: Curve,
    /// The depth that the curve is of, told apart as far as it matters; nothing if it must be drawn anew.
    drawn: Option<usize>,
    /// Of each drafter.
    paces: Vec<Pace>,
    /// The factor of the drift, and what sampling a row takes, of the round.
    scale: f64,
    sample: f64,
}

/// Seconds of a drafter by size, without the drift of the machine, where anything is known. Logarithms are slow, and
/// between two rounds nothing changes.
#[derive(Debug, Default)]
struct Pace {
    step: Option<[f64; SIZES]>,
    follow: Option<[f64; SIZES]>,
    /// Something was learned since.
    stale: bool,
}

fn of_size(seconds: Option<&[f64; SIZES]>, size: usize) -> Option<f64> {
    seconds.and_then(|seconds| seconds.get(Scaled::bucket(size))).copied()
}

impl Clock {
    pub(super) fn new(costs: Costs, drafters: usize) -> Self {
        let mut costs = if costs.is_sound() { costs } else { Costs::unknown() };
        costs.fit(drafters);
        let paces = costs.drafters.iter().map(|_| Pace { stale: true, ..Pace::default() }).collect();
        let drift = Effect::new(0.0, 0.005, 0.0015);
        Self { costs, drift, curve: Curve::default(), drawn: None, paces, scale: 1.0, sample: 0.0 }
    }

    pub(super) fn costs(&self) -> &Costs {
        &self.costs
    }

    pub(super) fn knows(&self, rows: usize) -> bool {
        self.costs.rows.knows(rows)
    }

    pub(super) fn seen(&self, rows: usize) -> u32 {
        self.costs.rows.seen(rows)
    }

    /// From now on times are those at this depth.
    pub(super) fn at(&mut self, depth: usize) {
        let bucket = RowCosts::bucket(depth);
        if self.drawn != Some(bucket) {
            self.costs.rows.curve(bucket, &mut self.curve);
            self.drawn = Some(bucket);
        }
        for (pace, costs) in self.paces.iter_mut().zip(&self.costs.drafters).filter(|(pace, _)| pace.stale) {
            *pace = Pace { step: costs.step.seconds(), follow: costs.follow.seconds(), stale: false };
        }
        self.scale = self.drift.factor();
        self.sample = self.costs.sample.map_or(0.0, |sample| sample.factor());
    }

    pub(super) fn age(&mut self) {
        self.costs.rows.age();
        self.drawn = None;
    }

    /// Seconds to decode and sample a batch; what it may be at best if `hopeful`.
    pub(super) fn verify(&self, rows: usize, hopeful: bool) -> f64 {
        let decode = if hopeful { self.curve.hoped(rows) } else { self.curve.seconds(rows) };
        (decode + rows as f64 * self.sample) * self.scale
    }

    /// Seconds for a draft step.
    pub(super) fn step(&self, drafter: usize, sequences: usize) -> f64 {
        let known = self.paces.get(drafter).and_then(|pace| of_size(pace.step.as_ref(), sequences));
        known.unwrap_or(STEP_GUESS * self.curve.seconds(1)) * self.scale
    }

    /// Seconds to follow a batch.
    pub(super) fn follow(&self, drafter: usize, rows: usize) -> f64 {
        let known = self.paces.get(drafter).and_then(|pace| of_size(pace.follow.as_ref(), rows));
        known.map_or_else(|| self.step(drafter, 1), |seconds| seconds * self.scale)
    }

    /// Seconds to catch up with tokens that were missed.
    pub(super) fn catch_up(&self, drafter: usize, tokens: usize) -> f64 {
        let known = self.costs.drafters.get(drafter).and_then(|costs| costs.missed);
        let target = || {
            let share = self.step(drafter, 1) / self.curve.seconds(1).max(1e-9);
            self.costs.prompt_token.map(|token| token.factor() * share.min(1.0))
        };
        let each = known.map(|missed| missed.factor() * self.scale).or_else(target);
        each.unwrap_or_else(|| self.step(drafter, 1) / CATCH_UP_GUESS) * tokens as f64
    }

    /// Seconds to take rejected tokens back.
    pub(super) fn rollback(&self) -> f64 {
        self.costs.rollback.map_or(0.0, |rollback| rollback.factor()) * self.scale
    }

    /// Learns how long a batch took; returns the time, cut to what is credible.
    pub(super) fn learn_verify(&mut self, rows: usize, depth: usize, time: Duration) -> f64 {
        self.drawn = None;
        self.costs.rows.learn(rows, depth, time.as_secs_f64(), &mut self.drift)
    }

    pub(super) fn learn_sample(&mut self, rows: usize, time: Duration) -> f64 {
        self.learn_single(|costs| &mut costs.sample, time, rows)
    }

    pub(super) fn learn_rollback(&mut self, time: Duration) -> f64 {
        self.learn_single(|costs| &mut costs.rollback, time, 1)
    }

    pub(super) fn learn_step(&mut self, drafter: usize, sequences: usize, steps: usize, time: Duration) -> f64 {
        let each = time.as_secs_f64() / steps.max(1) as f64;
        let Some(costs) = self.costs.drafters.get_mut(drafter) else { return time.as_secs_f64() };
        if let Some(pace) = self.paces.get_mut(drafter) {
            pace.stale = true;
        }
        costs.step.learn(sequences, each, &mut self.drift) * steps as f64
    }

    pub(super) fn learn_follow(&mut self, drafter: usize, rows: usize, time: Duration) -> f64 {
        let Some(costs) = self.costs.drafters.get_mut(drafter) else { return time.as_secs_f64() };
        if let Some(pace) = self.paces.get_mut(drafter) {
            pace.stale = true;
        }
        costs.follow.learn(rows, time.as_secs_f64(), &mut self.drift)
    }

    pub(super) fn learn_catch_up(&mut self, drafter: usize, tokens: usize, time: Duration) {
        let Some(costs) = self.costs.drafters.get_mut(drafter) else { return };
        // A handful of tokens says more about a call than about a token.
        if tokens >= 8 {
            let each = time.as_secs_f64() / tokens as f64 / self.drift.factor();
            learn([costs.missed.get_or_insert(Effect::of_seconds(each, 0.5, 0.001))], each);
        }
    }

    fn learn_single(&mut self, which: fn(&mut Costs) -> &mut Option<Effect>, time: Duration, count: usize) -> f64 {
        let each = time.as_secs_f64() / count.max(1) as f64 / self.drift.factor();
        let effect = which(&mut self.costs).get_or_insert(Effect::of_seconds(each, 0.5, 0.001));
        learn([effect], each) * count as f64 * self.drift.factor()
    }
}
