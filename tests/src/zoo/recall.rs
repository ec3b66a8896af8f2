//! Text that depends on an earlier token: an attention head that looks a fixed number of tokens back.
//!
//! With the successor function alone, a cache with wrong content changes no token, so rollback faults stay hidden.
//! Here every token has two possible successors, one of each of two classes of characters. One head of the first layer
//! attends to exactly the token `lag` positions back and reads a sign from it, and the sign chooses the class. A wrong,
//! missing or doubled cache entry there changes the text.
//!
//! How the head finds its position: its query and all keys are constant vectors, which rotary embedding turns into a
//! score that depends on the distance alone: the sum over the frequencies of `cos(frequency * (distance - lag))`. It is
//! largest at the lag.

use std::sync::LazyLock;

use super::chain::{Chain, Next};
use crate::rng::Rng;

/// Attention score per unit of the sum of cosines: a difference of [`GAP`] is a factor of 160,000 in weight.
const GAIN: f64 = 240.0;
/// The least difference between the best and the second-best position.
const GAP: f64 = 0.05;

/// How far back the head looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recall {
    lag: usize,
    head_width: u32,
    /// The distance that the head finds when the last token has 0, 1, 2... tokens before it, up to `lag - 1`.
    early: Vec<usize>,
}

impl Recall {
    /// A head of width `head_width` that looks `lag` tokens back. Panics for a lag that such a head cannot tell from
    /// others within `context_length` tokens.
    pub(super) fn new(lag: usize, head_width: u32, context_length: u32) -> Self {
        let scores: Vec<f64> = (0..=lag.max(context_length as usize))
            .map(|distance| frequencies(head_width).map(|f| (f * (distance as f64 - lag as f64)).cos()).sum())
            .collect();
        assert_eq!(best(&scores, lag), lag);
        let early = (1..=lag).map(|known| best(&scores[..known], lag)).collect();
        Self { lag, head_width, early }
    }

    /// How many tokens before the last.
    pub(super) fn lag(&self) -> usize {
        self.lag
    }

    /// Entry `index` of the query: pairs of numbers, one a rotary frequency, for keys of `(1, 0)` pairs.
    pub(super) fn query(&self, index: usize) -> f32 {
        // llama.cpp divides scores by the square root of the width
        let gain = GAIN * f64::from(self.head_width).sqrt();
        let angle = frequency(self.head_width, index as u32 / 2) * self.lag as f64;
        (gain * if index.is_multiple_of(2) { angle.cos() } else { -angle.sin() }) as f32
    }

    /// The place in `context`, which holds a token, of the token whose sign the head reads.
    pub(super) fn place(&self, context: &[u32]) -> usize {
        let before = context.len() - 1;
        before - self.early.get(before).unwrap_or(&self.lag)
    }
}

/// The possible successors of a token: for signs 1 and -1.
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

/// The class of a token: 1 and -1 for the successors at these signs, 0 for tokens outside of the cycle.
pub(super) fn class(chain: &Chain, byte: Option<u8>) -> i32 {
    chain.place(byte).map_or(0, |place| if place % 2 == 0 { 1 } else { -1 })
}

/// The sign that the head reads from a token: fixed; 1 for half of the bytes and -1 for the other half.
pub(super) fn sign(byte: Option<u8>) -> i32 {
    static SIGNS: LazyLock<Vec<i32>> = LazyLock::new(|| {
        let mut signs = [[1; 128], [-1; 128]].concat();
        Rng::new(0, "signs", 0).shuffle(&mut signs);
        signs
    });
    byte.map_or(1, |byte| SIGNS[usize::from(byte)])
}

/// The rotary base of a model: neighbouring frequencies are in the same ratio in heads of every width, and the slowest
/// of 32 is fast enough to tell neighbouring positions.
pub(super) fn rope_base(head_width: u32) -> f64 {
    10f64.powf(f64::from(head_width) / 16.0)
}

fn frequencies(head_width: u32) -> impl Iterator<Item = f64> {
    (0..head_width / 2).map(move |pair| frequency(head_width, pair))
}

fn frequency(head_width: u32, pair: u32) -> f64 {
    rope_base(head_width).powf(-2.0 * f64::from(pair) / f64::from(head_width))
}

/// The distance with the largest score. Panics where the second is too near to it.
fn best(scores: &[f64], lag: usize) -> usize {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    if let [first, second, ..] = order[..] {
        let gap = scores[first] - scores[second];
        assert!(gap >= GAP, "lag {lag}: distances {first} and {second} differ by {gap:.3} only, choose another lag");
    }
    order[0]
}
