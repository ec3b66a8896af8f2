//! Drafters that fail: a round's draft is lost, then they are primed again, then they rest for a while. The text goes on.

use super::{Broken, DraftMemory, Job, Runner, slot};
use crate::engine::health::Health;
use crate::error::Failure;
use crate::spec::{Method, Methods, Source, SpecConfig, Speculation};
use std::time::Instant;

/// How the drafters of llama.cpp are doing. The model and the lookup methods fail and rest separately.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// All methods that drafters were made for.
    loaded: Methods,
    /// The one that drafts with a model or with heads.
    model: Methods,
    model_health: Health,
    lookup_health: Health,
}

impl Trouble {
    pub(super) fn new(config: &SpecConfig) -> Self {
        let model: Vec<Method> = config.methods.iter().copied().filter(|method| !method.is_lookup()).collect();
        Self { loaded: Methods::of(&config.methods), model: Methods::of(&model), ..Self::default() }
    }

    fn lookup(&self) -> Methods {
        self.loaded.without(self.model)
    }

    /// Those of these methods that may draft now.
    pub(super) fn allowed(&mut self, methods: Methods) -> Methods {
        let now = Instant::now();
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

    /// Why one of them failed last, while it is off or on probation.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.model_health.reason().or(self.lookup_health.reason())
    }

    /// What is in force now.
    pub(super) fn speculation(&self, config: &SpecConfig, customs: usize) -> Speculation {
        let mut speculation = Speculation { own_drafters: customs as u8, ..config.speculation() };
        for (methods, health) in [(self.model, &self.model_health), (self.lookup(), &self.lookup_health)] {
            let Some(reason) = health.reason().filter(|_| health.retry_at().is_some()) else { continue };
            if !methods.is_empty() {
                speculation.effective.retain(|method| !methods.contains(*method));
                speculation.reason = Some(reason.to_owned());
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
            Err(failure) => self.draft_failed(&[index], "the prompt", &failure),
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
            seat.begun = false;
            self.draft_failed(&[index], "new tokens", &failure);
        }
    }

    /// Tells the drafters what became of their draft.
    pub(super) fn told(&mut self, index: usize, accepted: usize, source: Source) {
        let Source::Drafted(method) = source else { return };
        match self.machine.accept(slot(index), accepted) {
            Ok(()) if method.is_lookup() => self.trouble.lookup_health.worked(),
            Ok(()) => self.trouble.model_health.worked(),
            Err(failure) => self.draft_failed(&[index], "the outcome", &failure),
        }
    }

    /// Shows the draft model what was just decoded in these slots, if any of them wants it to draft.
    pub(super) fn follow(&mut self, indexes: &[usize]) -> Result<(), Broken> {
        if self.trouble.model.is_empty() {
            return Ok(());
        }
        let wanted = indexes.iter().any(|index| self.wants_model(*index));
        if !wanted {
            for index in indexes {
                self.slots[*index].draft_memory = DraftMemory::Behind;
            }
            return Ok(());
        }
        let mut followed = Ok(());
        for index in indexes {
            if self.slots[*index].draft_memory == DraftMemory::Behind && followed.is_ok() {
                followed = self.machine.clear_draft(slot(*index));
                self.slots[*index].draft_memory = DraftMemory::Holed;
            }
        }
        if let Err(failure) = followed.and_then(|()| self.machine.follow()) {
            self.draft_failed(indexes, "following the target", &failure);
        }
        Ok(())
    }

    /// A drafter failed at these slots. What it holds of them is not to be trusted any more.
    pub(super) fn draft_failed(&mut self, indexes: &[usize], at: &str, failure: &Failure) {
        let by_model = indexes.iter().any(|index| self.wants_model(*index));
        for index in indexes {
            let seat = &mut self.slots[*index];
            seat.begun = false;
            if by_model {
                seat.draft_memory = DraftMemory::Behind;
            }
            if let Some(job) = &mut seat.job {
                job.stats.failures += 1;
            }
        }
        self.total.failures += 1;
        let (methods, health) = match by_model {
            true => (self.trouble.model, &mut self.trouble.model_health),
            false => (self.trouble.lookup(), &mut self.trouble.lookup_health),
        };
        let names: Vec<&str> = methods.iter().map(Method::name).collect();
        let reason = format!("{} failed at {at}: {failure}", names.join(","));
        let cure = health.failed(reason.clone(), Instant::now());
        tracing::warn!(%reason, ?cure, "a drafter failed");
    }
}
