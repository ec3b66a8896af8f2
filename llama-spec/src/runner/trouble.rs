//! Drafters that fail: a round's draft is lost, then they are primed again, then they rest for a while. The text goes on.

use super::clock::Clock;
use super::propose::is_adaptive;
use super::{Broken, DraftMemory, Job, Runner, slot};
use crate::engine::health::Health;
use crate::error::Failure;
use crate::spec::{Method, Methods, SpecConfig, Speculation};

/// How the drafters of llama.cpp are doing. The model and the lookup methods fail and rest separately.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// All methods that drafters were made for.
    loaded: Methods,
    /// The one that drafts with a model or with heads.
    model: Methods,
    model_health: Health,
    lookup_health: Health,
    clock: Clock,
}

/// Who is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The method with a model or heads.
    Model,
    /// The lookup methods.
    Lookup,
}

impl Trouble {
    pub(super) fn new(config: &SpecConfig, clock: Clock) -> Self {
        let model: Vec<Method> = config.methods.iter().copied().filter(|method| !method.is_lookup()).collect();
        Self { loaded: Methods::of(&config.methods), model: Methods::of(&model), clock, ..Self::default() }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The method that drafts with a model or with heads.
    pub(super) fn model(&self) -> Methods {
        self.model
    }

    fn lookup(&self) -> Methods {
        self.loaded.without(self.model)
    }

    /// Those of these methods that may draft now.
    pub(super) fn allowed(&mut self, methods: Methods) -> Methods {
        let now = self.clock.now();
        let mut allowed = methods.and(self.loaded);
        if !allowed.and(self.model).is_empty() && !self.model_health.may_draft(now) {
            allowed = allowed.without(self.model);
        }
        if !allowed.and(self.lookup()).is_empty() && !self.lookup_health.may_draft(now) {
            allowed = allowed.without(self.lookup());
        }
        allowed
    }

    /// Whether a model should draft for this text now.
    fn wants_model(&mut self, job: &Job) -> bool {
        let model = job.drafting.methods.and(self.model);
        job.drafting.limit > 0 && !self.allowed(model).is_empty()
    }

    /// Who of those that were asked is to blame when nobody can tell: the model can fail in more ways.
    pub(super) fn suspect(&self, mut asked: impl Iterator<Item = Methods>) -> Blame {
        match asked.any(|methods| !methods.and(self.model).is_empty()) {
            true => Blame::Model,
            false => Blame::Lookup,
        }
    }

    fn blame(&self, method: Method) -> Blame {
        if self.model.contains(method) { Blame::Model } else { Blame::Lookup }
    }

    /// Who reads the history of a text.
    fn reader(&mut self, methods: Methods) -> Blame {
        if self.allowed(methods).and(self.lookup()).is_empty() { Blame::Model } else { Blame::Lookup }
    }

    fn health(&mut self, blame: Blame) -> &mut Health {
        match blame {
            Blame::Model => &mut self.model_health,
            Blame::Lookup => &mut self.lookup_health,
        }
    }

    /// Why one of them failed last, while it is off or on probation.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.model_health.reason().or(self.lookup_health.reason())
    }

    /// What is in force now.
    pub(super) fn speculation(&self, config: &SpecConfig, own: usize) -> Speculation {
        let mut speculation = Speculation { own_drafters: own as u8, ..config.speculation() };
        for (methods, health) in [(self.model, &self.model_health), (self.lookup(), &self.lookup_health)] {
            let Some(reason) = health.reason().filter(|_| health.retry_at().is_some()) else { continue };
            if !methods.is_empty() {
                speculation.effective.retain(|method| !methods.contains(*method));
                speculation.reason = Some(match speculation.reason.take() {
                    Some(before) => format!("{before}; {reason}"),
                    None => reason.to_owned(),
                });
            }
        }
        speculation
    }
}

impl Runner {
    /// Whether a model should draft for the text of a slot now.
    pub(super) fn wants_model(&mut self, index: usize) -> bool {
        self.slots[index].job.as_ref().is_some_and(|job| self.trouble.wants_model(job))
    }

    /// Compares where the memories of target and draft end. A draft that is out of step has failed, silently: it would go on
    /// guessing, from another text.
    pub(super) fn compare_positions(&mut self) {
        let mut out_of_step = Vec::new();
        let mut why = None;
        for index in 0..self.slots.len() {
            if self.slots[index].draft_memory == DraftMemory::InStep
                && self.is_ready(index)
                && self.wants_model(index)
                && let Err(failure) = self.machine.in_step(slot(index))
            {
                out_of_step.push(index);
                why = Some(failure);
            }
        }
        if let Some(failure) = why {
            // One failure, however many slots it was noticed in.
            self.draft_failed(Blame::Model, &out_of_step, "keeping in step", &failure);
        }
    }

    /// The methods of llama.cpp that can draft in a slot in this round.
    pub(super) fn can_draft(&mut self, index: usize) -> Methods {
        let seat = &self.slots[index];
        let Some(job) = seat.job.as_ref().filter(|_| seat.begun) else { return Methods::NONE };
        let allowed = self.trouble.allowed(job.drafting.methods);
        match seat.draft_memory {
            DraftMemory::InStep => allowed,
            DraftMemory::Holed | DraftMemory::Behind => allowed.without(self.trouble.model),
        }
    }

    /// Begins a text anew for a draft model that should draft and has not followed. True if that was needed.
    pub(super) fn prime_again(&mut self, index: usize) -> Result<bool, Broken> {
        if self.slots[index].draft_memory == DraftMemory::InStep || !self.wants_model(index) {
            return Ok(false);
        }
        self.recompute(index)?;
        Ok(self.lacks(index))
    }

    /// Gives the drafters the history of a slot, unless they have it.
    pub(super) fn begin(&mut self, index: usize) {
        let Some(job) = &self.slots[index].job else { return };
        if self.slots[index].begun || self.trouble.allowed(job.drafting.methods).is_empty() {
            return;
        }
        match self.machine.begin(slot(index), &self.slots[index].history) {
            Ok(()) => self.slots[index].begun = true,
            Err(failure) => {
                let blame = self.trouble.reader(job.drafting.methods);
                self.draft_failed(blame, &[index], "the prompt", &failure);
            }
        }
    }

    /// Adds the last `count` tokens of a slot's history to that of the drafters.
    pub(super) fn extended(&mut self, index: usize, count: usize) {
        let seat = &mut self.slots[index];
        if !seat.begun {
            return;
        }
        if !seat.may_ask() {
            seat.begun = false;
            return;
        }
        let from = seat.history.len().saturating_sub(count);
        if let Err(failure) = self.machine.extend(slot(index), &seat.history[from..]) {
            let methods = seat.job.as_ref().map_or(Methods::NONE, |job| job.drafting.methods);
            let blame = self.trouble.reader(methods);
            self.draft_failed(blame, &[index], "new tokens", &failure);
        }
    }

    /// Tells the drafters what became of a draft, and the one that llama.cpp keeps a draft of open how many of its own tokens in
    /// it were right, if it had some.
    pub(super) fn told(&mut self, index: usize, accepted: usize, theirs: Option<(Method, usize)>) {
        let (told, blame) = match theirs {
            Some((method, own)) => (self.machine.accept(slot(index), own, accepted), self.trouble.blame(method)),
            // A model that was shown a draft of somebody else must know what of it stays.
            None if self.follows(index) => (self.machine.accept_foreign(slot(index), accepted), Blame::Model),
            None => return,
        };
        match told {
            Ok(()) if theirs.is_some() => self.trouble.health(blame).worked(),
            Ok(()) => {}
            Err(failure) => {
                // Whoever drafted, a model is told as well, and may have missed it.
                self.slots[index].draft_memory = DraftMemory::Behind;
                self.draft_failed(blame, &[index], "the outcome", &failure);
            }
        }
    }

    /// Whether a draft model was shown what was decoded in a slot.
    fn follows(&self, index: usize) -> bool {
        !self.trouble.model.is_empty() && self.slots[index].draft_memory != DraftMemory::Behind
    }

    /// Shows the draft model what was just decoded in these slots, if any of them wants it to draft.
    pub(super) fn follow(&mut self, indexes: &[usize]) {
        if self.trouble.model.is_empty() {
            return;
        }
        let wanted = indexes.iter().any(|index| self.wants_model(*index));
        if !wanted {
            for index in indexes {
                self.slots[*index].draft_memory = DraftMemory::Behind;
            }
            return;
        }
        if self.chooser.rests() {
            // Also those that have just begun.
            let adaptive = |index: &&usize| is_adaptive(&self.slots[**index]);
            let resting: Vec<usize> = indexes.iter().filter(adaptive).copied().collect();
            resting.into_iter().for_each(|index| self.rest(index));
        }
        if let Err(failure) = self.empty_behind(indexes).and_then(|()| self.machine.follow()) {
            self.draft_failed(Blame::Model, indexes, "following the target", &failure);
        }
    }

    /// To be called before a round. If a model should draft for one of these slots, it is shown all of them, so that those that it
    /// did not follow begin anew with this round. Once there are drafts it would be too late: they would be forgotten, too.
    pub(super) fn catch_up(&mut self, indexes: &[usize]) {
        if !indexes.iter().any(|index| self.wants_model(*index)) {
            return;
        }
        if let Err(failure) = self.empty_behind(indexes) {
            self.draft_failed(Blame::Model, indexes, "emptying its memory", &failure);
        }
    }

    /// Empties what the draft's memory holds of slots that it did not follow.
    fn empty_behind(&mut self, indexes: &[usize]) -> Result<(), Failure> {
        for index in indexes {
            let seat = &mut self.slots[*index];
            if seat.draft_memory == DraftMemory::Behind {
                // The other drafters forget it as well.
                (seat.draft_memory, seat.begun) = (DraftMemory::Holed, false);
                self.machine.clear_draft(slot(*index))?;
            }
        }
        Ok(())
    }

    /// A drafter failed at these slots. What it holds of them is not to be trusted any more.
    pub(super) fn draft_failed(&mut self, blame: Blame, indexes: &[usize], at: &str, failure: &Failure) {
        for index in indexes {
            let seat = &mut self.slots[*index];
            seat.begun = false;
            if blame == Blame::Model {
                seat.draft_memory = DraftMemory::Behind;
            }
            if let Some(job) = &mut seat.job {
                job.stats.failures += 1;
            }
        }
        self.total.failures += 1;
        let methods = match blame {
            Blame::Model => self.trouble.model,
            Blame::Lookup => self.trouble.lookup(),
        };
        let names: Vec<&str> = methods.iter().map(Method::name).collect();
        let reason = format!("{} failed at {at}: {failure}", names.join(","));
        let now = self.trouble.clock.now();
        let cure = self.trouble.health(blame).failed(reason.clone(), now);
        tracing::warn!(%reason, ?cure, "a drafter failed");
    }
}
