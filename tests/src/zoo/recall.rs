//! Text that depends on earlier tokens: attention heads that look a fixed number of tokens back and vote.
//!
//! With the successor function alone, a cache with wrong content changes no token, so rollback faults stay hidden.
//! Here every token has two possible successors, one of each of two classes of characters. For each lag, a head of the
//! first layer attends to exactly the token that many positions back and reads a sign from it; the sum of the signs
//! chooses the class. Wrong, missing or doubled cache entries at those positions change the text.
//!
//! How a head finds a position: its query and all keys are constant vectors, which rotary embedding turns into a score
//! that depends on the distance alone: the sum over the frequencies of `cos(frequency * (distance - lag))`. It is
//! largest at the lag.

use std::sync::LazyLock;

use super::chain::{Chain, Next};
use crate::rng::Rng;

/// The rotary base of zoo models; llama.cpp's default.
pub(super) const ROPE_BASE: f64 = 10_000.0;
/// Attention score per unit of the sum of cosines: a difference of 0.1 in the sum is a factor of 36,000 in weight.
pub(super) const GAIN: f64 = 105.0;
/// The least difference between the best and the second-best position.
const GAP: f64 = 0.1;

/// How far back the heads look, in tokens before the last: an odd number of lags, so that votes are never even.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recall {
    lags: Vec<u32>,
    head_width: u32,
    /// For each lag: the distance that the head finds when the last token has 0, 1, 2... tokens before it, as long as
    /// there are fewer than the lag.
    early: Vec<Vec<usize>>,
}

impl Recall {
    /// Heads of width `head_width` with these lags. Panics for lags that such a head cannot tell from others within
    /// `context_length` tokens.
    pub(super) fn new(lags: &[u32], head_width: u32, context_length: u32) -> Self {
        assert!(lags.len() % 2 == 1, "an odd number of lags, so that votes are never even: {lags:?}");
        let early = lags
            .iter()
            .map(|&lag| {
                let scores: Vec<f64> = (0..context_length.max(lag + 1))
                    .map(|distance| {
                        frequencies(head_width).map(|f| (f * (f64::from(distance) - f64::from(lag))).cos()).sum()
                    })
                    .collect();
                assert_eq!(best(&scores, lag), lag as usize);
                (1..=lag as usize).map(|known| best(&scores[..known], lag)).collect()
            })
            .collect();
        Self { lags: lags.to_vec(), head_width, early }
    }

    /// The lags, one a head.
    pub(super) fn lags(&self) -> &[u32] {
        &self.lags
    }

    /// The query of the head with `lag`: pairs of numbers, one a rotary frequency, for keys of `(1, 0)` pairs.
    pub(super) fn query(&self, lag: u32) -> Vec<f32> {
        // llama.cpp divides scores by the square root of the width
        let gain = GAIN * f64::from(self.head_width).sqrt();
        frequencies(self.head_width)
            .flat_map(|frequency| {
                let angle = frequency * f64::from(lag);
                [(gain * angle.cos()) as f32, (-gain * angle.sin()) as f32]
            })
            .collect()
    }

    /// The sum of the signs that the heads read from a context, given as the signs of its tokens in order.
    pub(super) fn vote(&self, signs: &[i32]) -> i32 {
        let before = signs.len() - 1;
        let distances =
            self.lags.iter().zip(&self.early).map(|(&lag, early)| early.get(before).copied().unwrap_or(lag as usize));
        distances.map(|distance| signs[before - distance]).sum()
    }
}

/// The possible successors of a token: for a vote above 0 and below 0.
pub(super) fn successors(chain: &Chain, byte: Option<u8>) -> [Next; 2] {
    if chain.end_after().is_some() && chain.end_after() == byte {
        return [chain.next(byte); 2];
    }
    let length = chain.cycle().len();
    let (place, differs) = match chain.place(byte) {
        Some(place) => (place, chain.differs_at(place)),
        None => (chain.entry(byte), false),
    };
    [0, 1].map(|class| {
        let mut order: Vec<usize> = (0..length).collect();
        Rng::new(0, "successors", class as u64).shuffle(&mut order);
        // Places of one class are those of one parity
        let count = (length + 1 - class) / 2;
        let shift = if differs { count / 2 } else { 0 };
        Next::Byte(chain.cycle()[(order[place] + shift) % count * 2 + class])
    })
}

/// The class of a token: 1 and -1 for the successors at votes above and below 0, 0 for tokens outside of the cycle.
pub(super) fn class(chain: &Chain, byte: Option<u8>) -> i32 {
    chain.place(byte).map_or(0, |place| if place % 2 == 0 { 1 } else { -1 })
}

/// The sign that heads read from a token: fixed, for half of the bytes 1 and for the other half -1.
pub(super) fn sign(byte: Option<u8>) -> i32 {
    static SIGNS: LazyLock<Vec<i32>> = LazyLock::new(|| {
        let mut signs = [[1; 128], [-1; 128]].concat();
        Rng::new(0, "signs", 0).shuffle(&mut signs);
        signs
    });
    byte.map_or(1, |byte| SIGNS[usize::from(byte)])
}

fn frequencies(head_width: u32) -> impl Iterator<Item = f64> {
    (0..head_width / 2).map(move |pair| ROPE_BASE.powf(-2.0 * f64::from(pair) / f64::from(head_width)))
}

/// The distance with the largest score. Panics where the second is too near to it.
fn best(scores: &[f64], lag: u32) -> usize {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    if let [first, second, ..] = order[..] {
        let gap = scores[first] - scores[second];
        assert!(gap >= GAP, "lag {lag}: distances {first} and {second} differ by {gap:.3} only, choose another lag");
    }
    order[0]
}
