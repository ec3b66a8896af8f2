//! What is heard of workers.

use super::Core;
use crate::supervise::policy::Event;
use crate::supervise::status::State;
use crate::supervise::supervisor::link::{Link, Notice};
use crate::supervise::supervisor::registry::{Which, problem};
use crate::supervise::task::{ProblemKind, Update};
use crate::supervise::wire::{FromWorker, Pulse, VERSION};
use std::sync::Arc;
use std::time::Instant;

impl Core {
    /// Takes note of it. Whether the clock must look at its alarm again.
    pub(in super::super) fn hear(&mut self, number: u64, notice: Notice, now: Instant) -> bool {
        let counts = self.worker.as_ref().is_some_and(|worker| worker.number == number);
        match notice {
            Notice::Gone { what, log } => {
                self.leaving.remove(&number);
                self.report.write_down(log.iter().cloned());
                let known = self.worker.as_ref().is_some_and(|worker| worker.known);
                if counts {
                    self.lose(&what);
                }
                let unusable = counts && !known;
                self.handle(
                    match unusable {
                        true => Event::NotStarted { worker: number, what },
                        false => Event::Gone { worker: number, what, log },
                    },
                    now,
                );
                self.proceed(now);
                true
            }
            Notice::Useless(what) if counts => {
                self.useless(what, now);
                true
            }
            Notice::Said(message) if counts => self.said(message, now),
            Notice::Useless(_) | Notice::Said(_) => false,
        }
    }

    pub(super) fn said(&mut self, message: FromWorker, now: Instant) -> bool {
        let Some(worker) = &mut self.worker else { return false };
        let number = worker.number;
        worker.watch.heard(now);
        match message {
            FromWorker::Hello { version, library } => {
                worker.known = version == VERSION;
                if !worker.known {
                    let (ours, our_library) = (VERSION, env!("CARGO_PKG_VERSION"));
                    let what = format!(
                        "the worker speaks version {version} (llama-spec {library}), not {ours} (llama-spec {our_library})"
                    );
                    self.useless(what, now);
                }
            }
            _ if !worker.known => self.useless("the worker did not say first which version it speaks".into(), now),
            FromWorker::Warning(what) => {
                tracing::warn!(what, "the worker warns");
                return false;
            }
            FromWorker::Progress(loading) => {
                worker.watch.progress(now);
                self.report.progress(loading);
                return false;
            }
            FromWorker::Loaded(info) => {
                let speculation = info.speculation.clone();
                self.compare_model(info.identity, now);
                self.report.loaded(info, now);
                self.handle(Event::Loaded { worker: number, speculation }, now);
            }
            FromWorker::NotLoaded(refusal) => {
                self.report.write_down([refusal.message.clone()]);
                self.handle(Event::Refused { worker: number, kind: refusal.kind, message: refusal.message }, now);
            }
            FromWorker::Update { id, answer, mut update, sampler } => {
                worker.watch.progress(now);
                match &mut update {
                    Update::Tokens(_) => self.report.decoded(now, true),
                    Update::Finished(finish) => {
                        let reported = std::mem::take(&mut finish.speculation);
                        finish.speculation = self.recovery.speculation(reported);
                    }
                    _ => {}
                }
                let ends = matches!(update, Update::Finished(_));
                if ends && let Some(text) = self.registry.text(id, answer) {
                    self.vitals.answered(text.prompt, text.generated, text.is_free);
                }
                let ended_here = self.registry.update(id, answer, update, sampler, now);
                self.cancel_there(ended_here);
                if !ends {
                    return false;
                }
            }
            FromWorker::Broken { id, answer, problem } => {
                if problem.kind == ProblemKind::Failed
                    && let Some(text) = self.registry.text(id, answer)
                {
                    self.vitals.failed(text.prompt, problem.message.clone());
                    self.report.decoded(now, false);
                }
                self.registry.broken(id, answer, problem);
                self.heed(now);
            }
            FromWorker::Reply { id, reply } => self.questions.answer(id, reply),
            FromWorker::Pulse(pulse) => {
                self.pulse(*pulse, now);
                return false;
            }
            // One that was told of an engine before this one says nothing about it.
            FromWorker::Checked(_) if !worker.checking => {}
            FromWorker::Checked(outcome) => {
                worker.checking = false;
                self.report.decoded(now, outcome.is_ok());
                if let Err(why) = &outcome {
                    self.report.write_down([format!("a trial of the engine failed: {why}")]);
                }
                let outcome = outcome.map_err(|_| "it could not generate when it was tried".to_owned());
                self.vitals.checked(outcome);
                self.heed(now);
            }
            FromWorker::Poisoned(reason) => self.broke(format!("the engine broke down: {reason}"), now),
        }
        self.proceed(now);
        true
    }

    /// Whoever starts a worker again trusts that the file is still the same. Texts cannot go on with another model.
    fn compare_model(&mut self, identity: u64, now: Instant) {
        let Some(path) = self.recovery.effective().map(|load| load.model.clone()) else { return };
        let before = self.model.replace((path.clone(), identity));
        if before.is_none_or(|(known, before)| known != path || before == identity) {
            return;
        }
        let (open, message) = (self.registry.len(), "the file of the model was replaced: send it again");
        let given = self.registry.end_all(Which::Begun, &problem(ProblemKind::Interrupted, message));
        self.cancel_there(given);
        let ended = open - self.registry.len();
        if ended > 0 || matches!(self.recovery.state(), State::Recovering { .. }) {
            let what = format!("the file of the model is not the one it was: {ended} texts that had begun were ended");
            self.report.record(what, now);
        }
    }

    pub(super) fn pulse(&mut self, pulse: Pulse, now: Instant) {
        if let Some((age, ok)) = pulse.last_decode {
            self.report.decoded(now.checked_sub(age).unwrap_or(now), ok);
        }
        // Until another engine is there, these can be the numbers of the last one, which are counted.
        if let Some(worker) = self.worker.as_mut().filter(|worker| worker.serving) {
            worker.watch.pulse(&pulse.stats, now);
            self.totals.note(pulse.stats);
        }
    }

    /// The worker is there and of no more use.
    pub(super) fn broke(&mut self, what: String, now: Instant) {
        let Some(worker) = &self.worker else { return };
        let (number, log) = (worker.number, worker.link.log());
        self.registry.stand_still(&what);
        self.handle(Event::Broken { worker: number, what, log }, now);
        self.proceed(now);
    }

    /// The worker is none, or of another version.
    pub(super) fn useless(&mut self, what: String, now: Instant) {
        let Some((number, link)) = self.lose(&what) else { return };
        link.kill();
        self.leaving.insert(number, link);
        self.handle(Event::NotStarted { worker: number, what }, now);
        self.proceed(now);
    }

    /// There is no worker any more: what it was given waits for the next one.
    pub(super) fn lose(&mut self, reason: &str) -> Option<(u64, Arc<dyn Link>)> {
        let worker = self.worker.take()?;
        self.registry.stand_still(reason);
        self.questions.stand_still();
        self.totals.ended();
        Some((worker.number, worker.link))
    }
}
