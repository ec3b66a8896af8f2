//! How probable the model found a token, and which ones it found most probable.

use crate::token::Token;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Logarithms (to base e) of probabilities, as the model gave them: before any stage of a sampler, at temperature 1.
///
/// ```
/// use llama_spec::Token;
/// use llama_spec::sample::Logprobs;
/// let row = [0.0, 2f32.ln(), 0.0];
/// let logprobs = Logprobs::of(&row, Token::new(2), 1);
/// assert!((logprobs.logprob - 0.25f32.ln()).abs() < 1e-6);
/// assert_eq!(logprobs.top[0].0, Token::new(1));
/// assert!((logprobs.top[0].1 - 0.5f32.ln()).abs() < 1e-6);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logprobs {
    /// Of the token that was asked for: 0 or less. Minus infinity when its logit is, or the row does not have it; NaN when the
    /// row holds NaN or infinity.
    pub logprob: f32,
    /// The most probable tokens, in falling order, the one with the smaller number first when two are equally probable. Without
    /// those whose logit is minus infinity or NaN.
    pub top: Vec<(Token, f32)>,
}

impl Logprobs {
    /// From a row of logits ([`Context::logits`](crate::Context::logits)): of `token`, and of the `top` most probable ones.
    pub fn of(row: &[f32], token: Token, top: usize) -> Self {
        let best = best(row, top.max(1));
        let max = best.first().map_or(f32::NEG_INFINITY, |id| row[*id]);
        // The differences are small and negative where it counts, so that single precision does for them but not for the sum.
        let sum: f64 = row.iter().map(|logit| f64::from((logit - max).exp())).sum();
        let logprob = |logit: f32| (f64::from(logit) - f64::from(max) - sum.ln()) as f32;
        let of_token = usize::try_from(token.id()).ok().and_then(|id| row.get(id));
        Self {
            logprob: match of_token {
                Some(logit) if !best.is_empty() => logprob(*logit),
                _ => f32::NEG_INFINITY,
            },
            top: best.into_iter().take(top).map(|id| (Token::new(id as i32), logprob(row[id]))).collect(),
        }
    }
}

/// The positions of the `n` largest values, the largest first, in one pass over the row and without sorting it.
fn best(row: &[f32], n: usize) -> Vec<usize> {
    // The smallest of those kept so far is on top.
    let mut kept: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    // Most values of a row are below that one, and a comparison of numbers is all they cost.
    let mut threshold = f32::NEG_INFINITY;
    for (id, value) in row.iter().enumerate() {
        if *value > threshold {
            if kept.len() == n {
                kept.pop();
            }
            kept.push(Reverse(key(*value, id as u32)));
            if let Some(Reverse(least)) = kept.peek().filter(|_| kept.len() == n) {
                threshold = row[position(*least)];
            }
        }
    }
    kept.into_sorted_vec().into_iter().map(|Reverse(key)| position(key)).collect()
}

/// Orders by the value, and by the smaller position where values are the same.
fn key(value: f32, position: u32) -> u64 {
    // Adding zero makes both zeros the same. The bits of positive floats are in the order of the floats, those of negative ones
    // in the opposite order.
    let bits = (value + 0.0).to_bits();
    let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    u64::from(ordered) << 32 | u64::from(!position)
}

fn position(key: u64) -> usize {
    !(key as u32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By the definition, with everything in double precision and a full sort.
    fn naive(row: &[f32], token: usize, top: usize) -> (f64, Vec<(usize, f64)>) {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|logit| (f64::from(*logit) - f64::from(max)).exp()).sum();
        let logprob = |id: usize| f64::from(row[id]) - f64::from(max) - sum.ln();
        let mut order: Vec<usize> = (0..row.len()).filter(|id| row[*id] > f32::NEG_INFINITY).collect();
        order.sort_by(|a, b| row[*b].partial_cmp(&row[*a]).unwrap().then(a.cmp(b)));
        (logprob(token), order.into_iter().take(top).map(|id| (id, logprob(id))).collect())
    }

    fn near(found: f32, expected: f64) -> bool {
        // One rounding to f32, and the errors of single exponentials.
        f64::from(found) == expected || (f64::from(found) - expected).abs() <= 1e-6 + expected.abs() * 1e-6
    }

    fn logit() -> impl Strategy<Value = f32> {
        prop_oneof![
            8 => -30f32..30.0,
            2 => (-3i8..3).prop_map(f32::from),
            1 => -1e30f32..1e30,
            1 => Just(-0.0f32),
            1 => Just(f32::NEG_INFINITY),
        ]
    }

    proptest! {
        #[test]
        fn it_is_the_definition(
            row in proptest::collection::vec(logit(), 1..200).prop_filter("something", |row| row.iter().any(|l| l.is_finite())),
            token in any::<proptest::sample::Index>(),
            top in 0..220usize,
        ) {
            let token = token.index(row.len());
            let found = Logprobs::of(&row, Token::new(token as i32), top);
            let (logprob, best) = naive(&row, token, top);
            prop_assert!(near(found.logprob, logprob), "{} is not {logprob}", found.logprob);
            prop_assert_eq!(found.top.len(), best.len());
            for ((token, found), (id, expected)) in found.top.iter().zip(best) {
                prop_assert_eq!(token.id() as usize, id);
                prop_assert!(near(*found, expected), "{} is not {}", found, expected);
            }
        }

        #[test]
        fn any_bits_and_any_token_are_survived(bits in proptest::collection::vec(any::<u32>(), 0..50), id in any::<i32>(), top in 0..60usize) {
            let row: Vec<f32> = bits.into_iter().map(f32::from_bits).collect();
            let logprobs = Logprobs::of(&row, Token::new(id), top);
            prop_assert!(logprobs.top.len() <= top.min(row.len()));
        }
    }

    #[test]
    fn probabilities_add_up_to_one_over_a_large_vocabulary() {
        let row: Vec<f32> = (0..150_000u32).map(|id| (id.wrapping_mul(2_654_435_761) >> 12) as f32 / 1e5).collect();
        let all = Logprobs::of(&row, Token::new(0), row.len());
        let sum: f64 = all.top.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        assert_eq!(Logprobs::of(&row, Token::new(0), 20).top, all.top[..20]);
    }

    #[test]
    fn rows_that_are_no_distribution() {
        let nothing = Logprobs { logprob: f32::NEG_INFINITY, top: vec![] };
        assert_eq!(Logprobs::of(&[], Token::new(0), 3), nothing);
        assert_eq!(Logprobs::of(&[f32::NEG_INFINITY; 4], Token::new(0), 3), nothing);
        for id in [-1, 4, i32::MAX, i32::MIN] {
            assert_eq!(Logprobs::of(&[0.0; 4], Token::new(id), 0), nothing);
        }
        assert!(Logprobs::of(&[0.0, f32::NAN], Token::new(0), 1).logprob.is_nan());
        assert!(Logprobs::of(&[0.0, f32::INFINITY], Token::new(0), 1).logprob.is_nan());
    }
}
