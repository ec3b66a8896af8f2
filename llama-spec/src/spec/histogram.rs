//! Durations counted by length.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many durations there were of each length, to about a fifth of it: enough to see the slow ones that an average
/// hides. It has a fixed size, and histograms can be added up.
///
/// ```
/// use llama_spec::spec::Histogram;
/// use std::time::Duration;
///
/// let mut histogram = Histogram::default();
/// (1..=100).for_each(|milliseconds| histogram.record(Duration::from_millis(milliseconds)));
/// assert_eq!(histogram.count(), 100);
/// assert_eq!(histogram.mean(), Some(Duration::from_micros(50_500)));
/// let median = histogram.quantile(0.5).unwrap();
/// assert!((40..60).contains(&median.as_millis()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Histogram {
    /// One for each bound and one for what is longer; empty while there is nothing, so that a fresh one allocates nothing.
    counts: Vec<u64>,
    sum: Duration,
}

/// What is read, before its length is known to be right.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Raw {
    counts: Vec<u64>,
    sum: Duration,
}

impl TryFrom<Raw> for Histogram {
    type Error = String;

    fn try_from(Raw { counts, sum }: Raw) -> Result<Self, String> {
        match counts.len() {
            0 | BUCKETS => Ok(Self { counts, sum }),
            other => Err(format!("a histogram with {other} counts: expected {BUCKETS}, or none")),
        }
    }
}

const BUCKETS: usize = Histogram::BOUNDS.len() + 1;

impl Histogram {
    /// The upper bounds of the buckets, from 100 us to 100 s, each included in its bucket.
    pub const BOUNDS: [Duration; 37] = {
        const STEPS: [u64; 6] = [100, 150, 200, 300, 500, 700];
        let mut bounds = [Duration::from_secs(100); 37];
        let mut index = 0;
        while index < 36 {
            bounds[index] = Duration::from_micros(STEPS[index % 6] * 10u64.pow(index as u32 / 6));
            index += 1;
        }
        bounds
    };

    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        self.counts.resize(BUCKETS, 0);
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < duration);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.sum = self.sum.saturating_add(duration);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().fold(0, u64::saturating_add)
    }

    /// All durations together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The average; nothing if nothing was counted.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.as_nanos().checked_div(u128::from(self.count()))?;
        let (seconds, nanos) = (mean / 1_000_000_000, mean % 1_000_000_000);
        Some(Duration::new(u64::try_from(seconds).unwrap_or(u64::MAX), nanos as u32))
    }

    /// About the duration that a share `q` of all do not exceed, as 0.5 for the median; nothing if nothing was counted.
    ///
    /// Within a bucket the durations are taken as evenly spread. What is longer than the last bound counts as that bound.
    /// `q` is taken as 0 below 0 and if it is no number, and as 1 above 1.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let q = if q.is_nan() { 0.0 } else { q.clamp(0.0, 1.0) };
        let rank = q * count as f64;
        let mut below = 0u64;
        let mut lower = Duration::ZERO;
        for (upper, inside) in Self::BOUNDS.iter().zip(&self.counts) {
            let reached = below.saturating_add(*inside);
            if *inside > 0 && reached as f64 >= rank {
                let share = ((rank - below as f64) / *inside as f64).clamp(0.0, 1.0);
                return Some(lower + (*upper - lower).mul_f64(share));
            }
            (below, lower) = (reached, *upper);
        }
        Some(lower)
    }

    /// The upper bound of each bucket, none for the last, and how many durations do not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = Self::BOUNDS.into_iter().map(Some).chain([None]);
        let counts = self.counts.iter().copied().chain(std::iter::repeat(0));
        bounds.zip(counts).scan(0u64, |total, (bound, count)| {
            *total = total.saturating_add(count);
            Some((bound, *total))
        })
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        self.sum = self.sum.saturating_add(other.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bounds_grow_evenly() {
        let bounds = Histogram::BOUNDS;
        assert_eq!((bounds[0], bounds[36]), (Duration::from_micros(100), Duration::from_secs(100)));
        for pair in bounds.windows(2) {
            let ratio = pair[1].as_secs_f64() / pair[0].as_secs_f64();
            assert!((1.3..1.7).contains(&ratio), "{pair:?}");
        }
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut histogram = Histogram::default();
        for microseconds in [0, 100, 101, 150, 100_000_000, 100_000_001, 4_000_000_000] {
            histogram.record(Duration::from_micros(microseconds));
        }
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!((counts[0], counts[1], counts[2], counts[35], counts[36], counts[37]), (2, 4, 4, 4, 5, 7));
        assert_eq!(histogram.quantile(1.0), Some(Duration::from_secs(100)));
    }

    #[test]
    fn nothing_has_no_quantile() {
        let histogram = Histogram::default();
        assert_eq!((histogram.count(), histogram.mean(), histogram.quantile(0.5)), (0, None, None));
        assert_eq!(histogram.cumulative().filter(|(_, count)| *count == 0).count(), BUCKETS);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let mut histogram = Histogram { counts: vec![u64::MAX; BUCKETS], sum: Duration::MAX };
        histogram.record(Duration::MAX);
        histogram.add(&histogram.clone());
        assert_eq!((histogram.count(), histogram.sum()), (u64::MAX, Duration::MAX));
        assert!(histogram.mean().is_some() && histogram.quantile(0.9).is_some());
        let mut histogram = Histogram::default();
        histogram.record(Duration::MAX);
        assert_eq!(histogram.mean(), Some(Duration::MAX));
    }

    #[test]
    fn json_is_checked() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_millis(5));
        let json = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), histogram);
        assert_eq!(serde_json::from_str::<Histogram>("{}").unwrap(), Histogram::default());
        let why = serde_json::from_str::<Histogram>(r#"{"counts":[1,2]}"#).unwrap_err().to_string();
        assert!(why.contains("2 counts: expected 38"), "{why}");
    }

    proptest! {
        /// A quantile lies in the bucket in which the sorted durations have it.
        #[test]
        fn quantiles_are_close(
            mut durations in proptest::collection::vec(100u64..100_000_000, 1..200),
            q in -0.5f64..1.5,
        ) {
            let mut histogram = Histogram::default();
            durations.iter().for_each(|duration| histogram.record(Duration::from_micros(*duration)));
            durations.sort_unstable();
            let rank = (q.clamp(0.0, 1.0) * durations.len() as f64).ceil() as usize;
            let exact = Duration::from_micros(durations[rank.max(1) - 1]);
            let bucket = Histogram::BOUNDS.partition_point(|bound| *bound < exact);
            let lower = if bucket == 0 { Duration::ZERO } else { Histogram::BOUNDS[bucket - 1] };
            let estimate = histogram.quantile(q).unwrap();
            prop_assert!(lower <= estimate && estimate <= Histogram::BOUNDS[bucket], "{estimate:?} for {exact:?}");
        }

        /// Adding parts gives the whole.
        #[test]
        fn parts_add_up(durations in proptest::collection::vec(0u64..1_000_000_000, 0..50), cut in 0usize..50) {
            let all = |durations: &[u64]| {
                let mut histogram = Histogram::default();
                durations.iter().for_each(|duration| histogram.record(Duration::from_micros(*duration)));
                histogram
            };
            let cut = cut.min(durations.len());
            let mut sum = all(&durations[..cut]);
            sum.add(&all(&durations[cut..]));
            prop_assert_eq!(sum.count(), durations.len() as u64);
            prop_assert_eq!(sum, all(&durations));
        }
    }
}
