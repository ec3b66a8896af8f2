//! The state machine.

use super::attempt::{Attempt, model_drafters};
use super::event::{Action, Event, GivenUp};
use super::settings::{Breakdowns, Policy, after};
use crate::spec::{Method, SpecConfig, Speculation};
use crate::supervise::{Load, RefusalKind, State};
use std::mem;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is loaded, what was asked for, and what is to be done about the difference; see the [module](super).
#[derive(Clone, Debug)]
pub struct Recovery {
    policy: Policy,
    requested: Option<Load>,
    /// The same, kept when it was unloaded.
    last: Option<Load>,
    plan: Plan,
    worker: Worker,
    generation: u64,
    /// Workers that were started.
    workers: u64,
    restarts: u64,
    breakdowns: Breakdowns,
    /// How long something must serve well before what was asked for is tried again.
    period: Duration,
    /// What a worker told that was asked for, with all speculation in place: what `auto` came to.
    asked_methods: Option<Vec<Method>>,
}

/// What is to be.
#[derive(Clone, Debug)]
enum Plan {
    Nothing,
    Start { attempt: Attempt, cause: Cause, at: Instant },
    Loading { attempt: Attempt, cause: Cause },
    Serving(Serving),
    GivenUp { reason: String },
    Stopped,
}

/// Why something is loaded.
#[derive(Clone, Debug)]
enum Cause {
    /// The user wants it. What was there before, to be gone back to.
    Asked { former: Option<Box<Former>> },
    /// Something broke down, or was refused.
    Failure { what: String },
    /// It is time to try what was asked for again. What served until then.
    Retry { fallback: Box<Attempt> },
}

/// What was there before the user asked for something else.
#[derive(Clone, Debug)]
struct Former {
    requested: Load,
    served: Attempt,
    asked_methods: Option<Vec<Method>>,
    /// The user asked for another draft only. Then it is not tried with less: that would be without the draft.
    by_draft: bool,
}

#[derive(Clone, Debug)]
struct Serving {
    attempt: Attempt,
    active: Speculation,
    since: Instant,
    /// What served before this was tried again. It does not matter any more once this has served for a period itself.
    fallback: Option<Box<Attempt>>,
}

/// The process, or what stands for one.
#[derive(Clone, Copy, Debug)]
enum Worker {
    None,
    Present {
        number: u64,
    },
    /// It was told to end, or was killed.
    Leaving {
        number: u64,
        killed: bool,
        deadline: Instant,
    },
}

/// What went wrong.
struct Failure {
    /// In a sentence without paths.
    what: String,
    refused: Option<(RefusalKind, String)>,
    log: Vec<String>,
    /// There was no worker to load anything, so that less of it would not help.
    not_started: bool,
}

impl Recovery {
    /// Nothing is loaded, and nothing asked for.
    pub fn new(policy: Policy) -> Self {
        Self {
            period: policy.period,
            policy,
            requested: None,
            last: None,
            plan: Plan::Nothing,
            worker: Worker::None,
            generation: 0,
            workers: 0,
            restarts: 0,
            breakdowns: Breakdowns::default(),
            asked_methods: None,
        }
    }

    /// Takes note of an event, and says what is to be done now. `now` never goes back.
    pub fn handle(&mut self, event: Event, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Gone { worker, what, log } => {
                self.gone(worker, Failure { what, refused: None, log, not_started: false }, now, &mut actions);
            }
            Event::NotStarted { worker, what } => {
                let failure = Failure { what, refused: None, log: Vec::new(), not_started: true };
                self.gone(worker, failure, now, &mut actions);
            }
            _ if matches!(self.plan, Plan::Stopped) => {}
            Event::Stop => self.stop(now, &mut actions),
            Event::Load(load) => self.load(*load, now, &mut actions),
            Event::Unload => self.unload(now, &mut actions),
            Event::Reload => {
                if let Some(load) = self.last.clone() {
                    self.load(load, now, &mut actions);
                }
            }
            Event::SetDraft { draft, speculation } => self.set_draft(draft, speculation, now, &mut actions),
            Event::Loaded { worker, speculation } if self.is_present(worker) => {
                self.loaded(worker, speculation, now, &mut actions);
            }
            Event::Refused { worker, kind, message } if self.is_present(worker) => {
                self.refused(worker, kind, message, now, &mut actions);
            }
            Event::Broken { worker, what, log } if self.is_present(worker) => {
                self.kill(worker, now, &mut actions);
                self.failed(Failure { what, refused: None, log, not_started: false }, now, &mut actions);
            }
            Event::Tick { busy } => self.look_back(busy, now, &mut actions),
            Event::Loaded { .. } | Event::Refused { .. } | Event::Broken { .. } => {}
        }
        self.proceed(now, &mut actions);
        actions
    }

    /// What the user asked for last, unchanged; nothing before that and after [`Event::Unload`].
    pub fn requested(&self) -> Option<&Load> {
        self.requested.as_ref()
    }

    /// As [`Recovery::requested`], but also after [`Event::Unload`]: what [`Event::Reload`] loads.
    pub fn last_requested(&self) -> Option<&Load> {
        self.last.as_ref()
    }

    /// What is loaded or being loaded, or will be after a pause.
    pub fn effective(&self) -> Option<&Load> {
        self.attempt().map(|attempt| &attempt.load)
    }

    /// How many things the user has asked for. What was found out under an earlier number does not matter any more.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Workers that were started in place of others that broke down or refused their load.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The worker that counts, unless it was told to end.
    pub fn worker(&self) -> Option<u64> {
        match self.worker {
            Worker::Present { number } => Some(number),
            Worker::None | Worker::Leaving { .. } => None,
        }
    }

    /// When [`Event::Tick`] is due, if it is. Later is possible, and then it happens later.
    pub fn wake_at(&self, now: Instant) -> Option<Instant> {
        let start = match (&self.plan, self.worker) {
            (Plan::Start { at, .. }, Worker::None) => Some(*at),
            _ => None,
        };
        let farewell = match self.worker {
            Worker::Leaving { killed, deadline, .. } if self.waits_for_end(killed) => Some(deadline),
            _ => None,
        };
        let period = match &self.plan {
            Plan::Serving(serving) if !serving.attempt.cuts.is_empty() => {
                let first = after(serving.since, self.period);
                Some(if now < first { first } else { after(serving.since, self.period.saturating_mul(2)) })
            }
            _ => None,
        };
        [start, farewell, period].into_iter().flatten().min()
    }

    /// What state that is. How far loading is, is not known here: it is told as not begun.
    pub fn state(&self) -> State {
        match &self.plan {
            Plan::Nothing => State::Unloaded,
            Plan::Stopped => State::Stopping,
            Plan::GivenUp { reason } => State::Failed { reason: reason.clone() },
            Plan::Start { cause, .. } | Plan::Loading { cause, .. } => match cause {
                Cause::Asked { .. } => State::Starting { target: 0.0, draft: None },
                Cause::Failure { what } => State::Recovering { reason: what.clone() },
                Cause::Retry { .. } => State::Recovering { reason: "what was asked for is tried again".into() },
            },
            Plan::Serving(Serving { attempt, .. }) if attempt.cuts.is_empty() => State::Ready,
            Plan::Serving(Serving { attempt, .. }) => State::Degraded {
                reason: match &attempt.speculation_cut {
                    Some(reason) => format!("{}; {reason}", attempt.lacks()),
                    None => attempt.lacks(),
                },
            },
        }
    }

    /// What users are to be told of speculation, from what a worker tells: what they asked for, and why it is not what there is.
    pub fn speculation(&self, reported: Speculation) -> Speculation {
        let Some(reason) = self.attempt().and_then(|attempt| attempt.speculation_cut.clone()) else { return reported };
        let by_name = self.requested.as_ref().and_then(|load| load.speculation.as_ref());
        let requested = by_name.map(|config| config.speculation().requested).or_else(|| self.asked_methods.clone());
        Speculation { requested: requested.unwrap_or(reported.requested), reason: Some(reason), ..reported }
    }

    fn attempt(&self) -> Option<&Attempt> {
        match &self.plan {
            Plan::Start { attempt, .. } | Plan::Loading { attempt, .. } | Plan::Serving(Serving { attempt, .. }) => {
                Some(attempt)
            }
            Plan::Nothing | Plan::GivenUp { .. } | Plan::Stopped => None,
        }
    }

    fn is_present(&self, worker: u64) -> bool {
        self.worker() == Some(worker)
    }

    /// Whether there is a time at which a worker that leaves is helped to go.
    fn waits_for_end(&self, killed: bool) -> bool {
        match self.plan {
            Plan::Stopped => false,
            Plan::Start { .. } => true,
            _ => !killed,
        }
    }

    // What the user asks for.

    fn load(&mut self, load: Load, now: Instant, actions: &mut Vec<Action>) {
        let former = self.former(false);
        self.begin_anew();
        self.dismiss(now, actions);
        self.ask_for(load.clone());
        self.plan = Plan::Start { attempt: Attempt::whole(load), cause: Cause::Asked { former }, at: now };
    }

    fn ask_for(&mut self, load: Load) {
        self.last = Some(load.clone());
        self.requested = Some(load);
    }

    /// What serves, or served before what is being loaded now and did not serve yet.
    fn former(&mut self, by_draft: bool) -> Option<Box<Former>> {
        match &mut self.plan {
            Plan::Serving(serving) => {
                let served = Attempt { proven: true, ..serving.attempt.clone() };
                let (requested, asked_methods) = (self.requested.clone()?, self.asked_methods.clone());
                Some(Box::new(Former { requested, served, asked_methods, by_draft }))
            }
            Plan::Start { cause: Cause::Asked { former }, .. }
            | Plan::Loading { cause: Cause::Asked { former }, .. } => {
                former.take().map(|former| Box::new(Former { by_draft, ..*former }))
            }
            _ => None,
        }
    }

    fn set_draft(
        &mut self,
        draft: Option<PathBuf>,
        speculation: Option<SpecConfig>,
        now: Instant,
        actions: &mut Vec<Action>,
    ) {
        let Some(requested) = self.requested.clone() else { return };
        let load = Load { draft, speculation, ..requested };
        let (Plan::Serving(_), Worker::Present { number }) = (&self.plan, self.worker) else {
            return self.load(load, now, actions);
        };
        let former = self.former(true);
        self.begin_anew();
        self.ask_for(load.clone());
        self.load_in_place(number, Attempt::whole(load), Cause::Asked { former }, actions);
    }

    fn unload(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.begin_anew();
        self.dismiss(now, actions);
        self.requested = None;
        self.plan = Plan::Nothing;
    }

    fn stop(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.begin_anew();
        self.dismiss(now, actions);
        self.plan = Plan::Stopped;
    }

    /// Whatever happened before does not count any more.
    fn begin_anew(&mut self) {
        self.generation += 1;
        self.breakdowns = Breakdowns::default();
        self.period = self.policy.period;
        self.asked_methods = None;
    }

    /// Makes the worker leave: in peace if it serves, at once while it loads, since that cannot be interrupted otherwise.
    fn dismiss(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let Worker::Present { number } = self.worker else { return };
        match self.plan {
            Plan::Serving(_) => self.end(number, now, actions),
            _ => self.kill(number, now, actions),
        }
    }

    // What workers tell.

    fn loaded(&mut self, worker: u64, active: Speculation, now: Instant, actions: &mut Vec<Action>) {
        let (attempt, cause) = match mem::replace(&mut self.plan, Plan::Nothing) {
            Plan::Loading { attempt, cause } => (attempt, cause),
            plan => return self.plan = plan,
        };
        if attempt.speculation_cut.is_none() {
            self.asked_methods = Some(active.requested.clone());
        }
        let fallback = match cause {
            Cause::Retry { fallback } => Some(fallback),
            Cause::Asked { .. } | Cause::Failure { .. } => None,
        };
        self.plan = Plan::Serving(Serving { attempt, active, since: now, fallback });
        actions.push(Action::Serve { worker });
    }

    fn refused(&mut self, worker: u64, kind: RefusalKind, message: String, now: Instant, actions: &mut Vec<Action>) {
        // A worker that refuses what it was not asked for is not understood.
        let Plan::Loading { attempt, cause } = &mut self.plan else { return };
        let is_whole = attempt.cuts.is_empty();
        if let Cause::Asked { former } = cause
            && let Some(former) = former.take_if(|former| former.by_draft || (is_whole && kind != RefusalKind::Trial))
        {
            let subject = if former.by_draft { "the draft" } else { "what was asked for" };
            let what = format!("{subject} was refused: {}", refusal(kind));
            let failure = Failure { what, refused: Some((kind, message)), log: Vec::new(), not_started: false };
            let what = failure.what.clone();
            let served = self.reject(*former, failure, actions);
            return self.load_in_place(worker, served, Cause::Failure { what }, actions);
        }
        self.end(worker, now, actions);
        let what = refusal(kind).to_owned();
        let failure = Failure { what, refused: Some((kind, message)), log: Vec::new(), not_started: false };
        self.failed(failure, now, actions);
    }

    fn gone(&mut self, worker: u64, failure: Failure, now: Instant, actions: &mut Vec<Action>) {
        match self.worker {
            Worker::Present { number } if number == worker => {
                self.worker = Worker::None;
                self.failed(failure, now, actions);
            }
            Worker::Leaving { number, .. } if number == worker => self.worker = Worker::None,
            _ => {}
        }
    }

    fn failed(&mut self, failure: Failure, now: Instant, actions: &mut Vec<Action>) {
        match mem::replace(&mut self.plan, Plan::Nothing) {
            Plan::Loading { attempt, cause } => self.failed_to_load(attempt, cause, failure, now, actions),
            Plan::Serving(serving) => self.failed_to_serve(serving, failure, now, actions),
            plan => self.plan = plan,
        }
    }

    fn failed_to_load(
        &mut self,
        attempt: Attempt,
        cause: Cause,
        mut failure: Failure,
        now: Instant,
        actions: &mut Vec<Action>,
    ) {
        let refused = failure.refused.as_ref().map(|(kind, _)| *kind);
        failure.what = match refused {
            Some(_) => format!("the models were not loaded: {}", failure.what),
            None => format!("{} while the models were loaded", failure.what),
        };
        match cause {
            Cause::Asked { former } => {
                // With less taken from it, a load can be refused for what goes together no more: then still less may do.
                let hopeless = refused.is_some_and(|kind| kind != RefusalKind::Trial) && attempt.cuts.is_empty();
                let by_draft = former.as_ref().is_some_and(|former| former.by_draft);
                let less = attempt.with_less(&failure.what).filter(|_| !hopeless && !by_draft && !failure.not_started);
                if let Some(less) = less {
                    actions.push(Action::Record(format!("{}; it is tried {}", failure.what, less.lacks())));
                    return self.plan = Plan::Start { attempt: less, cause: Cause::Asked { former }, at: now };
                }
                let Some(former) = former else { return self.give_up(failure.what.clone(), failure, actions) };
                let (what, log) = (failure.what.clone(), failure.log.clone());
                let served = self.reject(*former, failure, actions);
                self.recover(served, Failure { what, refused: None, log, not_started: false }, now, actions);
            }
            Cause::Retry { fallback } => {
                self.period = self.policy.longer(self.period);
                self.recover(*fallback, failure, now, actions);
            }
            Cause::Failure { .. } => {
                let less = attempt.with_less(&failure.what).filter(|_| !attempt.proven && !failure.not_started);
                self.recover(less.unwrap_or(attempt), failure, now, actions);
            }
        }
    }

    fn failed_to_serve(&mut self, serving: Serving, mut failure: Failure, now: Instant, actions: &mut Vec<Action>) {
        let Serving { attempt, active, fallback, since } = serving;
        let settled = now.saturating_duration_since(since) >= self.period;
        if settled && attempt.cuts.is_empty() {
            self.period = self.policy.period;
        }
        let drafters = model_drafters(&active);
        if let Some(drafters) = &drafters {
            failure.what = format!("{} while {drafters} was active", failure.what);
        }
        let next = match (fallback.filter(|_| !settled), drafters) {
            (Some(fallback), drafters) => {
                self.period = self.policy.longer(self.period);
                match drafters.is_some() && fallback.may_draft_with_a_model() {
                    true => fallback.without_model_drafts(&active, &failure.what),
                    false => *fallback,
                }
            }
            (None, Some(_)) => attempt.without_model_drafts(&active, &failure.what),
            (None, None) => Attempt { proven: true, ..attempt },
        };
        self.recover(next, failure, now, actions);
    }

    // What is done.

    /// Starts another worker after a pause, or gives up.
    fn recover(&mut self, attempt: Attempt, failure: Failure, now: Instant, actions: &mut Vec<Action>) {
        let Some(pause) = self.breakdowns.note(&self.policy, now) else {
            let (count, window) = (self.breakdowns.count(), self.policy.window);
            let reason = match count {
                1 => failure.what.clone(),
                _ => format!("{count} breakdowns within {window:?}, at last: {}", failure.what),
            };
            return self.give_up(reason, failure, actions);
        };
        let how = match attempt.cuts.is_empty() {
            true => "as it was".into(),
            false => attempt.lacks(),
        };
        let pause_told = if pause.is_zero() { String::new() } else { format!(" in {pause:?}") };
        actions.push(Action::Record(format!("{}; another is started {how}{pause_told}", failure.what)));
        self.plan = Plan::Start { attempt, cause: Cause::Failure { what: failure.what }, at: after(now, pause) };
    }

    /// Takes back what the user asked for last. What served before.
    fn reject(&mut self, former: Former, failure: Failure, actions: &mut Vec<Action>) -> Attempt {
        let Former { requested, served, asked_methods, .. } = former;
        self.ask_for(requested);
        self.asked_methods = asked_methods;
        actions.push(Action::Record(format!("{}; what was loaded before is loaded again", failure.what)));
        actions.push(Action::Reject(Box::new(failure.given_up())));
        served
    }

    fn give_up(&mut self, reason: String, failure: Failure, actions: &mut Vec<Action>) {
        actions.push(Action::Record(format!("given up: {reason}")));
        self.plan = Plan::GivenUp { reason: reason.clone() };
        actions.push(Action::GiveUp(Box::new(GivenUp { reason, ..failure.given_up() })));
    }

    /// After a period without something that was asked for, tries that again.
    fn look_back(&mut self, busy: bool, now: Instant, actions: &mut Vec<Action>) {
        let (Plan::Serving(serving), Worker::Present { number }) = (&self.plan, self.worker) else { return };
        let served = now.saturating_duration_since(serving.since);
        let is_time = served >= self.period && (!busy || served >= self.period.saturating_mul(2));
        let Some(requested) = self.requested.clone().filter(|_| is_time && !serving.attempt.cuts.is_empty()) else {
            return;
        };
        let fallback = Box::new(Attempt { proven: true, ..serving.attempt.clone() });
        actions.push(Action::Record(format!("it has served for {served:.0?}: what was asked for is tried again")));
        self.load_in_place(number, Attempt::whole(requested), Cause::Retry { fallback }, actions);
    }

    fn load_in_place(&mut self, worker: u64, attempt: Attempt, cause: Cause, actions: &mut Vec<Action>) {
        actions.push(Action::Load { worker, load: Box::new(attempt.load.clone()), restarts: self.restarts });
        self.plan = Plan::Loading { attempt, cause };
    }

    fn end(&mut self, number: u64, now: Instant, actions: &mut Vec<Action>) {
        actions.push(Action::End { worker: number });
        self.worker = Worker::Leaving { number, killed: false, deadline: after(now, self.policy.farewell) };
    }

    fn kill(&mut self, number: u64, now: Instant, actions: &mut Vec<Action>) {
        actions.push(Action::Kill { worker: number });
        self.worker = Worker::Leaving { number, killed: true, deadline: after(now, self.policy.farewell) };
    }

    /// What is due: sees workers off, and starts the next when nothing stands against it.
    fn proceed(&mut self, now: Instant, actions: &mut Vec<Action>) {
        match self.worker {
            Worker::Leaving { number, killed, deadline } if now >= deadline && self.waits_for_end(killed) => {
                if killed {
                    let told =
                        format!("worker {number} does not end though it was killed; another is started beside it");
                    actions.push(Action::Record(told));
                    self.worker = Worker::None;
                } else {
                    self.kill(number, now, actions);
                }
            }
            _ => {}
        }
        match mem::replace(&mut self.plan, Plan::Nothing) {
            Plan::Start { attempt, cause, at } if now >= at && matches!(self.worker, Worker::None) => {
                self.workers += 1;
                let is_what_was_asked_for = matches!(cause, Cause::Asked { .. }) && attempt.cuts.is_empty();
                self.restarts += u64::from(!is_what_was_asked_for);
                self.worker = Worker::Present { number: self.workers };
                let load = Box::new(attempt.load.clone());
                actions.push(Action::Start { worker: self.workers, load, restarts: self.restarts });
                self.plan = Plan::Loading { attempt, cause };
            }
            plan => self.plan = plan,
        }
    }
}

impl Failure {
    fn given_up(self) -> GivenUp {
        let (kind, message) = self.refused.unzip();
        GivenUp { reason: self.what, kind, message, log: self.log }
    }
}

fn refusal(kind: RefusalKind) -> &'static str {
    match kind {
        RefusalKind::Pair => "files and settings do not go together",
        RefusalKind::File => "a file is missing, broken or no model",
        RefusalKind::Setting => "a setting is wrong",
        RefusalKind::Trial => "the engine did not work when it was tried",
    }
}
