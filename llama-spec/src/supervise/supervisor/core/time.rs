//! What happens because time passes.

use super::{Core, NEXT_TRIAL, SHORTEST_TICK, TICK, Worker};
use crate::supervise::policy::Event;
use crate::supervise::vitals::Advice;
use crate::supervise::watch::Duty;
use crate::supervise::wire::ToWorker;
use std::time::Instant;

impl Core {
    pub(in super::super) fn tick(&mut self, now: Instant) {
        self.registry.expire(now, &self.speculation());
        self.check(now);
        self.watch(now);
        let busy = self.registry.is_busy();
        self.handle(Event::Tick { busy }, now);
        self.proceed(now);
        if self.ending.as_ref().is_some_and(|ending| ending.stopped && ending.deadline <= now) {
            self.leaving.values().for_each(|link| link.kill());
        }
    }

    /// When the next tick is due.
    pub(in super::super) fn next_tick(&self, now: Instant) -> Instant {
        let ending = self.ending.as_ref().map(|ending| ending.deadline).filter(|deadline| *deadline > now);
        let watch = self.worker.as_ref().map(|worker| worker.watch.due());
        let due = [self.recovery.wake_at(now), self.registry.expires_at(), self.check_due(), watch, ending];
        due.into_iter().flatten().fold(now + TICK, Instant::min).max(now + SHORTEST_TICK)
    }

    /// What the worker should be doing.
    pub(super) fn duty(&self, worker: &Worker) -> Duty {
        match () {
            () if !worker.serving => Duty::Loading,
            () if worker.checking || self.registry.is_busy() => Duty::Working,
            () => Duty::Nothing,
        }
    }

    pub(super) fn watch(&mut self, now: Instant) {
        let Some(duty) = self.worker.as_ref().map(|worker| self.duty(worker)) else { return };
        let Some(worker) = &mut self.worker else { return };
        worker.watch.should(duty, now);
        if let Some(what) = worker.watch.look(now) {
            self.broke(what, now);
        }
    }

    /// Does what is to be done about what was generated, or was not.
    pub(super) fn heed(&mut self, now: Instant) {
        match self.vitals.advice() {
            Advice::Nothing => {}
            Advice::Check => self.begin_check(),
            Advice::Restart(what) => self.broke(what, now),
        }
    }

    /// When an idle engine is to be tried.
    pub(super) fn check_due(&self) -> Option<Instant> {
        let worker = self.worker.as_ref()?;
        let idle = worker.serving && !worker.checking && !self.registry.is_busy();
        // One that was not tried when it was loaded is tried now.
        let Some((last, ok)) = self.report.decoded_last() else { return idle.then_some(worker.since) };
        let interval = self.settings.check_every;
        last.checked_add(if ok { interval } else { interval.min(NEXT_TRIAL) }).filter(|_| idle)
    }

    pub(super) fn check(&mut self, now: Instant) {
        if self.check_due().is_some_and(|due| due <= now) {
            self.begin_check();
        }
    }

    /// Lets the engine generate a little.
    pub(super) fn begin_check(&mut self) {
        if let Some(worker) = self.worker.as_mut().filter(|worker| worker.serving && !worker.checking) {
            worker.checking = true;
            worker.link.send(ToWorker::Check);
        }
    }
}
