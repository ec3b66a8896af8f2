//! What is told at any time.

use super::Core;
use crate::spec::Speculation;
use crate::supervise::status::{State, Status};
use std::time::Instant;

impl Core {
    pub(in super::super) fn status(&self, now: Instant) -> Status {
        let link = self.worker.as_ref().map(|worker| &worker.link);
        let mut stats = self.totals.all();
        let speculation = self.speculation();
        stats.speculation.clone_from(&speculation);
        Status {
            state: self.state(),
            requested: self.recovery.requested().cloned(),
            last_requested: self.recovery.last_requested().cloned(),
            effective: self.recovery.effective().cloned(),
            info: self.report.info().cloned(),
            speculation,
            last_decode: self.report.last_decode(now),
            stats,
            restarts: self.recovery.restarts(),
            recoveries: self.report.recoveries(now),
            log: self.report.log(link.map(|link| link.log()).unwrap_or_default()),
            process: link.and_then(|link| link.process()),
        }
    }

    pub(super) fn state(&self) -> State {
        if self.ending.is_some() {
            return State::Stopping;
        }
        match self.recovery.state() {
            State::Starting { .. } => {
                let (target, draft) = self.report.loading_progress();
                State::Starting { target, draft }
            }
            State::Ready => match self.vitals.degraded() {
                Some(reason) => State::Degraded { reason },
                None => State::Ready,
            },
            state => state,
        }
    }

    pub(super) fn speculation(&self) -> Speculation {
        let loaded = self.report.info().map(|info| &info.speculation).cloned().unwrap_or_default();
        let running = &self.totals.present().speculation;
        let reported = match self.worker.as_ref().is_some_and(|worker| worker.serving) {
            // Not told yet.
            true if *running == Speculation::default() => loaded,
            true => running.clone(),
            // Nothing is in force while nothing runs.
            false => Speculation { effective: Vec::new(), own_drafters: 0, ..loaded },
        };
        self.recovery.speculation(reported)
    }
}
