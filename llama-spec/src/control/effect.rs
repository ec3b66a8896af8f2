//! What is believed about a quantity that is measured again and again by a noisy clock.

use serde::{Deserialize, Serialize};

/// Variance of one measurement, in logarithms: a shared machine is good for some 15 %.
const NOISE: f64 = 0.15 * 0.15;
/// Surprises beyond so many standard deviations are cut: single steps may take several times as long for no reason.
const CLIP: f64 = 2.0;
/// And beyond this whatever the deviation: else an outlier where nothing is known yet would be believed.
const FARTHEST: f64 = 0.35;
/// What a measurement that is not believed counts less.
const ACCIDENT: f64 = 10.0;

/// A belief about the logarithm of a factor of a time: a mean and a variance. A time is the product of several factors
/// (the rows, the depth, the state of the machine), so its logarithm is a sum of effects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Effect {
    pub(super) mean: f64,
    pub(super) variance: f64,
    /// It never gets surer than this, so that it goes on learning.
    floor: f64,
    /// How often it was measured.
    pub(super) seen: u32,
    /// The last measurement was beyond what is credible.
    #[serde(default)]
    odd: bool,
}

impl Effect {
    pub(super) const fn new(mean: f64, variance: f64, floor: f64) -> Self {
        Self { mean, variance, floor, seen: 0, odd: false }
    }

    /// A belief about seconds.
    pub(super) fn of_seconds(seconds: f64, variance: f64, floor: f64) -> Self {
        Self::new(seconds.max(1e-9).ln(), variance, floor)
    }

    /// What was read from a file may be anything.
    pub(super) fn is_sound(&self) -> bool {
        let Self { mean, variance, floor, .. } = *self;
        mean.is_finite() && mean.abs() < 40.0 && (1e-9..=100.0).contains(&variance) && (1e-9..=1.0).contains(&floor)
    }

    pub(super) fn factor(&self) -> f64 {
        self.mean.exp()
    }

    fn learn(&mut self, surprise: f64, total: f64) {
        let gain = self.variance / total;
        self.mean += gain * surprise;
        self.variance = (self.variance * (1.0 - gain)).max(self.floor);
        self.seen = self.seen.saturating_add(1);
    }
}

/// Learns from a measurement of a product of factors: each effect takes of the surprise what its uncertainty is of all
/// uncertainty (a Kalman filter that ignores the covariances). Returns the measurement in seconds, cut to what is
/// credible.
pub(super) fn learn<const N: usize>(effects: [&mut Effect; N], seconds: f64) -> f64 {
    let expected: f64 = effects.iter().map(|effect| effect.mean).sum();
    let total = NOISE + effects.iter().map(|effect| effect.variance).sum::<f64>();
    let reach = (CLIP * total.sqrt()).min(FARTHEST);
    let raw = seconds.max(1e-9).ln() - expected;
    let surprise = raw.clamp(-reach, reach);
    // One odd measurement is an accident and hardly counts; from the second on something has changed.
    let odd = raw.abs() > reach;
    let believed = !odd || effects.last().is_some_and(|effect| effect.odd);
    let total = if believed { total } else { total * ACCIDENT };
    for effect in effects {
        effect.learn(surprise, total);
        effect.odd = odd;
    }
    (expected + surprise).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_hardly_move_it() {
        let mut effect = Effect::of_seconds(0.01, 0.5, 0.0004);
        for step in 0..400 {
            learn([&mut effect], if step % 20 == 19 { 0.05 } else { 0.02 });
        }
        assert!((0.019..0.022).contains(&effect.factor()), "{}", effect.factor());
    }

    #[test]
    fn the_unsure_one_of_two_effects_learns() {
        let (mut sure, mut unsure) = (Effect::new(0.0, 0.001, 1e-4), Effect::new(0.0, 0.5, 1e-4));
        learn([&mut sure, &mut unsure], 1.3);
        assert!(sure.factor() < 1.01 && unsure.factor() > 1.2, "{sure:?} {unsure:?}");
    }

    #[test]
    fn what_is_measured_is_cut_to_what_is_credible() {
        let mut effect = Effect::of_seconds(1.0, 0.001, 0.001);
        assert!(learn([&mut effect], 5.0) < 1.5);
    }
}
