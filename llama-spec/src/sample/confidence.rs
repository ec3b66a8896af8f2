//! The most probable token of a row of logits, and how sure the row is of it.
//!
//! This runs for every drafted token, on rows of 150 000 logits and more, so the row is read from memory once: it is cut into
//! blocks, and what needs a second look at a block finds it in the cache. The sum of the softmax is carried along relative to the
//! largest logit so far (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3). The loops
//! over lanes are written so that compilers turn them into vector instructions.

use super::Candidate;
use crate::token::Token;

/// How sure a draft is of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Confidence {
    /// The probability of the drafted token, by the softmax over the whole vocabulary.
    pub(crate) probability: f32,
    /// The distance between the two largest logits; 0 when they are equal, infinite when there is only one.
    pub(crate) margin: f32,
}

/// Logits looked at together; a multiple of [`LANES`].
const BLOCK: usize = 512;
const LANES: usize = 16;

/// The token with the largest logit, the one with the smallest number when several have it. Nothing when no logit is a number
/// above minus infinity, or one is plus infinity.
pub(crate) fn most_probable(logits: &[f32]) -> Option<(Token, Confidence)> {
    let (mut best, mut second) = ([f32::NEG_INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    let (mut max, mut at, mut sum) = (f32::NEG_INFINITY, 0, 0.0_f32);
    for (number, block) in logits.chunks(BLOCK).enumerate() {
        let of_block = two_largest(block, &mut best, &mut second);
        if of_block > max {
            sum *= exp(max - of_block);
            (max, at) = (of_block, number * BLOCK);
        }
        if max > f32::NEG_INFINITY {
            sum += sum_of_exponentials(block, max);
        }
    }
    if !max.is_finite() {
        return None;
    }
    let index = at + logits.get(at..)?.iter().position(|logit| *logit == max)?;
    let token = Token::new(i32::try_from(index).ok()?);
    let runner_up = runner_up(&best, &second);
    Some((token, Confidence { probability: 1.0 / sum, margin: max - runner_up }))
}

/// The confidence in a token that need not be the most probable one.
pub(crate) fn confidence_in(logits: &[f32], token: Token) -> Option<Confidence> {
    let (best, of_best) = most_probable(logits)?;
    let logit = |token: Token| logits.get(usize::try_from(token.id()).ok()?).copied();
    let below = logit(best)? - logit(token)?;
    Some(Confidence { probability: of_best.probability * (-below).exp(), ..of_best })
}

/// The `count` largest logits in falling order, with probabilities that add up to 1 at this temperature; of equal ones those
/// with the smallest numbers. Fewer when there are not so many; none as with [`most_probable`].
pub(crate) fn largest(logits: &[f32], count: usize, temperature: f32, into: &mut Vec<Candidate>) {
    into.clear();
    let mut least = f32::NEG_INFINITY;
    for (number, block) in logits.chunks(BLOCK).enumerate() {
        if max_of(block) <= least {
            continue;
        }
        for (offset, logit) in block.iter().enumerate().filter(|(_, logit)| **logit > f32::NEG_INFINITY) {
            if into.len() == count && *logit <= least {
                continue;
            }
            let place = into.partition_point(|one| one.logit >= *logit);
            into.truncate(count.saturating_sub(1));
            let token = Token::new((number * BLOCK + offset) as i32);
            into.insert(place.min(into.len()), Candidate { token, logit: *logit, probability: 0.0 });
            if into.len() == count {
                least = into.last().map_or(least, |one| one.logit);
            }
        }
    }
    let Some(max) = into.first().map(|one| one.logit).filter(|max| max.is_finite()) else { return into.clear() };
    into.iter_mut().for_each(|one| one.probability = ((one.logit - max) / temperature).exp());
    let sum: f32 = into.iter().map(|one| one.probability).sum();
    into.iter_mut().for_each(|one| one.probability /= sum);
}

/// Notes the two largest logits of each lane, and gives the largest of the block. What is no number is passed over.
fn two_largest(block: &[f32], best: &mut [f32; LANES], second: &mut [f32; LANES]) -> f32 {
    // Copies stay in registers.
    let (mut first, mut next, mut of_block) = (*best, *second, [f32::NEG_INFINITY; LANES]);
    let (whole, rest) = block.as_chunks::<LANES>();
    let mut last = [f32::NEG_INFINITY; LANES];
    last[..rest.len()].copy_from_slice(rest);
    for chunk in whole.iter().chain([&last]) {
        for lane in 0..LANES {
            let logit = chunk[lane];
            let lower = if logit > first[lane] { first[lane] } else { logit };
            first[lane] = if logit > first[lane] { logit } else { first[lane] };
            next[lane] = if lower > next[lane] { lower } else { next[lane] };
            of_block[lane] = if logit > of_block[lane] { logit } else { of_block[lane] };
        }
    }
    (*best, *second) = (first, next);
    of_block.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// The largest logit of a block.
fn max_of(block: &[f32]) -> f32 {
    let mut max = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = block.as_chunks::<LANES>();
    for chunk in whole {
        for lane in 0..LANES {
            max[lane] = if chunk[lane] > max[lane] { chunk[lane] } else { max[lane] };
        }
    }
    max.iter().chain(rest).fold(f32::NEG_INFINITY, |max, logit| max.max(*logit))
}

fn runner_up(best: &[f32; LANES], second: &[f32; LANES]) -> f32 {
    let mut both = [f32::NEG_INFINITY; 2];
    for logit in best.iter().chain(second) {
        match *logit {
            logit if logit > both[0] => both = [logit, both[0]],
            logit if logit > both[1] => both[1] = logit,
            _ => {}
        }
    }
    both[1]
}

/// The sum of exp(logit - max) over a block.
fn sum_of_exponentials(block: &[f32], max: f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (whole, rest) = block.as_chunks::<LANES>();
    for chunk in whole {
        for lane in 0..LANES {
            sums[lane] += exp(chunk[lane] - max);
        }
    }
    let rest: f32 = rest.iter().map(|logit| exp(logit - max)).sum();
    sums.into_iter().sum::<f32>() + rest
}

/// exp of a number that is not above 0, to about seven digits and without branches: a power of two by the bits of the exponent
/// times the Taylor series of the rest. What is too small for a float becomes nearly 0, as does what is no number.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Added to a small number, it rounds it to a whole one, which then stands in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > -87.0 { x } else { -87.0 };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, so that the product of the first is exact.
    let rest = (x - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let series = 1.0
        + rest * (1.0 + rest * (0.5 + rest * (1.0 / 6.0 + rest * (1.0 / 24.0 + rest * (1.0 / 120.0 + rest / 720.0)))));
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    series * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In double precision and one thing after the other.
    fn plainly(logits: &[f32]) -> Option<(usize, f64, f64)> {
        let mut order: Vec<usize> = (0..logits.len()).filter(|index| logits[*index] > f32::NEG_INFINITY).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
        let max = f64::from(logits[*order.first()?]);
        let sum: f64 = order.iter().map(|index| (f64::from(logits[*index]) - max).exp()).sum();
        let margin = order.get(1).map_or(f64::INFINITY, |index| max - f64::from(logits[*index]));
        Some((order[0], 1.0 / sum, margin))
    }

    fn row() -> impl Strategy<Value = Vec<f32>> {
        let logit = prop_oneof![
            8 => -40.0_f32..40.0,
            2 => (-3_i8..3).prop_map(f32::from),
            1 => Just(f32::NEG_INFINITY),
            1 => -1e30_f32..1e30,
        ];
        prop::collection::vec(logit, 0..2000)
    }

    proptest! {
        #[test]
        fn it_is_what_the_softmax_says(logits in row()) {
            match (most_probable(&logits), plainly(&logits)) {
                (None, None) => {}
                (Some((token, confidence)), Some((index, probability, margin))) => {
                    prop_assert_eq!(token.id() as usize, index);
                    prop_assert!((f64::from(confidence.probability) - probability).abs() < 2e-6);
                    prop_assert!((f64::from(confidence.margin) - margin).abs() <= 1e-6 * margin || confidence.margin == margin as f32);
                }
                (one, other) => prop_assert!(false, "{:?} and {:?}", one, other),
            }
        }

        #[test]
        fn the_largest_are_in_order(logits in row(), count in 1_usize..12) {
            let mut largest = Vec::new();
            super::largest(&logits, count, 0.7, &mut largest);
            let mut order: Vec<usize> = (0..logits.len()).filter(|index| logits[*index] > f32::NEG_INFINITY).collect();
            order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
            order.truncate(count);
            let tokens: Vec<usize> = largest.iter().map(|one| one.token.id() as usize).collect();
            prop_assert_eq!(tokens, order);
            let sum: f32 = largest.iter().map(|one| one.probability).sum();
            prop_assert!(largest.is_empty() || (sum - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn exponentials_are_right_to_a_millionth() {
        for step in 0..87_000 {
            let x = -(step as f32) / 1000.0;
            let right = f64::from(x).exp();
            assert!((f64::from(exp(x)) - right).abs() <= 1e-6 * right, "{x}: {} and {right}", exp(x));
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37 && exp(f32::NAN) < 1e-37);
    }

    #[test]
    fn rows_that_are_no_numbers_have_none() {
        assert_eq!(most_probable(&[]), None);
        assert_eq!(most_probable(&[f32::NAN; 40]), None);
        assert_eq!(most_probable(&[f32::NEG_INFINITY; 40]), None);
        assert_eq!(most_probable(&[0.0, f32::INFINITY, 1.0]), None);
        let (token, confidence) = most_probable(&[f32::NAN, 1.0, f32::NAN]).unwrap();
        assert_eq!((token.id(), confidence.margin), (1, f32::INFINITY));
        assert!((confidence.probability - 1.0).abs() < 1e-6);
        let mut largest = Vec::new();
        super::largest(&[f32::NAN; 3], 10, 1.0, &mut largest);
        assert!(largest.is_empty());
    }

    #[test]
    fn another_token_is_as_probable_as_the_softmax_says() {
        let confidence = confidence_in(&[1.0, 2.0, 0.0], Token::new(0)).unwrap();
        let sum = (1.0_f32.exp()) + 2.0_f32.exp() + 1.0;
        assert!((confidence.probability - 1.0_f32.exp() / sum).abs() < 1e-6);
        assert!((confidence.margin - 1.0).abs() < 1e-6);
        assert_eq!(confidence_in(&[1.0], Token::new(7)), None);
    }
}
