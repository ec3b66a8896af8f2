//! Reports of earlier probes, kept in a folder.

use super::{Errand, Outcome, ProbeReport};
use crate::checksum::{FIRST, checksum};
use crate::devices::Device;
use crate::error::Result;
use crate::file::ModelFile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The form of what is kept; another one is not read.
const FORM: u32 = 1;

/// What a report is valid for: files, settings, library and devices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity(Value);

#[derive(Serialize, Deserialize)]
struct Kept {
    identity: Value,
    report: ProbeReport,
}

impl Identity {
    /// # Errors
    /// When a file cannot be read any more, or the devices are not known.
    pub(crate) fn new(target: &ModelFile, draft: Option<&ModelFile>, errand: &Errand, own: usize) -> Result<Self> {
        let devices = Device::all()?.into_iter();
        let devices =
            devices.map(|one| json!([one.name, one.description, format!("{:?}", one.kind), one.memory_total]));
        // Paths say nothing about what is there, nor does the budget about what comes of it.
        let settings = json!({
            "methods": errand.config.effective(),
            "config": without_choice(&errand.config),
            "context": errand.context,
            "draft_context": errand.draft_context,
            "layers": [errand.gpu_layers, errand.draft_gpu_layers],
            "split": errand.split_mode,
            "own": own,
        });
        Ok(Self(json!({
            "form": FORM,
            "library": env!("CARGO_PKG_VERSION"),
            "llama.cpp": [json!(llama_sys::LLAMA_CPP_VERSION), json!(llama_sys::LLAMA_CPP_BUILD)],
            "machine": [std::env::consts::OS, std::env::consts::ARCH],
            "devices": devices.collect::<Vec<_>>(),
            "target": file(target)?,
            "draft": draft.map(file).transpose()?,
            "settings": settings,
        })))
    }

    /// Different ones may have the same name, so what is found under it is compared.
    fn name(&self) -> String {
        format!("{:016x}.json", checksum(FIRST, self.0.to_string().as_bytes()))
    }
}

/// A folder with reports.
#[derive(Clone, Debug)]
pub(crate) struct Shelf(PathBuf);

impl Shelf {
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// The report of this, if there is one that can be read.
    pub(crate) fn find(&self, identity: &Identity) -> Option<ProbeReport> {
        let text = fs::read(self.0.join(identity.name())).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        (kept.identity == identity.0).then_some(ProbeReport { cached: true, ..kept.report })
    }

    /// Keeps a report, unless it tells nothing. Whoever cannot write does without.
    pub(crate) fn keep(&self, identity: &Identity, report: &ProbeReport) {
        if matches!(report.outcome, Outcome::Inconclusive { .. }) {
            return;
        }
        if let Err(error) = self.write(identity, report) {
            tracing::warn!(%error, folder = %self.0.display(), "the report of the probe could not be kept");
        }
    }

    fn write(&self, identity: &Identity, report: &ProbeReport) -> std::io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let kept = Kept { identity: identity.0.clone(), report: report.clone() };
        // Others may read or write the same report meanwhile.
        let unfinished = self.0.join(format!("{}.{}", identity.name(), std::process::id()));
        fs::write(&unfinished, serde_json::to_vec_pretty(&kept)?)?;
        fs::rename(unfinished, self.0.join(identity.name()))
    }
}

/// What was asked for before something else was chosen does not matter.
fn without_choice(config: &crate::spec::SpecConfig) -> Value {
    let mut value = json!(config);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("choice");
    }
    value
}

/// Sizes, and a sum of headers and of some weights.
fn file(file: &ModelFile) -> Result<Value> {
    let (sizes, sum) = file.content()?;
    Ok(json!({ "bytes": sizes, "sum": format!("{sum:016x}") }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn report(outcome: Outcome) -> ProbeReport {
        ProbeReport { took: Duration::from_millis(3), ..ProbeReport::new(Vec::new(), 1, outcome) }
    }

    #[test]
    fn what_tells_something_is_kept_and_found_by_its_identity() {
        let folder = std::env::temp_dir().join(format!("llama-spec-probe-{}", std::process::id()));
        let shelf = Shelf::new(&folder);
        let (one, other) = (Identity(json!({"a": 1})), Identity(json!({"a": 2})));
        assert!(shelf.find(&one).is_none());
        shelf.keep(&one, &report(Outcome::Inconclusive { reason: "no time".into() }));
        assert!(shelf.find(&one).is_none());
        for outcome in [Outcome::Worked, Outcome::Failed { reason: "crashed".into() }] {
            shelf.keep(&one, &report(outcome.clone()));
            let found = shelf.find(&one).unwrap();
            assert_eq!((found.outcome, found.cached, found.took.as_millis()), (outcome, true, 3));
        }
        assert!(shelf.find(&other).is_none());
        // Another identity under the same name is not taken for it.
        fs::rename(folder.join(one.name()), folder.join(other.name())).unwrap();
        assert!(shelf.find(&other).is_none());
        fs::write(folder.join(one.name()), "{").unwrap();
        assert!(shelf.find(&one).is_none());
        fs::remove_dir_all(folder).unwrap();
    }
}
