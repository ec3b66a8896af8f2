//! What holds whatever happens.

use super::*;
use crate::supervise::State;
use crate::supervise::policy::{Policy, Recovery};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Something that may happen next, to workers by how long ago they were started.
#[derive(Clone, Debug)]
enum Chance {
    Load(usize),
    Unload,
    Reload,
    SetDraft(bool),
    Stop,
    /// What is asked of workers happens, as the last `Start` and `Load` say.
    Loads,
    Loaded(u64, usize),
    Refused(u64, usize),
    NotStarted(u64),
    Broken(u64),
    Gone(u64),
    Tick(bool),
    /// Seconds go by.
    Wait(u64),
    /// Time goes by until something is due.
    Sleep(bool),
}

fn chance() -> impl Strategy<Value = Chance> {
    let age = || prop_oneof![6 => Just(0u64), 1 => 1u64..4];
    prop_oneof![
        2 => (0usize..6).prop_map(Chance::Load),
        1 => Just(Chance::Unload),
        1 => Just(Chance::Reload),
        1 => any::<bool>().prop_map(Chance::SetDraft),
        12 => Just(Chance::Loads),
        2 => (age(), 0usize..4).prop_map(|(age, methods)| Chance::Loaded(age, methods)),
        3 => (age(), 0usize..4).prop_map(|(age, kind)| Chance::Refused(age, kind)),
        1 => age().prop_map(Chance::NotStarted),
        4 => age().prop_map(Chance::Broken),
        12 => age().prop_map(Chance::Gone),
        4 => any::<bool>().prop_map(Chance::Tick),
        4 => (0u64..1500).prop_map(Chance::Wait),
        12 => any::<bool>().prop_map(Chance::Sleep),
    ]
}

fn chances() -> impl Strategy<Value = Vec<Chance>> {
    // A stop in the middle, or none.
    (prop::collection::vec(chance(), 0..120), prop::option::of(0usize..120)).prop_map(|(mut chances, stop)| {
        if let Some(at) = stop.filter(|at| *at < chances.len()) {
            chances.insert(at, Chance::Stop);
        }
        chances
    })
}

const SETS: [&[Method]; 4] = [&[], &[Method::NgramMod], &[Method::DraftSimple], &[Method::NgramMod, Method::DraftMtp]];
const KINDS: [RefusalKind; 4] = [RefusalKind::Pair, RefusalKind::File, RefusalKind::Setting, RefusalKind::Trial];

fn wanted(number: usize) -> Load {
    match number {
        0 => load(None),
        1 => tensor(load(None)),
        2 => tensor(load(Some(&[Method::NgramMod, Method::DraftSimple]))),
        number => load(Some(SETS[number - 2])),
    }
}

/// What a worker is to load, and what it has.
#[derive(Debug)]
struct Process {
    number: u64,
    loads: Option<Load>,
    serves: Option<(Load, Vec<Method>)>,
    /// It was told to end, and is believed nothing.
    dismissed: Option<Instant>,
}

/// The world around a recovery, as strict as can be.
struct World {
    recovery: Recovery,
    policy: Policy,
    now: Instant,
    started: u64,
    processes: Vec<Process>,
    requested: Option<Load>,
    /// The same before it was unloaded.
    last: Option<Load>,
    /// What the user asked for and was not begun with yet.
    command: Option<Load>,
    commands: u64,
    stopped: bool,
    restarts: u64,
    given_up: bool,
    /// Loads that broke down with model drafts active since the user asked for something, and when.
    crashed: Vec<(Load, Instant)>,
    /// Breakdowns that were answered by a start since the user asked for something.
    replaced: Vec<Instant>,
}

impl World {
    fn new(policy: Policy) -> Self {
        Self {
            recovery: Recovery::new(policy.clone()),
            policy,
            now: Instant::now(),
            started: 0,
            processes: Vec::new(),
            requested: None,
            last: None,
            command: None,
            commands: 0,
            stopped: false,
            restarts: 0,
            given_up: false,
            crashed: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// The worker that counts, if there is one.
    fn current(&mut self) -> Option<&mut Process> {
        self.processes.iter_mut().find(|process| process.dismissed.is_none())
    }

    fn happens(&mut self, chance: Chance) {
        let number = |age: u64| self.started.saturating_sub(age);
        let event = match chance {
            Chance::Load(number) => asked(&wanted(number)),
            Chance::Unload => Event::Unload,
            Chance::Reload => Event::Reload,
            Chance::SetDraft(some) => Event::SetDraft { draft: some.then(|| "other.gguf".into()), speculation: None },
            Chance::Stop => Event::Stop,
            Chance::Loads => {
                let Some(process) = self.current() else { return };
                let Some(load) = &process.loads else { return };
                let methods: &[Method] = match (&load.speculation, &load.draft) {
                    (Some(config), _) => &config.methods.clone(),
                    (None, Some(_)) => &[Method::DraftMtp],
                    (None, None) => &[Method::NgramMod],
                };
                loaded(process.number, methods)
            }
            Chance::Loaded(age, methods) => {
                // Some of what was asked for, or of what could be chosen.
                let process = self.processes.iter().find(|process| process.number == number(age));
                let by_name = process.and_then(|process| process.loads.as_ref()?.speculation.as_ref());
                let is_wanted = |method: &&Method| by_name.is_none_or(|config| config.methods.contains(method));
                let methods: Vec<Method> = SETS[methods].iter().filter(is_wanted).copied().collect();
                loaded(number(age), &methods)
            }
            Chance::Refused(age, kind) => refused(number(age), KINDS[kind]),
            Chance::NotStarted(age) => Event::NotStarted { worker: number(age), what: "no memory".into() },
            Chance::Broken(age) => broken(number(age)),
            Chance::Gone(age) => gone(number(age)),
            Chance::Tick(busy) => Event::Tick { busy },
            Chance::Wait(seconds) => return self.now += Duration::from_secs(seconds),
            Chance::Sleep(busy) => {
                let Some(due) = self.recovery.wake_at(self.now) else { return };
                self.now = self.now.max(due);
                Event::Tick { busy }
            }
        };
        self.tell(event);
    }

    fn tell(&mut self, event: Event) {
        self.expect(&event);
        let actions = self.recovery.handle(event, self.now);
        for action in actions {
            self.obey(action);
        }
        self.check();
    }

    /// What the world knows of an event before the recovery says anything to it.
    fn expect(&mut self, event: &Event) {
        let asks = match event {
            Event::Load(load) => Some(Some((**load).clone())),
            Event::Unload => Some(None),
            Event::Reload => self.last.clone().map(Some),
            Event::SetDraft { draft, speculation } => self
                .requested
                .clone()
                .map(|load| Some(Load { draft: draft.clone(), speculation: speculation.clone(), ..load })),
            Event::Stop => Some(self.requested.clone()),
            _ => None,
        };
        if let Some(requested) = asks.filter(|_| !self.stopped) {
            self.stopped = matches!(event, Event::Stop);
            self.command = requested.clone().filter(|_| !self.stopped);
            self.last = requested.clone().or(self.last.take());
            self.requested = requested;
            self.commands += 1;
            self.given_up = false;
            self.crashed.clear();
            self.replaced.clear();
        }
        let (worker, ended) = match event {
            Event::Gone { worker, .. } | Event::NotStarted { worker, .. } => (*worker, true),
            Event::Broken { worker, .. } => (*worker, false),
            Event::Loaded { worker, speculation } => {
                let process = self.processes.iter_mut().find(|process| process.number == *worker);
                if let Some(process) = process
                    && let Some(load) = process.loads.take()
                {
                    process.serves = Some((load, speculation.effective.clone()));
                }
                return;
            }
            Event::Refused { worker, .. } => {
                let process = self.processes.iter_mut().find(|process| process.number == *worker);
                return process.map_or((), |process| process.loads = None);
            }
            _ => return,
        };
        let Some(index) = self.processes.iter().position(|process| process.number == worker) else { return };
        let process = &self.processes[index];
        if let (Some((load, methods)), None) = (&process.serves, process.dismissed)
            && methods.iter().any(|method| !method.is_lookup())
        {
            self.crashed.push((load.clone(), self.now));
        }
        if ended {
            self.processes.remove(index);
        }
    }

    fn begins(&mut self, load: &Load, restarts: u64) {
        assert!(!self.stopped && !self.given_up);
        assert!(restarts >= self.restarts);
        self.restarts = restarts;
        if let Some(command) = self.command.take() {
            assert_eq!(*load, command, "the user's word comes first");
        }
        assert_eq!(Some(&load.model), self.requested.as_ref().map(|load| &load.model));
        for (crashed, at) in &self.crashed {
            let long_ago = self.now.duration_since(*at) >= self.policy.period;
            assert!(load != crashed || long_ago, "it crashed with this: {load:?}");
        }
    }

    fn obey(&mut self, action: Action) {
        match action {
            Action::Start { worker, load, restarts } => {
                if restarts > self.restarts {
                    self.replaced.push(self.now);
                }
                self.begins(&load, restarts);
                assert_eq!(worker, self.started + 1);
                self.started = worker;
                for other in &self.processes {
                    let since = other.dismissed.expect("no second worker beside one that counts");
                    assert!(self.now.duration_since(since) >= self.policy.farewell, "it has not ended: {other:?}");
                }
                self.processes.push(Process { number: worker, loads: Some(*load), serves: None, dismissed: None });
            }
            Action::Load { worker, load, restarts } => {
                self.begins(&load, restarts);
                let process = self.current().unwrap();
                assert_eq!(process.number, worker);
                assert!(process.loads.is_none(), "one load at a time");
                process.serves = None;
                process.loads = Some(*load);
            }
            Action::Serve { worker } => {
                assert!(!self.stopped && self.command.is_none());
                let process = self.current().unwrap();
                assert_eq!(process.number, worker);
                assert!(process.serves.is_some());
            }
            Action::End { worker } | Action::Kill { worker } => {
                let process = self.processes.iter_mut().find(|process| process.number == worker).unwrap();
                process.dismissed = Some(self.now);
            }
            Action::Reject(_) => {
                // Only that takes back what the user asked for.
                self.requested = self.recovery.requested().cloned();
                self.last.clone_from(&self.requested);
                self.restore();
            }
            Action::GiveUp(why) => {
                assert!(!self.stopped && self.command.is_none() && !why.reason.contains('/'));
                self.given_up = true;
            }
            Action::Record(what) => assert!(!what.contains('/'), "{what}"),
        }
    }

    fn restore(&mut self) {
        // What failed to load is no crash while serving; what was loaded before it may serve again.
        self.crashed.clear();
    }

    fn check(&mut self) {
        assert_eq!(self.recovery.requested(), self.requested.as_ref());
        assert_eq!(self.recovery.last_requested(), self.last.as_ref());
        assert_eq!(self.recovery.generation(), self.commands);
        let state = self.recovery.state();
        assert_eq!(state == State::Stopping, self.stopped);
        assert_eq!(matches!(state, State::Failed { .. }), self.given_up && !self.stopped);
        assert_eq!(state == State::Unloaded, self.requested.is_none() && !self.stopped);
        let serves = self.current().is_some_and(|process| process.serves.is_some());
        assert_eq!(state.is_serving(), serves && !self.stopped);
        if matches!(state, State::Starting { .. } | State::Recovering { .. }) {
            // Either a worker loads, or something is due soon.
            let loads = self.current().is_some();
            let longest = self.policy.longest_pause.max(self.policy.farewell);
            let due = self.recovery.wake_at(self.now);
            assert!(loads || due.is_some_and(|due| due <= self.now + longest), "{due:?}");
        }
        let recent = self.replaced.iter().filter(|at| self.now.duration_since(**at) < self.policy.window).count();
        // What is tried at the start, one below the other, is not counted.
        assert!(recent <= self.policy.crashes as usize + 4, "{recent}");
    }

    /// Whatever it is in, it serves in the end if workers work.
    fn settles(&mut self) {
        for _ in 0..100 {
            let state = self.recovery.state();
            if !matches!(state, State::Starting { .. } | State::Recovering { .. }) {
                return;
            }
            let gone: Vec<u64> = self
                .processes
                .iter()
                .filter(|process| process.dismissed.is_some())
                .map(|process| process.number)
                .collect();
            gone.into_iter().for_each(|worker| self.tell(super::gone(worker)));
            self.happens(Chance::Loads);
            self.happens(Chance::Sleep(true));
        }
        panic!("it does not come to rest: {:?}", self.recovery);
    }
}

proptest! {
    #[test]
    fn whatever_happens(chances in chances(), crashes in 0u32..6) {
        let mut world = World::new(Policy { crashes, ..Policy::default() });
        chances.into_iter().for_each(|chance| world.happens(chance));
        world.settles();
    }
}
