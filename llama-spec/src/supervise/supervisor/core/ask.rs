//! What users ask for.

use super::{Core, Ending, First, LONGEST};
use crate::supervise::load::Load;
use crate::supervise::policy::Event;
use crate::supervise::status::Info;
use crate::supervise::supervisor::command::{self, Command, Pending, Refused, Running};
use crate::supervise::supervisor::registry::{Step, Ticket, Which, problem};
use crate::supervise::task::{Problem, ProblemKind, Question, Reply, Task};
use crate::supervise::wire::TaskId;
use async_channel::Receiver;
use std::time::{Duration, Instant};

impl Core {
    pub(in super::super) fn begin(&mut self, load: Load, now: Instant) {
        self.handle(Event::Load(Box::new(load)), now);
    }

    pub(in super::super) fn first_load(&mut self) -> Receiver<Result<Info, Refused>> {
        let (sender, receiver) = async_channel::bounded(1);
        match &mut self.first {
            First::Open(waiting) => waiting.push(sender),
            First::Known(first) => drop(sender.try_send(first.as_ref().clone())),
        }
        receiver
    }

    pub(in super::super) fn submit(&mut self, task: Task, now: Instant) -> Result<(Ticket, Receiver<Step>), Problem> {
        self.takes()?;
        task.check_answers()?;
        if self.registry.len() >= self.capacity() {
            let message = format!("{} requests are waiting or running already; try again later", self.registry.len());
            return Err(problem(ProblemKind::Busy, message));
        }
        let (sender, steps) = async_channel::unbounded();
        let ticket = self.registry.take(task, sender, now);
        self.proceed(now);
        Ok((ticket, steps))
    }

    pub(in super::super) fn ask(&mut self, question: Question) -> Result<Receiver<Result<Reply, Problem>>, Problem> {
        self.takes()?;
        if self.questions.is_full() {
            return Err(problem(ProblemKind::Busy, "too many questions are waiting; try again later"));
        }
        let (sender, reply) = async_channel::bounded(1);
        let id = self.number();
        self.questions.take(id, question, sender);
        self.send_questions();
        Ok(reply)
    }

    pub(in super::super) fn command(
        &mut self,
        command: Command,
        running: Running,
        now: Instant,
    ) -> Result<Receiver<Result<(), Problem>>, Problem> {
        if self.ending.is_some() {
            return Err(command::stopping());
        }
        let needed = match command {
            Command::Reload => self.recovery.last_requested(),
            Command::SetDraft { .. } => self.recovery.requested(),
            Command::Load(_) | Command::Unload => None,
        };
        let needs_load = matches!(command, Command::Reload | Command::SetDraft { .. });
        if needs_load && needed.is_none() {
            return Err(problem(ProblemKind::Invalid, "nothing is loaded: load a model first"));
        }
        let (outcome, receiver) = async_channel::bounded(1);
        if let Some(pending) = self.pending.take() {
            drop(pending.outcome.try_send(Err(command::overtaken())));
        }
        if running == Running::Cancel {
            let why = problem(ProblemKind::Unavailable, "the engine is being loaded anew; try again later");
            let given = self.registry.end_all(Which::Begun, &why);
            self.cancel_there(given);
        }
        self.pending = Some(Pending { command, outcome });
        self.proceed(now);
        Ok(receiver)
    }

    /// Nobody wants this task.
    pub(in super::super) fn leave(&mut self, ticket: Ticket) {
        let given = self.registry.leave(ticket);
        self.ended_here(given);
    }

    /// Its client has cancelled this task.
    pub(in super::super) fn cancel(&mut self, ticket: Ticket) {
        let speculation = self.speculation();
        let given = self.registry.cancel(ticket, &speculation);
        self.ended_here(given);
    }

    pub(super) fn ended_here(&mut self, given: Option<TaskId>) {
        self.cancel_there(given);
        self.proceed(Instant::now());
    }

    pub(in super::super) fn shut_down(&mut self, grace: Duration, now: Instant) -> Receiver<()> {
        let (sender, receiver) = async_channel::bounded(1);
        let deadline = now.checked_add(grace).unwrap_or(now + LONGEST);
        let ending = self.ending.get_or_insert(Ending { deadline, stopped: false, waiting: Vec::new() });
        ending.deadline = ending.deadline.min(deadline);
        ending.waiting.push(sender);
        if let Some(pending) = self.pending.take() {
            drop(pending.outcome.try_send(Err(command::stopping())));
        }
        self.proceed(now);
        receiver
    }

    /// Ends everything, and at once.
    pub(in super::super) fn close(&mut self, now: Instant) {
        drop(self.shut_down(Duration::ZERO, now));
        self.tick(now);
        self.leaving.values().for_each(|link| link.kill());
        self.closed = true;
    }

    pub(in super::super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(in super::super) fn has_processes(&self) -> bool {
        let links = self.leaving.values().chain(self.worker.as_ref().map(|worker| &worker.link));
        links.into_iter().any(|link| link.process().is_some())
    }
}
