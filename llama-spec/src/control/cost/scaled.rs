//! A time that depends a little on a size: a draft step on the sequences, following on the rows.

use super::super::effect::{Effect, learn};
use serde::{Deserialize, Serialize};

/// Sizes are told apart by powers of two.
pub(super) const SIZES: usize = 8;
const FLOOR: f64 = 0.0004;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaled {
    base: Option<Effect>,
    sizes: [Effect; SIZES],
}

impl Default for Scaled {
    fn default() -> Self {
        Self { base: None, sizes: [Effect::new(0.0, 0.1, FLOOR); SIZES] }
    }
}

impl Scaled {
    pub(super) fn expected(seconds: f64) -> Self {
        Self { base: Some(Effect::of_seconds(seconds, 0.2, FLOOR)), ..Self::default() }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.base.iter().chain(&self.sizes).all(Effect::is_sound)
    }

    /// Seconds by size, without the drift of the machine, if anything is known.
    pub(super) fn seconds(&self) -> Option<[f64; SIZES]> {
        let base = self.base?;
        let seen = |bucket: &usize| self.sizes[*bucket].seen > 0;
        // What was not seen is as the nearest size that was, and no less than in a smaller one.
        let mut nearest = (0..SIZES).find(seen);
        let mut seconds = nearest.map_or(0.0, |nearest| (base.mean + self.sizes[nearest].mean).exp());
        Some(std::array::from_fn(|bucket| {
            if nearest.is_none() || (seen(&bucket) && nearest != Some(bucket)) {
                nearest = nearest.map(|_| bucket);
                seconds = (base.mean + self.sizes[bucket].mean).exp();
            }
            seconds
        }))
    }

    pub(super) fn learn(&mut self, size: usize, seconds: f64, drift: &mut Effect) -> f64 {
        let first = || Effect::of_seconds(seconds / drift.factor(), 0.5, FLOOR);
        let base = match &mut self.base {
            Some(base) => base,
            none => none.insert(first()),
        };
        // The machine's drift is learned from the target alone: others have reasons of their own to vary.
        learn([base, &mut self.sizes[Self::bucket(size)]], seconds / drift.factor()) * drift.factor()
    }

    pub(super) fn bucket(size: usize) -> usize {
        (size.max(1).next_power_of_two().ilog2() as usize).min(SIZES - 1)
    }
}
