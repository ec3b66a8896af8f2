//! Everything there is to say about two files and settings.

use super::facts::Observed;
use super::rule::{check_all, refused};
use super::{Check, Conditions, Facts, Incompatible, MemoryEstimate};
use crate::file::{Description, ModelFile};
use crate::spec::{Requested, SpecConfig};
use serde::Serialize;
use std::fmt;

/// Whether files and settings work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// They do.
    Works,
    /// They do not.
    Incompatible,
    /// A file is not one that llama.cpp loads.
    Broken,
}

/// What two files and settings are, and every rule that was looked at.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Whether they work together.
    pub verdict: Verdict,
    /// The target.
    pub target: Description,
    /// The draft.
    pub draft: Option<Description>,
    /// What was asked for.
    pub requested: Requested,
    /// The methods that are in force; those that were tried when they do not work.
    pub effective: Vec<crate::spec::Method>,
    /// Why these methods.
    pub reason: Option<String>,
    /// The estimated memory.
    pub memory: MemoryEstimate,
    /// Every rule that applies, those that hold too.
    pub checks: Vec<Check>,
}

impl Report {
    /// Looks at two files and settings. Without a configuration the method is chosen as by [`SpecConfig::auto_with`].
    pub fn new(
        target: &ModelFile,
        draft: Option<&ModelFile>,
        config: Option<&SpecConfig>,
        conditions: &Conditions,
    ) -> Self {
        let chosen = match config {
            Some(config) => config.clone(),
            None => SpecConfig::choose(target, draft, conditions),
        };
        Self::of(&Facts::new(target, draft, &chosen, conditions))
    }

    /// The same with what was seen after loading or in a trial.
    pub fn observed(
        target: &ModelFile,
        draft: Option<&ModelFile>,
        config: &SpecConfig,
        conditions: &Conditions,
        observed: Observed,
    ) -> Self {
        Self::of(&Facts { observed, ..Facts::new(target, draft, config, conditions) })
    }

    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        let checks = check_all(facts);
        let broken = |description: &Description| !description.loads();
        let draft = facts.draft.map(|draft| draft.description);
        let verdict = match () {
            () if broken(facts.target.description) || draft.is_some_and(broken) => Verdict::Broken,
            () if refused(checks.clone(), facts).is_some() => Verdict::Incompatible,
            () => Verdict::Works,
        };
        let config = facts.config;
        Self {
            verdict,
            target: facts.target.description.clone(),
            draft: draft.cloned(),
            requested: config.requested(),
            effective: config.effective(),
            reason: config.reason().map(str::to_owned),
            memory: MemoryEstimate::new(facts),
            checks,
        }
    }

    /// The checks that failed, the worst first.
    pub fn failed(&self) -> Vec<&Check> {
        let mut failed: Vec<&Check> = self.checks.iter().filter(|check| !check.passed).collect();
        failed.sort_by_key(|check| std::cmp::Reverse(check.severity));
        failed
    }

    /// The refusal that [`SpecConfig::check`] gives for the same under these conditions.
    pub fn refusal(&self, conditions: &Conditions) -> Option<Incompatible> {
        super::rule::refused_under(self.checks.clone(), conditions)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Works => "works",
            Self::Incompatible => "incompatible",
            Self::Broken => "broken",
        })
    }
}
