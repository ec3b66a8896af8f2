//! How probable it is that a model drafter's token is right, given what the drafter thought of it.

use super::PLACES;

/// The curve is a logistic one in the drafter's own log-odds and the place in the draft. It is fitted as it goes: each
/// observation is one Newton step on the posterior, whose curvature is carried along (an extended Kalman filter for
/// logistic regression), and older observations fade.
#[derive(Clone, Debug)]
pub(super) struct Logistic {
    weights: [f64; 3],
    covariance: [[f64; 3]; 3],
    /// The feature of each of the first places.
    places: [f64; PLACES],
}

/// What fades with each observation: after some thousand of them nothing of the old curve is left.
const FADE: [f64; 3] = [2e-4, 1e-4, 1e-4];
const WIDEST: f64 = 1.0;

impl Default for Logistic {
    /// Drafters are a little less right than they are sure, and less so further on.
    fn default() -> Self {
        let covariance = [[0.5, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.2]];
        Self { weights: [0.3, 1.6, -0.2], covariance, places: std::array::from_fn(Self::feature) }
    }
}

impl Logistic {
    fn feature(place: usize) -> f64 {
        ((place + 1) as f64).log2() / 2.0
    }

    fn features(&self, own: f64, place: usize) -> [f64; 3] {
        [1.0, own / 2.0, self.places.get(place).copied().unwrap_or_else(|| Self::feature(place))]
    }

    /// The log-odds that a token at a place of a draft is right, whose log-odds in the drafter's view are `own`.
    pub(super) fn judge(&self, own: f64, place: usize) -> f64 {
        let features = self.features(own, place);
        self.weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum()
    }

    /// Learns from a token that was expected to be right with `expected`.
    pub(super) fn learn(&mut self, own: f64, place: usize, expected: f64, right: bool) {
        let features = self.features(own, place);
        let spread = (expected * (1.0 - expected)).max(0.01);
        let pull =
            self.covariance.map(|row| row.iter().zip(features).map(|(value, feature)| value * feature).sum::<f64>());
        let total = 1.0 + spread * pull.iter().zip(features).map(|(pull, feature)| pull * feature).sum::<f64>();
        let surprise = f64::from(u8::from(right)) - expected;
        for row in 0..3 {
            self.weights[row] += pull[row] / total * surprise;
            for column in 0..3 {
                self.covariance[row][column] -= pull[row] * pull[column] * spread / total;
            }
            self.covariance[row][row] = (self.covariance[row][row] + FADE[row]).min(WIDEST);
        }
        // A drafter that is surer is not less right: what says so is noise.
        self.weights[1] = self.weights[1].max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::odds::sigmoid;
    use super::*;

    #[test]
    fn finds_a_curve() {
        let mut logistic = Logistic::default();
        let mut seed = 7u64;
        let mut uniform = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        let truth = |own: f64, place: usize| sigmoid(-0.8 + 0.9 * own - 0.15 * place as f64);
        for _ in 0..4000 {
            let (own, place) = (uniform() * 6.0 - 2.0, (uniform() * 4.0) as usize);
            let right = uniform() < truth(own, place);
            logistic.learn(own, place, sigmoid(logistic.judge(own, place)), right);
        }
        for (own, place) in [(-1.0, 0), (0.0, 1), (1.0, 0), (2.0, 3), (4.0, 0)] {
            let (judged, true_) = (sigmoid(logistic.judge(own, place)), truth(own, place));
            assert!((judged - true_).abs() < 0.1, "{own} {place}: {judged} for {true_}");
        }
    }
}
