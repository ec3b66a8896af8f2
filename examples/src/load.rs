//! From arguments to something that generates: models with progress bars, contexts, drafters.

use crate::args::{Methods, ModelArgs, SpecArgs};
use crate::failure::{Failure, one_line};
use crate::interrupt;
use crate::output::note;
use crate::progress::Progress;
use llama_spec::options::GpuLayers;
use llama_spec::spec::{Method, SpecConfig, Speculation};
use llama_spec::{Device, Error, Generator, Model};
use std::path::Path;
use std::time::{Duration, Instant};

/// The loaded models. The draft is loaded when a method first needs it.
#[derive(Debug)]
pub struct Models {
    args: ModelArgs,
    progress: Progress,
    target: Model,
    draft: Option<Model>,
}

/// A generator, and what came of speculation.
#[derive(Debug)]
pub struct Engine {
    /// The generator.
    pub generator: Generator,
    /// Set when the default method cannot be had with this model, so that it decodes without.
    fallback: Option<Speculation>,
    /// How long it took to load the models and to make this.
    pub load: Duration,
}

impl Models {
    /// Loads the target. Says so if the program could use a GPU and there is none.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn load(args: &ModelArgs, progress: Progress) -> Result<Self, Failure> {
        interrupt::running();
        if let Some(missing) = missing_gpu(args.gpu_layers)? {
            note(&missing);
        }
        let target = load("model", &args.model, args.gpu_layers, progress)?;
        Ok(Self { args: args.clone(), progress, target, draft: None })
    }

    /// The model that decides.
    pub fn target(&self) -> &Model {
        &self.target
    }

    /// Makes contexts and drafters for what these arguments ask for. If they ask for nothing and the default cannot be had
    /// with this model, it decodes without speculation, and the reason is kept.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn engine(&mut self, spec: &SpecArgs) -> Result<Engine, Failure> {
        let start = Instant::now();
        let has_draft = self.args.draft.is_some();
        let (methods, asked) = (spec.methods(has_draft), spec.spec.is_some() || has_draft);
        let requested = methods.0.clone();
        match self.generator(spec.config(methods)) {
            Ok(generator) => Ok(Engine { generator, fallback: None, load: start.elapsed() }),
            Err(Failure::Library(Error::Speculation { reason, .. })) if !asked => {
                let generator = self.generator(SpecConfig::off())?;
                let fallback = Speculation { requested, effective: Vec::new(), reason: Some(reason) };
                Ok(Engine { generator, fallback: Some(fallback), load: start.elapsed() })
            }
            Err(failure) => Err(failure),
        }
    }

    fn generator(&mut self, config: SpecConfig) -> Result<Generator, Failure> {
        if config.methods.contains(&Method::DraftSimple)
            && self.draft.is_none()
            && let Some(file) = &self.args.draft
        {
            let layers = self.args.draft_gpu_layers.unwrap_or(self.args.gpu_layers);
            self.draft = Some(load("draft", file, layers, self.progress)?);
        }
        let options = self.args.context_options(&self.target);
        let mut builder = Generator::builder(&self.target).context(options);
        if let Some(draft) = self.draft.as_ref().filter(|_| config.needs_draft()) {
            builder = builder.draft(draft);
        }
        Ok(builder.speculation(config).build()?)
    }
}

impl Engine {
    /// What speculation came to.
    pub fn speculation(&self) -> &Speculation {
        self.fallback.as_ref().unwrap_or_else(|| self.generator.speculation())
    }

    /// Says why there is no speculation, if there should be one.
    pub fn reason(&self) -> Option<String> {
        let reason = self.speculation().reason.as_deref()?;
        Some(format!("generating without speculation: {}", one_line(reason)))
    }
}

/// The names of methods, or `none`.
pub fn names(methods: &[Method]) -> String {
    Methods(methods.to_vec()).to_string()
}

fn load(what: &str, file: &Path, layers: GpuLayers, progress: Progress) -> Result<Model, Failure> {
    let (bar, step) = progress.load(what, file);
    let loaded = Model::builder(file).gpu_layers(layers).on_progress(step).load();
    bar.finish_and_clear();
    Ok(loaded?)
}

/// A program built for GPUs that runs without one says so: its user expects another speed.
fn missing_gpu(layers: GpuLayers) -> Result<Option<String>, Failure> {
    let built_for_gpus = cfg!(any(feature = "cuda", feature = "metal", feature = "vulkan", feature = "hip"));
    if !built_for_gpus || layers != GpuLayers::Auto || Device::all()?.iter().any(Device::is_gpu) {
        return Ok(None);
    }
    Ok(Some("no GPU device found, running on the CPU".into()))
}
