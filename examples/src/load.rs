//! From arguments to something that generates: files checked, models loaded with progress bars, contexts, drafters.

use crate::args::{Methods, ModelArgs, SpecArgs};
use crate::failure::{Failure, one_line};
use crate::interrupt;
use crate::output::note;
use crate::progress::Progress;
use llama_spec::compat::Conditions;
use llama_spec::file::{Kind, ModelFile};
use llama_spec::options::GpuLayers;
use llama_spec::spec::{Method, SpecConfig, Speculation};
use llama_spec::{Device, Generator, Model};
use std::path::Path;
use std::time::{Duration, Instant};

/// The loaded models. The draft is loaded when a method first needs it.
#[derive(Debug)]
pub struct Models {
    args: ModelArgs,
    progress: Progress,
    files: Files,
    target: Model,
    draft: Option<Model>,
}

/// What the files say before their weights are read.
#[derive(Debug)]
struct Files {
    target: ModelFile,
    draft: Option<ModelFile>,
    conditions: Conditions,
}

/// A generator, and what came of speculation.
#[derive(Debug)]
pub struct Engine {
    /// The generator.
    pub generator: Generator,
    /// How long it took to load the models and to make this.
    pub load: Duration,
}

impl Models {
    /// Looks at the files and at what these arguments ask for, and loads the target. Says so if the program could use a GPU
    /// and there is none.
    ///
    /// # Errors
    /// What the library refuses; files that do not go together are refused before anything is loaded.
    pub fn load(args: &ModelArgs, spec: &SpecArgs, progress: Progress) -> Result<Self, Failure> {
        interrupt::running();
        let files = Files::open(args)?;
        let config = files.plan(spec, files.draft.as_ref())?;
        if let Some(missing) = missing_gpu(args.gpu_layers)? {
            note(&missing);
        }
        // Heads of the target's own are also loaded when nothing speaks against using them later.
        let own_heads = files.target.kind() == Kind::GenerativeWithMtp && files.draft.is_none();
        let mtp = own_heads && (spec.spec.is_none() || config.methods.contains(&Method::DraftMtp));
        let target = load("model", &files.target, args.gpu_layers, mtp, progress)?;
        Ok(Self { args: args.clone(), progress, files, target, draft: None })
    }

    /// The model that decides.
    pub fn target(&self) -> &Model {
        &self.target
    }

    /// Makes contexts and drafters for what these arguments ask for. If they ask for nothing and the default cannot be had
    /// with this model, another one or none takes its place, and the reason is kept.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn engine(&mut self, spec: &SpecArgs) -> Result<Engine, Failure> {
        let config = self.files.plan(spec, self.files.draft.as_ref())?;
        self.build(config)
    }

    /// As [`Models::engine`], for methods chosen while running: a draft that none of them uses is left aside.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn engine_with(&mut self, spec: &SpecArgs) -> Result<Engine, Failure> {
        let uses_draft = spec.spec.as_ref().is_none_or(|methods| methods.0.iter().any(|method| !method.is_lookup()));
        let config = self.files.plan(spec, self.files.draft.as_ref().filter(|_| uses_draft))?;
        self.build(config)
    }

    fn build(&mut self, config: SpecConfig) -> Result<Engine, Failure> {
        let start = Instant::now();
        if config.needs_draft()
            && self.draft.is_none()
            && let Some(file) = &self.files.draft
        {
            let layers = self.args.draft_gpu_layers.unwrap_or(self.args.gpu_layers);
            let mtp = config.methods.contains(&Method::DraftMtp);
            self.draft = Some(load("draft", file, layers, mtp, self.progress)?);
        }
        let options = self.args.context_options(self.files.target.description().trained_context);
        let mut builder = Generator::builder(&self.target).context(options);
        if let Some(draft) = self.draft.as_ref().filter(|_| config.needs_draft()) {
            builder = builder.draft(draft);
        }
        let generator = builder.speculation(config).build()?;
        Ok(Engine { generator, load: start.elapsed() })
    }
}

impl Files {
    fn open(args: &ModelArgs) -> Result<Self, Failure> {
        let target = open(&args.model)?;
        let draft = args.draft.as_deref().map(open).transpose()?;
        let conditions = Conditions::from(&args.context_options(target.description().trained_context));
        Ok(Self { target, draft, conditions })
    }

    /// How these arguments speculate: what they ask for must be possible, and otherwise something is found.
    fn plan(&self, spec: &SpecArgs, draft: Option<&ModelFile>) -> Result<SpecConfig, Failure> {
        let Self { target, conditions, .. } = self;
        let config = spec.config(target, draft, conditions);
        let asked = spec.spec.is_some() || draft.is_some();
        match config.check(target, draft, conditions) {
            Ok(config) => Ok(config),
            // What is no language model is not made one by doing without drafts.
            Err(why) if asked || !target.kind().is_generative() => Err(why.into()),
            Err(_) => Ok(config.or_degrade(target, draft, conditions)),
        }
    }
}

/// Opens a file that llama.cpp can load, as far as its header tells.
pub(crate) fn open(path: &Path) -> Result<ModelFile, Failure> {
    let file = ModelFile::open(path)?;
    file.require_loadable()?;
    Ok(file)
}

impl Engine {
    /// What speculation came to.
    pub fn speculation(&self) -> &Speculation {
        self.generator.speculation()
    }

    /// Says why there is no speculation, if there should be one.
    pub fn reason(&self) -> Option<String> {
        let speculation = self.speculation();
        let reason = speculation.reason.as_deref().filter(|_| !speculation.is_active())?;
        Some(format!("generating without speculation: {}", one_line(reason)))
    }
}

/// The names of methods, or `none`.
pub fn names(methods: &[Method]) -> String {
    Methods(methods.to_vec()).to_string()
}

fn load(what: &str, file: &ModelFile, layers: GpuLayers, mtp: bool, progress: Progress) -> Result<Model, Failure> {
    let (bar, step) = progress.load(what, file.path());
    let loaded = Model::builder_of(file).gpu_layers(layers).mtp(mtp).on_progress(step).load();
    bar.finish_and_clear();
    Ok(loaded?)
}

/// Whether this program can use a GPU at all.
pub(crate) const BUILT_FOR_GPUS: bool =
    cfg!(any(feature = "cuda", feature = "metal", feature = "vulkan", feature = "hip"));

/// A program built for GPUs that runs without one says so: its user expects another speed.
fn missing_gpu(layers: GpuLayers) -> Result<Option<String>, Failure> {
    if !BUILT_FOR_GPUS || layers != GpuLayers::Auto || Device::all()?.iter().any(Device::is_gpu) {
        return Ok(None);
    }
    Ok(Some("no GPU device found, running on the CPU".into()))
}
