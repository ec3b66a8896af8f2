//! Trying an engine before it serves: the real loop on the real contexts, for a second or two.
//!
//! Files and settings do not tell everything. Some backends lack kernels for the shapes of a draft, heads of another model
//! draft garbage without a message, and kernels for quantized weights round differently from some number of rows on. So
//! [`EngineBuilder::build`](crate::EngineBuilder::build) lets the runner that is to serve generate a text, in all slots at once:
//!
//! 1. every method drafts for it, in a prompt that repeats itself;
//! 2. a drafter that knows the text proposes full drafts with more and fewer wrong tokens, so that all that is rejected must be
//!    taken back;
//! 3. the same is asked for again, on the memories as they are then;
//! 4. the target decodes it alone, token by token. All of the texts must be this one, near-ties aside, and after each step all
//!    memories must end where their texts do;
//! 5. these tokens are decoded once more, more and more of them in one batch, and the logits compared: [`ProbeReport::exact_rows`].
//!
//! What it leaves behind is a [`ProbeReport`]: the drafters are made anew, and memories and numbers are empty. What may end the
//! process is tried in another one first ([`EngineBuilder::isolation`](crate::EngineBuilder::isolation)), and the report can be
//! kept for the next time ([`EngineBuilder::probe_cache`](crate::EngineBuilder::probe_cache)).

mod child;
mod deadline;
mod report;
mod rows;
mod saved;
mod script;
mod text;
mod trial;

pub use report::{Accepted, Outcome, ProbeReport, ProbeTimes, RowsMeasured};

pub(crate) use child::{Errand, absolute};
pub(crate) use saved::{Identity, Shelf};

use crate::compat::{Check, Conditions, Incompatible, Report, Rule, Stage};
use crate::file::ModelFile;
use crate::runner::Runner;
use crate::spec::SpecConfig;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Whether an engine is tried before it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probe {
    /// With everything that the budget allows.
    #[default]
    Full,
    /// Not at all.
    Off,
}

/// What a probe is told besides what the runner knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) budget: Duration,
    /// The target's cache is stored in blocks that share a scale.
    pub(crate) quantized_cache: bool,
}

/// Tries a runner that has generated nothing yet. It must be [renewed](Runner::renew) afterwards.
pub(crate) fn probe(runner: &mut Runner, terms: Terms) -> ProbeReport {
    trial::Trial::new(runner, terms).run()
}

/// What the rules say about what was observed: notes those that do not hold, and gives a refusal if one of them refuses.
pub(crate) fn judge(
    report: &mut ProbeReport,
    target: &ModelFile,
    draft: Option<&ModelFile>,
    config: &SpecConfig,
    conditions: &Conditions,
) -> Option<Incompatible> {
    let seen = Report::observed(target, draft, config, conditions, report.observed);
    let by_running =
        |check: &&Check| Rule::find(&check.code).is_some_and(|rule| matches!(rule.stage, Stage::Loaded | Stage::Probe));
    report.checks = seen.failed().into_iter().filter(by_running).cloned().collect();
    for check in &report.checks {
        tracing::warn!(%check, "what the probe found");
    }
    seen.refusal(conditions)
}
