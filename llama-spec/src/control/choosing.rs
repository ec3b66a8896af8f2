//! When all drafts are there: which of them are verified, and how much of each.

use super::chain::{Chain, Sequence};
use super::controller::Controller;
use super::plan::{Choice, Pick};
use super::planning::LOOK;
use super::round::{Left, Mode};

/// By how much the last token of a free draft must be worth more than it costs. Many drafts are looked at and the longest that
/// seem to pay are taken, so those that are thought too good are taken more often than others. Replays of
/// what SmolLM2 writes in the workloads of the comparison, with the times of one machine, were 2 % faster so for controllers that
/// knew no text yet, and not slower for others; the simulator shows no difference. A drafter that costs time has been paid for
/// already.
const MARGIN: f64 = 1.1;

impl Controller {
    /// Decides what is verified, all drafts being there: the free ones and what the plan had drafted. What was spent on
    /// drafts is spent; only rows count now.
    pub fn choose(&mut self, sequences: &[Sequence], chains: &[Chain<'_>], choice: &mut Choice) {
        choice.picks.clear();
        choice.picks.resize(sequences.len(), Pick::default());
        if self.round.mode == Mode::Plain || self.round.texts.len() != sequences.len() {
            return;
        }
        let count = sequences.len();
        let spare = self.round.rows.saturating_sub(count);
        let rollback = self.clock.rollback();
        self.fill_free(sequences, chains);
        let Self { round, scratch, .. } = self;
        scratch.free.pass(spare, |division| round.table(count + division.drafted) + division.rejected * rollback);
        let price = if round.drafter.is_none() { round.price * MARGIN } else { round.price };
        let (mut drafted, _) = scratch.free.best(price, 0);
        let worth = |drafted: usize| scratch.free.point(drafted).map_or(f64::NEG_INFINITY, |point| point.worth(price));
        let begins = !self.drafting && round.drafter.is_none();
        if begins && worth(drafted) - worth(0) < self.settings.hysteresis * count as f64 {
            drafted = 0;
        }
        if drafted == 0 && round.drafter.is_some() {
            let (least, worth_least) = scratch.free.best(price, 1);
            if worth_least + round.doubt > worth(0) {
                drafted = least;
            }
        }
        let known = worth(drafted);
        let looks = self.round.mode == Mode::Look || (self.round.drafter.is_none() && self.rounds.is_multiple_of(LOOK));
        if looks && self.round.mode != (Mode::Plain) {
            let Self { round, scratch, .. } = self;
            scratch.free.pass(spare, |division| round.hoped(count + division.drafted) + division.rejected * rollback);
            let (hoped, _) = scratch.free.best(price, 0);
            let seconds = |drafted: usize| round.table(count + drafted);
            let tokens = scratch.free.point(hoped).map_or(0.0, |point| point.tokens);
            let cost = (known - (tokens - price * seconds(hoped))) / price;
            if hoped != drafted && self.purse.pay(cost - self.round.paid) {
                drafted = hoped;
            }
        }
        let Self { scratch, .. } = self;
        scratch.free.lengths(drafted, |text| choice.picks[text].length += 1);
        for (pick, chain) in choice.picks.iter_mut().zip(&scratch.chains) {
            pick.chain = chain.filter(|_| pick.length > 0);
        }
        self.insist_on_the_try(sequences, chains, choice);
        self.note_what_is_left(chains, choice);
    }

    /// Keeps what the costly drafter drafted in vain. That of another chain than the one that is verified stands alone.
    fn note_what_is_left(&mut self, chains: &[Chain<'_>], choice: &Choice) {
        let Some(drafter) = self.round.drafter else { return };
        for (number, chain) in chains.iter().enumerate() {
            let Some(pick) = choice.picks.get(chain.sequence) else { continue };
            let verified = match pick.chain {
                Some(picked) if picked == number => pick.length,
                Some(_) => continue,
                None => 0,
            };
            let left = chain.guesses.iter().enumerate().skip(verified).filter(|(_, guess)| guess.drafter == drafter);
            let text = chain.sequence;
            self.round.left.extend(left.map(|(place, guess)| Left { text, place, guess: *guess }));
        }
    }
}
