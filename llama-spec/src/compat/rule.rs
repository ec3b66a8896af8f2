//! A row of the table, and running the table.

use super::rules;
use super::{Check, Facts, Incompatible, Severity, Stage};
use std::fmt::Display;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rule {
    /// A stable name.
    pub code: &'static str,
    /// What must hold.
    pub about: &'static str,
    /// In which cases it is looked at.
    pub applies: &'static str,
    /// How bad it is when it does not hold.
    pub severity: Severity,
    /// When it is known.
    pub stage: Stage,
    /// What to do when it does not hold. A check may say it more exactly.
    pub cure: &'static str,
    /// What llama.cpp does, and where that is from: files and functions of its source.
    pub source: &'static str,
    pub(super) test: Test,
}

/// How a row is checked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// It holds or not, or does not apply.
    One(fn(&Facts<'_>) -> Option<Found>),
    /// It can fail several times.
    Many(fn(&Facts<'_>) -> Vec<Found>),
}

/// What a check found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    passed: bool,
    target: Option<String>,
    draft: Option<String>,
    message: Option<String>,
    cure: Option<String>,
}

impl Found {
    pub(super) fn new(passed: bool) -> Self {
        Self { passed, target: None, draft: None, message: None, cure: None }
    }

    pub(super) fn target(mut self, value: impl Display) -> Self {
        self.target = Some(value.to_string());
        self
    }

    pub(super) fn draft(mut self, value: impl Display) -> Self {
        self.draft = Some(value.to_string());
        self
    }

    /// What does not hold; kept only if it does not.
    pub(super) fn says(mut self, message: impl Display) -> Self {
        self.message = (!self.passed).then(|| message.to_string());
        self
    }

    pub(super) fn cure(mut self, cure: impl Display) -> Self {
        self.cure = (!self.passed).then(|| cure.to_string());
        self
    }
}

impl Rule {
    /// All rules, in the order in which they are reported.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        rules::GROUPS.iter().flat_map(|(_, rules)| rules.iter())
    }

    /// The rule with this code.
    pub fn find(code: &str) -> Option<&'static Self> {
        Self::all().find(|rule| rule.code == code)
    }

    /// What it finds; nothing where it does not apply.
    fn check(&self, facts: &Facts<'_>) -> Vec<Check> {
        let found = match self.test {
            Test::One(test) => test(facts).into_iter().collect(),
            Test::Many(test) => test(facts),
        };
        found.into_iter().map(|found| self.checked(found)).collect()
    }

    fn checked(&self, found: Found) -> Check {
        let Found { passed, target, draft, message, cure } = found;
        let message = message.unwrap_or_else(|| match passed {
            true => self.about.to_owned(),
            false => format!("it does not hold that {}", self.about),
        });
        let cure = if passed { String::new() } else { cure.unwrap_or_else(|| self.cure.to_owned()) };
        Check { code: self.code.to_owned(), severity: self.severity, passed, target, draft, message, cure }
    }
}

/// Runs the whole table.
pub(crate) fn check_all(facts: &Facts<'_>) -> Vec<Check> {
    Rule::all().flat_map(|rule| rule.check(facts)).collect()
}

/// What refuses these facts, if anything does.
pub(crate) fn refusal(facts: &Facts<'_>) -> Option<Incompatible> {
    refused(check_all(facts), facts)
}

/// The checks among these that refuse.
pub(super) fn refused(checks: Vec<Check>, facts: &Facts<'_>) -> Option<Incompatible> {
    refused_under(checks, facts.conditions)
}

pub(super) fn refused_under(checks: Vec<Check>, conditions: &super::Conditions) -> Option<Incompatible> {
    let refuses = |check: &Check| match check.severity {
        Severity::Impossible => true,
        Severity::Risky => !conditions.allows_risk(),
        Severity::Wasteful => false,
    };
    let checks: Vec<Check> = checks.into_iter().filter(|check| !check.passed && refuses(check)).collect();
    (!checks.is_empty()).then_some(Incompatible { checks })
}

/// The page of the documentation that lists all rules, in Markdown.
pub fn rules_page() -> String {
    let mut page = String::from(
        "# What goes together\n\n\
         Every rule by which `SpecConfig::auto`, the builder, `SpecConfig::check` and the program `inspect` judge files and\n\
         settings. This page is made from the table in `llama-spec/src/compat/rules/` by `cargo xtask rules`.\n\n\
         - **Impossible**: it cannot work, and is refused.\n\
         - **Risky**: it usually works and can crash the process. It is refused unless the caller accepts the risk\n  \
           (`Conditions::accept_risk`, `--accept-risk`) or runs supervised.\n\
         - **Wasteful**: it works and cannot pay. It is reported.\n",
    );
    for (title, rules) in rules::GROUPS {
        page += &format!("\n## {title}\n");
        for rule in *rules {
            let severity = match rule.severity {
                Severity::Wasteful => "Wasteful",
                Severity::Risky => "Risky",
                Severity::Impossible => "Impossible",
            };
            let known = match rule.stage {
                Stage::Files => "from the files",
                Stage::Settings => "from the settings",
                Stage::Loaded => "after loading",
                Stage::Probe => "from the first rounds",
            };
            page += &format!(
                "\n### `{}`\n\n{severity}, known {known}. Looked at for: {}.\n\n\
                 - Must hold: {}.\n- Otherwise: {}.\n- Cure: {}.\n",
                rule.code, rule.applies, rule.about, rule.source, rule.cure
            );
        }
    }
    page
}
