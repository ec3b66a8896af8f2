//! One attempt to make the runner of an engine with certain methods: load what is missing, make contexts and drafters, try them.

use super::ModelSource;
use super::builder::{Loading, Progress};
use crate::compat::Conditions;
use crate::context::ContextOptions;
use crate::error::{Error, Failure, Result};
use crate::file::{Kind, ModelFile};
use crate::isolate::Isolation;
use crate::model::Model;
use crate::options::{GpuLayers, SplitMode};
use crate::probe::{self, Errand, Identity, Probe, ProbeReport, Shelf, Terms};
use crate::runner::{Runner, Setup};
use crate::spec::{Factory, Method, NgramCacheSettings, SpecConfig};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What an engine is made of, whatever drafts in it.
pub(super) struct Attempt {
    pub(super) target: ModelSource,
    pub(super) draft: Option<ModelSource>,
    pub(super) context: ContextOptions,
    pub(super) draft_context: Option<ContextOptions>,
    pub(super) gpu_layers: GpuLayers,
    pub(super) draft_gpu_layers: GpuLayers,
    pub(super) split_mode: SplitMode,
    pub(super) own: Vec<Factory>,
    pub(super) progress: Arc<Mutex<Option<Progress>>>,
    pub(super) conditions: Conditions,
    pub(super) accept_risk: bool,
    pub(super) probe: Probe,
    pub(super) budget: Duration,
    pub(super) shelf: Option<Shelf>,
    pub(super) isolation: Option<Isolation>,
    #[cfg(test)]
    pub(super) faults: crate::runner::Faults,
    #[cfg(test)]
    pub(super) clock: crate::runner::Clock,
}

impl Attempt {
    /// A runner that works, and what is known of it.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`](super::EngineBuilder::build); what was loaded stays loaded for the next attempt.
    pub(super) fn make(&mut self, config: &SpecConfig) -> Result<(Runner, Option<ProbeReport>)> {
        let errand = self.errand(config);
        let identity = self.shelf.as_ref().and_then(|_| self.identity(&errand));
        let known = self.shelf.as_ref().zip(identity.as_ref()).and_then(|(shelf, identity)| shelf.find(identity));
        let mut known = known.filter(|_| self.probe == Probe::Full);
        if let Some(isolation) = self.isolation.as_ref().filter(|_| known.is_none() && uses_model(config)) {
            let report = errand.send(isolation);
            self.keep(identity.as_ref(), &report);
            if !report.worked() {
                self.refuse_risk(config)?;
            }
            known = Some(report);
        }
        if let Some(report) = &mut known {
            self.judge(report, config)?;
        }
        self.load(config)?;
        let setup = self.setup(config)?;
        match (known, self.probe) {
            (Some(report), _) => Ok((setup.build()?, Some(report))),
            (None, Probe::Off) => Ok((setup.build()?, None)),
            (None, Probe::Full) => {
                let (runner, mut report) = tried(&setup, errand.terms)?;
                self.keep(identity.as_ref(), &report);
                self.judge(&mut report, config)?;
                Ok((runner, Some(report)))
            }
        }
    }

    /// The same for another process.
    fn errand(&self, config: &SpecConfig) -> Errand {
        let draft = self.draft.as_ref().filter(|_| config.needs_draft());
        Errand {
            target: probe::absolute(self.target.file().parts()),
            draft: draft.map(|draft| probe::absolute(draft.file().parts())),
            config: without_caches(config),
            context: self.context.clone(),
            draft_context: self.draft_context.clone(),
            gpu_layers: self.gpu_layers,
            draft_gpu_layers: self.draft_gpu_layers,
            split_mode: self.split_mode,
            terms: Terms { budget: self.budget, quantized_cache: has_quantized_cache(&self.context) },
        }
    }

    fn identity(&self, errand: &Errand) -> Option<Identity> {
        let draft = self.draft.as_ref().filter(|_| errand.draft.is_some()).map(ModelSource::file);
        let identity = Identity::new(self.target.file(), draft, errand, self.own.len());
        identity.inspect_err(|error| tracing::warn!(%error, "nothing is looked up in the cache of probes")).ok()
    }

    fn keep(&self, identity: Option<&Identity>, report: &ProbeReport) {
        if let Some((shelf, identity)) = self.shelf.as_ref().zip(identity) {
            shelf.keep(identity, report);
        }
    }

    /// What is risky and did not work in another process is not tried in this one.
    fn refuse_risk(&self, config: &SpecConfig) -> Result<()> {
        let strict = self.conditions.clone().accept_risk(self.accept_risk);
        let draft = self.draft.as_ref().map(ModelSource::file);
        config.check(self.target.file(), draft, &strict)?;
        Ok(())
    }

    /// Asks the rules about what was found.
    fn judge(&self, report: &mut ProbeReport, config: &SpecConfig) -> Result<()> {
        let draft = self.draft.as_ref().filter(|_| config.needs_draft()).map(ModelSource::file);
        let refusal = probe::judge(report, self.target.file(), draft, config, &self.conditions);
        match refusal.is_some() || report.failure().is_some() {
            true => Err(Error::Probe { report: Box::new(report.clone()), refusal }),
            false => Ok(()),
        }
    }

    /// Loads the models that these methods need and that are not loaded yet.
    fn load(&mut self, config: &SpecConfig) -> Result<()> {
        let mtp = config.methods.contains(&Method::DraftMtp);
        let own_heads = mtp && self.draft.is_none();
        self.target = self.loaded(&self.target, self.gpu_layers, own_heads, Loading::Target)?.into();
        if let Some(draft) = self.draft.as_ref().filter(|_| config.needs_draft()) {
            let draft = self.loaded(draft, self.draft_gpu_layers, mtp, Loading::Draft);
            let draft = draft.map_err(|error| match error {
                // The target can do without it.
                Error::Load { .. } | Error::Device { .. } => {
                    Error::Speculation { method: config.names(), reason: error.to_string() }
                }
                error => error,
            })?;
            self.draft = Some(draft.into());
        }
        Ok(())
    }

    fn loaded(&self, source: &ModelSource, layers: GpuLayers, mtp: bool, step: fn(f32) -> Loading) -> Result<Model> {
        let file: &ModelFile = match source {
            ModelSource::Loaded(model) => return Ok(model.clone()),
            ModelSource::File(file) => file,
        };
        let progress = Arc::clone(&self.progress);
        let report = move |share| match progress.lock() {
            Ok(mut progress) => {
                progress.as_mut().map_or(ControlFlow::Continue(()), |progress| (progress.0)(step(share)))
            }
            Err(_) => ControlFlow::Continue(()),
        };
        // All of an assistant's layers are heads, and always loaded.
        let mtp = mtp && file.kind() != Kind::Gemma4Assistant;
        let builder = Model::builder_of(file).gpu_layers(layers).split_mode(self.split_mode);
        builder.mtp(mtp).on_progress(report).load()
    }

    fn setup(&self, config: &SpecConfig) -> Result<Setup> {
        let model = |source: &ModelSource| match source {
            ModelSource::Loaded(model) => Ok(model.clone()),
            ModelSource::File(file) => {
                let failure = Failure::new("it was not loaded before it was used");
                Err(Error::Load { path: file.path().to_owned(), failure })
            }
        };
        let mut setup = Setup::new(&model(&self.target)?);
        setup.draft = self.draft.as_ref().filter(|_| config.needs_draft()).map(model).transpose()?;
        setup.config = Some(config.clone());
        setup.context = self.context.clone();
        setup.draft_context = self.draft_context.clone();
        setup.customs = self.own.clone();
        #[cfg(test)]
        {
            (setup.faults, setup.clock) = (self.faults.clone(), self.clock.clone());
        }
        Ok(setup)
    }
}

/// A runner that was tried and knows nothing of it.
pub(crate) fn tried(setup: &Setup, terms: Terms) -> Result<(Runner, ProbeReport)> {
    // A trial leaves no trace in the files of lookup caches.
    let mut trial = setup.clone();
    trial.config = setup.config.as_ref().map(without_caches);
    let mut runner = trial.build()?;
    let report = probe::probe(&mut runner, terms);
    if report.failure().is_none() {
        let mut config = runner.config().clone();
        if let Some(asked) = &setup.config {
            config.ngram_cache = asked.ngram_cache.clone();
        }
        runner.renew(config)?;
    }
    Ok((runner, report))
}

fn without_caches(config: &SpecConfig) -> SpecConfig {
    config.clone().ngram_cache(NgramCacheSettings::default())
}

fn has_quantized_cache(context: &ContextOptions) -> bool {
    context.kv_type_k.is_quantized() || context.kv_type_v.is_quantized()
}

/// Whether anything but the target is computed.
fn uses_model(config: &SpecConfig) -> bool {
    config.methods.iter().any(|method| !method.is_lookup())
}
