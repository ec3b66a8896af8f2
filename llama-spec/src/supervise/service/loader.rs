//! Loading and unloading: one at a time, on a thread of its own, and the newest wish counts.

use super::Say;
use super::problem::refusal;
use super::pulse::Signs;
use super::stage::{Loaded, Stage};
use super::texts::Texts;
use crate::chat::ChatTemplate;
use crate::engine::{Engine, Loading, ModelShelf, Place, VerifyRows};
use crate::error::Result;
use crate::file::ModelFile;
use crate::model::Model;
use crate::probe::Probe;
use crate::supervise::hook::customised;
use crate::supervise::load::Load;
use crate::supervise::status::Info;
use crate::supervise::wire::{FromWorker, Refusal, RefusalKind};
use crate::token::Token;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How long an engine that is to go may still be held by a request that is being prepared.
const LETTING_GO: Duration = Duration::from_secs(10);
/// Progress is told in steps of this share.
const STEP: f32 = 0.01;

/// What is to be done.
#[derive(Debug)]
pub(super) enum Errand {
    Load {
        load: Box<Load>,
        restarts: u64,
    },
    /// Drop the models and end the thread; then this is dropped.
    Stop(mpsc::Sender<()>),
}

/// The thread's errands, and which is the newest.
#[derive(Debug)]
pub(super) struct Loader {
    errands: Sender<(u64, Errand)>,
    newest: Arc<AtomicU64>,
}

impl Loader {
    pub(super) fn start(stage: Arc<Stage>, signs: Arc<Signs>, say: Say) -> io::Result<Self> {
        let (errands, incoming) = mpsc::channel();
        let newest = Arc::new(AtomicU64::new(0));
        let work = Work {
            stage,
            signs,
            say,
            shelf: ModelShelf::default(),
            texts: RefCell::default(),
            newest: Arc::clone(&newest),
        };
        let thread = thread::Builder::new().name("llama-spec load".into());
        thread.spawn(move || {
            while let Ok((number, errand)) = incoming.recv() {
                if work.run(number, errand).is_break() {
                    return;
                }
            }
            work.clear();
        })?;
        Ok(Self { errands, newest })
    }

    /// To be done after what it does now; loading that is not wanted any more is broken off.
    pub(super) fn post(&self, errand: Errand) {
        let number = self.newest.fetch_add(1, Ordering::SeqCst) + 1;
        // The thread ends with the service only.
        drop(self.errands.send((number, errand)));
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.newest.fetch_add(1, Ordering::SeqCst);
    }
}

struct Work {
    stage: Arc<Stage>,
    signs: Arc<Signs>,
    say: Say,
    /// Models that are loaded.
    shelf: ModelShelf,
    /// Texts of earlier requests.
    texts: RefCell<Option<Texts>>,
    newest: Arc<AtomicU64>,
}

impl Work {
    fn run(&self, number: u64, errand: Errand) -> ControlFlow<()> {
        match errand {
            Errand::Stop(done) => {
                self.clear();
                self.shelf.retain(&[]);
                self.texts.take();
                drop(done);
                return ControlFlow::Break(());
            }
            Errand::Load { load, restarts } => {
                self.clear();
                let superseded = || self.newest.load(Ordering::SeqCst) != number;
                let outcome = match superseded() {
                    true => Err(Refusal { kind: RefusalKind::Trial, message: "something else was asked for".into() }),
                    false => {
                        catch_unwind(AssertUnwindSafe(|| self.load(number, &load, restarts))).unwrap_or_else(|_| {
                            let message = "making the engine panicked; the standard error has more".into();
                            Err(Refusal { kind: RefusalKind::Trial, message })
                        })
                    }
                };
                match outcome {
                    Ok((loaded, info)) => {
                        self.stage.put(loaded);
                        (self.say)(FromWorker::Loaded(Box::new(info)));
                    }
                    Err(refusal) => (self.say)(FromWorker::NotLoaded(refusal)),
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends the engine that is there.
    fn clear(&self) {
        self.stage.clear(LETTING_GO);
        for _ in 0..self.signs.renew() {
            (self.say)(FromWorker::Checked(Err("the engine was unloaded".into())));
        }
    }

    fn load(&self, number: u64, load: &Load, restarts: u64) -> Result<(Loaded, Info), Refusal> {
        let start = Instant::now();
        let refused = |error| refusal(&error, load.split_mode);
        let (engine, identity) = self.engine(number, load, restarts).map_err(refused)?;
        let model = engine.model().clone();
        let template = match &load.chat_template {
            Some(source) => Ok(ChatTemplate::from_source(&model, source).map_err(refused)?),
            None => ChatTemplate::from_model(&model).map_err(|error| super::problem::problem(&error).message),
        };
        let info = Info { identity, ..info(&engine, load, start.elapsed()) };
        Ok((Loaded { engine, template }, info))
    }

    /// The engine, and what tells its model's file from others.
    fn engine(&self, number: u64, load: &Load, restarts: u64) -> Result<(Engine, u64)> {
        let target = ModelFile::open(&load.model)?;
        let identity = target.identity()?;
        let draft = load.draft.as_ref().map(ModelFile::open).transpose()?;
        self.keep_only(load, &target, draft.as_ref());
        let texts = Texts::of(self.texts.take(), load, &target, &self.say);
        let store = texts.as_ref().map(Texts::store);
        self.texts.replace(texts);
        let (say, newest) = (Arc::clone(&self.say), Arc::clone(&self.newest));
        let mut told = Loading::Draft(f32::NEG_INFINITY);
        let progress = move |now: Loading| {
            if is_news(told, now) {
                told = now;
                say(FromWorker::Progress(now));
            }
            match newest.load(Ordering::SeqCst) == number {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let mut builder = Engine::builder(target)
            .degrade(load.degrade)
            .context(load.context.clone())
            .gpu_layers(load.gpu_layers)
            .split_mode(load.split_mode)
            .accept_risk(load.accept_risk)
            .queue(load.queue)
            .probe(if load.probe { Probe::Full } else { Probe::Off })
            .probe_budget(load.probe_budget)
            .on_progress(progress)
            .shelf(self.shelf.clone());
        if let Some(draft) = draft {
            builder = builder.draft(draft);
        }
        if let Some(config) = &load.speculation {
            builder = builder.speculation(config.clone());
        }
        if let Some(layers) = load.draft_gpu_layers {
            builder = builder.draft_gpu_layers(layers);
        }
        if let Some(folder) = &load.probe_cache {
            builder = builder.probe_cache(folder);
        }
        if let Some(store) = store {
            builder = builder.lookup_store(store);
        }
        if let Some(rows) = load.verify_rows {
            builder = builder.verify_rows(VerifyRows::AtMost(rows));
        }
        let engine = customised(builder, load, restarts).build()?;
        if engine.lookup_store().is_none() {
            self.texts.take();
        }
        Ok((engine, identity))
    }

    /// Drops the models that this engine does not need, before it needs memory.
    fn keep_only(&self, load: &Load, target: &ModelFile, draft: Option<&ModelFile>) {
        let layers = load.draft_gpu_layers.unwrap_or(load.gpu_layers);
        let target = Place::new(Loading::Target, target, load.gpu_layers, load.split_mode);
        let draft = draft.and_then(|draft| Place::new(Loading::Draft, draft, layers, load.split_mode));
        let places: Vec<Place> = target.into_iter().chain(draft).collect();
        self.shelf.retain(&places);
    }
}

/// Whether progress is worth telling.
fn is_news(told: Loading, now: Loading) -> bool {
    match (told, now) {
        (Loading::Target(told), Loading::Target(now)) | (Loading::Draft(told), Loading::Draft(now)) => {
            now - told >= STEP || (now >= 1.0 && told < 1.0)
        }
        _ => true,
    }
}

fn info(engine: &Engine, load: &Load, took: Duration) -> Info {
    let model = engine.model();
    let vocab = model.vocab();
    let named = |token: Token| {
        let bytes = vocab.bytes_with_special(token).unwrap_or_default();
        (token, String::from_utf8_lossy(&bytes).into_owned())
    };
    Info {
        identity: 0,
        description: model.description(),
        parameters: model.parameters(),
        bytes: model.size_bytes(),
        vocabulary: vocab.len(),
        trained_context: model.trained_context(),
        embedding: model.width(),
        context: engine.context_length(),
        slots: engine.slots(),
        verify_rows: engine.verify_rows(),
        bos: vocab.bos().map(named),
        eos: vocab.eos().map(named),
        chat_template: template(load, model),
        probe: engine.probe().cloned(),
        speculation: engine.speculation(),
        took,
    }
}

fn template(load: &Load, model: &Model) -> Option<String> {
    load.chat_template.clone().or_else(|| model.chat_template(None))
}
