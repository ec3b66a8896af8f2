//! Tries: a drafter that has not been used for long may have become better.

use super::acceptance::bias;
use super::chain::{Chain, DrafterIndex, DrafterKind, Sequence};
use super::controller::Controller;
use super::plan::{Choice, Pick};
use super::round::Mode;

/// A try is this long at most, and hopes for so much.
const TRY: usize = 4;
const HOPE: f64 = 0.85;

impl Controller {
    /// A drafter that has not been used for long may have become better.
    pub(super) fn consider_a_try(&mut self, sequences: &[Sequence]) {
        let count = sequences.len();
        let due = |drafter: &DrafterIndex| {
            self.specs[*drafter].kind.costs() && Some(*drafter) != self.round.drafter && self.usages[*drafter].is_due()
        };
        let Some(drafter) = (0..self.specs.len()).find(due) else { return };
        let text = self.rounds as usize % count;
        let sequence = &sequences[text];
        let most = self.specs[drafter].longest.min(sequence.limit).min(self.round.rows - count).min(TRY);
        let bias = bias(&self.biases, sequence.slot, drafter);
        let step = self.clock.step(drafter, 1);
        let stepwise = self.specs[drafter].kind == DrafterKind::Stepwise;
        let extra = |length: usize| {
            let steps = if stepwise { length as f64 * step } else { step };
            self.round.table(count + length) - self.round.table(count) + steps
        };
        let hoped = |length: usize| (1..=length).map(|place| HOPE.powi(place as i32)).sum::<f64>();
        let net = |length: usize| hoped(length) - self.round.price * extra(length);
        let Some(length) = (1..=most).max_by(|left, right| net(*left).total_cmp(&net(*right))) else { return };
        let (mut survival, mut gain) = (1.0, 0.0);
        for place in 0..length {
            survival *= self.models[drafter].blind(bias, place);
            gain += survival;
        }
        let usage = &self.usages[drafter];
        let resumed =
            if usage.paused { self.clock.catch_up(drafter, self.round.missed(&self.biases, drafter)) } else { 0.0 };
        let cost = extra(length) + self.clock.rollback() * (1.0 - survival) - gain / self.round.price;
        if self.purse.pay(cost + resumed) || (self.purse.bears(resumed) && self.purse.pay(cost)) {
            self.round.mode = Mode::Try { drafter, text, length };
            (self.round.drafter, self.round.step) = (Some(drafter), 0.0);
            self.round.texts.iter_mut().for_each(|text| {
                (text.limit, text.aim, text.behind, text.survival) = (0, 0, 0, 1.0);
            });
            (self.round.texts[text].limit, self.round.texts[text].aim) = (length, length);
        }
    }

    /// What is tried is verified whole, whatever it seems to be worth. A free drafter that is due is tried here, since
    /// its draft is there.
    pub(super) fn insist_on_the_try(&mut self, sequences: &[Sequence], chains: &[Chain<'_>], choice: &mut Choice) {
        let of = |text: usize, drafter: usize| {
            let fits = |chain: &&Chain<'_>| {
                chain.sequence == text && chain.guesses.first().is_some_and(|guess| guess.drafter == drafter)
            };
            chains.iter().find(fits).and_then(|chain| chains.iter().position(|other| std::ptr::eq(other, chain)))
        };
        let rows: usize = sequences.len() + choice.picks.iter().map(|pick| pick.length).sum::<usize>();
        if let Mode::Try { drafter, text, length } = self.round.mode {
            if let (Some(number), Some(pick)) = (of(text, drafter), choice.picks.get_mut(text)) {
                // Others may go on behind what is tried.
                let own = chains[number].guesses.iter().take_while(|guess| guess.drafter == drafter);
                let length = length.min(own.count());
                if rows - pick.length + length <= self.round.rows {
                    *pick = Pick { chain: Some(number), length };
                }
            }
            return;
        }
        for (number, chain) in chains.iter().enumerate() {
            let Some(drafter) = chain.guesses.first().map(|guess| guess.drafter) else { continue };
            let Some(pick) = choice.picks.get_mut(chain.sequence) else { continue };
            let due = self.specs.get(drafter).is_some_and(|spec| !spec.kind.costs()) && self.usages[drafter].is_due();
            if !due || pick.length > 0 || rows >= self.round.rows {
                continue;
            }
            // One token tells most of it.
            let cost = self.round.table(rows + 1) - self.round.table(rows) + self.clock.rollback();
            if sequences[chain.sequence].limit > 0 && self.purse.pay(cost) {
                *pick = Pick { chain: Some(number), length: 1 };
                self.round.mode = Mode::Try { drafter, text: chain.sequence, length: 1 };
                return;
            }
        }
    }
}
