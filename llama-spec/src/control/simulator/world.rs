//! The machine: what everything takes, and how noisy its clock is.

use super::super::chain::{DrafterKind, DrafterSpec};
use super::super::cost::Costs;
use super::random::Random;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) drafters: Vec<DrafterSpec>,
    /// T(1) in seconds, and T(n)/T(1) at some numbers of rows; straight lines in between.
    pub(super) plain: f64,
    pub(super) rows: Vec<(usize, f64)>,
    /// How much longer a row takes with each 1000 tokens of depth, as a share of T(1).
    pub(super) depth: f64,
    /// Of each drafter, as shares of T(1).
    pub(super) step: Vec<f64>,
    pub(super) follow: Vec<f64>,
    pub(super) rollback: f64,
    /// Of the clock.
    pub(super) noise: f64,
    pub(super) outliers: f64,
    /// The machine gets slower by this share from the middle on.
    pub(super) drift: f64,
    /// What the probe measured; nothing if there was none.
    pub(super) probed: Vec<usize>,
}

/// The state of the machine in a round.
pub(super) struct Moment {
    pub(super) slow: f64,
    /// How wrong the clock is for each of verify, draft, follow, rollback.
    pub(super) wrong: [f64; 4],
}

impl World {
    pub(super) fn new(rows: &[(usize, f64)], drafters: Vec<DrafterSpec>) -> Self {
        let cost =
            |share: f64| drafters.iter().map(|spec| if spec.kind == DrafterKind::Free { 0.0 } else { share }).collect();
        Self {
            plain: 0.02,
            rows: rows.to_vec(),
            depth: 0.0,
            step: cost(0.1),
            follow: cost(0.05),
            rollback: 0.01,
            noise: 0.05,
            outliers: 0.01,
            drift: 0.0,
            probed: vec![1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
            drafters,
        }
    }

    pub(super) fn at(&self, done: f64, random: &mut Random) -> Moment {
        let mut wrong = || {
            let outlier = if random.chance(self.outliers) { 2.0 + 3.0 * random.uniform() } else { 1.0 };
            (self.noise * random.normal()).exp() * outlier
        };
        let wrong = [wrong(), wrong(), wrong(), wrong()];
        Moment { slow: if done > 0.5 { 1.0 + self.drift } else { 1.0 }, wrong }
    }

    /// Seconds of a batch.
    pub(super) fn verify(&self, rows: usize, depth: usize) -> f64 {
        let after = self.rows.iter().position(|(known, _)| *known >= rows);
        let shape = match after {
            Some(0) => self.rows[0].1,
            Some(after) => {
                let ((from, low), (to, high)) = (self.rows[after - 1], self.rows[after]);
                low + (high - low) * (rows - from) as f64 / (to - from) as f64
            }
            None => self.rows.last().map_or(1.0, |(known, shape)| shape * rows as f64 / *known as f64),
        };
        self.plain * (shape + self.depth * rows as f64 * depth as f64 / 1000.0)
    }

    /// What a probe would say, with its own noise.
    pub(super) fn probe(&self, seed: u64) -> Costs {
        let mut random = Random::new(seed ^ 0xABCD);
        let mut noisy = |seconds: f64| Duration::from_secs_f64(seconds * (2.0 * self.noise * random.normal()).exp());
        let mut costs = Costs::unknown();
        if self.probed.is_empty() {
            return costs;
        }
        for rows in &self.probed {
            costs = costs.rows(*rows, noisy(self.verify(*rows, 0)));
        }
        costs = costs.rollback(noisy(self.rollback * self.plain));
        for (drafter, spec) in self.drafters.iter().enumerate().filter(|(_, spec)| spec.kind != DrafterKind::Free) {
            _ = spec;
            costs = costs.drafter(drafter, noisy((self.step[drafter] + self.follow[drafter]) * self.plain), None);
        }
        costs
    }
}

/// T(n)/T(1) of machines: some measured, some to be afraid of.
pub(super) fn curves() -> Vec<(&'static str, Vec<(usize, f64)>)> {
    let linear = |slope: f64| vec![(1, 1.0), (64, 1.0 + 63.0 * slope)];
    vec![
        ("flat", linear(0.02)),
        ("linear", linear(0.25)),
        ("weak", linear(0.5)),
        ("stairs", vec![(1, 1.0), (2, 1.3), (4, 1.35), (5, 2.0), (8, 2.1), (9, 3.0), (16, 3.2), (17, 5.0), (64, 16.0)]),
        ("cpu", vec![(1, 1.0), (2, 1.6), (4, 2.4), (8, 4.0), (16, 7.5), (64, 30.0)]),
        ("f16", vec![(1, 1.0), (2, 1.9), (4, 2.1), (8, 3.1), (16, 4.9), (64, 19.0)]),
        ("m1", vec![(1, 1.0), (2, 5.2), (8, 6.0), (64, 40.0)]),
        ("moe", vec![(1, 1.0), (2, 1.21), (3, 1.42), (4, 1.63), (16, 3.7), (64, 12.0)]),
    ]
}
