//! The acceptance model: how probable it is that a drafted token is right.

mod counts;
mod logistic;
mod odds;
mod offset;

use super::chain::{DrafterIndex, DrafterSpec, Evidence};
use counts::Counts;
use logistic::Logistic;
use odds::{log_odds, probability};
use offset::Offset;
use std::sync::LazyLock;

/// Places of a draft that are told apart.
const PLACES: usize = 16;
/// A model's token, before anything was observed.
const FIRST: f64 = 0.7;
/// A margin of so much is an even bet.
const EVEN_MARGIN: f64 = 0.6;
/// What the prior of a kind of guesses counts for, that of the first place, and what a place before counts for the next
/// one.
const BUCKET_PRIOR: f64 = 4.0;
const FIRST_PRIOR: f64 = 4.0;
const PLACE_PRIOR: f64 = 12.0;

/// Of one drafter, over all texts.
#[derive(Clone, Debug)]
pub(super) struct Acceptance {
    priors: Vec<f32>,
    buckets: Vec<Counts>,
    /// Whatever the evidence. What a place has not shown, the one before it stands for.
    places: [Counts; PLACES],
    /// So many of them are up to date; those behind must hear of what was learned about the ones before.
    settled: usize,
    curve: Logistic,
}

/// What sets a text apart in a drafter's view.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bias {
    /// When the evidence is known.
    told: Offset,
    /// When only the place is.
    blind: Offset,
    /// Tokens of the text that the drafter did not see while it rested.
    pub(super) missed: usize,
}

impl Bias {
    /// So many tokens came without a word of this drafter.
    pub(super) fn rest(&mut self, tokens: usize) {
        self.told.rest(tokens);
        self.blind.rest(tokens);
    }
}

/// What is neither known nor assumed of a text.
static NEW: LazyLock<Bias> = LazyLock::new(Bias::default);

/// The bias of a text; by slot, then by drafter.
pub(super) fn bias(biases: &[Vec<Bias>], slot: usize, drafter: DrafterIndex) -> &Bias {
    biases.get(slot).and_then(|biases| biases.get(drafter)).unwrap_or(&NEW)
}

impl Acceptance {
    pub(super) fn new(spec: &DrafterSpec) -> Self {
        Self {
            buckets: spec.buckets.iter().map(|prior| Counts::new(f64::from(*prior), BUCKET_PRIOR)).collect(),
            priors: spec.buckets.clone(),
            places: std::array::from_fn(|place| Counts::new(FIRST, if place == 0 { FIRST_PRIOR } else { PLACE_PRIOR })),
            settled: PLACES,
            curve: Logistic::default(),
        }
    }

    /// The probability that a token is right, those before it being so.
    #[inline]
    pub(super) fn told(&self, bias: &Bias, place: usize, evidence: Evidence) -> f64 {
        match evidence {
            Evidence::Certain => 1.0,
            Evidence::Unknown => self.blind(bias, place),
            _ => probability(self.judge(place, evidence) * bias.told.against),
        }
    }

    /// The same before the token is drafted.
    pub(super) fn blind(&self, bias: &Bias, place: usize) -> f64 {
        self.lifted(bias, place, 1.0)
    }

    /// The same if the odds against it were so many times what they seem.
    pub(super) fn lifted(&self, bias: &Bias, place: usize, lift: f64) -> f64 {
        probability(self.at(place) * bias.blind.against * lift)
    }

    /// By how many times the odds against may well be lower than they seem: by a standard error.
    pub(super) fn doubt(&self) -> f64 {
        (-self.places[0].error()).exp()
    }

    /// The odds against a token of which nothing but the place is known.
    fn at(&self, place: usize) -> f64 {
        let index = place.min(PLACES - 1);
        if index < self.settled {
            return self.places[index].against;
        }
        let share = self.settled.checked_sub(1).map_or(FIRST, |before| self.places[before].share());
        odds::against(self.places[self.settled..=index].iter().fold(share, |share, counts| counts.share_after(share)))
    }

    /// The odds against a token in the view of all texts.
    #[inline]
    fn judge(&self, place: usize, evidence: Evidence) -> f64 {
        match evidence {
            Evidence::Bucket(bucket) => match self.buckets.get(usize::from(bucket)) {
                Some(counts) => counts.against,
                None => self.at(place),
            },
            Evidence::Margin(_) | Evidence::Probability(_) => (-self.curve.judge(own(evidence), place)).exp(),
            Evidence::Certain => 0.0,
            Evidence::Unknown => self.at(place),
        }
    }

    /// Learns whether a token was right, all before it being so: what stands behind a wrong one shows nothing.
    pub(super) fn learn(&mut self, bias: &mut Bias, place: usize, evidence: Evidence, right: bool) {
        if evidence == Evidence::Certain {
            return;
        }
        self.learn_told(bias, place, evidence, right);
        self.learn_place(bias, place, f64::from(u8::from(right)), 1.0);
    }

    /// Learns of a token that was drafted but not verified, where all before it was right with the probability
    /// `reached`. Were only verified tokens counted, a drafter would seem to be as good as the best of its tokens.
    pub(super) fn unverified(&mut self, bias: &mut Bias, place: usize, evidence: Evidence, reached: f64) -> f64 {
        let told = self.told(bias, place, evidence);
        if !matches!(evidence, Evidence::Certain | Evidence::Unknown) {
            self.learn_place(bias, place, told, reached);
        }
        told
    }

    fn learn_place(&mut self, bias: &mut Bias, place: usize, right: f64, weight: f64) {
        let index = place.min(PLACES - 1);
        self.settle_to(index + 1);
        bias.blind.learn(self.blind(bias, place), right, weight);
        // Each place has the one before it for a prior, so what follows an observed one must hear of it.
        let before = index.checked_sub(1).map_or(FIRST, |before| self.places[before].clamped());
        self.places[index].learn(before, right, weight);
        self.settled = index + 1;
        if index == 0 {
            // What is no longer seen is forgotten, or else bad luck with it would keep it from being seen for ever.
            self.places[1..].iter_mut().for_each(Counts::fade);
        }
    }

    /// Brings all places up to date, after a round. Nothing depends on it but the time that questions take.
    pub(super) fn settle(&mut self) {
        self.settle_to(PLACES);
    }

    fn settle_to(&mut self, end: usize) {
        if self.settled < end {
            let share = self.settled.checked_sub(1).map_or(FIRST, |before| self.places[before].share());
            self.places[self.settled..end].iter_mut().fold(share, |share, counts| counts.settle(share));
            self.settled = end;
        }
    }

    /// The same of a token that nobody drafted, which says nothing about the places of drafts.
    pub(super) fn shadow(&mut self, bias: &mut Bias, evidence: Evidence, right: bool) {
        match evidence {
            Evidence::Certain => {}
            Evidence::Unknown => self.learn(bias, 0, evidence, right),
            _ => self.learn_told(bias, 0, evidence, right),
        }
    }

    fn learn_told(&mut self, bias: &mut Bias, place: usize, evidence: Evidence, right: bool) {
        let expected = self.told(bias, place, evidence);
        match evidence {
            Evidence::Bucket(bucket) => {
                let bucket = usize::from(bucket);
                if let (Some(counts), Some(prior)) = (self.buckets.get_mut(bucket), self.priors.get(bucket)) {
                    counts.learn(f64::from(*prior), f64::from(u8::from(right)), 1.0);
                }
            }
            Evidence::Margin(_) | Evidence::Probability(_) => self.curve.learn(own(evidence), place, expected, right),
            Evidence::Certain | Evidence::Unknown => return,
        }
        bias.told.learn(expected, f64::from(u8::from(right)), 1.0);
    }
}

/// The log-odds of a token in the drafter's view. What is not a number counts for nothing.
fn own(evidence: Evidence) -> f64 {
    let own = match evidence {
        Evidence::Margin(margin) => f64::from(margin) - EVEN_MARGIN,
        Evidence::Probability(probability) => log_odds(f64::from(probability)),
        _ => 0.0,
    };
    if own.is_nan() { 0.0 } else { own.clamp(-6.0, 6.0) }
}

#[cfg(test)]
mod tests {
    use super::super::chain::DrafterKind;
    use super::*;

    fn of(buckets: &[f32]) -> Acceptance {
        let buckets = buckets.to_vec();
        Acceptance::new(&DrafterSpec { kind: DrafterKind::Free, longest: 16, pausable: true, goes_on: false, buckets })
    }

    #[test]
    fn buckets_overrule_their_prior() {
        let (mut model, mut bias) = (of(&[0.9, 0.9]), Bias::default());
        for step in 0..300 {
            model.learn(&mut bias, 0, Evidence::Bucket(0), step % 10 == 0);
            model.learn(&mut bias, 0, Evidence::Bucket(1), step % 10 != 0);
        }
        let (low, high) = (model.told(&bias, 0, Evidence::Bucket(0)), model.told(&bias, 0, Evidence::Bucket(1)));
        assert!(low < 0.25 && high > 0.75, "{low} {high}");
    }

    #[test]
    fn a_place_that_was_never_seen_takes_after_the_one_before() {
        let (mut model, mut bias) = (of(&[]), Bias::default());
        for _ in 0..100 {
            model.learn(&mut bias, 0, Evidence::Unknown, true);
            model.learn(&mut bias, 1, Evidence::Unknown, false);
        }
        let text = Bias::default();
        assert!(model.blind(&text, 0) > 0.8);
        assert!(model.blind(&text, 5) < 0.3, "{}", model.blind(&text, 5));
    }

    #[test]
    fn odd_numbers_are_survived() {
        let (mut model, mut bias) = (of(&[f32::NAN]), Bias::default());
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0] {
            for evidence in [Evidence::Margin(odd), Evidence::Probability(odd), Evidence::Bucket(9)] {
                model.learn(&mut bias, 999, evidence, true);
                assert!((0.0..=1.0).contains(&model.told(&bias, 0, evidence)), "{evidence:?}");
            }
        }
    }
}
