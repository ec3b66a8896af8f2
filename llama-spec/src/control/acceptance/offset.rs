//! How a text differs from what was learned over all texts.

/// A number that is added to the log-odds, learned within some tens of tokens: a text that turns from code to prose is
/// noticed soon, and the next text does not suffer from it. A Kalman filter of one number; it comes to rest near a gain of
/// an eighth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    pub(super) value: f64,
    variance: f64,
}

/// What a text may differ by before anything was seen of it.
const WIDE: f64 = 1.0;
const WANDER: f64 = 0.003;
/// The same while there is nothing to learn from.
const IDLE_WANDER: f64 = 0.006;
/// Of the offset goes with each token for which nothing is learned, so that it is tried again.
const FORGET: f64 = 0.02;

impl Default for Offset {
    fn default() -> Self {
        Self { value: 0.0, variance: WIDE * 0.5 }
    }
}

impl Offset {
    pub(super) fn learn(&mut self, expected: f64, right: bool) {
        let spread = (expected * (1.0 - expected)).max(0.02);
        let gain = self.variance / (1.0 + self.variance * spread);
        self.value = (self.value + gain * (f64::from(u8::from(right)) - expected)).clamp(-4.0, 4.0);
        self.variance = gain + WANDER;
    }

    /// So many tokens went by without anything to learn from.
    pub(super) fn rest(&mut self, tokens: usize) {
        self.variance = (self.variance + IDLE_WANDER * tokens as f64).min(WIDE);
        self.value *= (1.0 - FORGET * tokens as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::logistic::sigmoid;
    use super::*;

    #[test]
    fn a_turn_is_noticed_within_tens_of_tokens() {
        let mut offset = Offset::default();
        for step in 0..200 {
            offset.learn(sigmoid(1.5 + offset.value), step % 6 != 0);
        }
        let before = sigmoid(1.5 + offset.value);
        for step in 0..40 {
            offset.learn(sigmoid(1.5 + offset.value), step % 4 == 0);
        }
        let after = sigmoid(1.5 + offset.value);
        assert!(before > 0.7 && after < 0.55, "{before} {after}");
    }
}
