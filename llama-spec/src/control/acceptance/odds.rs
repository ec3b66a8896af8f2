//! Probabilities as odds.
//!
//! A sum of log-odds is a product of odds, so that counts, offsets and curves are put together without a logarithm or a
//! power: a token whose odds against being right are `a` by its kind and `b` by its text is right with `1 / (1 + a b)`.

/// So far a probability is kept from 0 and 1.
const EDGE: f64 = 0.002;

pub(super) fn clamped(probability: f64) -> f64 {
    probability.clamp(EDGE, 1.0 - EDGE)
}

/// The odds against what has this probability.
pub(super) fn against(probability: f64) -> f64 {
    let probability = clamped(probability);
    (1.0 - probability) / probability
}

/// The probability of what has these odds against it.
pub(super) fn probability(against: f64) -> f64 {
    1.0 / (1.0 + against)
}

pub(super) fn log_odds(probability: f64) -> f64 {
    -against(probability).ln()
}

#[cfg(test)]
pub(super) fn sigmoid(log_odds: f64) -> f64 {
    probability((-log_odds).exp())
}
