//! Trying an engine in a process of its own.

use super::{ProbeReport, Terms, probe};
use crate::context::ContextOptions;
use crate::error::Result;
use crate::file::{Kind, ModelFile};
use crate::isolate::{Isolation, Job, Lost};
use crate::model::Model;
use crate::options::{GpuLayers, SplitMode};
use crate::probe::Outcome;
use crate::runner::Setup;
use crate::spec::{Method, SpecConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// All that is needed to make the same engine elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Errand {
    pub(crate) target: Vec<PathBuf>,
    pub(crate) draft: Option<Vec<PathBuf>>,
    /// Without the files of lookup caches.
    pub(crate) config: SpecConfig,
    pub(crate) context: ContextOptions,
    pub(crate) draft_context: Option<ContextOptions>,
    pub(crate) gpu_layers: GpuLayers,
    pub(crate) draft_gpu_layers: GpuLayers,
    pub(crate) split_mode: SplitMode,
    pub(crate) terms: Terms,
}

impl Errand {
    /// Does it in this process.
    ///
    /// # Errors
    /// As [`Engine::builder`](crate::Engine::builder) and its `build`.
    pub(crate) fn run(&self) -> Result<ProbeReport> {
        let heads = self.config.methods.contains(&Method::DraftMtp);
        let mut setup = Setup::new(&self.load(&self.target, self.gpu_layers, heads && self.draft.is_none())?);
        let draft = self.draft.as_ref().map(|parts| self.load(parts, self.draft_gpu_layers, heads));
        setup.draft = draft.transpose()?;
        setup.config = Some(self.config.clone());
        setup.context = self.context.clone();
        setup.draft_context = self.draft_context.clone();
        Ok(probe(&mut setup.build()?, self.terms))
    }

    /// Does it in another process. A crash is a failure; a process that gives no answer tells nothing.
    pub(crate) fn send(&self, isolation: &Isolation) -> ProbeReport {
        let lost = match serde_json::to_value(self) {
            Ok(errand) => isolation.run(&Job::Probe(errand)),
            Err(why) => Err(Lost::NotStarted { reason: why.to_string() }),
        };
        let outcome = match lost.map(serde_json::from_value::<ProbeReport>) {
            Ok(Ok(report)) => return report,
            Ok(Err(why)) => Outcome::Inconclusive { reason: format!("the worker's report was not understood: {why}") },
            Err(lost @ Lost::Crashed { .. }) => Outcome::Failed { reason: lost.to_string() },
            Err(lost) => Outcome::Inconclusive { reason: lost.to_string() },
        };
        let mut report = ProbeReport::new(self.config.effective(), self.context.slots, outcome);
        report.observed.rounds_work = report.failure().map(|_| false);
        report
    }

    fn load(&self, parts: &[PathBuf], layers: GpuLayers, mtp: bool) -> Result<Model> {
        let file = match parts {
            [one] => ModelFile::open(one)?,
            parts => ModelFile::open_parts(parts)?,
        };
        // As the engine loads it.
        let mtp = mtp && file.kind() != Kind::Gemma4Assistant;
        let builder = Model::builder_of(&file).gpu_layers(layers).split_mode(self.split_mode).mtp(mtp);
        builder.load()
    }
}

/// The parts of a file as another process finds them.
pub(crate) fn absolute(parts: &[PathBuf]) -> Vec<PathBuf> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    parts.iter().map(|part| absolute(part)).collect()
}
