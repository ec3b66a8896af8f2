//! The pools of a round: what free drafts and a costly drafter may bring.

use super::acceptance::bias;
use super::chain::{Chain, DrafterIndex, DrafterKind, Sequence};
use super::controller::Controller;
use super::round::Round;

/// Survivals below this are not worth looking at.
pub(super) const HOPELESS: f64 = 0.02;
/// To catch up is paid for by so many rounds at least, and else by as many as the drafter rested: it may well be of use
/// for as long as it was of none.
const RESUMED: f64 = 8.0;

impl Controller {
    /// The drafts of all texts that are there, the best one where a text has several.
    pub(super) fn fill_free(&mut self, sequences: &[Sequence], drafts: &[Chain<'_>]) {
        let Self { round, scratch, models, biases, .. } = self;
        let (pool, chains) = (&mut scratch.free, &mut scratch.chains);
        pool.clear();
        chains.clear();
        for (index, sequence) in sequences.iter().enumerate() {
            let mut best: Option<(usize, f64)> = None;
            for (number, chain) in drafts.iter().enumerate().filter(|(_, chain)| chain.sequence == index) {
                pool.begin(false);
                let (mut survival, mut from) = (1.0, None);
                for (place, guess) in chain.guesses.iter().take(sequence.limit).enumerate() {
                    let (model, bias) = match from {
                        Some((drafter, model, bias)) if drafter == guess.drafter => (model, bias),
                        _ => {
                            let Some(model) = models.get(guess.drafter) else { break };
                            (model, bias(biases, sequence.slot, guess.drafter))
                        }
                    };
                    from = Some((guess.drafter, model, bias));
                    survival *= model.told(bias, place, guess.evidence);
                    if survival < HOPELESS {
                        break;
                    }
                    pool.push(survival);
                }
                let worth = value(pool.last(), round, sequences.len(), 0.0);
                match best {
                    Some((_, known)) if worth > known => pool.drop_before_last(),
                    Some(_) => {
                        pool.drop_last();
                        continue;
                    }
                    None => {}
                }
                best = Some((number, worth));
            }
            if best.is_none() {
                pool.begin(false);
            }
            chains.push(best.map(|(number, _)| number));
        }
    }

    /// What each number of rows brings with free drafts alone.
    pub(super) fn pass_free(&mut self, count: usize) {
        let (spare, rollback) = (self.round.rows - count, self.clock.rollback());
        let Self { round, scratch, .. } = self;
        scratch.free.pass(spare, |division| round.time(count, division) + division.rejected * rollback);
    }

    /// What a costly drafter may be expected to draft for each text.
    pub(super) fn foresee(&mut self, drafter: DrafterIndex, sequences: &[Sequence]) {
        let Self { round, scratch, models, biases, specs, .. } = self;
        let (pool, longest, model) = (&mut scratch.blind, specs[drafter].longest, &models[drafter]);
        pool.clear();
        let lift = if round.lift { model.doubt() } else { 1.0 };
        let spare = round.rows - sequences.len();
        for sequence in sequences {
            let bias = bias(biases, sequence.slot, drafter);
            pool.begin(true);
            let mut survival = 1.0;
            for place in 0..longest.min(sequence.limit).min(spare) {
                survival *= model.lifted(bias, place, lift);
                if survival < HOPELESS {
                    break;
                }
                pool.push(survival);
            }
        }
    }

    /// Gives each text what was foreseen, or its free draft where that is worth more. Says for how many texts the
    /// drafter drafts, and whether these are others than before.
    pub(super) fn share_out(&mut self, drafter: DrafterIndex, count: usize) -> (usize, bool) {
        let Self { round, scratch, specs, clock, .. } = self;
        let step = clock.step(drafter, count) / count as f64;
        let (each, once) = if specs[drafter].kind == DrafterKind::Stepwise { (step, 0.0) } else { (0.0, step) };
        let (mut texts, mut changed) = (0, scratch.drafts.len() != count);
        scratch.drafts.resize(count, false);
        for (index, drafts) in scratch.drafts.iter_mut().enumerate() {
            let (free, blind) = (scratch.free.of(index), scratch.blind.of(index));
            let worth = value(blind, round, count, each) - once * round.price;
            let better = free.is_empty() || value(free, round, count, 0.0) < worth;
            let now = !blind.is_empty() && better;
            changed |= *drafts != now;
            *drafts = now;
            texts += usize::from(now);
        }
        (texts, changed)
    }

    /// What each number of rows brings with this drafter.
    pub(super) fn fill_costly(&mut self, drafter: DrafterIndex, texts: usize, count: usize) {
        let Self { scratch, .. } = self;
        scratch.costly.clear();
        for (index, drafts) in scratch.drafts.iter().enumerate() {
            let from = if *drafts { &scratch.blind } else { &scratch.free };
            scratch.costly.append(from.of(index), *drafts);
        }
        self.pass_costly(drafter, texts, count);
    }

    pub(super) fn pass_costly(&mut self, drafter: DrafterIndex, texts: usize, count: usize) {
        let Self { round, scratch, clock, usages, specs, biases, .. } = self;
        let (step, rollback) = (clock.step(drafter, texts), clock.rollback());
        let (usage, missed) = (&usages[drafter], round.missed(biases, drafter));
        // A drafter that paused follows from now on, and pays for what it missed.
        let resumed = if usage.paused { clock.catch_up(drafter, missed) / usage.rest().max(RESUMED) } else { 0.0 };
        let blocks = specs[drafter].kind == DrafterKind::Block;
        let spare = round.rows - count;
        scratch.costly.pass(spare, |division| {
            let steps = if blocks { division.steps.min(1) } else { division.steps };
            let mut seconds = round.time(count, division) + division.rejected * rollback + steps as f64 * step;
            if usage.paused && steps > 0 {
                seconds += resumed + clock.follow(drafter, count + division.drafted);
            }
            seconds
        });
    }
}

/// What a draft is worth in tokens if it is the only one of the round: the best of its lengths.
fn value(survivals: &[f64], round: &Round, count: usize, each: f64) -> f64 {
    let (mut gain, mut best, before) = (0.0, 0.0f64, round.table(count));
    let (after, last) = (round.seconds.get(count + 1..).unwrap_or_default(), round.table(usize::MAX));
    for (index, survival) in survivals.iter().enumerate() {
        gain += survival;
        let extra = after.get(index).unwrap_or(&last) - before + each * (index + 1) as f64;
        let worth = gain - round.price * extra;
        best = if worth > best { worth } else { best };
    }
    best
}
