//! Ratios of things measured in turn, since the machines that run benches are noisy.

use serde::Serialize;
use std::time::{Duration, Instant};

/// The ratio of two things measured in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The smallest of the pairs.
    pub min: f64,
    /// The middle one: the one to quote.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Ratio {
    /// The spread of these numbers; nothing if there are none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = |place: usize| sorted.get(place).copied().unwrap_or(max);
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { middle(half) } else { (middle(half - 1) + middle(half)) / 2.0 };
        Some(Self { min, median, max })
    }
}

/// The geometric mean: that of ratios, for which twice as fast and half as fast cancel out. Nothing if there are none, or if
/// one is not above 0.
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for number in numbers {
        if number.is_nan() || number <= 0.0 {
            return None;
        }
        sum += number.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// Runs `ours` and `theirs` in turn, `pairs` times (at least once), and compares how long they take.
pub fn paired(pairs: usize, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> Ratio {
    fn timed(run: &mut dyn FnMut()) -> Duration {
        let start = Instant::now();
        run();
        start.elapsed()
    }
    let times = paired_times(pairs, || timed(&mut ours), || timed(&mut theirs));
    let ratios = times.into_iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64());
    Ratio::of(ratios).unwrap_or(Ratio { min: f64::NAN, median: f64::NAN, max: f64::NAN })
}

/// As [`paired`], for those who time themselves: the times of each pair. The first ones, which warm up, are not among them.
pub fn paired_times(
    pairs: usize,
    mut ours: impl FnMut() -> Duration,
    mut theirs: impl FnMut() -> Duration,
) -> Vec<(Duration, Duration)> {
    ours();
    theirs();
    let pair = |pair: usize| {
        // Each goes first half of the time, so that a drift of the machine's speed favours neither.
        if pair.is_multiple_of(2) {
            let first = ours();
            (first, theirs())
        } else {
            let first = theirs();
            (ours(), first)
        }
    };
    (0..pairs.max(1)).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two_middle_ones() {
        assert_eq!(Ratio::of([3.0, 1.0, 2.0]), Some(Ratio { min: 1.0, median: 2.0, max: 3.0 }));
        assert_eq!(Ratio::of([4.0, 1.0, 2.0, 3.0]), Some(Ratio { min: 1.0, median: 2.5, max: 4.0 }));
        assert_eq!(Ratio::of([7.0]), Some(Ratio { min: 7.0, median: 7.0, max: 7.0 }));
        assert_eq!(Ratio::of([]), None);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        assert_eq!(Ratio::of([f64::NAN, 1.0, f64::INFINITY]), Some(Ratio { min: 1.0, median: 1.0, max: 1.0 }));
        assert_eq!(Ratio::of([f64::NAN]), None);
    }

    #[test]
    fn pairs_are_in_turn_and_the_warm_up_is_left_out() {
        let order = std::cell::RefCell::new(String::new());
        let run = |name: char, time: u64| {
            order.borrow_mut().push(name);
            Duration::from_secs(time)
        };
        let times = paired_times(2, || run('o', 2), || run('t', 4));
        assert_eq!(times, [(Duration::from_secs(2), Duration::from_secs(4)); 2]);
        assert_eq!(*order.borrow(), "ototto");
    }

    #[test]
    fn opposite_ratios_cancel_out() {
        let mean = geometric_mean([2.0, 0.5, 4.0, 0.25]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12, "{mean}");
        let mean = geometric_mean([1.0, 8.0]).unwrap();
        assert!((mean - 8f64.sqrt()).abs() < 1e-12, "{mean}");
        assert_eq!(geometric_mean([]), None);
        assert_eq!(geometric_mean([1.0, 0.0]), None);
        assert_eq!(geometric_mean([1.0, f64::NAN]), None);
    }
}
