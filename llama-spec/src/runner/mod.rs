//! The loop that every text goes through, for one slot or many: prefill, draft, decode, verify, roll back.
//!
//! A [`Runner`] owns the contexts and does a bounded piece of work in each [`step`](Runner::step): a part of one prompt, and a
//! round over all texts whose prompt is in the memory. [`Generator`](crate::Generator) runs it on the caller's thread with
//! one slot, [`Engine`](crate::Engine) on a thread of its own with many.
//!
//! A slot holds the tokens of its text but the last, which was sampled and is decoded in the next round. Whatever goes wrong with
//! a memory has one cure: the slot is emptied, and since it then holds less than its text, the prefill computes it again
//! ([`Runner::recompute`]). A text that is preempted, or whose context is shifted, goes the same way.
//!
//! The rows of one decode decide which kernels compute them, and kernels round differently. So prompts are computed one by
//! one, in the same pieces whatever else is going on, and never together with a round.

mod answer;
mod assign;
mod chooser;
mod clock;
mod fault;
mod job;
mod kept;
mod machine;
mod offer;
mod prefill;
mod propose;
mod round;
mod setup;
mod share;
mod state;
mod stepwise;
mod stop;
#[cfg(test)]
mod tests;
mod trial;
mod trouble;

pub(crate) use answer::Answer;
use chooser::Chooser;
#[cfg(test)]
pub(crate) use clock::Clock;
#[cfg(test)]
pub(crate) use fault::{Call, Fault, Faults};
pub(crate) use job::{Drafting, Job, OwnDrafter, Restore};
pub(crate) use kept::Kept;
use machine::Machine;
pub(crate) use setup::Setup;
pub(crate) use stop::StopFinder;
pub(crate) use trial::Alone;

use crate::context::Context;
use crate::control::Account;
use crate::error::{DecodeError, Error, Failure};
use crate::generate::{ContextFull, Event, StopReason};
use crate::lookup::Lookup;
use crate::model::Model;
use crate::probe::ProbeReport;
use crate::spec::{Factory, Histogram, Method, Source, SpecConfig, Speculation, Stats};
use crate::token::{Slot, Token};
use round::Buffers;
use std::time::{Duration, Instant};
use trouble::Trouble;

/// The contexts broke down: nothing can be computed until they are cleared or made anew.
#[derive(Clone, Debug)]
pub(crate) struct Broken(pub(crate) Failure);

/// Contexts, drafters and the texts that are being generated.
#[derive(Debug)]
pub(crate) struct Runner {
    machine: Machine,
    slots: Vec<Seat>,
    config: SpecConfig,
    own: Vec<Factory>,
    trouble: Trouble,
    chooser: Chooser,
    /// The most rows of a round, all slots together.
    rows: usize,
    /// The most rows of one slot.
    outputs: u32,
    /// Jobs that lost their slot, or never got one: they go on when one is free.
    returned: Vec<Job>,
    /// Texts that are over and whose owners have not been told.
    ended: Vec<Ended>,
    /// Texts that lookup is to find again, and that have not been put where they are to be.
    kept: Vec<Kept>,
    /// A text was preempted: no other is started until one has ended.
    crowded: bool,
    /// Which slot's prompt was computed last.
    turn: usize,
    /// Counts the texts that were started.
    clock: u64,
    /// When the step that runs began.
    step_start: Option<Instant>,
    buffers: Buffers,
    /// The numbers of all texts, each step counted once.
    total: Stats,
    counts: Counts,
}

/// A text that is over.
#[derive(Debug)]
struct Ended {
    answer: Answer,
    how: Result<(StopReason, Stats), Error>,
}

/// What became of the texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) finished: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) failed: u64,
    pub(crate) preempted: u64,
    /// Rounds, and the slots in them.
    pub(crate) decodes: u64,
    pub(crate) decoded_slots: u64,
    /// Steps, and the longest of them.
    pub(crate) steps: u64,
    pub(crate) longest_step: Duration,
    pub(crate) queue_times: Histogram,
    pub(crate) times_to_first_token: Histogram,
}

/// A slot and who sits in it.
#[derive(Debug, Default)]
struct Seat {
    /// What the target's memory holds.
    history: Vec<Token>,
    draft_memory: DraftMemory,
    /// The drafters have the history.
    begun: bool,
    job: Option<Job>,
    /// Where the method is chosen.
    lookup: Option<Lookup>,
    /// When it got its last job.
    used: u64,
    /// The numbers of the last text that ended here, and of all of them.
    last: Stats,
    all: Stats,
}

/// How the draft's memory of a slot stands to the target's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DraftMemory {
    /// It has followed from the beginning.
    #[default]
    InStep,
    /// It follows, and lacks the beginning.
    Holed,
    /// It does not follow: before it is shown anything it must be emptied.
    Behind,
}

impl Seat {
    /// An empty one.
    fn new(config: &SpecConfig) -> Self {
        Self { lookup: config.methods.contains(&Method::Lookup).then(|| Lookup::new(None)), ..Self::default() }
    }

    /// Lookup, if it follows the text, with the text.
    fn followed(&mut self) -> Option<(&mut Lookup, &Job)> {
        let job = self.job.as_ref().filter(|job| job.drafting.limit > 0)?;
        let lookup = self.lookup.as_mut().filter(|_| job.drafting.methods.contains(Method::Lookup))?;
        Some((lookup, job))
    }

    /// Tells lookup that the text of its job begins, or goes on somewhere else than before.
    fn look_up_anew(&mut self) {
        if let Some((lookup, job)) = self.followed() {
            lookup.begin(&job.tokens);
        }
    }

    /// Notes that the memories hold nothing of it any more.
    fn empty(&mut self) {
        self.history.clear();
        (self.begun, self.draft_memory) = (false, DraftMemory::InStep);
    }
}

impl Runner {
    pub(crate) fn model(&self) -> &Model {
        self.target().model()
    }

    pub(crate) fn target(&self) -> &Context {
        self.machine.target()
    }

    pub(crate) fn config(&self) -> &SpecConfig {
        &self.config
    }

    /// The user's drafters.
    pub(crate) fn own(&self) -> &[Factory] {
        &self.own
    }

    /// What speculation came to, as it is now.
    pub(crate) fn speculation(&self) -> Speculation {
        self.trouble.speculation(&self.config, self.own.len())
    }

    /// Sets the most rows of a round, all slots together.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        self.rows = rows.clamp(1, self.target().batch_size() as usize);
    }

    /// The most rows of a round, all slots together.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The numbers of all texts so far.
    pub(crate) fn total(&self) -> &Stats {
        &self.total
    }

    /// Whom the controller knows, and how it went so far.
    pub(crate) fn account(&self) -> (Vec<Source>, Account) {
        self.chooser.account()
    }

    /// Tells the controller what is known about times.
    pub(crate) fn know(&mut self, report: &ProbeReport) {
        let Self { chooser, .. } = self;
        let costs = report.costs(|method| chooser.index(Source::Drafted(method)));
        chooser.renew(costs);
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// For each slot: whether a text is being generated in it, the tokens it holds, and the numbers of that or the last text.
    pub(crate) fn seats(&self) -> impl Iterator<Item = (bool, usize, &Stats)> {
        self.slots.iter().map(|seat| {
            let stats = seat.job.as_ref().map_or(&seat.last, |job| &job.stats);
            (seat.job.is_some(), seat.history.len(), stats)
        })
    }

    /// The numbers of all texts of each slot, those that are not over included.
    pub(crate) fn seat_totals(&self) -> impl Iterator<Item = Stats> {
        self.slots.iter().map(|seat| {
            let mut all = seat.all.clone();
            seat.job.iter().for_each(|job| all.add(&job.stats));
            all
        })
    }

    /// The texts that are being generated.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.slots.iter().filter_map(|seat| seat.job.as_ref())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.slots.iter().all(|seat| seat.job.is_none())
    }

    /// How many texts can be started.
    pub(crate) fn free_slots(&self) -> usize {
        if self.has_free_slot() { self.slots.iter().filter(|seat| seat.job.is_none()).count() } else { 0 }
    }

    /// Whether another text can be started.
    pub(crate) fn has_free_slot(&self) -> bool {
        (!self.crowded || self.is_idle()) && self.slots.iter().any(|seat| seat.job.is_none())
    }

    /// Jobs that lost their slot, oldest first.
    pub(crate) fn take_returned(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.returned)
    }

    /// Whether there are jobs that lost their slot.
    pub(crate) fn has_returned(&self) -> bool {
        !self.returned.is_empty()
    }

    /// Takes all jobs out, as they are.
    pub(crate) fn take_jobs(&mut self) -> Vec<Job> {
        let running = self.slots.iter_mut().filter_map(Seat::leave);
        running.chain(self.returned.drain(..)).collect()
    }

    /// Does the next piece of work.
    ///
    /// # Errors
    /// When the contexts broke down; the jobs are still there.
    pub(crate) fn step(&mut self) -> Result<(), Broken> {
        let start = Instant::now();
        self.step_start = Some(start);
        let result = self.work(start);
        // Whoever left in mid-step has the time of it by now.
        self.step_start = None;
        self.counts.steps += 1;
        self.counts.longest_step = self.counts.longest_step.max(start.elapsed());
        for seat in &mut self.slots {
            seat.job.iter_mut().for_each(|job| job.note_step(start));
        }
        result
    }

    fn work(&mut self, start: Instant) -> Result<(), Broken> {
        self.end_unwanted(start);
        self.prefill()?;
        self.round()
    }

    /// Ends the texts that nobody waits for any more.
    fn end_unwanted(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            match &self.slots[index].job {
                Some(job) if job.is_cancelled() => self.finish(index, StopReason::Cancelled),
                Some(job) if job.is_late(now) => self.finish(index, StopReason::Deadline),
                _ => {}
            }
        }
    }

    /// Ends the text of a slot. One that somebody broke off is kept for lookup like any other: it may well be asked for again.
    fn finish(&mut self, index: usize, reason: StopReason) {
        self.kept.extend(self.slots[index].kept());
        if let Some(job) = self.leave(index) {
            self.end(job, reason);
        }
    }

    /// Ends a text that is in no slot.
    pub(crate) fn finish_waiting(&mut self, mut job: Job, reason: StopReason) {
        // The other answers are not to blame.
        self.returned.extend(job.take_siblings());
        self.end(job, reason);
    }

    fn end(&mut self, job: Job, reason: StopReason) {
        match reason {
            StopReason::Cancelled => self.counts.cancelled += 1,
            StopReason::Deadline => self.counts.expired += 1,
            _ => self.counts.finished += 1,
        }
        let stats = &job.stats;
        job.span.in_scope(|| {
            tracing::debug!(%reason, generated = stats.generated_tokens, drafted = stats.drafted, accepted = stats.accepted, "finished");
        });
        self.ended.push(Ended { answer: job.answer, how: Ok((reason, job.stats)) });
    }

    /// Tells the owners of the texts that are over. By then whoever looks at numbers should see them in there.
    pub(crate) fn tell_ends(&mut self) {
        for ended in self.ended.drain(..) {
            match ended.how {
                Ok((reason, stats)) => ended.answer.finish(reason, stats),
                Err(error) => ended.answer.fail(error),
            }
        }
    }

    /// The texts that lookup is to find again: to be put where they are to be, when nobody waits for it.
    pub(crate) fn take_kept(&mut self) -> Vec<Kept> {
        std::mem::take(&mut self.kept)
    }

    /// Whether a text is over whose owner has not been told.
    pub(crate) fn has_ends(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Ends the text of a slot with an error.
    fn fail(&mut self, index: usize, error: Error) {
        if let Some(job) = self.leave(index) {
            self.counts.failed += 1;
            job.span.in_scope(|| tracing::warn!(%error, "failed"));
            self.ended.push(Ended { answer: job.answer, how: Err(error) });
        }
    }

    /// Takes the job out of a slot. What is computed of its text stays there for the next one.
    fn leave(&mut self, index: usize) -> Option<Job> {
        let mut job = self.slots[index].leave()?;
        self.step_start.into_iter().for_each(|start| job.note_step(start));
        let seat = &mut self.slots[index];
        seat.all.add(&job.stats);
        seat.last = job.stats.clone();
        self.crowded = false;
        // Its siblings have not begun; they do without it.
        self.returned.extend(job.take_siblings());
        Some(job)
    }

    /// Ends the text of a slot for a reason of the caller's.
    pub(crate) fn cancel(&mut self, index: usize) {
        self.finish(index, StopReason::Cancelled);
    }

    /// Empties a slot, so that its text is computed again.
    fn recompute(&mut self, index: usize) -> Result<(), Broken> {
        let seat = &mut self.slots[index];
        seat.empty();
        if let Some(job) = &mut seat.job {
            job.recomputed += 1;
        }
        self.machine.clear_slot(slot(index)).map_err(|error| Broken(Failure::new(error.to_string())))
    }

    /// Makes the contexts usable again after they broke down; all slots are empty then.
    pub(crate) fn restart(&mut self) -> Result<(), Broken> {
        self.machine.clear().map_err(|error| Broken(Failure::new(error.to_string())))?;
        self.slots.iter_mut().for_each(Seat::empty);
        Ok(())
    }

    /// Gives up a slot in favour of others: its text goes on when there is room again.
    fn preempt(&mut self, index: usize) -> Result<(), Broken> {
        if let Some(mut job) = self.slots[index].leave() {
            job.span.in_scope(|| tracing::info!("preempted: the memory is full"));
            self.counts.preempted += 1;
            self.crowded = true;
            self.returned.extend(job.take_siblings());
            self.returned.push(job);
        }
        self.recompute(index)
    }

    /// Makes room in the memory, of which `index` needs more: forgets a text that nobody is working on, else preempts the
    /// youngest, which may be the one in `index`. False when there is nothing left to give up.
    fn make_room(&mut self, index: usize) -> Result<bool, Broken> {
        let others = || (0..self.slots.len()).filter(|other| *other != index && !self.slots[*other].history.is_empty());
        if let Some(oldest) =
            others().filter(|other| self.slots[*other].job.is_none()).min_by_key(|other| self.slots[*other].used)
        {
            self.recompute(oldest)?;
            return Ok(true);
        }
        let submitted = |index: &usize| self.slots[*index].job.as_ref().map(|job| (job.times.submitted, job.id));
        match others().chain([index]).max_by_key(submitted) {
            Some(youngest) if others().next().is_some() => self.preempt(youngest).map(|()| true),
            _ => Ok(false),
        }
    }

    /// What a failed decode of these slots means for them, when it is not for want of room.
    fn decode_failed(&mut self, indexes: &[usize], error: &DecodeError) -> Result<(), Broken> {
        match error {
            DecodeError::Fatal { failure } => Err(Broken(failure.clone())),
            DecodeError::Poisoned => Err(Broken(Failure::new(error.to_string()))),
            DecodeError::Aborted => {
                // The memories must be cleared; the texts that were not part of it are computed again.
                for index in indexes {
                    self.fail(*index, error.clone().into());
                }
                self.restart()
            }
            DecodeError::Refused { .. } | DecodeError::NoRoom { .. } => {
                for index in indexes {
                    self.fail(*index, error.clone().into());
                    self.recompute(*index)?;
                }
                Ok(())
            }
        }
    }

    /// Deals with a full context, as the text's owner wants it.
    fn context_full(&mut self, index: usize) -> Result<(), Broken> {
        let length = self.target().length_per_slot() as usize;
        let Some(job) = &self.slots[index].job else { return Ok(()) };
        let ContextFull::Shift { keep } = job.context_full else {
            self.finish(index, StopReason::ContextFull);
            return Ok(());
        };
        // Lookup forgets what is dropped.
        self.kept.extend(self.slots[index].kept());
        let Some(job) = &mut self.slots[index].job else { return Ok(()) };
        let keep = (keep as usize).min(length / 2).min(job.tokens.len());
        let left = ((length - keep) / 2).max(1);
        let dropped = job.tokens.len().saturating_sub(keep + left);
        job.tokens.drain(keep..keep + dropped);
        job.answer.report(Event::Shifted { dropped });
        let Job { drafting, tokens, .. } = job;
        drafting.begin(tokens);
        self.slots[index].look_up_anew();
        self.recompute(index)
    }
}

fn slot(index: usize) -> Slot {
    Slot::new(index as u32)
}
