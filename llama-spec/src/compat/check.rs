//! The result of a rule, and a refusal made of such results.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad it is when a rule does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It works and cannot pay. Reported, not refused.
    Wasteful,
    /// It usually works and can crash the process. Refused unless the caller accepts the risk or runs supervised.
    Risky,
    /// It cannot work. Refused.
    Impossible,
}

/// When it is known whether a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// From the headers of the files.
    Files,
    /// From the settings, or from settings and headers.
    Settings,
    /// When the models are loaded and their contexts made.
    Loaded,
    /// When some tokens were drafted and verified.
    Probe,
}

/// What came of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The rule's code.
    pub code: String,
    /// How bad it is when it does not hold.
    pub severity: Severity,
    /// Whether it holds.
    pub passed: bool,
    /// What the target or the settings have.
    pub target: Option<String>,
    /// What the draft has.
    pub draft: Option<String>,
    /// What holds, or what does not.
    pub message: String,
    /// What to do about it; empty when it holds.
    pub cure: String,
}

impl fmt::Display for Check {
    /// One line: code, what is wrong, the values, the cure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match (&self.target, &self.draft) {
            (Some(target), Some(draft)) => write!(f, " (target: {target}; draft: {draft})")?,
            (Some(target), None) => write!(f, " (target: {target})")?,
            (None, Some(draft)) => write!(f, " (draft: {draft})")?,
            (None, None) => {}
        }
        match self.cure.is_empty() {
            true => Ok(()),
            false => write!(f, "; {}", self.cure),
        }
    }
}

/// Files and settings that do not go together: every rule that refused them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Incompatible {
    /// The checks that failed and are not accepted; never empty.
    pub checks: Vec<Check>,
}

impl Incompatible {
    /// Whether a rule with this code is among the reasons.
    pub fn has(&self, code: &str) -> bool {
        self.checks.iter().any(|check| check.code == code)
    }

    /// All of it in one line.
    pub fn summary(&self) -> String {
        self.checks.iter().map(Check::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Incompatible {
    /// Each failed check on its own line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("speculation is not possible with these files and settings:")?;
        self.checks.iter().try_for_each(|check| write!(f, "\n  {check}"))
    }
}
