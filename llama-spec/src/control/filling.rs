//! The pools of a round: what free drafts and a costly drafter may bring.

use super::acceptance::bias;
use super::chain::{Chain, DrafterIndex, DrafterKind, Sequence};
use super::controller::{Controller, Scratch};
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
                pool.begin(None);
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
                let worth = value(pool.last(), round, sequences.len(), 0.0, 0);
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
                pool.begin(None);
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

    /// What a costly drafter may be expected to draft for each text. One that may go on behind a free draft does so behind as much
    /// of it as is believed no less than its own tokens would be: these are there, and cost no steps.
    pub(super) fn foresee(&mut self, drafter: DrafterIndex, sequences: &[Sequence]) {
        let Self { round, scratch, models, biases, specs, .. } = self;
        let (spec, model) = (&specs[drafter], &models[drafter]);
        let Scratch { free, blind: pool, .. } = scratch;
        pool.clear();
        let lift = if round.lift { model.doubt() } else { 1.0 };
        let spare = round.rows - sequences.len();
        for (index, sequence) in sequences.iter().enumerate() {
            let bias = bias(biases, sequence.slot, drafter);
            let (most, mut survival) = (sequence.limit.min(spare), 1.0);
            let free = free.of(index).get(..most).unwrap_or(free.of(index));
            let believed = free.iter().enumerate().take_while(|(place, after)| {
                let before = std::mem::replace(&mut survival, **after);
                **after >= before * model.lifted(bias, *place, lift)
            });
            let head = if spec.goes_on { believed.count() } else { 0 };
            pool.begin(Some(head));
            free.iter().take(head).for_each(|survival| pool.push(*survival));
            let mut survival = pool.last().last().copied().unwrap_or(1.0);
            for place in head..most.min(head + spec.longest) {
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
        scratch.drafts.resize(count, None);
        for (index, drafts) in scratch.drafts.iter_mut().enumerate() {
            let (free, blind) = (scratch.free.of(index), scratch.blind.of(index));
            let head = scratch.blind.head(index).unwrap_or(0);
            let worth = value(blind, round, count, each, head) - once * round.price;
            let better = free.is_empty() || value(free, round, count, 0.0, 0) < worth;
            let now = (!blind.is_empty() && better).then_some(head);
            changed |= *drafts != now;
            *drafts = now;
            texts += usize::from(now.is_some());
        }
        (texts, changed)
    }

    /// What each number of rows brings with this drafter.
    pub(super) fn fill_costly(&mut self, drafter: DrafterIndex, texts: usize, count: usize) {
        let Self { scratch, .. } = self;
        scratch.costly.clear();
        for (index, drafts) in scratch.drafts.iter().enumerate() {
            let from = if drafts.is_some() { &scratch.blind } else { &scratch.free };
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

/// What a draft is worth in tokens if it is the only one of the round: the best of its lengths. Behind its head, each token takes
/// so many seconds.
fn value(survivals: &[f64], round: &Round, count: usize, each: f64, head: usize) -> f64 {
    let (mut gain, mut best, before) = (0.0, 0.0f64, round.table(count));
    let (after, last) = (round.seconds.get(count + 1..).unwrap_or_default(), round.table(usize::MAX));
    for (index, survival) in survivals.iter().enumerate() {
        gain += survival;
        let extra = after.get(index).unwrap_or(&last) - before + each * (index + 1).saturating_sub(head) as f64;
        let worth = gain - round.price * extra;
        best = if worth > best { worth } else { best };
    }
    best
}
