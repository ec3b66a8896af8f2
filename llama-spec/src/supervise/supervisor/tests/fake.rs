//! Workers that are played by a script.

use super::super::link::{Launch, Link, Notice, Notify};
use crate::engine::{EngineStats, Midway};
use crate::generate::StopReason;
use crate::sample::SamplerState;
use crate::spec::{Source, Speculation};
use crate::supervise::load::Load;
use crate::supervise::status::Info;
use crate::supervise::task::{Finish, ProblemKind, Reply, Task, TokenUpdate, Update};
use crate::supervise::wire::{FromWorker, Pulse, Refusal, RefusalKind, Standing, TaskId, ToWorker, VERSION};
use crate::token::Token;
use async_channel::{Receiver, Sender};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a worker does.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// It does this after so many messages about texts.
    pub(super) end: Option<(usize, End)>,
    /// What becomes of what it is to load.
    pub(super) loading: Loading,
    /// Loads after the first one work.
    pub(super) only_first: bool,
    /// The version it says it speaks.
    pub(super) version: u32,
    /// Tokens it tells at a time.
    pub(super) round: usize,
    /// Says where its sampler stands.
    pub(super) checkpoints: bool,
    /// Which model it says it has loaded.
    pub(super) identity: u64,
    /// What it says is active.
    pub(super) speculation: Speculation,
    /// How checks go.
    pub(super) check: Result<(), String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Dies,
    /// Says nothing more, and does nothing.
    Hangs,
    Poisoned,
    /// Goes on with other texts, and breaks one off.
    BreaksOff,
}

#[derive(Clone, Debug)]
pub(super) enum Loading {
    Works,
    Refused(RefusalKind),
    /// Dies while loading.
    Dies,
    /// Never ends.
    Hangs,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            end: None,
            loading: Loading::Works,
            only_first: false,
            version: VERSION,
            round: 1,
            checkpoints: true,
            identity: 0,
            speculation: Speculation::default(),
            check: Ok(()),
        }
    }
}

impl Script {
    pub(super) fn ends_after(messages: usize, end: End) -> Self {
        Self { end: Some((messages, end)), ..Self::default() }
    }

    pub(super) fn loads(loading: Loading) -> Self {
        Self { loading, ..Self::default() }
    }

    /// Only the first thing it is to load.
    pub(super) fn loads_first(loading: Loading) -> Self {
        Self { only_first: true, ..Self::loads(loading) }
    }
}

/// Starts played workers, each by the next script; after the last, all of them do what is usual.
#[derive(Clone, Default)]
pub(super) struct Stage {
    shared: Arc<Played>,
}

#[derive(Default)]
struct Played {
    scripts: Mutex<Vec<Script>>,
    /// What each worker was told.
    told: Mutex<Vec<Vec<ToWorker>>>,
    /// No tokens are told while this is set.
    held: AtomicBool,
    /// Workers that were killed.
    killed: Mutex<Vec<usize>>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

impl Stage {
    pub(super) fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let stage = Self::default();
        stage.shared.scripts.lock().unwrap().extend(scripts);
        stage
    }

    /// Texts stand still until this is called with false.
    pub(super) fn hold(&self, held: bool) {
        self.shared.held.store(held, Ordering::Release);
    }

    /// What each worker was told so far.
    pub(super) fn told(&self) -> Vec<Vec<ToWorker>> {
        self.shared.told.lock().unwrap().clone()
    }

    /// What each worker was to load.
    pub(super) fn loads(&self) -> Vec<Vec<(Load, u64)>> {
        let loads = |told: Vec<ToWorker>| {
            let loads = told.into_iter().filter_map(|message| match message {
                ToWorker::Load { load, restarts } => Some((*load, restarts)),
                _ => None,
            });
            loads.collect()
        };
        self.told().into_iter().map(loads).collect()
    }

    pub(super) fn killed(&self) -> Vec<usize> {
        self.shared.killed.lock().unwrap().clone()
    }
}

impl Launch for Stage {
    fn launch(&self, notify: Notify) -> Result<Arc<dyn Link>, String> {
        let (sender, incoming) = async_channel::unbounded();
        let mut told = self.shared.told.lock().unwrap();
        let number = told.len();
        told.push(Vec::new());
        let script = self.shared.scripts.lock().unwrap().get(number).cloned().unwrap_or_default();
        let dead = Arc::new(AtomicBool::new(false));
        let actor = Actor {
            script,
            number,
            notify,
            shared: Arc::clone(&self.shared),
            dead: Arc::clone(&dead),
            said: 0,
            stats: EngineStats::default(),
            texts: BTreeMap::new(),
        };
        thread::spawn(move || actor.play(&incoming));
        Ok(Arc::new(FakeLink { sender, dead, number, shared: Arc::clone(&self.shared) }))
    }
}

struct FakeLink {
    sender: Sender<ToWorker>,
    dead: Arc<AtomicBool>,
    number: usize,
    shared: Arc<Played>,
}

impl fmt::Debug for FakeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeLink")
    }
}

impl Link for FakeLink {
    fn send(&self, message: ToWorker) {
        self.shared.told.lock().unwrap()[self.number].push(message.clone());
        drop(self.sender.try_send(message));
    }

    fn backlog(&self) -> usize {
        self.sender.len()
    }

    fn kill(&self) {
        self.shared.killed.lock().unwrap().push(self.number);
        self.dead.store(true, Ordering::Release);
        self.sender.close();
    }

    fn log(&self) -> Vec<String> {
        vec![format!("the log of worker {}", self.number)]
    }

    fn process(&self) -> Option<u32> {
        None
    }
}

struct Actor {
    script: Script,
    number: usize,
    notify: Notify,
    shared: Arc<Played>,
    dead: Arc<AtomicBool>,
    /// Messages about texts.
    said: usize,
    stats: EngineStats,
    texts: BTreeMap<(TaskId, u32), Text>,
}

/// A text that is being generated.
struct Text {
    task: Task,
    midway: Midway,
    begun: bool,
    speculation: Speculation,
}

impl Actor {
    fn play(mut self, incoming: &Receiver<ToWorker>) {
        self.say(FromWorker::Hello { version: self.script.version, library: "played".into() });
        while !self.dead.load(Ordering::Acquire) {
            let message = match self.texts.is_empty() {
                true => incoming.recv_blocking().ok(),
                false => incoming.try_recv().ok(),
            };
            let over = match message {
                Some(ToWorker::Stop) => true,
                Some(message) => self.hear(message),
                None => incoming.is_closed(),
            };
            if over || self.go_on() {
                break;
            }
        }
        let log = vec![format!("the last words of worker {}", self.number)];
        (self.notify)(Notice::Gone { what: "the worker died (played)".into(), log });
    }

    fn say(&self, said: FromWorker) {
        (self.notify)(Notice::Said(said));
    }

    fn hangs(&self) {
        while !self.dead.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether it ends by that.
    fn hear(&mut self, message: ToWorker) -> bool {
        match message {
            ToWorker::Load { .. } => {
                self.texts.clear();
                self.stats = EngineStats::default();
                let after = if self.script.only_first { Loading::Works } else { self.script.loading.clone() };
                match std::mem::replace(&mut self.script.loading, after) {
                    Loading::Works => {
                        let identity = self.script.identity;
                        let info = Info { identity, ..info(self.script.speculation.clone()) };
                        self.say(FromWorker::Loaded(Box::new(info)));
                    }
                    Loading::Refused(kind) => {
                        self.say(FromWorker::NotLoaded(Refusal { kind, message: "no: /a/path".into() }));
                    }
                    Loading::Dies => return true,
                    Loading::Hangs => self.hangs(),
                }
            }
            ToWorker::Start { id, task, standing } => {
                for answer in 0..task.answers {
                    let standing = standing.get(answer as usize).cloned().unwrap_or(Standing::Fresh);
                    let midway = match standing {
                        Standing::Fresh => Midway { prompt: vec![Token::new(7)], ..Midway::default() },
                        Standing::Begun(midway) => *midway,
                        Standing::Ended => continue,
                    };
                    if let Some(sampler) = &midway.sampler {
                        assert_eq!(sampler.generated, midway.generated.len() as u64, "a checkpoint of another round");
                    }
                    let speculation = self.script.speculation.clone();
                    self.texts.insert((id, answer), Text { task: (*task).clone(), midway, begun: false, speculation });
                }
            }
            ToWorker::Cancel { id } => self.texts.retain(|(task, _), _| *task != id),
            ToWorker::Ask { id, .. } => {
                self.say(FromWorker::Reply { id, reply: Ok(Reply::Text(format!("worker {}", self.number))) })
            }
            ToWorker::Check => self.say(FromWorker::Checked(self.script.check.clone())),
            ToWorker::Stop => return true,
        }
        false
    }

    /// A step of each text. Whether it ends by that.
    fn go_on(&mut self) -> bool {
        if self.shared.held.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(1));
            return false;
        }
        let mut keys: Vec<_> = self.texts.keys().copied().collect();
        // Not always in the same order.
        if self.said % 2 == 1 {
            keys.reverse();
        }
        for (id, answer) in keys {
            let Some(text) = self.texts.get_mut(&(id, answer)) else { continue };
            let (update, sampler) = text.step(self.script.round, self.script.checkpoints);
            let ended = matches!(update, Update::Finished(_));
            self.stats.total.generated_tokens += u64::from(matches!(update, Update::Tokens(_)));
            match self.script.end.filter(|(after, _)| self.said == *after).map(|(_, end)| end) {
                Some(End::Dies) => return true,
                Some(End::Hangs) => {
                    self.hangs();
                    return true;
                }
                Some(End::Poisoned) => {
                    self.say(FromWorker::Poisoned("played".into()));
                    self.hangs();
                    return true;
                }
                Some(End::BreaksOff) => {
                    let problem = super::super::registry::problem(ProblemKind::Failed, "broken off");
                    self.say(FromWorker::Broken { id, answer, problem });
                    self.texts.remove(&(id, answer));
                }
                None => {
                    self.say(FromWorker::Update { id, answer, update, sampler });
                    if ended {
                        self.texts.remove(&(id, answer));
                    }
                }
            }
            self.said += 1;
            let pulse = Pulse { stats: self.stats.clone(), last_decode: Some((Duration::ZERO, true)) };
            self.say(FromWorker::Pulse(Box::new(pulse)));
        }
        false
    }
}

impl Text {
    fn step(&mut self, round: usize, checkpoints: bool) -> (Update, Option<SamplerState>) {
        let prompt = self.midway.prompt.clone();
        if !std::mem::replace(&mut self.begun, true) {
            return (Update::Begun { prompt }, None);
        }
        let done = self.midway.generated.len();
        let left = self.task.request.options.max_tokens.unwrap_or(1000) as usize - done;
        if left == 0 {
            return (Update::Finished(Box::new(finish(self.speculation.clone()))), None);
        }
        let tokens: Vec<TokenUpdate> = (done..done + left.min(round)).map(token_update).collect();
        self.midway.generated.extend(tokens.iter().map(|token| token.token));
        let state = SamplerState {
            seed: None,
            draws: 0,
            rejection_steps: 0,
            prompt: 1,
            generated: self.midway.generated.len() as u64,
            reasoning_ended: Vec::new(),
        };
        (Update::Tokens(tokens), checkpoints.then_some(state))
    }
}

/// The token at this place of every text.
pub(super) fn token_at(place: usize) -> Token {
    Token::new(100 + place as i32)
}

fn token_update(place: usize) -> TokenUpdate {
    let text = format!("{place} ");
    TokenUpdate {
        token: token_at(place),
        bytes: text.clone().into_bytes(),
        text,
        source: Source::Target,
        logprob: None,
        deltas: Vec::new(),
    }
}

fn finish(speculation: Speculation) -> Finish {
    Finish::of_nothing(StopReason::MaxTokens, speculation)
}

fn info(speculation: Speculation) -> Info {
    Info {
        identity: 0,
        description: "played".into(),
        parameters: 1,
        bytes: 1,
        vocabulary: 1000,
        trained_context: 100,
        embedding: 1,
        context: 100,
        slots: 2,
        verify_rows: 1,
        bos: None,
        eos: None,
        chat_template: None,
        probe: None,
        speculation,
        took: Duration::ZERO,
    }
}
