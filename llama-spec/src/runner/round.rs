//! One round over all slots that are ready: draft, decode, verify, roll back, report.

use super::machine::{TakeBack, breaks_off};
use super::offer::Offers;
use super::propose;
use super::trouble::Blame;
use super::{Broken, DraftMemory, Runner, slot};
use crate::batch::Batch;
use crate::control::{Evidence, Verified};
use crate::error::{DecodeError, Error, Failure};
use crate::generate::StopReason;
use crate::sample::Logprobs;
use crate::spec::{Draft, Method, Source, Stats};
use crate::token::Token;
use std::time::{Duration, Instant};

/// What a round needs, kept so that it allocates little.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) batch: Batch,
    pub(super) propose: propose::Buffers,
    /// Of the slots of the round, in order.
    parts: Vec<Part>,
}

/// What a slot does in a round.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) index: usize,
    /// Tokens in the memory when the round began.
    pub(super) position: usize,
    /// The most tokens to draft.
    pub(super) limit: usize,
    /// The controller decides how much is drafted.
    pub(super) adaptive: bool,
    pub(super) offers: Offers,
    /// How much of which offer the drafter goes on behind that costs time.
    pub(super) behind: Option<(usize, usize)>,
    /// Which of llama.cpp's drafters made the draft that it keeps open.
    pub(super) asked: Option<Method>,
    /// Which of the offers is verified.
    taken: Option<usize>,
    /// What is verified.
    pub(super) draft: Draft,
    /// Who drafted each token of it.
    sources: Vec<Source>,
    /// The distributions of the draft are to be believed.
    draws: bool,
    /// Its entries in the batch.
    rows: Vec<usize>,
    verified: Vec<Token>,
    /// Of the verified tokens, if somebody asked for them.
    logprobs: Vec<Logprobs>,
    /// What stays in the memory: the last token and the accepted ones.
    kept: Vec<Token>,
    /// The text cannot go on.
    failed: Option<Error>,
}

impl Part {
    /// Makes it a new part, keeping its buffers.
    fn renew(&mut self, index: usize, position: usize) {
        (self.index, self.position, self.limit, self.adaptive) = (index, position, 0, false);
        self.offers.clear();
        (self.behind, self.asked) = (None, None);
        self.drop_draft();
        self.rows.clear();
        self.verified.clear();
        self.logprobs.clear();
        self.kept.clear();
        self.failed = None;
    }

    fn drop_draft(&mut self) {
        self.draft.clear();
        self.sources.clear();
        (self.taken, self.draws) = (None, false);
    }

    /// Takes up to so many tokens of one of the offers.
    pub(super) fn take(&mut self, offer: usize, length: usize) {
        let Some(taken) = self.offers.get_mut(offer).filter(|_| length > 0) else { return };
        std::mem::swap(&mut self.draft, &mut taken.draft);
        self.draft.cut(length, |_| true);
        self.sources.clear();
        self.sources.extend(taken.sources.iter().take(self.draft.tokens.len()));
        (self.taken, self.draws) = (Some(offer), taken.draws);
    }

    /// What was verified, as the controller knows it.
    fn verified(&self) -> Verified<'_> {
        let taken = self.taken.and_then(|number| self.offers.iter().nth(number));
        let guesses = taken.and_then(|offer| offer.guesses.get(..self.draft.tokens.len())).unwrap_or_default();
        Verified { guesses, accepted: self.accepted().min(guesses.len()) }
    }

    fn accepted(&self) -> usize {
        self.verified.len().saturating_sub(1)
    }

    /// How many tokens of the draft are somebody's, and how many of these were right; nothing if none are.
    fn part_of(&self, source: Source) -> Option<(usize, usize)> {
        let count = |tokens: usize| self.sources.iter().take(tokens).filter(|one| **one == source).count();
        Some((count(usize::MAX), count(self.accepted()))).filter(|(drafted, _)| *drafted > 0)
    }
}

/// When the steps of a round ended, counted from its beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    drafted: Duration,
    decoded: Duration,
    followed: Duration,
    sampled: Duration,
    ended: Duration,
}

impl Runner {
    /// A round over all slots whose prompt is in the memory.
    pub(super) fn round(&mut self) -> Result<(), Broken> {
        self.compare_positions();
        let mut ready = Vec::with_capacity(self.slots.len());
        for index in 0..self.slots.len() {
            if self.make_ready(index)? {
                ready.push(index);
            }
        }
        // Without drafts there may still be more slots than rows that are computed alike.
        for group in ready.chunks(self.rows.max(1)) {
            // An earlier group may have taken their slots, or emptied all memories.
            let group: Vec<usize> = group.iter().copied().filter(|index| self.is_ready(*index)).collect();
            if group.is_empty() {
                continue;
            }
            self.catch_up(&group);
            group.iter().for_each(|index| self.begin(*index));
            let mut parts = std::mem::take(&mut self.buffers.parts);
            parts.resize_with(parts.len().max(group.len()), Part::default);
            let spare = parts.split_off(group.len());
            let done = self.round_of(&group, &mut parts);
            parts.extend(spare);
            self.buffers.parts = parts;
            done?;
        }
        Ok(())
    }

    /// Whether a slot takes part in the round. Sees to a full context and to a draft model that must follow.
    fn make_ready(&mut self, index: usize) -> Result<bool, Broken> {
        if !self.is_ready(index) || self.prime_again(index)? {
            return Ok(false);
        }
        if self.slots[index].history.len() >= self.target().length_per_slot() as usize {
            self.context_full(index)?;
        }
        Ok(self.is_ready(index))
    }

    /// Whether the prompt of a slot is in the memory.
    pub(super) fn is_ready(&self, index: usize) -> bool {
        self.slots[index].job.is_some() && !self.lacks(index)
    }

    fn round_of(&mut self, group: &[usize], parts: &mut Vec<Part>) -> Result<(), Broken> {
        let _span = tracing::trace_span!("round", slots = group.len()).entered();
        let start = Instant::now();
        for (part, index) in parts.iter_mut().zip(group) {
            part.renew(*index, self.slots[*index].history.len());
        }
        self.draft(parts);
        let mut marks = Marks { drafted: start.elapsed(), ..Marks::default() };

        if !self.decode(parts)? {
            return Ok(());
        }
        marks.decoded = start.elapsed();
        let indexes: Vec<usize> = parts.iter().map(|part| part.index).collect();
        self.follow(&indexes);
        marks.followed = start.elapsed();

        self.verify(parts);
        marks.sampled = start.elapsed();

        self.take_back(parts)?;
        marks.ended = start.elapsed();
        self.learn(parts, &marks);
        self.count(parts, &marks);
        self.report(parts)
    }

    /// Decodes last tokens and drafts. False if none of the slots is left; those that could not take part are taken out.
    fn decode(&mut self, parts: &mut Vec<Part>) -> Result<bool, Broken> {
        loop {
            if parts.is_empty() {
                return Ok(false);
            }
            let mut prepared = Ok(());
            let batch = &mut self.buffers.batch;
            batch.clear();
            for part in parts.iter_mut() {
                let Some(job) = &self.slots[part.index].job else { continue };
                part.rows.clear();
                if prepared.is_ok() && !part.draft.tokens.is_empty() {
                    let in_step = self.slots[part.index].draft_memory == DraftMemory::InStep;
                    let foreign = in_step && part.asked.map(Source::Drafted) != part.sources.first().copied();
                    prepared = self.machine.prepare(slot(part.index), part.position as u32, foreign);
                }
                for (offset, token) in std::iter::once(&job.last()).chain(&part.draft.tokens).enumerate() {
                    part.rows.push(batch.push(*token, (part.position + offset) as u32, slot(part.index), true));
                }
            }
            if let Err(error) = prepared {
                // What could not be taken back is not drafted.
                tracing::warn!(%error, "no draft in this round");
                parts.iter_mut().for_each(Part::drop_draft);
                continue;
            }
            match self.machine.decode(&self.buffers.batch) {
                Ok(()) => return Ok(true),
                Err(DecodeError::NoRoom { .. }) => self.shrink(parts)?,
                Err(error) => {
                    let indexes: Vec<usize> = parts.iter().map(|part| part.index).collect();
                    self.decode_failed(&indexes, &error)?;
                    return Ok(false);
                }
            }
        }
    }

    /// There is no room in the memory for the batch: first the drafts go, then texts that nobody is working on, then the
    /// youngest texts.
    fn shrink(&mut self, parts: &mut Vec<Part>) -> Result<(), Broken> {
        if parts.iter().any(|part| !part.draft.tokens.is_empty()) {
            parts.iter_mut().for_each(Part::drop_draft);
            return Ok(());
        }
        // The oldest of them is the last to lose its place.
        let submitted = |part: &Part| self.slots[part.index].job.as_ref().map(|job| job.times.submitted);
        let Some(oldest) = parts.iter().min_by_key(|part| submitted(part)).map(|part| part.index) else {
            return Ok(());
        };
        if !self.make_room(oldest)? {
            self.finish(oldest, StopReason::ContextFull);
            self.recompute(oldest)?;
        }
        parts.retain(|part| self.slots[part.index].job.is_some());
        Ok(())
    }

    fn verify(&mut self, parts: &mut [Part]) {
        for part in parts {
            let Some(job) = &mut self.slots[part.index].job else { continue };
            let Part { rows, draft, verified, draws, logprobs, .. } = part;
            let distributions = if *draws { draft.distributions.as_slice() } else { &[] };
            match self.machine.verify(&mut job.sampler, rows, &draft.tokens, distributions, verified) {
                Ok(()) if !verified.is_empty() => {
                    // Now, since what is computed again in this round takes the place of these rows.
                    let top = job.answer.logprobs();
                    let of = |(row, token): (&usize, &Token)| {
                        let logits = self.machine.target().logits(*row).ok()?;
                        Some(Logprobs::of(logits, *token, top?))
                    };
                    logprobs.extend(rows.iter().zip(verified.iter()).map_while(of));
                }
                Ok(()) => {
                    let failure = Failure::new("no token was chosen");
                    part.failed = Some(Error::Sample { failure });
                }
                Err(error) => part.failed = Some(error),
            }
        }
    }

    /// Takes the rejected tokens out of the memories, and the others into the texts.
    fn take_back(&mut self, parts: &mut [Part]) -> Result<(), Broken> {
        for part in parts.iter_mut().filter(|part| part.failed.is_none()) {
            let Some(job) = &mut self.slots[part.index].job else { continue };
            let accepted = part.accepted();
            part.kept.push(job.last());
            part.kept.extend_from_slice(&part.draft.tokens[..accepted]);
            job.tokens.extend_from_slice(&part.verified);
            job.generated.extend_from_slice(&part.verified);
            job.recomputed = 0;
            // Who drafted learns of the outcome before all of them learn the tokens.
            if let Some(source @ Source::Own(number)) = part.sources.first().copied()
                && let Some((drafted, right)) = part.part_of(source)
            {
                job.drafting.outcome(number, drafted, right);
            }
            job.drafting.extend(&part.verified);
            if !part.sources.is_empty() {
                let theirs = |method| Some((method, part.part_of(Source::Drafted(method))?.1));
                self.told(part.index, accepted, part.asked.and_then(theirs));
            }
            let seat = &mut self.slots[part.index];
            seat.history.extend_from_slice(&part.kept);
        }
        let rejected = |part: &&Part| part.failed.is_none() && part.accepted() < part.draft.tokens.len();
        let backs: Vec<usize> = parts.iter().filter(rejected).map(|part| part.index).collect();
        if !backs.is_empty() {
            let slots: Vec<TakeBack<'_>> = parts
                .iter()
                .filter(rejected)
                .map(|part| TakeBack {
                    slot: slot(part.index),
                    position: part.position as u32,
                    kept: &part.kept,
                    in_step: self.slots[part.index].draft_memory == DraftMemory::InStep,
                })
                .collect();
            match self.machine.take_back(&slots) {
                Ok(()) => match self.machine.take_back_draft(&slots) {
                    Ok(true) => {}
                    Ok(false) => {
                        backs.iter().for_each(|index| self.slots[*index].draft_memory = DraftMemory::Behind);
                    }
                    Err(failure) => self.draft_failed(Blame::Model, &backs, "rollback", &failure),
                },
                Err(Error::Decode(error)) if breaks_off(&error) => self.decode_failed(&backs, &error)?,
                Err(error) => {
                    tracing::warn!(%error, "rejected tokens could not be taken back: the text is computed again");
                    for index in backs {
                        self.recompute(index)?;
                    }
                }
            }
        }
        for part in parts.iter().filter(|part| part.failed.is_none()) {
            self.extended(part.index, part.kept.len());
        }
        Ok(())
    }

    /// Lets lookup and controller learn from a round.
    fn learn(&mut self, parts: &[Part], marks: &Marks) {
        let lookup = Source::Drafted(Method::Lookup);
        let drafter = self.chooser.index(lookup);
        for part in parts.iter().filter(|part| part.failed.is_none()) {
            let Self { chooser, slots, .. } = self;
            let controller = &mut chooser.controller;
            // What was verified is observed below, and needs no shadow.
            if let Some((text, _)) = slots[part.index].followed() {
                let mut place = 0;
                text.extend(&part.verified, |evidence, right| {
                    if let Some(drafter) = drafter.filter(|_| part.sources.get(place) != Some(&lookup)) {
                        controller.shadow(part.index, drafter, Evidence::Bucket(evidence.index() as u16), right);
                    }
                    place += 1;
                });
            }
            for (number, offer) in part.offers.iter().enumerate() {
                if part.taken == Some(number) {
                    continue;
                }
                // What lookup would have said was told by itself.
                let theirs = offer.guesses.iter().zip(&offer.sources).take_while(|(_, source)| **source != lookup);
                for ((token, verified), (guess, _)) in offer.draft.tokens.iter().zip(&part.verified).zip(theirs) {
                    controller.shadow(part.index, guess.drafter, guess.evidence, token == verified);
                    if token != verified {
                        break;
                    }
                }
            }
        }
        let same = parts.iter().map(|part| part.index).eq(self.chooser.sequences.iter().map(|text| text.slot));
        if !same || parts.iter().any(|part| !part.adaptive || part.failed.is_some()) {
            return;
        }
        if let Some(costly) = &mut self.chooser.costly {
            costly.follow = Some(marks.followed - marks.decoded);
        }
        let verified: Vec<Verified<'_>> = parts.iter().map(Part::verified).collect();
        let rejected = parts.iter().any(|part| part.accepted() < part.draft.tokens.len());
        let rollback = if rejected { marks.ended - marks.sampled } else { Duration::ZERO };
        self.chooser.observe(&verified, marks.decoded - marks.drafted, marks.sampled - marks.followed, rollback);
    }

    /// Notes the numbers of a round.
    fn count(&mut self, parts: &[Part], marks: &Marks) {
        let draft = marks.drafted + (marks.followed - marks.decoded);
        let verify = marks.decoded - marks.drafted;
        let sample = marks.sampled - marks.followed;
        let rollback = marks.ended - marks.sampled;
        let times = |stats: &mut Stats| {
            stats.rounds += 1;
            stats.draft += draft;
            stats.verify += verify;
            stats.sample += sample;
            stats.rollback += rollback;
        };
        times(&mut self.total);
        self.total.generation += marks.ended;
        self.counts.decodes += 1;
        self.counts.decoded_slots += parts.len() as u64;
        for part in parts {
            let Some(job) = &mut self.slots[part.index].job else { continue };
            times(&mut job.stats);
            if part.failed.is_none() && !part.sources.is_empty() {
                job.stats.count_draft(&part.sources, part.accepted());
                self.total.count_draft(&part.sources, part.accepted());
            }
        }
    }

    /// Reports the verified tokens, up to the one that ends the text.
    fn report(&mut self, parts: &mut [Part]) -> Result<(), Broken> {
        let now = Instant::now();
        for part in parts {
            if let Some(error) = part.failed.take() {
                // Its last rows are in the memory, and nobody knows which of them belong to the text.
                self.fail(part.index, error);
                self.recompute(part.index)?;
                continue;
            }
            if let Some(reason) = self.report_part(part, now) {
                self.finish(part.index, reason);
            }
        }
        Ok(())
    }

    fn report_part(&mut self, part: &Part, now: Instant) -> Option<StopReason> {
        let Self { machine, slots, total, counts, .. } = self;
        let job = slots[part.index].job.as_mut()?;
        let (before, accepted) = (job.answer.generated(), part.accepted());
        let mut reason = None;
        for (offset, token) in part.verified.iter().enumerate() {
            let source = part.sources.get(offset).filter(|_| offset < accepted).copied().unwrap_or(Source::Target);
            let logprobs = part.logprobs.get(offset).cloned();
            reason = job.answer.push(machine.target().model().vocab(), *token, source, logprobs);
            if reason.is_some() {
                break;
            }
        }
        let count = job.answer.generated() - before;
        job.stats.generated_tokens += count as u64;
        total.generated_tokens += count as u64;
        if count > 0 {
            if job.times.last_token.is_none() {
                counts.times_to_first_token.record(now - job.times.submitted);
            }
            job.note_tokens(count, now, total);
            if reason.is_none() {
                job.answer.checkpoint(&job.sampler);
            }
        }
        reason
    }
}
