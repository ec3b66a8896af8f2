//! Speculative decoding: cheap guesses, checked by the target in one go.
//!
//! Decoding one token is bound by reading the model's weights, so checking several guessed tokens in one batch costs
//! little more than computing one (Leviathan, Kalman and Matias 2023, arXiv 2211.17192; Chen et al. 2023, arXiv
//! 2302.01318). A *drafter* proposes tokens, the *target* is run over them once, and the longest prefix it agrees with is
//! kept, with one more token of its own. What is rejected is rolled back out of the memory. The text is the one that the
//! target alone would have given.
//!
//! | method | guesses from | needs |
//! |---|---|---|
//! | `lookup` | what followed where the end of the text stood before, in it or in earlier texts | nothing |
//! | `draft-simple` | a small model of the same vocabulary | a draft model |
//! | `ngram-simple` | the last place in the text where the same tokens stood | nothing |
//! | `ngram-map-k`, `ngram-map-k4v` | a map of the places, with what followed and how well it did | nothing |
//! | `ngram-mod` | a hash table shared by all sequences | nothing |
//! | `ngram-cache` | counts of n-grams, also from files | nothing |
//! | `draft-mtp`, `draft-eagle3`, `draft-dflash`, `draft-dspark` | heads on the target's hidden states | such a file |
//!
//! They go on behind each other: lookup behind every other draft, and `draft-simple` behind what is believed more than its own
//! tokens would be. The drafts with heads begin at the end of the text only, since they read hidden states of the target, and there
//! are none of tokens that it has not checked yet.
//!
//! Which of them fits is seen from the files: [`SpecConfig::auto`] chooses, [`SpecConfig::check`] and [`SpecConfig::builder`]
//! hold a choice against them, and the rules are in [`compat`](crate::compat).

mod auto;
mod builder;
mod cache;
mod config;
mod drafter;
mod forced;
mod histogram;
mod method;
mod methods;
mod stats;

pub use auto::Requested;
pub use builder::SpecBuilder;
pub use config::{
    DraftLength, DraftModelSettings, LookupSettings, NgramCacheSettings, NgramMapSettings, NgramModSettings, SpecConfig,
};
pub use drafter::{Draft, Drafter};
pub use histogram::Histogram;
pub use method::Method;
pub use stats::Stats;

pub(crate) use cache::check_cache;
pub(crate) use config::DRAFT_MAX;
pub(crate) use drafter::Factory;
pub(crate) use forced::Forced;
pub(crate) use methods::Methods;

use serde::{Deserialize, Serialize};
use std::fmt;

/// What speculation came to: what was asked for, what is in force, and why if they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speculation {
    /// The methods asked for; empty for none.
    pub requested: Vec<Method>,
    /// The methods in force, in the order in which they are asked for drafts; empty for plain decoding.
    pub effective: Vec<Method>,
    /// Drafters of the user's own that are asked before the methods.
    #[serde(default)]
    pub own_drafters: u8,
    /// Why there is no speculation, or another one than asked for.
    pub reason: Option<String>,
}

impl Speculation {
    /// Whether drafts are made.
    pub fn is_active(&self) -> bool {
        !self.effective.is_empty() || self.own_drafters > 0
    }
}

impl Speculation {
    /// Who drafts, in the order in which they are asked.
    pub(crate) fn drafters(&self) -> String {
        let own = (0..self.own_drafters).map(|number| Source::Own(number).to_string());
        own.chain(self.effective.iter().map(Method::to_string)).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Speculation {
    /// Who drafts, or `off`, and the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_active() { "" } else { "off" })?;
        f.write_str(&self.drafters())?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

/// Where a token came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Computed by the target.
    Target,
    /// Drafted by this method and accepted by the target.
    Drafted(Method),
    /// Forced by the grammar of the request, and accepted by the target.
    Grammar,
    /// Drafted by the engine's own drafter with this number, in the order in which they were added, and accepted by the
    /// target.
    Own(u8),
}

impl Source {
    /// Whether a drafter proposed it.
    pub const fn is_draft(self) -> bool {
        !matches!(self, Self::Target)
    }
}

impl fmt::Display for Source {
    /// `target`, the name of the method, `grammar`, or `own-` and the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.pad("target"),
            Self::Drafted(method) => f.pad(method.name()),
            Self::Grammar => f.pad("grammar"),
            Self::Own(number) => f.pad(&format!("own-{number}")),
        }
    }
}
