//! How an engine is made: models loaded, contexts and drafters made, and the thread started.

mod attempt;
mod shelf;

#[cfg(test)]
pub(crate) use attempt::tried;
pub(crate) use shelf::{ModelShelf, Place};

use super::keeper::Keeper;
use super::worker::{Shared, Worker};
use super::{Engine, Shape};
use crate::compat::Conditions;
use crate::context::ContextOptions;
use crate::error::{Error, Failure, Result};
use crate::file::ModelFile;
use crate::isolate::Isolation;
use crate::lookup::Store;
use crate::model::Model;
use crate::options::{GpuLayers, SplitMode};
use crate::probe::{Probe, ProbeReport};
use crate::runner::Runner;
use crate::spec::{Drafter, Factory, Method, SpecConfig};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Own drafters that one engine can have.
const MOST_OWN: usize = 32;

/// Where a model comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ModelSource {
    /// A file that is to be loaded.
    File(Box<ModelFile>),
    /// A model that is loaded.
    Loaded(Model),
}

impl From<ModelFile> for ModelSource {
    fn from(file: ModelFile) -> Self {
        Self::File(Box::new(file))
    }
}

impl From<&ModelFile> for ModelSource {
    fn from(file: &ModelFile) -> Self {
        Self::File(Box::new(file.clone()))
    }
}

impl From<Model> for ModelSource {
    fn from(model: Model) -> Self {
        Self::Loaded(model)
    }
}

impl From<&Model> for ModelSource {
    fn from(model: &Model) -> Self {
        Self::Loaded(model.clone())
    }
}

impl ModelSource {
    pub(super) fn file(&self) -> &ModelFile {
        match self {
            Self::File(file) => file,
            Self::Loaded(model) => model.file(),
        }
    }
}

/// How many tokens are verified in one batch, all texts together.
///
/// Kernels for quantized weights change with the number of rows, and they do not round alike: beyond some number of rows a
/// near-tie of two tokens can turn around, and the text with it. Long texts have near-ties of their own:
/// [`ProbeReport::exact_rows`](field@crate::probe::ProbeReport::exact_rows).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyRows {
    /// As many as give the logits of single tokens, or differ from them by no more than rounding, as the
    /// [probe](crate::probe) measured it. Where it had no time for so many, 16 for quantized weights; kernels for others do not change.
    #[default]
    Exact,
    /// So many, whatever that does to near-ties.
    AtMost(u32),
}

/// How an [`Engine`] is made.
#[derive(Debug)]
pub struct EngineBuilder {
    target: ModelSource,
    draft: Option<ModelSource>,
    config: Option<SpecConfig>,
    degrade: bool,
    context: ContextOptions,
    draft_context: Option<ContextOptions>,
    gpu_layers: GpuLayers,
    draft_gpu_layers: Option<GpuLayers>,
    own: Vec<Factory>,
    queue: usize,
    rows: VerifyRows,
    progress: Option<Progress>,
    #[cfg(test)]
    pub(crate) faults: crate::runner::Faults,
    #[cfg(test)]
    pub(crate) clock: crate::runner::Clock,
    split_mode: SplitMode,
    accept_risk: bool,
    probe: Probe,
    probe_budget: Duration,
    probe_cache: Option<PathBuf>,
    isolation: Option<Isolation>,
    shelf: Option<ModelShelf>,
    store: Option<Store>,
}

/// How long a probe may take unless something else is asked for.
const PROBE_BUDGET: Duration = Duration::from_secs(2);

type OnProgress = dyn FnMut(Loading) -> ControlFlow<()> + Send;

/// Who is told of the progress, while the target is loaded and while the draft is.
#[derive(Clone)]
struct Progress(Arc<Mutex<OnProgress>>);

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// What is being loaded, and how much of it is, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Loading {
    /// The target.
    Target(f32),
    /// The draft.
    Draft(f32),
}

impl EngineBuilder {
    pub(super) fn new(target: ModelSource) -> Self {
        Self {
            target,
            draft: None,
            config: None,
            degrade: false,
            context: ContextOptions::default(),
            draft_context: None,
            gpu_layers: GpuLayers::default(),
            draft_gpu_layers: None,
            own: Vec::new(),
            queue: 256,
            rows: VerifyRows::default(),
            progress: None,
            #[cfg(test)]
            faults: Default::default(),
            #[cfg(test)]
            clock: Default::default(),
            split_mode: SplitMode::default(),
            accept_risk: false,
            probe: Probe::default(),
            probe_budget: PROBE_BUDGET,
            probe_cache: None,
            isolation: None,
            shelf: None,
            store: None,
        }
    }

    /// What drafts: a small model of the same vocabulary, an EAGLE-3, DFlash or DSpark draft, heads of multi-token
    /// prediction in a file of their own, or a Gemma 4 assistant. The target's own heads need no draft.
    pub fn draft(mut self, draft: impl Into<ModelSource>) -> Self {
        self.draft = Some(draft.into());
        self
    }

    /// The methods of speculation. Default: [`SpecConfig::auto`], and if no draft was given and what it chooses cannot be had
    /// with this target, plain decoding, with the reason in [`Engine::speculation`]. With drafters of your own: only these.
    pub fn speculation(mut self, config: SpecConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// When what was asked for cannot be had, take the best that works instead of failing; [`Engine::speculation`] then says
    /// why. Default: off.
    pub fn degrade(mut self, degrade: bool) -> Self {
        self.degrade = degrade;
        self
    }

    /// A drafter of your own, made anew for each text. Those that were added first are asked first, and all of them before the
    /// methods.
    ///
    /// It runs on the engine's thread: while it takes its time, all texts wait. It may submit requests to the same engine, but to
    /// wait there for their events fails, since they would never come.
    pub fn drafter<D: Drafter + 'static>(mut self, make: impl Fn() -> D + Send + Sync + 'static) -> Self {
        self.own.push(Factory::new(make, false));
        self
    }

    /// As [`EngineBuilder::drafter`], for one that draws its tokens and gives the distributions it drew them from
    /// ([`Draft::push_drawn`](crate::spec::Draft::push_drawn)). When the text is sampled, a token is then accepted with the
    /// probability `min(1, p / q)` instead of being compared (Leviathan et al. 2023, arXiv 2211.17192). It must be true that the
    /// tokens were drawn so: else the distribution of the text is not the target's.
    pub fn drawing_drafter<D: Drafter + 'static>(mut self, make: impl Fn() -> D + Send + Sync + 'static) -> Self {
        self.own.push(Factory::new(make, true));
        self
    }

    /// Texts that are generated at once, 1 to 256. Default: 1.
    pub fn slots(mut self, slots: u32) -> Self {
        self.context.slots = slots;
        self
    }

    /// Room for prompt and answer of each text, in tokens; 0 takes the length the model was trained for. llama.cpp rounds it up;
    /// [`Engine::context_length`] says what it became. Default: 4096.
    pub fn context_per_slot(mut self, tokens: u32) -> Self {
        self.context.length_per_slot = tokens;
        self
    }

    /// Threads of the target's context, and of the draft's unless it has options of its own. Default: the number of processors, at
    /// most 16.
    pub fn threads(mut self, threads: u32) -> Self {
        self.context = self.context.threads(threads);
        self
    }

    /// All options of the target's context, in place of what was set before, slots and their room included.
    pub fn context(mut self, options: ContextOptions) -> Self {
        self.context = options;
        self
    }

    /// Options of the draft's context, such as its threads. It always gets the slots and the room of the target's. Default:
    /// as the target's.
    pub fn draft_context(mut self, options: ContextOptions) -> Self {
        self.draft_context = Some(options);
        self
    }

    /// Layers of the target that are kept on GPUs, and of the draft unless [`draft_gpu_layers`](Self::draft_gpu_layers) says
    /// otherwise. Models that are loaded already stay where they are.
    pub fn gpu_layers(mut self, layers: GpuLayers) -> Self {
        self.gpu_layers = layers;
        self
    }

    /// Layers of the draft that are kept on GPUs.
    pub fn draft_gpu_layers(mut self, layers: GpuLayers) -> Self {
        self.draft_gpu_layers = Some(layers);
        self
    }

    /// How models are divided among several GPUs. Models that are loaded already stay as they are.
    pub fn split_mode(mut self, mode: SplitMode) -> Self {
        self.split_mode = mode;
        self
    }

    /// Accept what usually works and can end the process, by the rules of [`compat`](crate::compat). Default: refuse it.
    pub fn accept_risk(mut self, accept: bool) -> Self {
        self.accept_risk = accept;
        self
    }

    /// Whether the engine is [tried](crate::probe) before it serves. Default: it is.
    pub fn probe(mut self, probe: Probe) -> Self {
        self.probe = probe;
        self
    }

    /// How long that may take, loading not counted. What there is no time for is left out, and the report says so. Default: 2
    /// seconds.
    pub fn probe_budget(mut self, budget: Duration) -> Self {
        self.probe_budget = budget;
        self
    }

    /// A folder where reports are kept. Where there is one of the same files, settings and devices, nothing is tried again.
    pub fn probe_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.probe_cache = Some(folder.into());
        self
    }

    /// What drafts with a model or with heads is first tried in a process of its own, which loads the models, too. If that one
    /// crashes, this one refuses or [degrades](Self::degrade), and goes on. What the rules call risky is then no longer
    /// refused, provided it worked there. The program must call [`isolate::hook`](crate::isolate::hook).
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Requests that may wait while all slots are in use; one more is refused with [`Error::Busy`]. Default: 256.
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// Keeps the texts of requests, prompts and answers both, and lets [`Method::Lookup`](crate::spec::Method::Lookup) draft from
    /// them for later requests of the same [tenant](crate::Request::tenant); it is of no use without that method. Default: each text is drafted from
    /// itself alone.
    ///
    /// The text of a request does not depend on it, but how fast it is does: whoever could ask in the name of a tenant could find
    /// out by the time what that one said before, and requests without a tenant are all of one. (What a slot still has in memory of a
    /// prompt's beginning is used for whoever comes next, as without a store.) A text is kept when it ends,
    /// also by its deadline or because nobody wants it any more, but not after an error. Engines that share a store must have the
    /// same vocabulary.
    ///
    /// ```
    /// # use llama_spec::lookup::{Store, StoreSettings};
    /// # use llama_spec::spec::{Method, SpecConfig};
    /// # use llama_spec::{Engine, ModelFile, Request};
    /// # let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
    /// let store = Store::new(StoreSettings::default().bytes(8 << 20));
    /// let config = SpecConfig::new([Method::Lookup]);
    /// let engine = Engine::builder(target).speculation(config).lookup_store(store.clone()).build()?;
    /// engine.generate(Request::prompt("Once upon a time").max_tokens(50).tenant("anna"))?.output()?;
    /// engine.shutdown();
    /// assert!(store.stats().tokens >= 50);
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    pub fn lookup_store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// How many tokens are verified in one batch. Default: as many as are exact.
    pub fn verify_rows(mut self, rows: VerifyRows) -> Self {
        self.rows = rows;
        self
    }

    /// Called while models are loaded; `Break` cancels.
    pub fn on_progress(mut self, progress: impl FnMut(Loading) -> ControlFlow<()> + Send + 'static) -> Self {
        self.progress = Some(Progress(Arc::new(Mutex::new(progress))));
        self
    }

    /// Models that are there are not loaded again, and those that are loaded are kept there.
    pub(crate) fn shelf(mut self, shelf: ModelShelf) -> Self {
        self.shelf = Some(shelf);
        self
    }

    /// Checks the files, loads the models, makes contexts and drafters, [tries](crate::probe) them, and starts the thread.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with every rule that refuses files and settings, before anything is loaded; [`Error::Setting`]; as
    /// [`ModelBuilder::load`](crate::ModelBuilder::load) and [`Model::context`]; [`Error::Speculation`] for what only loading
    /// shows, and [`Error::Probe`] for what only running does.
    pub fn build(mut self) -> Result<Engine> {
        if self.own.len() > MOST_OWN {
            let expected = format!("at most {MOST_OWN}");
            return Err(Error::Setting { setting: "drafter", value: self.own.len().to_string(), expected });
        }
        self.target.file().require_loadable()?;
        let mut config = self.plan()?;
        loop {
            match self.attempt(&config) {
                Ok((mut runner, report)) => {
                    set_rows(&mut runner, self.rows, report.as_ref());
                    report.iter().for_each(|report| runner.know(report));
                    let store = self.store.filter(|_| runner.config().methods.contains(&Method::Lookup));
                    return start(runner, report, self.queue, store);
                }
                Err(error) if self.is_lenient() && !config.is_off() && is_about_speculation(&error) => {
                    tracing::warn!(%error, methods = %config.names(), "this does not work: something else takes its place");
                    config = config.without_what_failed(error.to_string(), self.target.file(), &self.conditions());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether what cannot be had is given up instead of failing.
    fn is_lenient(&self) -> bool {
        self.degrade || (self.config.is_none() && self.draft.is_none())
    }

    fn conditions(&self) -> Conditions {
        let conditions = Conditions::of(&self.context, self.draft_context.as_ref());
        // What can crash is tried where it does no harm.
        conditions.split_mode(self.split_mode).accept_risk(self.accept_risk || self.isolation.is_some())
    }

    /// What is speculated with, held against the rules before anything is loaded.
    fn plan(&self) -> Result<SpecConfig> {
        let conditions = self.conditions();
        let (target, draft) = (self.target.file(), self.draft.as_ref().map(ModelSource::file));
        let lenient = self.is_lenient();
        match &self.config {
            None if !self.own.is_empty() && draft.is_none() => Ok(SpecConfig::off()),
            Some(config) if config.is_off() => {
                // The files have no say in it, but drafters of the user's draft as much as it says.
                if !self.own.is_empty() {
                    config.validate()?;
                }
                Ok(config.clone())
            }
            None if lenient => Ok(SpecConfig::auto_or_degrade(target, draft, &conditions)),
            None => Ok(SpecConfig::auto_with(target, draft, &conditions)?),
            Some(config) if lenient => Ok(config.or_degrade(target, draft, &conditions)),
            Some(config) => Ok(config.check(target, draft, &conditions)?),
        }
    }
}

/// Whether another configuration could be had where this error stands in the way.
fn is_about_speculation(error: &Error) -> bool {
    matches!(error, Error::Incompatible(_) | Error::Speculation { .. } | Error::Probe { .. } | Error::Context { .. })
}

/// Keeps the batches of the rounds below the number of rows from which logits are others.
fn set_rows(runner: &mut Runner, rows: VerifyRows, report: Option<&ProbeReport>) {
    let measured = report.and_then(|report| Some((report.exact_rows? as usize, report.step().is_some())));
    let quantized = runner.model().file().is_quantized();
    runner.set_rows(most_rows(rows, measured, quantized));
}

/// The most rows of a round, where so many were measured to be exact, with or without a step behind them.
fn most_rows(rows: VerifyRows, measured: Option<(usize, bool)>, quantized: bool) -> usize {
    match (rows, measured) {
        (VerifyRows::AtMost(rows), _) => rows as usize,
        (VerifyRows::Exact, Some((exact, true))) => exact,
        // There was no time for more, which says nothing about them.
        (VerifyRows::Exact, Some((exact, false))) => exact.max(unmeasured_rows(quantized)),
        (VerifyRows::Exact, None) => unmeasured_rows(quantized),
    }
}

/// The rows that are taken to be exact where that was not measured: kernels for plain weights differ by rounding only, those
/// for quantized weights were seen to change somewhere above this.
fn unmeasured_rows(quantized: bool) -> usize {
    const QUANTIZED: usize = 16;
    match quantized {
        true => QUANTIZED,
        false => usize::MAX,
    }
}

fn start(runner: Runner, report: Option<ProbeReport>, queue: usize, store: Option<Store>) -> Result<Engine> {
    let model = runner.model().clone();
    let shape = Shape {
        slots: runner.target().slots(),
        context: runner.target().length_per_slot(),
        rows: runner.rows() as u32,
    };
    let (config, own) = (runner.config().clone(), runner.own().to_vec());
    let plain_token = report.as_ref().and_then(|report| report.times.plain_token);
    let keeper = store.is_some().then(Keeper::start).transpose()?;
    let shared = Arc::new(Shared::new(queue, store, &runner, plain_token));
    let theirs = Arc::clone(&shared);
    let thread = std::thread::Builder::new().name("llama-spec engine".into());
    let thread = thread.spawn(move || Worker { runner, shared: &theirs, plain_token, keeper }.run());
    let thread = thread.map_err(|error| Error::Context { failure: Failure::new(format!("no thread: {error}")) })?;
    Ok(Engine { shared, thread: Some(thread), model, config, own, shape, report, ids: AtomicU64::new(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_that_was_seen_limits_the_rows() {
        let exact = |measured, quantized| most_rows(VerifyRows::Exact, measured, quantized);
        assert_eq!((exact(Some((9, true)), true), exact(Some((48, true)), true)), (9, 48));
        assert_eq!((exact(Some((2, false)), true), exact(Some((64, false)), true), exact(None, true)), (16, 64, 16));
        assert_eq!((exact(Some((2, false)), false), exact(Some((2, true)), false)), (usize::MAX, 2));
        assert_eq!(most_rows(VerifyRows::AtMost(7), Some((2, true)), true), 7);
    }
}
