//! Before anything is drafted: which drafter runs, and for which texts.

use super::chain::{Chain, DrafterIndex, DrafterKind, Sequence};
use super::controller::{Controller, Scratch};
use super::plan::{Pick, Plan, PlannedDraft};
use super::round::{Mode, Text};

/// After so many rounds with drafts one goes without, so that it stays known what plain decoding takes: everything is
/// compared with that. As long as it is not well known this happens more often.
const REFRESH: u32 = 256;
const FIRST_REFRESH: u32 = 4;
/// In one of so many rounds a batch that is not well known may be tried.
pub(super) const LOOK: u64 = 4;
/// The weight of this round in what a second is worth; that of what it brought of late is the rest.
const THIS_ROUND: f64 = 0.7;

/// What is best to do.
#[derive(Clone, Copy, Debug)]
struct Best {
    drafter: Option<DrafterIndex>,
    /// Tokens to be verified, those of free drafters included.
    drafted: usize,
    price: f64,
    worth: f64,
    /// What the best costly drafter is worth.
    costly: f64,
}

impl Controller {
    /// Decides what is drafted, before anything is. `rows` is the most the batch may have; `free` are the drafts that
    /// cost nothing.
    pub fn plan(&mut self, rows: usize, sequences: &[Sequence], free: &[Chain<'_>], plan: &mut Plan) {
        plan.drafter = None;
        plan.drafts.clear();
        plan.drafts.resize(sequences.len(), PlannedDraft::default());
        self.open_round(rows, sequences);
        if !sequences.is_empty() && !self.must_be_plain(sequences.len()) {
            if !self.purse.is_closed() {
                self.weigh(sequences, free);
            }
            // Tries have money of their own.
            self.consider_a_try(sequences);
        }
        plan.drafter = self.round.drafter;
        for (index, (draft, text)) in plan.drafts.iter_mut().zip(&self.round.texts).enumerate() {
            let chain = self.scratch.chains.get(index).copied().flatten().filter(|_| text.behind > 0);
            let [limit, aim] = [text.limit, text.aim].map(|length| length.saturating_sub(text.behind));
            *draft = PlannedDraft { limit, aim, behind: Pick { chain, length: text.behind } };
        }
        self.decide_who_follows(plan);
    }

    fn open_round(&mut self, rows: usize, sequences: &[Sequence]) {
        let count = sequences.len();
        sequences.iter().for_each(|sequence| _ = self.seat(sequence.slot));
        let depth = sequences.iter().map(|sequence| sequence.depth).sum::<usize>() / count.max(1);
        self.clock.at(depth);
        let Self { round, clock, usages, specs, .. } = self;
        (round.mode, round.drafter, round.rows) = (Mode::Plain, None, rows.max(count));
        round.left.clear();
        (round.paid, round.doubt, round.lift) = (0.0, 0.0, false);
        round.texts.clear();
        round.texts.extend(sequences.iter().map(|sequence| Text {
            slot: sequence.slot,
            survival: 1.0,
            ..Text::default()
        }));
        let most = sequences.iter().map(|sequence| 1 + sequence.limit).sum::<usize>().min(round.rows);
        round.seconds.clear();
        round.hoped.clear();
        for rows in 0..=most {
            let following =
                usages.iter().enumerate().filter(|(index, usage)| specs[*index].kind.costs() && !usage.paused);
            let follow: f64 = following.map(|(index, _)| clock.follow(index, rows)).sum();
            round.seconds.push(clock.verify(rows, false) + follow);
            round.hoped.push(clock.verify(rows, true) + follow);
        }
        round.price = self.speed.get() * count as f64 / round.table(count).max(1e-9);
    }

    fn must_be_plain(&self, count: usize) -> bool {
        let refresh = match self.clock.seen(count) {
            0 => 0,
            seen => FIRST_REFRESH.saturating_mul(1 << seen.min(16)).min(REFRESH),
        };
        self.specs.is_empty() || !self.clock.knows(count) || self.since_plain >= refresh
    }

    /// Decides who drafts: by what is known, or, now and then and if that can be paid, by what batches may take at
    /// best.
    fn weigh(&mut self, sequences: &[Sequence], free: &[Chain<'_>]) {
        self.round.mode = Mode::Pay;
        self.fill_free(sequences, free);
        self.pass_free(sequences.len());
        let usual = self.best_plan(sequences);
        if usual.drafter.is_none() {
            // In doubt it drafts: that is how it gets to know.
            self.round.lift = true;
            let best = self.best_plan(sequences);
            self.round.lift = false;
            if best.drafter.is_some() {
                self.round.doubt = best.worth - usual.costly;
                self.run(&best, sequences);
                return;
            }
        }
        if self.rounds.is_multiple_of(LOOK) && self.round.has_unknown() {
            self.keep_plan();
            self.round.mode = Mode::Look;
            self.pass_free(sequences.len());
            let hopeful = self.best_plan(sequences);
            self.round.price = usual.price;
            let cost = (usual.worth - self.known_worth(&hopeful, sequences)) / usual.price;
            if cost > 0.0 && self.purse.pay(cost) {
                self.round.paid = cost;
                self.run(&hopeful, sequences);
                return;
            }
            self.round.mode = Mode::Pay;
            self.keep_plan();
        }
        self.run(&usual, sequences);
    }

    /// Puts the plan that was found aside, and takes back the one that was put aside before.
    fn keep_plan(&mut self) {
        let Scratch { costly, kept, drafts, kept_drafts, .. } = &mut self.scratch;
        std::mem::swap(costly, kept);
        std::mem::swap(drafts, kept_drafts);
    }

    /// Compares plain decoding, the free drafts, and each costly drafter with the free drafts where those are better.
    fn best_plan(&mut self, sequences: &[Sequence]) -> Best {
        let count = sequences.len();
        let mut fastest = self.scratch.free.fastest();
        let mut winner: Option<(DrafterIndex, f64)> = None;
        // Whose drafts the pool has, and whose were foreseen.
        let (mut filled, mut foreseen) = (None, None);
        for drafter in 0..self.specs.len() {
            if !self.specs[drafter].kind.costs() {
                continue;
            }
            self.round.price = self.price(count, fastest);
            self.foresee(drafter, sequences);
            foreseen = Some(drafter);
            filled = None;
            let (texts, _) = self.share_out(drafter, count);
            if texts == 0 || !self.can_resume(drafter) {
                continue;
            }
            self.fill_costly(drafter, texts, count);
            filled = Some(drafter);
            fastest = fastest.max(self.scratch.costly.fastest());
            self.round.price = self.price(count, fastest);
            let (_, worth) = self.scratch.costly.best(self.round.price, 1);
            if winner.is_none_or(|(_, known)| worth > known) {
                winner = Some((drafter, worth));
            }
        }
        let price = self.price(count, fastest);
        self.round.price = price;
        let (_, without) = self.scratch.free.best(price, 0);
        let mut best = Best { drafter: None, drafted: 0, price, worth: without, costly: f64::NEG_INFINITY };
        let Some((drafter, _)) = winner else { return best };
        if foreseen != Some(drafter) {
            self.foresee(drafter, sequences);
        }
        let (texts, changed) = self.share_out(drafter, count);
        if changed || filled != Some(drafter) {
            self.fill_costly(drafter, texts, count);
        }
        let (drafted, worth) = self.scratch.costly.best(price, 1);
        let threshold = if self.usages[drafter].is_in_use() { 0.0 } else { self.settings.hysteresis };
        best.costly = worth;
        if worth > without + threshold * count as f64 {
            best = Best { drafter: Some(drafter), drafted, price, worth, costly: worth };
        }
        best
    }

    /// What a hopeful plan is worth by what is known. The pools are its own still.
    fn known_worth(&mut self, plan: &Best, sequences: &[Sequence]) -> f64 {
        let Some(drafter) = plan.drafter else { return f64::NEG_INFINITY };
        let mode = std::mem::replace(&mut self.round.mode, Mode::Pay);
        let texts = self.scratch.drafts.iter().filter(|drafts| drafts.is_some()).count();
        self.pass_costly(drafter, texts, sequences.len());
        self.round.mode = mode;
        self.scratch.costly.point(plan.drafted).map_or(f64::NEG_INFINITY, |point| point.worth(self.round.price))
    }

    /// What a drafter missed may be too much to be caught up with.
    fn can_resume(&self, drafter: DrafterIndex) -> bool {
        let usage = &self.usages[drafter];
        !usage.paused || self.purse.bears(self.clock.catch_up(drafter, self.round.missed(&self.biases, drafter)))
    }

    /// The drafter of a plan runs; the plan is the last one that was looked for.
    fn run(&mut self, plan: &Best, sequences: &[Sequence]) {
        let Best { drafter: Some(drafter), drafted, .. } = *plan else { return };
        let Self { round, scratch, specs, clock, .. } = self;
        scratch.lengths.clear();
        scratch.lengths.resize(sequences.len(), 0);
        scratch.costly.lengths(drafted, |text| scratch.lengths[text] += 1);
        let spare = round.rows - sequences.len();
        let mut drafting = 0;
        for (index, text) in round.texts.iter_mut().enumerate() {
            text.aim = scratch.lengths[index];
            if let Some(head) = scratch.drafts[index].filter(|head| text.aim > *head) {
                let before = head.checked_sub(1).and_then(|last| scratch.costly.of(index).get(last));
                (text.behind, text.survival) = (head, before.copied().unwrap_or(1.0));
                text.limit = (head + specs[drafter].longest).min(sequences[index].limit).min(spare);
                drafting += 1;
            }
        }
        if drafting > 0 {
            round.drafter = Some(drafter);
            round.step = match specs[drafter].kind {
                DrafterKind::Stepwise => clock.step(drafter, drafting) / drafting as f64,
                DrafterKind::Block | DrafterKind::Free => 0.0,
            };
        }
    }

    /// What a second is worth: a geometric mean of what it brings in this round at best and what it brought of late.
    /// Alone, the round would take too little where a good draft stands in bad text, and the past would be late where
    /// the text turns.
    fn price(&self, count: usize, fastest: f64) -> f64 {
        let plain = count as f64 / self.round.table(count).max(1e-9);
        plain * self.speed.get().max(1.0).powf(1.0 - THIS_ROUND) * (fastest / plain).max(1.0).powf(THIS_ROUND)
    }
}
