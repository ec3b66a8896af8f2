//! Made-up texts: drafters that are right as often as wanted, for as long as wanted.

use super::super::chain::{DrafterKind, DrafterSpec, Evidence};
use super::random::Random;
use super::trace::{LONGEST, Said, Text};

/// How acceptance goes along the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Course {
    Steady(f64),
    /// One and the other, each for so many tokens.
    Turns(f64, f64, usize),
    /// From the one to the other.
    Drifts(f64, f64),
}

impl Course {
    fn at(self, place: usize, length: usize) -> f64 {
        match self {
            Self::Steady(share) => share,
            Self::Turns(one, other, each) => {
                if (place / each).is_multiple_of(2) {
                    one
                } else {
                    other
                }
            }
            Self::Drifts(from, to) => from + (to - from) * place as f64 / length as f64,
        }
    }
}

/// What a model drafter lets know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tells {
    Nothing,
    Probability,
    Margin,
}

pub(super) fn model(longest: usize) -> DrafterSpec {
    DrafterSpec { kind: DrafterKind::Stepwise, longest, pausable: true, goes_on: false, buckets: Vec::new() }
}

pub(super) fn block(longest: usize) -> DrafterSpec {
    DrafterSpec { kind: DrafterKind::Block, longest, pausable: true, goes_on: false, buckets: Vec::new() }
}

pub(super) fn lookup() -> DrafterSpec {
    let buckets = vec![0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9];
    DrafterSpec { kind: DrafterKind::Free, longest: LONGEST, pausable: true, goes_on: false, buckets }
}

fn log_odds(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// What a model would draft. Each token has its own difficulty, and each place of a draft is right less often by
/// `decay`.
pub(super) fn model_drafts(
    length: usize,
    course: Course,
    tells: Tells,
    decay: f64,
    random: &mut Random,
) -> Vec<Vec<Said>> {
    let spread = if tells == Tells::Nothing { 0.0 } else { 1.5 };
    // So that the mean is as wanted although the difficulty varies.
    let widen = 1.0f64 + 0.3 * spread * spread;
    let tokens: Vec<(f64, f64, f64)> = (0..length + LONGEST)
        .map(|place| {
            let mean = log_odds(course.at(place.min(length - 1), length)) * widen.sqrt();
            (mean + spread * random.normal(), random.uniform(), random.normal())
        })
        .collect();
    let said = |start: usize, offset: usize| {
        let (odds, draw, blur) = tokens[start + offset];
        let evidence = match tells {
            Tells::Nothing => Evidence::Unknown,
            // Not calibrated on purpose.
            Tells::Probability => Evidence::Probability(sigmoid(0.7 * odds + 0.6 + 0.4 * blur) as f32),
            Tells::Margin => Evidence::Margin((0.8 * odds + 1.0 + 0.4 * blur).max(0.0) as f32),
        };
        Said { evidence, right: draw < sigmoid(odds) * decay.powi(offset as i32) }
    };
    (0..length).map(|start| (0..LONGEST).map(|offset| said(start, offset)).collect()).collect()
}

/// What lookup would draft in a text that copies stretches of itself; a `share` of it is copied.
pub(super) fn lookup_drafts(length: usize, share: f64, random: &mut Random) -> Vec<Vec<Said>> {
    const COPY: f64 = 60.0;
    // For each token: how long the copied stretch has been, and whether the source goes on alike.
    let mut tokens: Vec<(usize, bool)> = Vec::new();
    while tokens.len() < length + LONGEST {
        if share > 0.0 {
            let copied = random.length(COPY);
            tokens.extend((1..=copied).map(|run| (run, random.chance(0.97))));
        }
        if share < 1.0 {
            let own = if share > 0.0 { random.length(COPY * (1.0 - share) / share) } else { length + LONGEST };
            tokens.extend((0..own).map(|_| (0, random.chance(0.15))));
        }
    }
    let bucket = |run: usize| Evidence::Bucket((run + 1).ilog2().min(7) as u16);
    (0..length)
        .map(|start| {
            let (run, _) = tokens[start];
            // The source is found from the third token on; elsewhere something looks alike now and then.
            let found = if run >= 3 {
                run
            } else if random.chance(0.4) {
                1 + run
            } else {
                return Vec::new();
            };
            (0..LONGEST)
                .map(|offset| Said { evidence: bucket(found + offset), right: tokens[start + offset].1 })
                .collect()
        })
        .collect()
}

pub(super) fn text(drafts: Vec<Vec<Vec<Said>>>) -> Text {
    Text { drafts }
}
