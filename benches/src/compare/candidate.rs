//! Who is compared: our server and our engine, plain and speculative, and llama-server with each of its settings.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fmt;

/// Whose program generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Our server.
    Ours,
    /// Our engine in our own process.
    Engine,
    /// llama-server.
    Theirs,
}

/// One that is compared with others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Candidate {
    /// Whose program.
    pub side: Side,
    /// How it speculates: [`PLAIN`] for not at all.
    pub setting: String,
}

/// The setting without speculation.
pub const PLAIN: &str = "plain";
/// The setting in which ours chooses by itself.
pub const AUTO: &str = "auto";
/// The setting that takes nothing else of llama-server.
const NONE: &str = "none";

impl Candidate {
    /// Generates without speculation.
    pub fn plain(side: Side) -> Self {
        Self { side, setting: PLAIN.into() }
    }

    /// Generates with this setting.
    pub fn new(side: Side, setting: impl Into<String>) -> Self {
        Self { side, setting: setting.into() }
    }

    /// Whether it does not speculate.
    pub fn is_plain(&self) -> bool {
        self.setting == PLAIN
    }

    /// All that the options ask for.
    ///
    /// # Errors
    /// For a setting that is none.
    pub fn all(settings: &[String], ours: &[String], engine: bool, draft: bool) -> Result<Vec<Self>> {
        let mut all = vec![Self::plain(Side::Ours)];
        all.extend(ours.iter().map(|setting| Self::new(Side::Ours, setting)));
        if engine {
            all.push(Self::plain(Side::Engine));
            all.push(Self::new(Side::Engine, AUTO));
        }
        all.push(Self::plain(Side::Theirs));
        let settings = match settings {
            [] => grid(draft),
            [none] if none == NONE => Vec::new(),
            some => some.to_vec(),
        };
        for setting in settings {
            Lookup::parse(&setting)?;
            all.push(Self::new(Side::Theirs, setting));
        }
        Ok(all)
    }

    /// The words by which this setting is asked of the program.
    ///
    /// # Errors
    /// For a setting that is none.
    pub fn words(&self) -> Result<Vec<String>> {
        Ok(match (self.side, self.setting.as_str()) {
            (Side::Theirs, PLAIN) => Vec::new(),
            (Side::Theirs, setting) => Lookup::parse(setting)?.words(),
            (_, PLAIN) => ["--spec", "none"].map(str::to_owned).into(),
            (_, AUTO) => Vec::new(),
            (_, methods) => vec!["--spec".into(), methods.replace('+', ",")],
        })
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Ours => "ours",
            Side::Engine => "our engine",
            Side::Theirs => "llama-server",
        };
        write!(f, "{side}, {}", self.setting)
    }
}

/// The settings of llama-server that are tried by default: short drafts looked up by few tokens, longer ones, and drafts as
/// long as its own default, looked up as by default.
fn grid(draft: bool) -> Vec<String> {
    let mut grid = Vec::new();
    if draft {
        grid.extend([2, 4, 8].map(|length| format!("draft-simple:{length}")));
    }
    for method in ["ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod"] {
        grid.extend(["8:4", "16:8", "48"].map(|lengths| format!("{method}:{lengths}")));
    }
    grid.push("ngram-cache".into());
    grid
}

/// A setting of llama-server: `METHOD[:DRAFT[:MATCH]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lookup {
    method: String,
    /// The longest draft in tokens.
    draft: Option<u32>,
    /// How many tokens must be the same for a draft to be taken from behind them.
    matched: Option<u32>,
}

impl Lookup {
    fn parse(setting: &str) -> Result<Self> {
        let mut parts = setting.split(':');
        let method = parts.next().unwrap_or_default().to_owned();
        let mut number = || -> Result<Option<u32>> {
            let Some(part) = parts.next() else { return Ok(None) };
            let number = part.parse().with_context(|| format!("`{setting}`: expected METHOD[:DRAFT[:MATCH]]"))?;
            Ok(Some(number))
        };
        let lookup = Self { method, draft: number()?, matched: number()? };
        let known = lookup.method.starts_with("ngram-") || lookup.method.starts_with("draft-");
        ensure!(known && parts.next().is_none(), "`{setting}`: expected METHOD[:DRAFT[:MATCH]], as ngram-mod:16:8");
        let lengths = lookup.draft.or(lookup.matched).is_some();
        ensure!(!lengths || lookup.method != "ngram-cache", "`{setting}`: ngram-cache has no lengths to choose");
        ensure!(
            lookup.matched.is_none() || lookup.method.starts_with("ngram-"),
            "`{setting}`: only lookups have a MATCH"
        );
        Ok(lookup)
    }

    /// The words for llama-server.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["--spec-type".to_owned(), self.method.clone()];
        let mut add = |name: String, number: u32| words.extend([name, number.to_string()]);
        let method = &self.method;
        match method.as_str() {
            "ngram-mod" => {
                if let Some(draft) = self.draft {
                    // By default it takes no draft below 48 tokens, whatever the longest is.
                    add("--spec-ngram-mod-n-min".into(), draft.min(48).div_ceil(4));
                    add("--spec-ngram-mod-n-max".into(), draft);
                }
                self.matched.into_iter().for_each(|matched| add("--spec-ngram-mod-n-match".into(), matched));
            }
            lookup if lookup.starts_with("ngram-") => {
                self.matched.into_iter().for_each(|matched| add(format!("--spec-{method}-size-n"), matched));
                self.draft.into_iter().for_each(|draft| add(format!("--spec-{method}-size-m"), draft));
            }
            _ => self.draft.into_iter().for_each(|draft| add("--spec-draft-n-max".into(), draft)),
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(side: Side, setting: &str) -> String {
        Candidate::new(side, setting).words().unwrap().join(" ")
    }

    #[test]
    fn settings_become_words_of_each_program() {
        assert_eq!(words(Side::Ours, PLAIN), "--spec none");
        assert_eq!(words(Side::Ours, AUTO), "");
        assert_eq!(words(Side::Ours, "ngram-mod+draft-simple"), "--spec ngram-mod,draft-simple");
        assert_eq!(words(Side::Theirs, PLAIN), "");
        assert_eq!(words(Side::Theirs, "ngram-cache"), "--spec-type ngram-cache");
        assert_eq!(
            words(Side::Theirs, "ngram-simple:8:4"),
            "--spec-type ngram-simple --spec-ngram-simple-size-n 4 --spec-ngram-simple-size-m 8"
        );
        assert_eq!(
            words(Side::Theirs, "ngram-mod:16:8"),
            "--spec-type ngram-mod --spec-ngram-mod-n-min 4 --spec-ngram-mod-n-max 16 --spec-ngram-mod-n-match 8"
        );
        assert_eq!(words(Side::Theirs, "draft-simple:4"), "--spec-type draft-simple --spec-draft-n-max 4");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for setting in
            ["", "lookup", "ngram-mod:", "ngram-mod:x", "ngram-mod:1:2:3", "ngram-cache:8", "draft-simple:4:2"]
        {
            assert!(Lookup::parse(setting).is_err(), "{setting}");
        }
    }

    #[test]
    fn everybody_has_a_plain_one_to_be_compared_with() {
        let all = Candidate::all(&[], &[AUTO.into()], true, false).unwrap();
        assert_eq!(all.iter().filter(|candidate| candidate.is_plain()).count(), 3);
        assert_eq!(all.iter().filter(|candidate| candidate.side == Side::Theirs).count(), 14);
        let few = Candidate::all(&[NONE.into()], &[AUTO.into()], false, true).unwrap();
        assert_eq!(
            few.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["ours, plain", "ours, auto", "llama-server, plain"]
        );
        assert!(Candidate::all(&["x".into()], &[], false, false).is_err());
    }
}
