//! The units of a draft's feed-forward layer, one for each token that the target can give.
//!
//! The hidden state has two halves: what the target expected, and the token that came; its last entry is the constant 1.
//! A unit fires where both halves name its token.

/// How steep a unit is.
pub(super) const STEEPNESS: f32 = 16.0;
/// What both halves together (2) must pass.
const THRESHOLD: f32 = 1.25;

/// What a unit gives that fires: gate times way up.
pub(super) fn fired() -> f32 {
    let passed = 2.0 - THRESHOLD;
    STEEPNESS * passed * passed
}

/// The row of a unit, for the gate (where `steepness` is [`STEEPNESS`]) or the way up (1). `expected` begins with what the
/// first half holds where the unit's token is expected, for entries of 1, and says how large they are; without it the
/// second half alone decides. `seen` ends with what the second half holds where the token came.
pub(super) fn fill(expected: Option<(&[f32], f32)>, seen: &[f32], steepness: f32, row: &mut [f32]) {
    let half = row.len() / 2;
    let identity = if expected.is_some() { 1.0 } else { 2.0 } * steepness / (half - 1) as f32;
    if let Some((expected, size)) = expected {
        let factor = steepness / (half as f32 * size);
        row[..half].iter_mut().zip(expected).for_each(|(x, direction)| *x = direction * factor);
    }
    row[half..].iter_mut().zip(seen).for_each(|(x, entry)| *x = entry * identity);
    row[2 * half - 1] = -steepness * THRESHOLD;
}
