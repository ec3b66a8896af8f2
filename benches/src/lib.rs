//! What the benches share: pairs of measurements, since the machines that run them are noisy.

#[path = "../../llama-sys/bench/bare_loop.rs"]
mod bare_loop;

pub use bare_loop::BareLoop;

use std::time::{Duration, Instant};

/// The ratio of two things measured in turn.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// The smallest of the pairs.
    pub min: f64,
    /// The middle one: the one to quote.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

/// Runs `ours` and `theirs` in turn, `pairs` times, and compares how long they take.
pub fn paired(pairs: usize, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> Ratio {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let ratio = |ours: Duration, theirs: Duration| ours.as_secs_f64() / theirs.as_secs_f64();
    time(&mut ours);
    time(&mut theirs);
    let mut ratios: Vec<f64> = (0..pairs)
        .map(|pair| {
            // Each goes first half of the time, so that a drift of the machine's speed favours neither.
            if pair % 2 == 0 {
                let first = time(&mut ours);
                ratio(first, time(&mut theirs))
            } else {
                let first = time(&mut theirs);
                ratio(time(&mut ours), first)
            }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    Ratio { min: ratios[0], median: ratios[pairs / 2], max: ratios[pairs - 1] }
}
