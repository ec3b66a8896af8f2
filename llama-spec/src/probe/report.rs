//! What a probe found.

use crate::compat::{Check, Observed};
use crate::control::Costs;
use crate::spec::Method;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What was tried, how it went, and what was measured. It prints as a few lines for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Whether the rounds worked.
    pub outcome: Outcome,
    /// The methods that were tried; none for a target that decodes alone.
    pub methods: Vec<Method>,
    /// Texts that were generated side by side.
    pub slots: u32,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens of the texts that were compared with those of the target alone.
    pub compared: u64,
    /// Texts that differed at a near-tie, as they may where batches of other sizes round differently.
    pub near_ties: u64,
    /// Drafted tokens that were rejected and taken back.
    pub rejected: u64,
    /// How each method did on a text that repeats itself.
    pub accepted: Vec<Accepted>,
    /// The most rows of one batch up to which logits are those of single tokens, or differ from them by no more than rounding.
    /// Nothing when it was not measured.
    ///
    /// It is measured behind a text of less than 256 tokens. Behind longer ones, llama.cpp computes the attention of a row that is
    /// alone in parts on a processor, one for each thread, and that of several rows in one piece: then one row rounds otherwise
    /// than any number of them (SmolLM2 in four bits, two threads: no difference behind 200 tokens, logits up to 0.8 apart behind
    /// 300 and more; with one thread no difference behind 900: `cargo bench --bench verify`).
    pub exact_rows: Option<u32>,
    /// What was measured for each number of rows, in rising order.
    pub rows: Vec<RowsMeasured>,
    /// What else was measured.
    pub times: ProbeTimes,
    /// What the rules are told.
    pub observed: Observed,
    /// The rules about it that do not hold.
    pub checks: Vec<Check>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// It was not tried now, but found in the [cache](crate::EngineBuilder::probe_cache).
    #[serde(skip)]
    pub cached: bool,
}

/// How a probe ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything was as it must be.
    Worked,
    /// Something was not.
    Failed {
        /// What, and where.
        reason: String,
    },
    /// It was not tried to the end.
    Inconclusive {
        /// Why not.
        reason: String,
    },
}

/// How a method did on a text that repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Accepted {
    /// The method.
    pub method: Method,
    /// Tokens it drafted.
    pub drafted: u64,
    /// Those of them that the target accepted.
    pub accepted: u64,
    /// The time it took for each drafted token, to draft and to follow the target, in all slots at once.
    pub time: Option<Duration>,
}

/// A batch of so many rows, against the same tokens decoded one by one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RowsMeasured {
    /// Tokens in the batch, all slots together.
    pub rows: u32,
    /// How long it takes; the median of up to three.
    pub time: Duration,
    /// The largest difference of a logit.
    pub difference: f32,
    /// Rows whose most probable token is another one.
    pub flips: u32,
    /// Whether that is no more than rounding.
    pub exact: bool,
}

/// Times that a controller can plan with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProbeTimes {
    /// What the target alone takes for a token of one slot.
    pub plain_token: Option<Duration>,
    /// What a token of a prompt takes, in pieces.
    pub prompt_token: Option<Duration>,
    /// What it takes to take rejected tokens back, in all slots at once.
    pub rollback: Option<Duration>,
}

impl ProbeReport {
    pub(super) fn new(methods: Vec<Method>, slots: u32, outcome: Outcome) -> Self {
        Self {
            outcome,
            methods,
            slots,
            prompt: 0,
            compared: 0,
            near_ties: 0,
            rejected: 0,
            accepted: Vec::new(),
            exact_rows: None,
            rows: Vec::new(),
            times: ProbeTimes::default(),
            observed: Observed::nothing(),
            checks: Vec::new(),
            skipped: Vec::new(),
            took: Duration::ZERO,
            cached: false,
        }
    }

    /// Whether everything was as it must be.
    pub fn worked(&self) -> bool {
        self.outcome == Outcome::Worked
    }

    /// What failed, if something did.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Failed { reason } => Some(reason),
            _ => None,
        }
    }

    /// The smallest number of rows that is not exact, if one was found.
    pub fn step(&self) -> Option<u32> {
        self.rows.iter().find(|measured| !measured.exact).map(|measured| measured.rows)
    }

    /// What was measured, for a controller in whose list the methods have these places.
    pub(crate) fn costs(&self, index: impl Fn(Method) -> Option<usize>) -> Costs {
        let mut costs = Costs::unknown();
        if let Some(plain) = self.times.plain_token {
            costs = costs.rows(1, plain);
        }
        for measured in self.rows.iter().filter(|measured| measured.rows > 1) {
            costs = costs.rows(measured.rows as usize, measured.time);
        }
        if let Some(time) = self.times.rollback {
            costs = costs.rollback(time);
        }
        if let Some(time) = self.times.prompt_token {
            costs = costs.prompt_token(time);
        }
        for one in self.accepted.iter().filter(|one| !one.method.is_lookup()) {
            if let (Some(index), Some(time)) = (index(one.method), one.time) {
                costs = costs.drafter(index, time, None);
            }
        }
        costs
    }

    /// How long a batch of so many rows takes, where that was measured.
    pub fn time_of(&self, rows: u32) -> Option<Duration> {
        self.rows.iter().find(|measured| measured.rows == rows).map(|measured| measured.time)
    }
}

impl Accepted {
    pub(super) fn new(method: Method, drafted: u64, accepted: u64, time: Option<Duration>) -> Self {
        Self { method, drafted, accepted, time }
    }

    /// The share of the drafted tokens that were accepted, 0 to 1; nothing if none was drafted.
    pub fn rate(&self) -> Option<f64> {
        (self.drafted > 0).then(|| self.accepted as f64 / self.drafted as f64)
    }
}

impl RowsMeasured {
    pub(super) fn new(rows: u32, time: Duration, difference: f32, flips: u32) -> Self {
        Self { rows, time, difference, flips, exact: true }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worked => f.write_str("worked"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Inconclusive { reason } => write!(f, "inconclusive: {reason}"),
        }
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods = match self.methods.is_empty() {
            true => "no methods".to_owned(),
            false => self.methods.iter().map(Method::to_string).collect::<Vec<_>>().join(","),
        };
        let cached = if self.cached { ", from the cache" } else { "" };
        writeln!(f, "probe        {} ({methods}, {:.0?}{cached})", self.outcome, self.took)?;
        if self.compared > 0 {
            write!(f, "texts        {} slots, prompt of {} tokens", self.slots, self.prompt)?;
            write!(f, ", {} tokens compared, {} rejected", self.compared, self.rejected)?;
            writeln!(f, ", {} near-ties", self.near_ties)?;
        }
        for one in &self.accepted {
            let Accepted { method, drafted, accepted, .. } = one;
            write!(f, "accepted     {accepted} of {drafted} by {method}")?;
            match one.time {
                Some(time) => writeln!(f, ", {time:.0?} for each")?,
                None => writeln!(f)?,
            }
        }
        if let Some(exact) = self.exact_rows {
            write!(f, "exact rows   {exact}")?;
            match self.rows.iter().find(|measured| !measured.exact) {
                Some(RowsMeasured { rows, difference, flips, .. }) => {
                    writeln!(f, "; at {rows} logits are off by up to {difference:.2}, {flips} other tokens")?;
                }
                None => writeln!(f, ", as many as were tried")?,
            }
        }
        if let Some(time) = self.times.plain_token {
            write!(f, "times        {time:.1?} for one row")?;
            for measured in &self.rows {
                write!(f, ", {:.1?} for {}", measured.time, measured.rows)?;
            }
            if let Some(time) = self.times.rollback {
                write!(f, ", {time:.1?} to take back")?;
            }
            writeln!(f)?;
        }
        self.checks.iter().try_for_each(|check| writeln!(f, "rule         {check}"))?;
        self.skipped.iter().try_for_each(|skipped| writeln!(f, "left out     {skipped}"))
    }
}
