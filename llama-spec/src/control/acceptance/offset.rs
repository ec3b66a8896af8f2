//! How a text differs from what was learned over all texts.

/// A number that is added to the log-odds. A Kalman filter of one number that comes to rest, so that a steady text is
/// judged calmly; two cumulative sums (CUSUM; Page 1954) watch for a turn, say from code to prose, and wake it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    value: f64,
    /// The same as a factor of the odds against.
    pub(super) against: f64,
    variance: f64,
    /// How many times more probable what was seen of late is after a turn to higher log-odds, and to lower ones; at
    /// least once.
    higher: f64,
    lower: f64,
}

/// A turn is a change of the log-odds by 1, which is so many times the odds.
const HIGHER: f64 = std::f64::consts::E;
const LOWER: f64 = 1.0 / std::f64::consts::E;
/// It is believed when it makes what was seen so many times more probable: the 3.5th power of e.
const ALARM: f64 = 33.115_451_958_692_31;

/// What a text may differ by before anything was seen of it.
const WIDE: f64 = 1.0;
const WANDER: f64 = 0.0006;
/// The same while there is nothing to learn from.
const IDLE_WANDER: f64 = 0.006;
/// Of the offset goes with each token for which nothing is learned, so that it is tried again.
const FORGET: f64 = 0.02;

impl Default for Offset {
    fn default() -> Self {
        Self { value: 0.0, against: 1.0, variance: WIDE * 0.5, higher: 1.0, lower: 1.0 }
    }
}

impl Offset {
    /// Learns from a token that was right with the probability `right`: 0 or 1 if that is known.
    pub(super) fn learn(&mut self, expected: f64, right: f64, weight: f64) {
        self.watch(expected, right, weight);
        let spread = (expected * (1.0 - expected)).max(0.02);
        let gain = self.variance / (1.0 + weight * self.variance * spread);
        self.value = (self.value + weight * gain * (right - expected)).clamp(-4.0, 4.0);
        self.against = (-self.value).exp();
        self.variance = gain + WANDER;
    }

    fn watch(&mut self, expected: f64, right: f64, weight: f64) {
        self.higher = (self.higher * likelihood(HIGHER, expected, right, weight)).max(1.0);
        self.lower = (self.lower * likelihood(LOWER, expected, right, weight)).max(1.0);
        if self.higher.max(self.lower) > ALARM {
            (self.variance, self.higher, self.lower) = (WIDE, 1.0, 1.0);
        }
    }

    /// So many tokens went by without anything to learn from.
    pub(super) fn rest(&mut self, tokens: usize) {
        self.variance = (self.variance + IDLE_WANDER * tokens as f64).min(WIDE);
        if self.value != 0.0 {
            self.value *= (1.0 - FORGET * tokens as f64).max(0.0);
            self.against = (-self.value).exp();
        }
    }
}

/// How many times more probable an outcome is if the odds are so many times higher (Wald 1945).
fn likelihood(turn: f64, expected: f64, right: f64, weight: f64) -> f64 {
    let total = 1.0 + expected * (turn - 1.0);
    if weight < 1.0 || (right > 0.0 && right < 1.0) {
        return (turn.powf(right) / total).powf(weight);
    }
    // A known outcome, which most are.
    if right > 0.0 { turn / total } else { 1.0 / total }
}

#[cfg(test)]
mod tests {
    use super::super::odds::sigmoid;
    use super::*;

    #[test]
    fn a_turn_is_noticed_within_tens_of_tokens() {
        let mut offset = Offset::default();
        for step in 0..200 {
            offset.learn(sigmoid(1.5 + offset.value), f64::from(u8::from(step % 6 != 0)), 1.0);
        }
        let before = sigmoid(1.5 + offset.value);
        for step in 0..40 {
            offset.learn(sigmoid(1.5 + offset.value), f64::from(u8::from(step % 4 == 0)), 1.0);
        }
        let after = sigmoid(1.5 + offset.value);
        assert!(before > 0.7 && after < 0.55, "{before} {after}");
    }
}
