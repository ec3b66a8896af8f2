//! The tasks that have not ended, and where each of their answers stands.
//!
//! What a client has been told is written down here in the same step, so that another worker can go on exactly there: nothing
//! is told twice and nothing is left out, wherever the worker ended.
//!
//! Each time a task is given to an engine it gets a new number there, so that nothing that an earlier engine says is taken for what
//! the present one does.

use super::counted::Counted;
use crate::engine::Midway;
use crate::generate::StopReason;
use crate::sample::SamplerState;
use crate::spec::Speculation;
use crate::supervise::task::{Finish, Problem, ProblemKind, Task, Update};
use crate::supervise::wire::{Standing, TaskId, ToWorker};
use crate::token::Token;
use async_channel::Sender;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Steps that may wait to be read by one client. Without a limit, a text without end and a reader that sleeps would fill the memory.
pub(super) const UNREAD: usize = 1 << 16;

/// What goes to a client: a step of an answer, or why it broke off.
pub(super) type Step = (u32, Result<Update, Problem>);

/// The tasks, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Registry {
    tasks: BTreeMap<Ticket, Entry>,
    /// Those that the present engine was given, by their number there.
    given: HashMap<TaskId, Ticket>,
    tickets: u64,
}

/// Which task it is, for who gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

#[derive(Debug)]
struct Entry {
    task: Task,
    came: Instant,
    steps: Sender<Step>,
    answers: Vec<Answer>,
    /// Its number for the present engine, if that has it.
    given: Option<TaskId>,
}

#[derive(Debug)]
enum Answer {
    Fresh,
    Begun(Box<Begun>),
    Ended,
}

#[derive(Debug)]
struct Begun {
    midway: Midway,
    /// It stands still, and its client knows that.
    paused: bool,
    counted: Counted,
}

/// The text of an answer so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub(super) prompt: &'a [Token],
    pub(super) generated: &'a [Token],
    /// The model chose its tokens as it is, rather than a grammar or a client who changed the logits.
    pub(super) is_free: bool,
}

/// Some of the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// All.
    All,
    /// Those that an engine was given, this one or one before.
    Begun,
    /// Conversations among those that have begun.
    BegunChats,
}

impl Registry {
    /// Takes a task.
    pub(super) fn take(&mut self, task: Task, steps: Sender<Step>, now: Instant) -> Ticket {
        let answers = (0..task.answers).map(|_| Answer::Fresh).collect();
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.tasks.insert(ticket, Entry { task, came: now, steps, answers, given: None });
        ticket
    }

    /// Tasks that have not ended.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the present engine has something to do.
    pub(super) fn is_busy(&self) -> bool {
        !self.given.is_empty()
    }

    /// Answers that the present engine is to give and has not ended.
    pub(super) fn given(&self) -> usize {
        self.given.values().filter_map(|ticket| self.tasks.get(ticket)).map(Entry::open).sum()
    }

    /// The first task that the present engine was not given, and how many answers it still needs.
    pub(super) fn next_waiting(&self) -> Option<(Ticket, usize)> {
        self.tasks.iter().find(|(_, entry)| entry.given.is_none()).map(|(ticket, entry)| (*ticket, entry.open()))
    }

    /// What to tell the engine so that it does this task under this number, from where it stands. Nothing if it ends by that.
    pub(super) fn give(&mut self, ticket: Ticket, id: TaskId, now: Instant) -> Option<ToWorker> {
        let entry = self.tasks.get_mut(&ticket)?;
        let seeded = entry.task.request.options.sampler.seed.is_some();
        for index in 0..entry.answers.len() {
            let Answer::Begun(begun) = &entry.answers[index] else { continue };
            let midway = &begun.midway;
            if midway.sampler.is_none() && seeded && !midway.generated.is_empty() {
                let message = "the engine broke down, and this text cannot go on as its seed asks for: send it again";
                entry.end(index, Err(problem(ProblemKind::Interrupted, message)));
            }
        }
        if entry.open() == 0 {
            self.tasks.remove(&ticket);
            return None;
        }
        entry.given = Some(id);
        self.given.insert(id, ticket);
        let mut task = Box::new(entry.task.clone());
        task.request.deadline = task.request.deadline.map(|time| time.saturating_sub(entry.waited(now)));
        let standing = match entry.has_begun() {
            true => entry.answers.iter().map(Answer::standing).collect(),
            false => Vec::new(),
        };
        Some(ToWorker::Start { id, task, standing })
    }

    /// Notes a step of an answer and passes it on. The task, if it was ended here by that, so that the engine must be told.
    pub(super) fn update(
        &mut self,
        id: TaskId,
        answer: u32,
        update: Update,
        sampler: Option<SamplerState>,
        now: Instant,
    ) -> Option<TaskId> {
        let ticket = *self.given.get(&id)?;
        let entry = self.tasks.get_mut(&ticket)?;
        let (index, waited) = (answer as usize, entry.waited(now));
        let at = entry.answers.get_mut(index)?;
        match (at, update) {
            (Answer::Ended, _) | (Answer::Fresh | Answer::Begun(_), Update::Paused { .. } | Update::Resumed) => {}
            (at @ Answer::Fresh, Update::Begun { prompt }) => {
                let midway = Midway { prompt: prompt.clone(), generated: Vec::new(), dropped: 0, sampler: None };
                *at = Answer::Begun(Box::new(Begun { midway, paused: false, counted: Counted::default() }));
                entry.tell(answer, Ok(Update::Begun { prompt }));
            }
            (Answer::Fresh, Update::Finished(finish)) => {
                // Ended before its turn came, by its deadline for one.
                entry.end(index, Ok(finish));
            }
            (Answer::Fresh, _) => {
                entry.end(index, Err(problem(ProblemKind::Failed, "the worker told of a text that it had not begun")));
            }
            (Answer::Begun(begun), update) => {
                let Begun { midway, paused, counted } = begun.as_mut();
                if std::mem::take(paused) {
                    let resumed = (answer, Ok(Update::Resumed));
                    drop(entry.steps.try_send(resumed));
                }
                match update {
                    Update::Begun { prompt } => {
                        // Not told again. A conversation that has no answer yet may have been rendered anew.
                        if midway.generated.is_empty() {
                            midway.prompt = prompt;
                        }
                    }
                    Update::Finished(mut finish) => {
                        counted.complete(&mut finish.stats, midway);
                        entry.end(index, Ok(finish));
                    }
                    Update::Tokens(tokens) => {
                        midway.generated.extend(tokens.iter().map(|token| token.token));
                        midway.sampler = sampler;
                        counted.round(&tokens, waited);
                        entry.tell(answer, Ok(Update::Tokens(tokens)));
                    }
                    Update::Shifted { dropped } => {
                        midway.dropped = midway.dropped.saturating_add(dropped);
                        entry.tell(answer, Ok(Update::Shifted { dropped }));
                    }
                    other => entry.tell(answer, Ok(other)),
                }
            }
        }
        if entry.steps.len() > UNREAD {
            let message = "the text was not read as fast as it was generated, and too much of it waits: send it again";
            return self.end(ticket, &problem(ProblemKind::Interrupted, message));
        }
        self.remove_if_ended(ticket);
        None
    }

    /// The text of an answer that has begun and not ended.
    pub(super) fn text(&self, id: TaskId, answer: u32) -> Option<Text<'_>> {
        let entry = self.tasks.get(self.given.get(&id)?)?;
        let Answer::Begun(begun) = entry.answers.get(answer as usize)? else { return None };
        let sampler = &entry.task.request.options.sampler;
        let is_free = sampler.grammar.is_none() && sampler.logit_bias.is_empty() && sampler.banned.is_empty();
        let chat = entry.task.chat.as_ref();
        let is_free = is_free
            && chat.is_none_or(|chat| chat.tools.is_empty() && chat.json_schema.is_none() && chat.grammar.is_none());
        Some(Text { prompt: &begun.midway.prompt, generated: &begun.midway.generated, is_free })
    }

    /// Notes that an answer broke off and passes that on.
    pub(super) fn broken(&mut self, id: TaskId, answer: u32, mut why: Problem) {
        let Some(ticket) = self.given.get(&id).copied() else { return };
        let Some(entry) = self.tasks.get_mut(&ticket) else { return };
        let Some(at) = entry.answers.get(answer as usize) else { return };
        // It was possible before, so it is not the client's fault that it does not go on.
        let was_possible = matches!(at, Answer::Begun(begun) if begun.paused);
        if was_possible && matches!(why.kind, ProblemKind::Invalid | ProblemKind::TooLong | ProblemKind::Failed) {
            why.kind = ProblemKind::Interrupted;
        }
        entry.end(answer as usize, Err(why));
        self.remove_if_ended(ticket);
    }

    /// The engine is gone: what it was given waits to be given again, and clients are told that. The numbers it had there.
    pub(super) fn stand_still(&mut self, reason: &str) -> Vec<TaskId> {
        for entry in self.tasks.values_mut() {
            entry.given = None;
            for (answer, at) in entry.answers.iter_mut().enumerate() {
                if let Answer::Begun(begun) = at
                    && !std::mem::replace(&mut begun.paused, true)
                {
                    begun.counted.interrupted();
                    let step = Update::Paused { reason: reason.to_owned() };
                    drop(entry.steps.try_send((answer as u32, Ok(step))));
                }
            }
        }
        std::mem::take(&mut self.given).into_keys().collect()
    }

    /// Ends a task with this problem. Its number for the engine, if that has it; so do the following.
    pub(super) fn end(&mut self, ticket: Ticket, why: &Problem) -> Option<TaskId> {
        let mut entry = self.remove(ticket)?;
        (0..entry.answers.len()).for_each(|index| entry.end(index, Err(why.clone())));
        entry.given
    }

    /// Ends some tasks with this problem.
    pub(super) fn end_all(&mut self, which: Which, why: &Problem) -> Vec<TaskId> {
        let is_one = |entry: &Entry| match which {
            Which::All => true,
            Which::Begun => entry.has_begun() || entry.given.is_some(),
            Which::BegunChats => entry.has_begun() && entry.task.chat.is_some(),
        };
        let tickets: Vec<Ticket> =
            self.tasks.iter().filter(|(_, entry)| is_one(entry)).map(|(ticket, _)| *ticket).collect();
        tickets.into_iter().filter_map(|ticket| self.end(ticket, why)).collect()
    }

    /// Nobody wants this task.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<TaskId> {
        self.remove(ticket)?.given
    }

    /// Ends a task as its client asked for.
    pub(super) fn cancel(&mut self, ticket: Ticket, speculation: &Speculation) -> Option<TaskId> {
        let mut entry = self.remove(ticket)?;
        entry.finish(StopReason::Cancelled, speculation);
        entry.given
    }

    /// Ends the tasks that wait for an engine and whose time is over.
    pub(super) fn expire(&mut self, now: Instant, speculation: &Speculation) {
        self.tasks.retain(|_, entry| {
            let expired = entry.given.is_none() && entry.deadline().is_some_and(|time| time <= now);
            if expired {
                entry.finish(StopReason::Deadline, speculation);
            }
            !expired
        });
    }

    /// When the first of the tasks that wait for an engine has no time left.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        self.tasks.values().filter(|entry| entry.given.is_none()).filter_map(Entry::deadline).min()
    }

    fn remove(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.tasks.remove(&ticket)?;
        if let Some(id) = entry.given {
            self.given.remove(&id);
        }
        Some(entry)
    }

    fn remove_if_ended(&mut self, ticket: Ticket) {
        if self.tasks.get(&ticket).is_some_and(|entry| entry.open() == 0) {
            self.remove(ticket);
        }
    }
}

impl Entry {
    /// Answers that have not ended.
    fn open(&self) -> usize {
        self.answers.iter().filter(|answer| !matches!(answer, Answer::Ended)).count()
    }

    fn has_begun(&self) -> bool {
        self.answers.iter().any(|answer| !matches!(answer, Answer::Fresh))
    }

    fn waited(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.came)
    }

    fn deadline(&self) -> Option<Instant> {
        self.came.checked_add(self.task.request.deadline?)
    }

    fn tell(&self, answer: u32, step: Result<Update, Problem>) {
        // A client that is gone says so by itself.
        drop(self.steps.try_send((answer, step)));
    }

    /// Ends an answer in this way, unless it has ended.
    fn end(&mut self, index: usize, how: Result<Box<Finish>, Problem>) {
        let ended = std::mem::replace(&mut self.answers[index], Answer::Ended);
        if !matches!(ended, Answer::Ended) {
            self.tell(index as u32, how.map(Update::Finished));
        }
    }

    /// Ends all answers for this reason, with what is known of them here.
    fn finish(&mut self, reason: StopReason, speculation: &Speculation) {
        for index in 0..self.answers.len() {
            let mut finish = Finish::of_nothing(reason, speculation.clone());
            if let Answer::Begun(begun) = &mut self.answers[index] {
                begun.counted.interrupted();
                begun.counted.complete(&mut finish.stats, &begun.midway);
            }
            self.end(index, Ok(Box::new(finish)));
        }
    }
}

impl Answer {
    fn standing(&self) -> Standing {
        match self {
            Self::Begun(begun) if !begun.midway.generated.is_empty() => Standing::Begun(Box::new(begun.midway.clone())),
            Self::Fresh | Self::Begun(_) => Standing::Fresh,
            Self::Ended => Standing::Ended,
        }
    }
}

/// A problem without a setting.
pub(super) fn problem(kind: ProblemKind, message: impl Into<String>) -> Problem {
    Problem { kind, message: message.into(), setting: None }
}
