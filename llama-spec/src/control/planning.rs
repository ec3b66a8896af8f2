//! Before and while something is drafted: which drafter runs, for which texts, and how far.

use super::acceptance::Bias;
use super::chain::{Chain, DrafterIndex, DrafterKind, Evidence, Guess, Sequence};
use super::controller::{Controller, Mode, Round, Text, bias};
use super::plan::{Plan, PlannedDraft};
use super::pool::{Division, Pool};

/// Survivals below this are not worth looking at.
const HOPELESS: f64 = 0.02;
/// After so many rounds with drafts one goes without, so that it stays known what plain decoding takes: everything is compared
/// with that. As long as it is not well known this happens more often.
const REFRESH: u32 = 256;
const FIRST_REFRESH: u32 = 4;
/// In one of so many rounds a batch that is not well known may be tried.
pub(super) const LOOK: u64 = 4;
/// To catch up is paid for by so many rounds at least, and else by as many as the drafter rested: it may well be of use for as
/// long as it was of none.
const RESUMED: f64 = 8.0;
/// A try is this long at most, and hopes for so much.
const TRY: usize = 4;
const HOPE: f64 = 0.85;
/// How much of what a second is worth comes from the recent past, the rest from the round itself: alone, the round would
/// take too little where a good draft stands in bad text, and the past would be late where the text turns.
const PAST: f64 = 0.5;

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
    /// Decides what is drafted, before anything is. `rows` is the most the batch may have; `free` are the drafts that cost
    /// nothing.
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
        for (draft, text) in plan.drafts.iter_mut().zip(&self.round.texts) {
            *draft = PlannedDraft { limit: text.limit, aim: text.aim };
        }
        self.decide_who_follows(plan);
    }

    /// Whether a text that has drafted the token at a position (from 0) with this evidence goes on to the next.
    pub fn go_on(&mut self, sequence: usize, position: usize, evidence: Evidence) -> bool {
        let Some(drafter) = self.round.drafter else { return false };
        let others: usize = self
            .round
            .texts
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != sequence)
            .map(|(_, text)| 1 + text.aim)
            .sum();
        let Some(text) = self.round.texts.get_mut(sequence) else { return false };
        let (model, bias) = (&self.models[drafter], bias(&self.biases, text.slot, drafter));
        text.survival *= model.told(&bias, position, evidence);
        let drafted = position + 1;
        text.aim = text.aim.max(drafted);
        if drafted >= text.limit {
            return false;
        }
        if matches!(self.round.mode, Mode::Try { .. }) {
            return true;
        }
        let (mut survival, mut gain, limit) = (text.survival, 0.0, text.limit);
        // A step of the staircase may be worth climbing only as a whole.
        for more in 1..=limit - drafted {
            survival *= model.blind(&bias, drafted + more - 1);
            if survival < HOPELESS {
                break;
            }
            gain += survival;
            let rows = others + 1 + drafted;
            let extra = self.round.rows_time(rows + more) - self.round.rows_time(rows) + self.round.step * more as f64;
            if gain > self.round.price * extra {
                return true;
            }
        }
        false
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

    /// Decides who drafts: by what is known, or, now and then and if that can be paid, by what batches may take at best.
    fn weigh(&mut self, sequences: &[Sequence], free: &[Chain<'_>]) {
        self.round.mode = Mode::Pay;
        self.fill_free(sequences, free);
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
            self.round.mode = Mode::Look;
            let hopeful = self.best_plan(sequences);
            self.round.price = usual.price;
            let cost = (usual.worth - self.known_worth(&hopeful, sequences)) / usual.price;
            if cost > 0.0 && self.purse.pay(cost) {
                self.round.paid = cost;
                self.run(&hopeful, sequences);
                return;
            }
            self.round.mode = Mode::Pay;
            self.best_plan(sequences);
        }
        self.run(&usual, sequences);
    }

    /// Compares plain decoding, the free drafts, and each costly drafter with the free drafts where those are better.
    fn best_plan(&mut self, sequences: &[Sequence]) -> Best {
        let spare = self.round.rows - sequences.len();
        let rollback = self.clock.rollback();
        let count = sequences.len();
        let Self { round, scratch, .. } = self;
        scratch.free.pass(spare, |division| round.time(count, division) + division.rejected * rollback);
        let mut fastest = scratch.free.fastest();
        let mut winner: Option<(DrafterIndex, f64)> = None;
        for drafter in 0..self.specs.len() {
            if !self.specs[drafter].kind.costs() {
                continue;
            }
            self.round.price = self.price(count, fastest);
            let texts = self.fill_costly(drafter, sequences);
            if texts == 0 || !self.can_resume(drafter) {
                continue;
            }
            self.pass_costly(drafter, texts, count);
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
        let texts = self.fill_costly(drafter, sequences);
        self.pass_costly(drafter, texts, count);
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
        let texts = self.scratch.drafts.iter().filter(|drafts| **drafts).count();
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
            if text.aim > 0 && scratch.drafts[index] {
                text.limit = specs[drafter].longest.min(sequences[index].limit).min(spare);
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

    /// What a second is worth: what it brings in this round at best, and what it brought of late.
    fn price(&self, count: usize, fastest: f64) -> f64 {
        let plain = count as f64 / self.round.table(count).max(1e-9);
        plain * self.speed.get().max(1.0).powf(PAST) * (fastest / plain).max(1.0).powf(1.0 - PAST)
    }

    /// The free drafts of all texts, the better one where a text has several.
    fn fill_free(&mut self, sequences: &[Sequence], free: &[Chain<'_>]) {
        let Self { round, scratch, models, biases, .. } = self;
        fill(
            &mut scratch.free,
            &mut scratch.chains,
            free,
            sequences,
            |survivals| value(survivals, round, sequences.len(), 0.0),
            |slot, place, guess| {
                models
                    .get(guess.drafter)
                    .map_or(0.0, |model| model.told(&bias(biases, slot, guess.drafter), place, guess.evidence))
            },
        );
    }

    /// What a costly drafter may be expected to draft, or the free draft of a text where that is better. Returns for how many
    /// texts it drafts.
    fn fill_costly(&mut self, drafter: DrafterIndex, sequences: &[Sequence]) -> usize {
        let Self { round, scratch, models, biases, specs, clock, .. } = self;
        let (pool, spec, count) = (&mut scratch.costly, &specs[drafter], sequences.len());
        pool.clear();
        scratch.drafts.clear();
        scratch.drafts.resize(count, false);
        let mut texts = 0;
        let spare = round.rows - count;
        let step = clock.step(drafter, count) / count as f64;
        let (each, once) = if spec.kind == DrafterKind::Stepwise { (step, 0.0) } else { (0.0, step) };
        for (index, sequence) in sequences.iter().enumerate() {
            let free = scratch.free.of(index);
            let bias = bias(biases, sequence.slot, drafter);
            pool.begin(true);
            let lift = if round.lift { models[drafter].doubt() } else { 0.0 };
            let mut survival = 1.0;
            for place in 0..spec.longest.min(sequence.limit).min(spare) {
                survival *= models[drafter].lifted(&bias, place, lift);
                if survival < HOPELESS {
                    break;
                }
                pool.push(survival);
            }
            let worth = value(pool.last(), round, count, each) - once * round.price;
            if pool.last().is_empty() || (!free.is_empty() && value(free, round, count, 0.0) >= worth) {
                pool.redo(false);
                free.iter().for_each(|survival| pool.push(*survival));
                scratch.drafts[index] = false;
            } else {
                texts += 1;
                scratch.drafts[index] = true;
            }
        }
        texts
    }

    fn pass_costly(&mut self, drafter: DrafterIndex, texts: usize, count: usize) {
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

    /// A drafter that has not been used for long may have become better.
    fn consider_a_try(&mut self, sequences: &[Sequence]) {
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
            survival *= self.models[drafter].blind(&bias, place);
            gain += survival;
        }
        let usage = &self.usages[drafter];
        let resumed =
            if usage.paused { self.clock.catch_up(drafter, self.round.missed(&self.biases, drafter)) } else { 0.0 };
        let cost = extra(length) + self.clock.rollback() * (1.0 - survival) - gain / self.round.price;
        if self.purse.pay(cost + resumed) || (self.purse.bears(resumed) && self.purse.pay(cost)) {
            self.round.mode = Mode::Try { drafter, text, length };
            (self.round.drafter, self.round.step) = (Some(drafter), 0.0);
            self.round.texts.iter_mut().for_each(|text| (text.limit, text.aim) = (0, 0));
            (self.round.texts[text].limit, self.round.texts[text].aim) = (length, length);
        }
    }

    fn decide_who_follows(&mut self, plan: &mut Plan) {
        plan.follow.clear();
        for (index, (usage, spec)) in self.usages.iter_mut().zip(&self.specs).enumerate() {
            if plan.drafter == Some(index) {
                usage.resume();
                for text in &self.round.texts {
                    if let Some(bias) = self.biases.get_mut(text.slot).and_then(|biases| biases.get_mut(index)) {
                        bias.missed = 0;
                    }
                }
            } else if spec.pausable && spec.kind.costs() && usage.may_rest() {
                usage.paused = true;
            }
            plan.follow.push(spec.kind.costs() && !usage.paused);
        }
    }
}

/// What a draft is worth in tokens if it is the only one of the round: the best of its lengths.
pub(super) fn value(survivals: &[f64], round: &Round, count: usize, each: f64) -> f64 {
    let (mut gain, mut best, before) = (0.0, 0.0f64, round.table(count));
    for (index, survival) in survivals.iter().enumerate() {
        gain += survival;
        let extra = round.table(count + index + 1) - before + each * (index + 1) as f64;
        best = best.max(gain - round.price * extra);
    }
    best
}

/// Fills a pool with the best chain of each text. `chains` says which one that is.
pub(super) fn fill(
    pool: &mut Pool,
    chains: &mut Vec<Option<usize>>,
    all: &[Chain<'_>],
    sequences: &[Sequence],
    value: impl Fn(&[f64]) -> f64,
    probability: impl Fn(usize, usize, &Guess) -> f64,
) {
    pool.clear();
    chains.clear();
    for (index, sequence) in sequences.iter().enumerate() {
        let mut best: Option<(usize, f64)> = None;
        pool.begin(false);
        let mut candidates = all.iter().enumerate().filter(|(_, chain)| chain.sequence == index).peekable();
        let mut last = None;
        while let Some((number, chain)) = candidates.next() {
            survivals(pool, sequence, chain, &probability);
            last = Some(number);
            // With one chain there is nothing to compare.
            let worth = if best.is_none() && candidates.peek().is_none() { 0.0 } else { value(pool.last()) };
            if best.is_none_or(|(_, known)| worth > known) {
                best = Some((number, worth));
            }
        }
        if let Some((number, _)) = best
            && last != Some(number)
        {
            survivals(pool, sequence, &all[number], &probability);
        }
        chains.push(best.map(|(number, _)| number));
    }
}

fn survivals(
    pool: &mut Pool,
    sequence: &Sequence,
    chain: &Chain<'_>,
    probability: impl Fn(usize, usize, &Guess) -> f64,
) {
    pool.redo(false);
    let mut survival = 1.0;
    for (place, guess) in chain.guesses.iter().take(sequence.limit).enumerate() {
        survival *= probability(sequence.slot, place, guess);
        if survival < HOPELESS {
            break;
        }
        pool.push(survival);
    }
}

impl Round {
    /// Seconds of a batch with so many rows.
    pub(super) fn table(&self, rows: usize) -> f64 {
        self.read(&self.seconds, rows)
    }

    /// The same, as low as it may be.
    pub(super) fn hoped(&self, rows: usize) -> f64 {
        self.read(&self.hoped, rows)
    }

    /// Tokens of the texts that a drafter did not see.
    fn missed(&self, biases: &[Vec<Bias>], drafter: DrafterIndex) -> usize {
        self.texts.iter().map(|text| bias(biases, text.slot, drafter).missed).sum()
    }

    fn has_unknown(&self) -> bool {
        self.seconds.iter().zip(&self.hoped).any(|(seconds, hoped)| hoped < seconds)
    }

    fn read(&self, table: &[f64], rows: usize) -> f64 {
        table.get(rows).or(table.last()).copied().unwrap_or_default()
    }

    fn time(&self, count: usize, division: Division) -> f64 {
        self.rows_time(count + division.drafted)
    }

    /// As low as it may be while batches are tried.
    fn rows_time(&self, rows: usize) -> f64 {
        if self.mode == Mode::Look { self.hoped(rows) } else { self.table(rows) }
    }
}
