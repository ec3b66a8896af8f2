//! What is done: the actions that the recovery asks for, and whatever can go on by then.

use super::{BACKLOG, Core, First, LONGEST, Worker};
use crate::supervise::policy::{Action, Event, GivenUp};
use crate::supervise::status::{Info, State};
use crate::supervise::supervisor::command::{self, Command, Pending, Refused};
use crate::supervise::supervisor::link::Link;
use crate::supervise::supervisor::registry::{Which, problem};
use crate::supervise::task::{Problem, ProblemKind};
use crate::supervise::watch::{Duty, Patience, Watch};
use crate::supervise::wire::{TaskId, ToWorker};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

impl Core {
    pub(super) fn handle(&mut self, event: Event, now: Instant) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.recovery.handle(event, now) {
                events.extend(self.act(action, now));
            }
        }
    }

    /// Does it. What came of it, if that is known at once.
    pub(super) fn act(&mut self, action: Action, now: Instant) -> Option<Event> {
        match action {
            Action::Start { worker: number, load, restarts } => {
                self.report.loading();
                let load_piece = load.context.micro_batch;
                match self.launch.launch((self.listen)(number)) {
                    Ok(link) => {
                        link.send(ToWorker::Load { load, restarts });
                        let watch =
                            Watch::new(Patience { piece: load_piece, ..Patience::floor(self.settings.patience) }, now);
                        let [known, serving, checking] = [false; 3];
                        self.worker = Some(Worker { number, link, known, serving, checking, since: now, watch });
                    }
                    Err(what) => return Some(Event::NotStarted { worker: number, what }),
                }
            }
            Action::Load { worker: number, load, restarts } => {
                let given = self.registry.stand_still("the engine is loaded anew");
                self.cancel_there(given);
                self.totals.ended();
                self.report.loading();
                if let Some(worker) = self.worker.as_mut().filter(|worker| worker.number == number) {
                    (worker.serving, worker.checking) = (false, false);
                    worker.watch.should(Duty::Loading, now);
                    worker.link.send(ToWorker::Load { load, restarts });
                }
            }
            Action::Serve { worker: number } => {
                if let Some(worker) = self.worker.as_mut().filter(|worker| worker.number == number) {
                    worker.serving = true;
                    worker.watch.progress(now);
                    self.vitals.renew();
                }
                if let Some(info) = self.report.info().cloned() {
                    self.first_is(Ok(info));
                }
                self.outcomes.drain(..).for_each(|outcome| drop(outcome.try_send(Ok(()))));
            }
            Action::End { worker: number } => {
                if let Some(link) = self.dismiss(number, "the engine is being replaced") {
                    link.send(ToWorker::Stop);
                }
            }
            Action::Kill { worker: number } => {
                if let Some(link) = self.dismiss(number, "the engine broke down") {
                    link.kill();
                }
            }
            Action::Reject(given_up) => self.fail_outcomes(&given_up.reason),
            Action::GiveUp(given_up) => self.give_up(&given_up),
            Action::Record(what) => self.report.record(what, now),
        }
        None
    }

    /// Lets this worker go; it may be among those that leave already.
    pub(super) fn dismiss(&mut self, number: u64, reason: &str) -> Option<Arc<dyn Link>> {
        if self.worker.as_ref().is_some_and(|worker| worker.number == number) {
            let (number, link) = self.lose(reason)?;
            self.leaving.insert(number, link);
        }
        self.leaving.get(&number).cloned()
    }

    pub(super) fn give_up(&mut self, given_up: &GivenUp) {
        let why = problem(ProblemKind::Unavailable, format!("the engine has failed: {}", given_up.reason));
        self.end_everything(&why);
        self.first_is(Err(given_up.into()));
        self.fail_outcomes(&given_up.reason);
    }

    pub(super) fn end_everything(&mut self, why: &Problem) {
        let given = self.registry.end_all(Which::All, why);
        self.cancel_there(given);
        self.questions.end_all(why);
    }

    pub(super) fn fail_outcomes(&mut self, reason: &str) {
        let why = problem(ProblemKind::Unavailable, reason);
        self.outcomes.drain(..).for_each(|outcome| drop(outcome.try_send(Err(why.clone()))));
    }

    pub(super) fn first_is(&mut self, outcome: Result<Info, Refused>) {
        if let First::Open(waiting) = &mut self.first {
            waiting.drain(..).for_each(|waiting| drop(waiting.try_send(outcome.clone())));
            self.first = First::Known(Box::new(outcome));
        }
    }

    /// Whatever can go on now: a command whose time has come, texts and questions that wait, the end.
    pub(super) fn proceed(&mut self, now: Instant) {
        let is_serving = self.worker.as_ref().is_some_and(|worker| worker.serving);
        // Without an engine, texts cannot come to their end first.
        if (!self.registry.is_busy() || !is_serving)
            && let Some(pending) = self.pending.take()
        {
            self.obey(pending, now);
        }
        self.give_tasks(now);
        self.send_questions();
        if let Some(duty) = self.worker.as_ref().map(|worker| self.duty(worker))
            && let Some(worker) = &mut self.worker
        {
            worker.watch.should(duty, now);
        }
        let over =
            self.ending.as_ref().is_some_and(|end| !end.stopped && (self.registry.len() == 0 || end.deadline <= now));
        if over {
            self.stop(now);
        }
        let gone = self.worker.is_none() && self.leaving.is_empty();
        if gone && self.recovery.state() == State::Unloaded {
            self.outcomes.drain(..).for_each(|outcome| drop(outcome.try_send(Ok(()))));
        }
        if let Some(ending) = self.ending.as_mut().filter(|ending| ending.stopped && gone) {
            ending.waiting.clear();
        }
    }

    pub(super) fn obey(&mut self, Pending { command, outcome }: Pending, now: Instant) {
        let former = self.recovery.effective().cloned();
        let unloads = matches!(command, Command::Unload);
        self.fail_outcomes("something else was asked for meanwhile");
        self.outcomes.push(outcome);
        if !matches!(command, Command::SetDraft { .. }) {
            self.report.forget();
        }
        self.handle(command.event(), now);
        if unloads {
            return self.end_everything(&problem(ProblemKind::Unavailable, "the model was unloaded"));
        }
        let (Some(former), Some(present)) = (former, self.recovery.effective()) else { return };
        let which = match () {
            () if former.model != present.model => Which::Begun,
            () if former.chat_template != present.chat_template => Which::BegunChats,
            () => return,
        };
        let message = "the engine broke down, and another model is being loaded: send it again";
        let given = self.registry.end_all(which, &problem(ProblemKind::Interrupted, message));
        self.cancel_there(given);
    }

    pub(super) fn stop(&mut self, now: Instant) {
        if let Some(ending) = &mut self.ending {
            ending.stopped = true;
            ending.deadline = now.checked_add(self.settings.policy.farewell).unwrap_or(now + LONGEST);
        }
        self.end_everything(&command::stopping());
        self.first_is(Err(Refused::stopped()));
        self.fail_outcomes(&command::stopping().message);
        self.handle(Event::Stop, now);
    }

    pub(super) fn give_tasks(&mut self, now: Instant) {
        let capacity = self.capacity();
        let Some(worker) = self.worker.as_mut().filter(|worker| worker.serving && self.pending.is_none()) else {
            return;
        };
        while worker.link.backlog() < BACKLOG
            && let Some((ticket, answers)) = self.registry.next_waiting()
        {
            let given = self.registry.given();
            // Each answer may need a place of its own there.
            if given > 0 && given + answers > capacity {
                return;
            }
            self.numbers += 1;
            if let Some(start) = self.registry.give(ticket, self.numbers, now) {
                worker.link.send(start);
            }
        }
    }

    pub(super) fn send_questions(&mut self) {
        if let Some(worker) = self.worker.as_ref().filter(|worker| worker.serving) {
            self.questions.unsent().for_each(|ask| worker.link.send(ask));
        }
    }

    /// Tells the worker that nobody wants these any more.
    pub(super) fn cancel_there(&self, given: impl IntoIterator<Item = TaskId>) {
        if let Some(worker) = &self.worker {
            given.into_iter().for_each(|id| worker.link.send(ToWorker::Cancel { id }));
        }
    }
}
