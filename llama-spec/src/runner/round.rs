//! One round over all slots that are ready: draft, decode, verify, roll back, report.

use super::machine::{TakeBack, breaks_off};
use super::share::share;
use super::trouble::Blame;
use super::{Broken, DraftMemory, Job, Runner, Seat, slot};
use crate::batch::Batch;
use crate::error::{DecodeError, Error, Failure};
use crate::ffi::speculation::{DraftRequest, Drafted};
use crate::generate::StopReason;
use crate::sample::Logprobs;
use crate::spec::{Draft, Methods, Source, Stats};
use crate::token::{Slot, Token};
use std::time::{Duration, Instant};

/// What a round needs, kept so that it allocates little.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) batch: Batch,
    requests: Vec<DraftRequest>,
    drafted: Vec<Drafted>,
    /// Of the slots of the round, in order.
    parts: Vec<Part>,
}

/// What a slot does in a round.
#[derive(Debug, Default)]
struct Part {
    index: usize,
    /// Tokens in the memory when the round began.
    position: usize,
    /// The most tokens to draft.
    limit: usize,
    draft: Draft,
    /// Who drafted.
    source: Option<Source>,
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
        (self.index, self.position, self.limit, self.source, self.draws) = (index, position, 0, None, false);
        self.draft.clear();
        self.rows.clear();
        self.verified.clear();
        self.logprobs.clear();
        self.kept.clear();
        self.failed = None;
    }

    fn drop_draft(&mut self) {
        self.draft.clear();
        self.source = None;
    }

    fn accepted(&self) -> usize {
        self.verified.len().saturating_sub(1)
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
        self.count(parts, &marks);
        self.report(parts)
    }

    /// Drafts for every slot, as far as context, budget and rows reach: what cannot be used is not drafted.
    fn draft(&mut self, parts: &mut [Part]) {
        let wanted: Vec<usize> = parts.iter().map(|part| self.longest_draft(part)).collect();
        let limits = share(&wanted, self.rows);
        let mut requests = std::mem::take(&mut self.buffers.requests);
        requests.clear();
        for (part, limit) in parts.iter_mut().zip(limits) {
            part.limit = limit;
            if limit == 0 {
                continue;
            }
            let model = self.machine.target().model();
            let Some(job) = &mut self.slots[part.index].job else { continue };
            if let Some((number, draws)) = job.drafting.propose(limit, model, &mut part.draft) {
                (part.source, part.draws) = (Some(Source::Own(number)), draws);
                continue;
            }
            let methods = self.can_draft(part.index);
            let Some(job) = &self.slots[part.index].job else { continue };
            if !methods.is_empty() {
                requests.push(request(part, job, methods, self.config.draft_model.probabilistic));
            }
        }
        let mut drafted = std::mem::take(&mut self.buffers.drafted);
        drafted.resize_with(drafted.len().max(requests.len()), Drafted::default);
        let drafted_now = &mut drafted[..requests.len()];
        if !requests.is_empty() {
            let Self { machine, slots, .. } = self;
            let in_step = |slot: Slot| slots[slot.index() as usize].draft_memory == DraftMemory::InStep;
            match machine.draft(&requests, drafted_now, in_step) {
                Ok(()) => self.take_drafts(parts, &requests, drafted_now),
                Err(failure) => {
                    let indexes: Vec<usize> = requests.iter().map(|request| request.slot.index() as usize).collect();
                    let blame = self.trouble.suspect(requests.iter().map(|request| request.methods));
                    self.draft_failed(blame, &indexes, "drafting", &failure);
                }
            }
        }
        (self.buffers.requests, self.buffers.drafted) = (requests, drafted);
    }

    fn take_drafts(&mut self, parts: &mut [Part], requests: &[DraftRequest], drafted: &mut [Drafted]) {
        let vocab = self.machine.target().model().vocab();
        for (request, drafted) in requests.iter().zip(drafted) {
            let index = request.slot.index() as usize;
            let Some(part) = parts.iter_mut().find(|part| part.index == index) else { continue };
            let Some(method) = drafted.by else { continue };
            std::mem::swap(&mut part.draft.tokens, &mut drafted.tokens);
            std::mem::swap(&mut part.draft.distributions, &mut drafted.distributions);
            part.draft.cut(part.limit, |token| vocab.contains(token));
            if !part.draft.tokens.is_empty() {
                (part.source, part.draws) = (Some(Source::Drafted(method)), true);
            }
        }
    }

    /// The longest draft that makes sense in a slot, the rows aside.
    fn longest_draft(&self, part: &Part) -> usize {
        let Some(job) = &self.slots[part.index].job else { return 0 };
        let room = (self.target().length_per_slot() as usize).saturating_sub(part.position + 1);
        let budget = job.answer.budget().saturating_sub(1);
        let fits = self.target().batch_size() as usize - 1;
        job.drafting.limit.min(room).min(budget).min(fits).min(self.machine.longest_draft())
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
                    let foreign = in_step && matches!(part.source, Some(Source::Own(_)));
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
            if let Some(Source::Own(number)) = part.source {
                job.drafting.outcome(number, part.draft.tokens.len(), accepted);
            }
            job.drafting.extend(&part.verified);
            if let Some(source) = part.source {
                self.told(part.index, accepted, source);
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
            if let Some(source) = part.source.filter(|_| part.failed.is_none()) {
                job.stats.count_draft(source, part.draft.tokens.len(), part.accepted());
                self.total.count_draft(source, part.draft.tokens.len(), part.accepted());
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
            let source = part.source.filter(|_| offset < accepted).unwrap_or(Source::Target);
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

fn request(part: &Part, job: &Job, methods: Methods, probabilistic: bool) -> DraftRequest {
    let options = job.sampler.options();
    let draws = probabilistic && !options.is_greedy();
    DraftRequest {
        slot: slot(part.index),
        position: part.position as u32,
        last: job.last(),
        limit: part.limit as u32,
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
