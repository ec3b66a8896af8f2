//! One attempt to make the runner of an engine with certain methods: load what is missing, make contexts and drafters, try them.

use super::{EngineBuilder, Loading, ModelSource, Place};
use crate::context::ContextOptions;
use crate::error::{Error, Failure, Result};
use crate::file::{Kind, ModelFile};
use crate::model::Model;
use crate::options::GpuLayers;
use crate::probe::{self, Errand, Identity, Probe, ProbeReport, Shelf, Terms};
use crate::runner::{Runner, Setup};
use crate::spec::{Method, NgramCacheSettings, SpecConfig};
use std::ops::ControlFlow;

impl EngineBuilder {
    /// A runner that works, and what is known of it.
    ///
    /// # Errors
    /// As [`EngineBuilder::build`]; what was loaded stays loaded for the next attempt.
    pub(super) fn attempt(&mut self, config: &SpecConfig) -> Result<(Runner, Option<ProbeReport>)> {
        let errand = self.errand(config);
        let place = self.place(&errand);
        let known = place.as_ref().and_then(|(shelf, identity)| shelf.find(identity));
        let mut known = known.filter(|_| self.probe == Probe::Full);
        let keep = |report: &ProbeReport| place.iter().for_each(|(shelf, identity)| shelf.keep(identity, report));
        if let Some(isolation) = self.isolation.as_ref().filter(|_| known.is_none() && uses_model(config)) {
            let report = errand.send(isolation);
            keep(&report);
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
                keep(&report);
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
            draft_gpu_layers: self.layers_of_draft(),
            split_mode: self.split_mode,
            terms: Terms { budget: self.probe_budget, quantized_cache: has_quantized_cache(&self.context) },
        }
    }

    /// Where the report of this has its place, if reports are kept.
    fn place(&self, errand: &Errand) -> Option<(Shelf, Identity)> {
        let shelf = Shelf::new(self.probe_cache.as_ref()?);
        let draft = self.draft.as_ref().filter(|_| errand.draft.is_some()).map(ModelSource::file);
        let identity = Identity::new(self.target.file(), draft, errand, self.own.len());
        let identity =
            identity.inspect_err(|error| tracing::warn!(%error, "nothing is looked up in the cache of probes"));
        Some((shelf, identity.ok()?))
    }

    /// What is risky and did not work in another process is not tried in this one.
    fn refuse_risk(&self, config: &SpecConfig) -> Result<()> {
        let strict = self.conditions().accept_risk(self.accept_risk);
        let draft = self.draft.as_ref().map(ModelSource::file);
        config.check(self.target.file(), draft, &strict)?;
        Ok(())
    }

    /// Asks the rules about what was found.
    fn judge(&self, report: &mut ProbeReport, config: &SpecConfig) -> Result<()> {
        let draft = self.draft.as_ref().filter(|_| config.needs_draft()).map(ModelSource::file);
        let refusal = probe::judge(report, self.target.file(), draft, config, &self.conditions());
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
            let draft = self.loaded(draft, self.layers_of_draft(), mtp, Loading::Draft);
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

    fn layers_of_draft(&self) -> GpuLayers {
        self.draft_gpu_layers.unwrap_or(self.gpu_layers)
    }

    fn loaded(&self, source: &ModelSource, layers: GpuLayers, mtp: bool, step: fn(f32) -> Loading) -> Result<Model> {
        let file: &ModelFile = match source {
            ModelSource::Loaded(model) => return Ok(model.clone()),
            ModelSource::File(file) => file,
        };
        let place = Place::new(step, file, layers, self.split_mode);
        let shelf = self.shelf.as_ref().zip(place);
        if let Some(model) = shelf.as_ref().and_then(|(shelf, place)| shelf.find(place, mtp)) {
            return Ok(model);
        }
        let progress = self.progress.clone();
        let report = move |share| match progress.as_ref().map(|progress| progress.0.lock()) {
            Some(Ok(mut progress)) => progress(step(share)),
            _ => ControlFlow::Continue(()),
        };
        let builder = Model::builder_of(file).gpu_layers(layers).split_mode(self.split_mode);
        // All of an assistant's layers are heads, and always loaded.
        let heads = mtp && file.kind() != Kind::Gemma4Assistant;
        let model = builder.mtp(heads).on_progress(report).load()?;
        if let Some((shelf, place)) = shelf {
            shelf.keep(place, mtp, &model);
        }
        Ok(model)
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
        setup.own = self.own.clone();
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
