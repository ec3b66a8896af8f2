//! The drafts of a round: everybody who may draft for a slot offers something, and either the first offer is taken or the
//! controller chooses.

use super::chooser::Chooser;
use super::offer::Offers;
use super::round::Part;
use super::share::share;
use super::stepwise::Resumed;
use super::trouble::Blame;
use super::{DraftMemory, Job, Runner, Seat, slot};
use crate::control::{DrafterTimes, Evidence, Guess, Sequence};
use crate::ffi::speculation::{DraftRequest, Drafted};
use crate::lookup::Proposed;
use crate::sample::confidence::Confidence;
use crate::spec::{DraftLength, Method, Methods, Source};
use crate::token::Slot;
use std::time::Instant;

/// What drafting needs, kept so that it allocates little.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    requests: Vec<DraftRequest>,
    drafted: Vec<Drafted>,
    proposed: Vec<Proposed>,
}

impl Runner {
    /// Drafts for every slot, as far as context, budget and rows reach: what cannot be used is not drafted.
    pub(super) fn draft(&mut self, parts: &mut [Part]) {
        for part in parts.iter_mut() {
            part.limit = self.longest_draft(part);
            part.adaptive = is_adaptive(&self.slots[part.index]);
        }
        self.draft_fixed(parts);
        if parts.iter().any(|part| part.adaptive) {
            self.draft_adaptively(parts);
        }
    }

    /// The longest draft that makes sense in a slot, the rows aside.
    fn longest_draft(&self, part: &Part) -> usize {
        let Some(job) = &self.slots[part.index].job else { return 0 };
        let room = (self.target().length_per_slot() as usize).saturating_sub(part.position + 1);
        let budget = job.answer.budget().saturating_sub(1);
        let fits = self.target().batch_size() as usize - 1;
        let asked = match job.drafting.length {
            DraftLength::Adaptive => job.drafting.limit,
            DraftLength::Fixed(tokens) => job.drafting.limit.min(tokens as usize),
        };
        asked.min(room).min(budget).min(fits).min(self.machine.longest_draft())
    }

    /// For the slots whose drafts have a fixed length: the first that drafts is believed.
    fn draft_fixed(&mut self, parts: &mut [Part]) {
        let wanted: Vec<usize> = parts.iter().map(|part| if part.adaptive { 0 } else { part.limit }).collect();
        for (part, limit) in parts.iter_mut().zip(share(&wanted, self.rows)).filter(|(part, _)| !part.adaptive) {
            part.limit = limit;
        }
        let open = |part: &&mut Part| !part.adaptive && part.limit > 0 && part.offers.is_empty();
        parts.iter_mut().filter(open).for_each(|part| self.offer_at_once(part, true));
        let fixed = parts.iter().filter(|part| !part.adaptive && part.limit > 0);
        fixed.for_each(|part| self.wake(part.index));
        for kind in [Method::is_ngram as fn(Method) -> bool, |method| !method.is_lookup()] {
            self.ask(parts, kind, |_, part| if !part.adaptive && part.offers.is_empty() { part.limit } else { 0 });
        }
        for part in parts.iter_mut().filter(|part| !part.adaptive) {
            let limit = part.limit;
            part.take(0, limit);
        }
    }

    /// For the others: what pays most, by what is known.
    fn draft_adaptively(&mut self, parts: &mut [Part]) {
        for part in parts.iter_mut().filter(|part| part.adaptive && part.limit > 0) {
            self.offer_at_once(part, false);
        }
        self.ask(parts, Method::is_ngram, |_, part| if part.adaptive { part.limit } else { 0 });
        parts.iter_mut().for_each(|part| self.look_behind(part));
        // What has a fixed length is in the batch whatever is decided.
        let rows = self.rows - parts.iter().map(|part| part.draft.tokens.len()).sum::<usize>().min(self.rows);
        let chooser = &mut self.chooser;
        chooser.sequences.clear();
        chooser.sequences.extend(parts.iter().map(|part| Sequence {
            slot: part.index,
            depth: part.position,
            limit: if part.adaptive { part.limit } else { 0 },
        }));
        chooser.plan(rows, parts.iter().map(|part| &part.offers));
        match self.chooser.plan.drafter {
            Some(drafter) => {
                self.run_model(parts, drafter);
                parts.iter_mut().for_each(|part| self.look_behind(part));
            }
            None if self.chooser.rests() => parts.iter().for_each(|part| self.rest(part.index)),
            None => {}
        }
        let picks = self.chooser.choose(parts.iter().map(|part| &part.offers));
        for (part, pick) in parts.iter_mut().zip(picks).filter(|(part, _)| part.adaptive) {
            if let Some((offer, length)) = pick {
                part.take(offer, length);
            }
        }
    }

    /// Lets the drafter run that costs time, as far as was planned and, where it can be steered, as the controller says.
    fn run_model(&mut self, parts: &mut [Part], drafter: usize) {
        let missed: usize = parts.iter().map(|part| self.machine.missed(slot(part.index)).unwrap_or(0)).sum();
        let start = Instant::now();
        parts.iter().for_each(|part| self.wake(part.index));
        let catch_up = start.elapsed();
        let before: Vec<usize> = parts.iter().map(|part| part.offers.iter().count()).collect();
        let (steers, decodes) = (self.machine.can_steer(), self.machine.draft_decodes());
        let start = Instant::now();
        for part in parts.iter_mut() {
            part.behind = self.chooser.planned(part.index, steers).and_then(|(_, behind)| behind);
        }
        self.ask(
            parts,
            |method| !method.is_lookup(),
            |chooser, part| chooser.planned(part.index, steers).map_or(0, |(limit, _)| limit),
        );
        let source = self.chooser.source(drafter);
        let lengths = parts.iter().zip(before).filter_map(|(part, before)| {
            let sources = &part.offers.iter().nth(before)?.sources;
            Some(sources.iter().filter(|one| Some(**one) == source).count()).filter(|length| *length > 0)
        });
        let lengths: Vec<usize> = lengths.collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let steps = match source {
            _ if steers => (self.machine.draft_decodes() - decodes) as usize,
            Some(Source::Drafted(Method::DraftDflash | Method::DraftDspark)) => longest.min(1),
            _ => longest,
        };
        let (draft, sequences) = (start.elapsed(), lengths.len());
        self.chooser.costly =
            Some(DrafterTimes { drafter, sequences, steps, draft, missed, catch_up, ..DrafterTimes::default() });
    }

    /// The draft's memory of a slot does not follow the target until it is woken.
    pub(super) fn rest(&mut self, index: usize) {
        if let Err(failure) = self.machine.pause(slot(index)) {
            self.draft_failed(Blame::Model, &[index], "pausing", &failure);
        }
    }

    /// Shows the draft's memory of a slot what it missed.
    fn wake(&mut self, index: usize) {
        match self.machine.resume(slot(index)) {
            Ok(Resumed::CaughtUp) => {}
            Ok(Resumed::TooLate) => {
                // The target would have to compute all of it again, which costs more than drafts of this text would bring.
                self.slots[index].draft_memory = DraftMemory::Behind;
                let model = self.trouble.model();
                if let Some(job) = &mut self.slots[index].job {
                    job.drafting.methods = job.drafting.methods.without(model);
                }
            }
            Err(failure) => self.draft_failed(Blame::Model, &[index], "catching up", &failure),
        }
    }

    /// What costs next to nothing: drafters of the user's, what the grammar forces, and what was said before. With `first` nobody
    /// is asked any more once there is an offer.
    fn offer_at_once(&mut self, part: &mut Part, first: bool) {
        let Self { machine, slots, chooser, buffers, trouble, .. } = self;
        let vocab = machine.target().model().vocab();
        let Seat { job: Some(job), lookup, .. } = &mut slots[part.index] else { return };
        let (limit, offers) = (part.limit, &mut part.offers);
        let methods = trouble.allowed(job.drafting.methods);
        let done = |offers: &Offers| first && !offers.is_empty();
        for own in &mut job.drafting.own {
            if done(offers) {
                return;
            }
            let source = Source::Own(own.number);
            offers.add(source, |offer| {
                own.propose(limit, offer);
                offer.cut(limit, |token| vocab.contains(token));
                offer.guess(chooser.index(source), Evidence::Unknown);
            });
        }
        if let Some(forced) = job.drafting.forced.as_mut().filter(|_| !done(offers)) {
            offers.add(Source::Grammar, |offer| {
                forced.propose(limit, &mut offer.draft.tokens);
                offer.guess(chooser.index(Source::Grammar), Evidence::Bucket(0));
            });
        }
        if let Some(lookup) = lookup.as_mut().filter(|_| methods.contains(Method::Lookup) && !done(offers)) {
            let source = Source::Drafted(Method::Lookup);
            lookup.propose(limit, &mut buffers.propose.proposed);
            offers.add(source, |offer| {
                let index = chooser.index(source);
                for proposed in &buffers.propose.proposed {
                    offer.draft.tokens.push(proposed.token);
                    let evidence = Evidence::Bucket(proposed.evidence.index() as u16);
                    offer.guesses.extend(index.map(|drafter| Guess { drafter, evidence }));
                }
                // What a store was filled with elsewhere can be of another vocabulary.
                offer.cut(limit, |token| vocab.contains(token));
            });
        }
    }

    /// Lets lookup go on behind the drafts of others, as far as the limit reaches: it costs nothing, and how much of it is verified
    /// is decided token by token. A draft that ends the text has nothing behind it.
    fn look_behind(&mut self, part: &mut Part) {
        let Self { machine, slots, chooser, buffers, trouble, .. } = self;
        let vocab = machine.target().model().vocab();
        let source = Source::Drafted(Method::Lookup);
        let Seat { job: Some(job), lookup: Some(lookup), .. } = &mut slots[part.index] else { return };
        let Some(drafter) = chooser.index(source).filter(|_| part.adaptive) else { return };
        if !trouble.allowed(job.drafting.methods).contains(Method::Lookup) {
            return;
        }
        let proposed = &mut buffers.propose.proposed;
        for offer in part.offers.iter_mut().filter(|offer| offer.sources.last() != Some(&source)) {
            let tokens = &offer.draft.tokens;
            let known = offer.guesses.len() == tokens.len();
            let ends = tokens.last().is_none_or(|last| vocab.is_end_of_generation(*last));
            if known && !ends && tokens.len() < part.limit {
                lookup.propose_after(tokens, part.limit - tokens.len(), proposed);
                for one in proposed.iter() {
                    let evidence = Evidence::Bucket(one.evidence.index() as u16);
                    offer.go_on(source, one.token, Guess { drafter, evidence });
                }
            }
        }
    }

    /// Asks the drafters of llama.cpp that are of this kind for drafts of up to so many tokens.
    fn ask(&mut self, parts: &mut [Part], kind: fn(Method) -> bool, limit: impl Fn(&Chooser, &Part) -> usize) {
        let mut requests = std::mem::take(&mut self.buffers.propose.requests);
        requests.clear();
        for part in parts.iter() {
            let limit = limit(&self.chooser, part);
            if limit == 0 {
                continue;
            }
            let methods = self.can_draft(part.index).only(kind);
            let Some(job) = &self.slots[part.index].job else { continue };
            if !methods.is_empty() {
                requests.push(request(part, limit, job, methods, self.config.draft_model.probabilistic));
            }
        }
        let mut drafted = std::mem::take(&mut self.buffers.propose.drafted);
        drafted.resize_with(drafted.len().max(requests.len()), Drafted::default);
        let drafted_now = &mut drafted[..requests.len()];
        if !requests.is_empty() {
            let Self { machine, slots, chooser, .. } = self;
            let in_step = |slot: Slot| slots[slot.index() as usize].draft_memory == DraftMemory::InStep;
            let mut steer = |slot: Slot, count: usize, confidence: Confidence| {
                let index = slot.index() as usize;
                let number = chooser.number(index).filter(|_| is_adaptive(&slots[index]));
                let evidence = Evidence::Probability(confidence.probability);
                number.is_none_or(|number| chooser.controller.go_on(number, count.saturating_sub(1), evidence))
            };
            match machine.draft_steered(&requests, drafted_now, in_step, &mut steer) {
                Ok(()) => self.take_offers(parts, &requests, drafted_now),
                Err(failure) => {
                    let indexes: Vec<usize> = requests.iter().map(|request| request.slot.index() as usize).collect();
                    let blame = self.trouble.suspect(requests.iter().map(|request| request.methods));
                    self.draft_failed(blame, &indexes, "drafting", &failure);
                }
            }
        }
        (self.buffers.propose.requests, self.buffers.propose.drafted) = (requests, drafted);
    }

    fn take_offers(&mut self, parts: &mut [Part], requests: &[DraftRequest], drafted: &mut [Drafted]) {
        let vocab = self.machine.target().model().vocab();
        for (request, drafted) in requests.iter().zip(drafted) {
            let index = request.slot.index() as usize;
            let Some(part) = parts.iter_mut().find(|part| part.index == index) else { continue };
            let Some(method) = drafted.by else { continue };
            part.asked = Some(method);
            let source = Source::Drafted(method);
            let drafter = self.chooser.index(source);
            let before = part.offers.iter().count();
            part.offers.add(source, |offer| {
                std::mem::swap(&mut offer.draft.tokens, &mut drafted.tokens);
                std::mem::swap(&mut offer.draft.distributions, &mut drafted.distributions);
                offer.cut(request.limit as usize, |token| vocab.contains(token));
                offer.draws = true;
                offer.guess(drafter, Evidence::Unknown);
                for (guess, confidence) in offer.guesses.iter_mut().zip(&drafted.confidences) {
                    guess.evidence = Evidence::Probability(confidence.probability);
                }
            });
            if let Some((number, length)) = part.behind.filter(|_| part.offers.iter().count() > before) {
                part.offers.put_before_last(number, length);
            }
        }
    }
}

/// Whether the controller decides about the drafts of a slot.
pub(super) fn is_adaptive(seat: &Seat) -> bool {
    seat.job.as_ref().is_some_and(|job| job.drafting.length == DraftLength::Adaptive)
}

fn request(part: &Part, limit: usize, job: &Job, methods: Methods, probabilistic: bool) -> DraftRequest {
    let options = job.sampler.options();
    let draws = probabilistic && !options.is_greedy();
    let behind = part.behind.and_then(|(number, length)| part.offers.iter().nth(number)?.draft.tokens.get(..length));
    DraftRequest {
        slot: slot(part.index),
        position: part.position as u32,
        last: job.last(),
        behind: behind.unwrap_or_default().to_vec(),
        limit: limit as u32,
        methods,
        // Another seed in each round, the same in each run.
        distributions: draws
            .then(|| (options.temperature, job.sampler.seed().unwrap_or(0).wrapping_add(part.position as u32))),
    }
}

impl Seat {
    /// Whether a method of llama.cpp could be asked for a draft here.
    pub(super) fn may_ask(&self) -> bool {
        self.job.as_ref().is_some_and(|job| !job.drafting.methods.is_empty())
    }
}
