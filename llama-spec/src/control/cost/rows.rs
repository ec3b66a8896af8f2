//! How long the target takes for a batch of so many rows at such a depth: T(n).

use super::super::effect::{Effect, learn};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Batches up to this size have a cell of their own.
pub(crate) const ROWS: usize = 64;
/// Depths are told apart by powers of four, from 256 tokens.
const DEPTHS: usize = 6;

const FLOOR: f64 = 0.0004;
/// Of a batch that nobody has measured.
const UNKNOWN: f64 = 0.5;
/// So many real steps make a cell known well enough not to be tried for its own sake.
const ENOUGH: u32 = 3;

/// The logarithm of a time is the sum of the effect of the rows, that of the depth, and how both together differ from
/// that. Sparse: cells in between are interpolated, and beyond the last one it is linear, which is the worst that can
/// be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RowCosts {
    /// By rows, from 1.
    rows: Vec<Option<Effect>>,
    /// By depth; nothing where none was seen.
    depths: Vec<Option<Effect>>,
    /// By depth, then by rows.
    both: Vec<Option<Effect>>,
}

/// T(n) at one depth, in seconds, without the drift of the machine, with how much of it may be wrong.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    seconds: [f64; ROWS + 1],
    /// The factor by which it may be less.
    hope: [f64; ROWS + 1],
}

impl Default for Curve {
    fn default() -> Self {
        Self { seconds: [0.0; ROWS + 1], hope: [1.0; ROWS + 1] }
    }
}

impl Curve {
    pub(super) fn seconds(&self, rows: usize) -> f64 {
        match self.seconds.get(rows) {
            Some(seconds) => *seconds,
            None => self.seconds[ROWS] * rows as f64 / ROWS as f64,
        }
    }

    /// What it may be at best.
    pub(super) fn hoped(&self, rows: usize) -> f64 {
        self.seconds(rows) * self.hope[rows.min(ROWS)]
    }
}

impl Default for RowCosts {
    fn default() -> Self {
        Self { rows: vec![None; ROWS], depths: vec![None; DEPTHS], both: vec![None; ROWS * DEPTHS] }
    }
}

impl RowCosts {
    /// What a probe measured, at no great depth.
    pub(super) fn measured(&mut self, rows: usize, time: Duration) {
        if let Some(cell) = rows.checked_sub(1).and_then(|index| self.rows.get_mut(index))
            && !time.is_zero()
        {
            *cell = Some(Effect::of_seconds(time.as_secs_f64(), 0.03, FLOOR));
        }
        self.depths[0].get_or_insert(Effect::new(0.0, FLOOR, FLOOR));
    }

    pub(super) fn is_sound(&self) -> bool {
        let lengths = (self.rows.len(), self.depths.len(), self.both.len());
        let mut all = self.rows.iter().chain(&self.depths).chain(&self.both).flatten();
        lengths == (ROWS, DEPTHS, ROWS * DEPTHS) && all.all(Effect::is_sound)
    }

    /// Whether a batch of so many rows was timed by a probe, or often enough by real steps.
    pub(super) fn knows(&self, rows: usize) -> bool {
        let cell = rows.checked_sub(1).and_then(|index| self.rows.get(index)).copied().flatten();
        rows > ROWS || cell.is_some_and(|cell| cell.seen == 0 || cell.seen >= ENOUGH)
    }

    /// How often a batch of so many rows was timed by real steps.
    pub(super) fn seen(&self, rows: usize) -> u32 {
        rows.checked_sub(1).and_then(|index| self.rows.get(index)).copied().flatten().map_or(0, |cell| cell.seen)
    }

    pub(super) fn bucket(depth: usize) -> usize {
        ((depth / 256 + 1).ilog2() as usize).div_ceil(2).min(DEPTHS - 1)
    }

    /// Learns from a real step; returns the time, cut to what is credible.
    pub(super) fn learn(&mut self, rows: usize, depth: usize, seconds: f64, drift: &mut Effect) -> f64 {
        let (row, bucket) = (rows.clamp(1, ROWS) - 1, Self::bucket(depth));
        if rows > ROWS {
            return seconds;
        }
        let depth = self.depth(bucket);
        let [cell, both] = [&mut self.rows[row], &mut self.both[bucket * ROWS + row]];
        let cell =
            cell.get_or_insert_with(|| Effect::of_seconds(seconds / depth.factor() / drift.factor(), UNKNOWN, FLOOR));
        let both = both.get_or_insert(Effect::new(0.0, 0.01, FLOOR / 2.0));
        let depth = self.depths[bucket].insert(depth);
        learn([cell, both, depth, drift], seconds)
    }

    /// The effect of a depth; that of the nearest one, less sure, if it was never seen.
    fn depth(&self, bucket: usize) -> Effect {
        let near = |distance: usize| {
            let below = bucket.checked_sub(distance).and_then(|bucket| self.depths[bucket]);
            below.or_else(|| self.depths.get(bucket + distance).copied().flatten())
        };
        match (self.depths[bucket], (1..DEPTHS).find_map(near)) {
            (Some(known), _) => known,
            (None, Some(near)) => Effect::new(near.mean, 0.015, FLOOR / 2.0),
            // The first depth that is seen is what the others are compared with.
            (None, None) => Effect::new(0.0, FLOOR, FLOOR),
        }
    }

    /// T(n) at depths of a bucket, made non-decreasing from two rows on: pools of adjacent cells that contradict it share
    /// their mean (the pool-adjacent-violators algorithm of isotonic regression; Barlow et al. 1972). The steps stay. One
    /// row has kernels of its own, which may be slower than those for two: 1.25 times on two cores with F16 weights.
    pub(super) fn curve(&self, bucket: usize, curve: &mut Curve) {
        let bucket = bucket.min(DEPTHS - 1);
        let scale = self.depth(bucket).mean;
        let both = &self.both[bucket * ROWS..][..ROWS];
        let mut pools = [(0.0, 0.0, 0); ROWS];
        let mut count = 0;
        curve.hope = [0.5; ROWS + 1];
        for (row, cell) in self.rows.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let here = both[row].map_or_else(|| nearest(both, row), |both| both.mean);
            let mut pool = ((cell.mean + scale + here).exp(), 1.0 / cell.variance, row + 1);
            while count > 0 && pools[count - 1].0 > pool.0 && pools[count - 1].2 > 1 {
                let (seconds, weight, _) = pools[count - 1];
                pool = ((pool.0 * pool.1 + seconds * weight) / (pool.1 + weight), pool.1 + weight, pool.2);
                count -= 1;
            }
            pools[count] = pool;
            count += 1;
            curve.hope[row + 1] = if cell.seen >= ENOUGH { 1.0 } else { (-1.5 * cell.variance.sqrt()).exp() };
        }
        self.fill(&pools[..count], curve);
    }

    /// Between known numbers of rows a straight line, beyond the last one in proportion.
    fn fill(&self, pools: &[(f64, f64, usize)], curve: &mut Curve) {
        let known = |row: usize| self.rows[row - 1].is_some();
        let (mut last, mut next) = ((0, 0.0), 1);
        for &(seconds, _, end) in pools {
            while next <= end {
                // All known cells of a pool have its time.
                let to = (next..=end).find(|row| known(*row)).unwrap_or(end);
                for row in next..=to {
                    let share = if last.0 == 0 { 1.0 } else { (row - last.0) as f64 / (to - last.0) as f64 };
                    // Behind a single row that takes longer nothing is known of how it falls, but that it does not rise again.
                    curve.seconds[row] = (last.1 + (seconds - last.1) * share).min(seconds);
                }
                (last, next) = ((to, seconds), to + 1);
            }
        }
        for row in next..=ROWS {
            curve.seconds[row] = if last.0 == 0 { 0.0 } else { last.1 * row as f64 / last.0 as f64 };
        }
    }

    /// Old measurements are worth less: now and then cells may be tried again.
    pub(super) fn age(&mut self) {
        self.rows.iter_mut().flatten().for_each(|cell| cell.seen = cell.seen.min(ENOUGH - 1));
    }
}

fn nearest(both: &[Option<Effect>], row: usize) -> f64 {
    let at = |index: Option<usize>| index.and_then(|index| both.get(index).copied().flatten());
    let near = (1..8).find_map(|distance| at(row.checked_sub(distance)).or_else(|| at(Some(row + distance))));
    near.map_or(0.0, |effect| effect.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(costs: &RowCosts, depth: usize) -> Curve {
        let mut curve = Curve::default();
        costs.curve(RowCosts::bucket(depth), &mut curve);
        curve
    }

    fn of(points: &[(usize, u64)]) -> RowCosts {
        let mut costs = RowCosts::default();
        points.iter().for_each(|(rows, millis)| costs.measured(*rows, Duration::from_millis(*millis)));
        costs
    }

    fn close(left: f64, right: f64) -> bool {
        (left / right - 1.0).abs() < 1e-6
    }

    #[test]
    fn steps_stay_and_gaps_are_filled() {
        let curve = curve(&of(&[(1, 10), (2, 16), (4, 24), (8, 24), (9, 40)]), 0);
        let expected = [(1, 0.01), (3, 0.02), (6, 0.024), (8, 0.024), (9, 0.04), (18, 0.08), (128, 0.04 * 128.0 / 9.0)];
        for (rows, seconds) in expected {
            assert!(close(curve.seconds(rows), seconds), "{rows}: {}", curve.seconds(rows));
        }
    }

    #[test]
    fn contradictions_are_pooled() {
        let curve = curve(&of(&[(1, 30), (2, 30), (3, 20), (4, 40)]), 0);
        let expected = [0.03, 0.025, 0.025, 0.04];
        assert!(
            expected.iter().zip(1..).all(|(time, rows)| close(curve.seconds(rows), *time)),
            "{:?}",
            &curve.seconds[..5]
        );
    }

    #[test]
    fn depth_is_learned_for_all_rows() {
        let mut costs = of(&[(1, 10), (4, 20)]);
        let mut drift = Effect::new(0.0, 0.0015, 0.0015);
        for _ in 0..100 {
            costs.learn(1, 20_000, 0.03, &mut drift);
        }
        let (near, far) = (curve(&costs, 0), curve(&costs, 20_000));
        assert!((far.seconds(1) * drift.factor() / 0.03 - 1.0).abs() < 0.1);
        assert!(far.seconds(4) > 1.5 * near.seconds(4));
    }

    proptest! {
        #[test]
        fn never_decreasing_from_two_rows_on(points in proptest::collection::vec((1usize..70, 1u64..1000, 0usize..100_000), 0..40)) {
            let mut costs = RowCosts::default();
            let mut drift = Effect::new(0.0, 0.0015, 0.0015);
            for (rows, millis, depth) in points {
                costs.learn(rows, depth, millis as f64 / 1000.0, &mut drift);
                let curve = curve(&costs, depth);
                prop_assert!((2..100).all(|rows| curve.seconds(rows + 1) >= curve.seconds(rows) * (1.0 - 1e-9)));
                prop_assert!((1..100).all(|rows| curve.hoped(rows) <= curve.seconds(rows)));
            }
            prop_assert!(costs.is_sound());
        }
    }
}
