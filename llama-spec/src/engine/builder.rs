//! How an engine is made: models loaded, contexts and drafters made, and the thread started.

use super::worker::{Shared, Worker};
use super::{Engine, Shape};
use crate::compat::Conditions;
use crate::context::ContextOptions;
use crate::error::{Error, Failure, Result};
use crate::file::{Kind, ModelFile};
use crate::model::Model;
use crate::options::GpuLayers;
use crate::runner::{Runner, Setup};
use crate::spec::{Drafter, Factory, Method, SpecConfig};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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
    fn file(&self) -> &ModelFile {
        match self {
            Self::File(file) => file,
            Self::Loaded(model) => model.file(),
        }
    }
}

/// How many tokens are verified in one batch, all texts together.
///
/// Kernels for quantized weights change with the number of rows, and they do not round alike: beyond some number of rows a
/// near-tie of two tokens can turn around, and the text with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyRows {
    /// As many as give the logits of single tokens, or differ from them by no more than rounding.
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
}

struct Progress(Box<dyn FnMut(Loading) -> ControlFlow<()> + Send>);

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// What is being loaded, and how much of it is, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
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

    /// Room for prompt and answer of each text, in tokens; 0 takes the length the model was trained for. Default: 4096.
    pub fn context_per_slot(mut self, tokens: u32) -> Self {
        self.context.length_per_slot = tokens;
        self
    }

    /// All options of the target's context, slots and their room included.
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

    /// Requests that may wait for a slot; one more is refused with [`Error::Busy`]. Default: 256.
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// How many tokens are verified in one batch. Default: as many as are exact.
    pub fn verify_rows(mut self, rows: VerifyRows) -> Self {
        self.rows = rows;
        self
    }

    /// Called while models are loaded; `Break` cancels.
    pub fn on_progress(mut self, progress: impl FnMut(Loading) -> ControlFlow<()> + Send + 'static) -> Self {
        self.progress = Some(Progress(Box::new(progress)));
        self
    }

    /// Checks the files, loads the models, makes contexts and drafters, and starts the thread.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with every rule that refuses files and settings, before anything is loaded; as
    /// [`ModelBuilder::load`](crate::ModelBuilder::load) and [`Model::context`]; [`Error::Speculation`] for what only loading shows.
    pub fn build(mut self) -> Result<Engine> {
        if self.own.len() > MOST_OWN {
            let expected = format!("at most {MOST_OWN}");
            return Err(Error::Setting { setting: "drafter", value: self.own.len().to_string(), expected });
        }
        self.target.file().require_loadable()?;
        let config = self.plan()?;
        let draft = self.draft.take().filter(|_| config.needs_draft());
        let mtp = config.methods.contains(&Method::DraftMtp);
        let progress = Arc::new(std::sync::Mutex::new(self.progress.take()));
        let own_heads = mtp && draft.is_none();
        let target = load(self.target, self.gpu_layers, own_heads, &progress, Loading::Target)?;
        let layers = self.draft_gpu_layers.unwrap_or(self.gpu_layers);
        let draft = draft.map(|draft| load(draft, layers, mtp, &progress, Loading::Draft)).transpose()?;
        let mut setup = Setup::new(&target);
        setup.draft = draft;
        setup.config = Some(config);
        setup.context = self.context;
        setup.draft_context = self.draft_context;
        setup.customs = self.own;
        #[cfg(test)]
        {
            (setup.faults, setup.clock) = (self.faults, self.clock);
        }
        let mut runner = setup.build()?;
        match self.rows {
            VerifyRows::AtMost(rows) => runner.set_rows(rows as usize),
            VerifyRows::Exact => runner.set_rows(unmeasured_rows(&target)),
        }
        start(runner, self.queue)
    }

    /// What is speculated with, held against the rules before anything is loaded.
    fn plan(&self) -> Result<SpecConfig> {
        let mut conditions = Conditions::from(&self.context);
        if let Some(own) = &self.draft_context {
            conditions = conditions.draft_kv_types(own.kv_type_k, own.kv_type_v);
        }
        let (target, draft) = (self.target.file(), self.draft.as_ref().map(ModelSource::file));
        let lenient = self.degrade || (self.config.is_none() && draft.is_none());
        match &self.config {
            None if !self.own.is_empty() && draft.is_none() => Ok(SpecConfig::off()),
            Some(config) if config.is_off() => Ok(config.clone()),
            None if lenient => Ok(SpecConfig::auto_or_degrade(target, draft, &conditions)),
            None => Ok(SpecConfig::auto_with(target, draft, &conditions)?),
            Some(config) if lenient => Ok(config.or_degrade(target, draft, &conditions)),
            Some(config) => Ok(config.check(target, draft, &conditions)?),
        }
    }
}

fn load(
    source: ModelSource,
    layers: GpuLayers,
    mtp: bool,
    progress: &Arc<std::sync::Mutex<Option<Progress>>>,
    step: fn(f32) -> Loading,
) -> Result<Model> {
    let file = match source {
        ModelSource::Loaded(model) => return Ok(model),
        ModelSource::File(file) => file,
    };
    let progress = Arc::clone(progress);
    let report = move |share| match progress.lock() {
        Ok(mut progress) => progress.as_mut().map_or(ControlFlow::Continue(()), |progress| (progress.0)(step(share))),
        Err(_) => ControlFlow::Continue(()),
    };
    // All of an assistant's layers are heads, and always loaded.
    let mtp = mtp && file.kind() != Kind::Gemma4Assistant;
    Model::builder_of(&file).gpu_layers(layers).mtp(mtp).on_progress(report).load()
}

/// The rows that are taken to be exact where that was not measured: kernels for plain weights differ by rounding only, those
/// for quantized weights were seen to change somewhere above this.
fn unmeasured_rows(target: &Model) -> usize {
    const QUANTIZED: usize = 16;
    match target.file().is_quantized() {
        true => QUANTIZED,
        false => usize::MAX,
    }
}

fn start(runner: Runner, queue: usize) -> Result<Engine> {
    let model = runner.model().clone();
    let shape = Shape {
        slots: runner.target().slots(),
        context: runner.target().length_per_slot(),
        rows: runner.rows() as u32,
    };
    let (config, own) = (runner.config().clone(), runner.customs().to_vec());
    let shared = Arc::new(Shared::new(queue, &runner));
    let theirs = Arc::clone(&shared);
    let thread = std::thread::Builder::new().name("llama-spec engine".into());
    let thread = thread.spawn(move || Worker { runner, shared: &theirs, plain_token: None }.run());
    let thread = thread.map_err(|error| Error::Context { failure: Failure::new(format!("no thread: {error}")) })?;
    Ok(Engine { shared, thread: Some(thread), model, config, own, shape, ids: AtomicU64::new(1) })
}
