//! How many rows a batch may have before its logits are others: kernels switch with the number of rows.

use super::deadline::Deadline;
use super::report::RowsMeasured;
use crate::error::Result;
use crate::runner::{Alone, Runner};
use std::time::Duration;

/// The numbers of rows that are tried: those at which kernels are known to switch, and their neighbours.
const LADDER: [usize; 15] = [2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32, 33, 48, 64];

/// The most of them.
pub(super) const MOST_ROWS: usize = 64;

/// A difference of logits that is plain rounding with every type of weights.
const ROUNDING: f32 = 1e-2;

/// A step is so many times the difference that two rows have: some devices never compute two rows as they compute one.
const STEP: f32 = 8.0;

/// Whatever two rows differ by, this is more than rounding.
const MOST: f32 = 0.25;

/// Repetitions of each, for the times.
const TIMES: usize = 3;

/// What was measured, and why not all of it.
pub(super) struct Measured {
    pub(super) rows: Vec<RowsMeasured>,
    pub(super) left_out: Option<String>,
}

/// Decodes what was decoded alone again in batches of more and more rows, as they are verified: some of each slot, and of each
/// slot the same number.
pub(super) fn measure(runner: &mut Runner, alone: &Alone, deadline: &Deadline) -> Result<Measured> {
    let each = runner.outputs_per_slot().min(alone.rows.len());
    let slots = runner.target().slots() as usize;
    let most = runner.target().batch_size() as usize;
    let shapes = LADDER.iter().filter(|rows| **rows <= most).filter_map(|rows| shape(*rows, slots, each));
    let shapes: Vec<(usize, usize)> = shapes.collect();
    let used = shapes.iter().map(|(slots, _)| *slots).max().unwrap_or(1);
    runner.spread(alone, used)?;
    let mut measured: Vec<(RowsMeasured, Vec<Duration>)> = Vec::new();
    let mut left_out = None;
    // Copied memories are copied when something is decoded next.
    runner.decode_together(alone, 1, 1, |_, _| {})?;
    'all: for repetition in 0..TIMES {
        for (index, (slots, each)) in shapes.iter().copied().enumerate() {
            let expected = measured.get(index).or(measured.last()).and_then(|(_, times)| times.first()).copied();
            if deadline.left() < expected.unwrap_or_default() || deadline.is_over() {
                if repetition == 0 {
                    left_out = Some(format!("batches of {} rows and more: out of time", slots * each));
                }
                break 'all;
            }
            let (mut difference, mut flips) = (0f32, 0);
            let time = runner.decode_together(alone, slots, each, |number, row| {
                let reference = &alone.rows[number];
                if repetition == 0 {
                    difference = difference.max(distance(reference, row));
                    flips += u32::from(best(reference) != best(row));
                }
            })?;
            match measured.get_mut(index) {
                Some((_, times)) => times.push(time),
                None => {
                    let rows = (slots * each) as u32;
                    measured.push((RowsMeasured::new(rows, time, difference, flips), vec![time]));
                }
            }
        }
    }
    let rows = measured.into_iter().map(|(one, times)| RowsMeasured { time: median(times), ..one });
    Ok(Measured { rows: judge(rows.collect()), left_out })
}

/// So many rows in equal parts for as few slots as can be; else they would not be computed together.
fn shape(rows: usize, slots: usize, each: usize) -> Option<(usize, usize)> {
    let fewest = rows.div_ceil(each.max(1));
    (fewest..=slots).find(|slots| rows.is_multiple_of(*slots)).map(|slots| (slots, rows / slots))
}

/// Says which of them are exact.
fn judge(mut rows: Vec<RowsMeasured>) -> Vec<RowsMeasured> {
    let least = rows.first().map_or(0.0, |first| first.difference);
    let allowed = (least * STEP).clamp(ROUNDING, MOST);
    rows.iter_mut().for_each(|one| one.exact = one.difference <= allowed);
    rows
}

/// The largest number of rows before the first that is not exact; nothing if none was measured.
pub(super) fn exact(rows: &[RowsMeasured]) -> Option<u32> {
    let first = rows.first()?;
    let exact = rows.iter().take_while(|one| one.exact).last();
    Some(exact.map_or(first.rows.min(2) - 1, |one| one.rows))
}

/// The largest difference of two rows; infinite where one of them has no number.
fn distance(one: &[f32], other: &[f32]) -> f32 {
    let differ = |(one, other): (&f32, &f32)| match one == other {
        // Minus infinity stands for tokens that there are none of.
        true => 0.0,
        false => (one - other).abs(),
    };
    let finite = |difference: f32| if difference.is_nan() { f32::INFINITY } else { difference };
    one.iter().zip(other).map(differ).map(finite).fold(0.0, f32::max)
}

fn best(row: &[f32]) -> Option<usize> {
    let larger = |best: Option<(usize, f32)>, (id, logit): (usize, &f32)| match best {
        Some((_, most)) if *logit <= most => best,
        _ => Some((id, *logit)),
    };
    row.iter().enumerate().fold(None, larger).map(|(id, _)| id)
}

pub(super) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(differences: &[(u32, f32)]) -> Vec<RowsMeasured> {
        let one = |(rows, difference): &(u32, f32)| RowsMeasured::new(*rows, Duration::ZERO, *difference, 0);
        judge(differences.iter().map(one).collect())
    }

    #[test]
    fn a_step_is_told_from_rounding() {
        // As seen: four-bit weights, then F16, then a device whose kernels for one row are others than for two.
        assert_eq!(exact(&rows(&[(2, 0.0), (8, 0.0), (48, 0.0), (64, 1.0)])), Some(48));
        assert_eq!(exact(&rows(&[(2, 5e-4), (8, 5e-4), (64, 6e-4)])), Some(64));
        assert_eq!(exact(&rows(&[(2, 0.02), (8, 0.03), (16, 0.04), (32, 0.2)])), Some(16));
        assert_eq!(exact(&rows(&[(2, 0.9), (8, 0.9)])), Some(1));
        assert_eq!(exact(&rows(&[])), None);
    }

    #[test]
    fn what_is_no_number_is_far_from_everything() {
        assert_eq!(distance(&[1.0, f32::NEG_INFINITY], &[1.5, f32::NEG_INFINITY]), 0.5);
        assert_eq!(distance(&[1.0, 2.0], &[1.0, f32::NAN]), f32::INFINITY);
        assert_eq!(best(&[1.0, 3.0, 3.0, 2.0]), Some(1));
    }

    #[test]
    fn rows_are_shared_evenly_by_as_few_slots_as_can_be() {
        assert_eq!(shape(8, 4, 13), Some((1, 8)));
        assert_eq!(shape(16, 4, 13), Some((2, 8)));
        assert_eq!(shape(33, 4, 13), Some((3, 11)));
        assert_eq!(shape(17, 4, 13), None);
        assert_eq!(shape(64, 4, 13), None);
        assert_eq!(shape(2, 1, 0), None);
    }
}
