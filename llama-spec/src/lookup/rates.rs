//! How often guesses were right, by what spoke for them.

use super::evidence::Evidence;

/// The prior counts as so many observations.
const PRIOR_WEIGHT: f32 = 8.0;

/// When so many were observed, all count half, so that the rates follow a text that changes.
const MEMORY: f32 = 256.0;

/// Counts of right guesses and of all, for each evidence.
#[derive(Clone, Debug)]
pub(super) struct Rates(Box<[(f32, f32); Evidence::COUNT]>);

impl Default for Rates {
    fn default() -> Self {
        Self(Box::new([(0.0, 0.0); Evidence::COUNT]))
    }
}

impl Rates {
    pub(super) fn observe(&mut self, evidence: Evidence, right: bool) {
        let Some((hits, all)) = self.0.get_mut(evidence.index()) else { return };
        *hits += if right { 1.0 } else { 0.0 };
        *all += 1.0;
        if *all >= MEMORY {
            *hits /= 2.0;
            *all /= 2.0;
        }
    }

    /// The mean of a beta distribution whose prior has the mean that is usual for this evidence.
    pub(super) fn estimate(&self, evidence: Evidence) -> f32 {
        let (hits, all) = self.0.get(evidence.index()).copied().unwrap_or_default();
        (evidence.prior() * PRIOR_WEIGHT + hits) / (PRIOR_WEIGHT + all)
    }

    pub(super) fn bytes() -> usize {
        size_of::<[(f32, f32); Evidence::COUNT]>()
    }
}
