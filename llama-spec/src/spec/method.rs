//! The speculative methods by name.

use crate::error::{Error, Result};
use llama_sys as sys;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A way to draft tokens. `lookup` is this library's own; the others, with their names, are llama.cpp's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Method {
    /// What followed where the end of the text stood before, in this text or in earlier ones ([`crate::lookup`]).
    Lookup,
    /// The last place in the text where the same tokens stood, and what followed there.
    NgramSimple,
    /// A map of the places where n-grams stood.
    NgramMapK,
    /// As [`Method::NgramMapK`], with up to four continuations and their success.
    NgramMapK4v,
    /// A hash table of n-grams that all sequences share.
    NgramMod,
    /// Counts of n-grams in the text, in earlier texts and in a file.
    NgramCache,
    /// A small model of the same vocabulary.
    DraftSimple,
    /// An EAGLE-3 head (Li et al. 2025, arXiv 2503.01840).
    DraftEagle3,
    /// Multi-token prediction: heads trained with the model (DeepSeek-AI 2024, arXiv 2412.19437, section 2.2).
    DraftMtp,
    /// A block-diffusion draft.
    DraftDflash,
    /// A block-diffusion draft with a Markov head.
    DraftDspark,
}

impl Method {
    /// All methods, in the order in which they are asked for drafts where the first that has one is taken.
    pub const ALL: [Self; 11] = [
        Self::Lookup,
        Self::NgramSimple,
        Self::NgramMapK,
        Self::NgramMapK4v,
        Self::NgramMod,
        Self::NgramCache,
        Self::DraftSimple,
        Self::DraftEagle3,
        Self::DraftMtp,
        Self::DraftDflash,
        Self::DraftDspark,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::NgramSimple => "ngram-simple",
            Self::NgramMapK => "ngram-map-k",
            Self::NgramMapK4v => "ngram-map-k4v",
            Self::NgramMod => "ngram-mod",
            Self::NgramCache => "ngram-cache",
            Self::DraftSimple => "draft-simple",
            Self::DraftEagle3 => "draft-eagle3",
            Self::DraftMtp => "draft-mtp",
            Self::DraftDflash => "draft-dflash",
            Self::DraftDspark => "draft-dspark",
        }
    }

    /// Whether it drafts from the text alone, without a model.
    pub const fn is_lookup(self) -> bool {
        matches!(self, Self::Lookup) || self.is_ngram()
    }

    /// Whether it is one of llama.cpp's lookup methods.
    pub(crate) const fn is_ngram(self) -> bool {
        matches!(self, Self::NgramSimple | Self::NgramMapK | Self::NgramMapK4v | Self::NgramMod | Self::NgramCache)
    }

    /// The methods of a comma-separated list; `none` stands for no method.
    ///
    /// ```
    /// use llama_spec::spec::Method;
    /// assert_eq!(Method::parse_list("ngram-mod,draft-simple")?, [Method::NgramMod, Method::DraftSimple]);
    /// assert_eq!(Method::parse_list("none")?, []);
    /// assert!(Method::parse_list("ngram").is_err());
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMethod`] for a name that is none of them, and for `none` beside others.
    pub fn parse_list(list: &str) -> Result<Vec<Self>> {
        match list.trim() {
            "none" => Ok(Vec::new()),
            list => list.split(',').map(|name| name.trim().parse()).collect(),
        }
    }

    /// As llama.cpp numbers it, where it has it.
    pub(crate) const fn raw(self) -> Option<sys::lsys_spec_type> {
        Some(match self {
            Self::Lookup => return None,
            Self::NgramSimple => sys::LSYS_SPEC_NGRAM_SIMPLE,
            Self::NgramMapK => sys::LSYS_SPEC_NGRAM_MAP_K,
            Self::NgramMapK4v => sys::LSYS_SPEC_NGRAM_MAP_K4V,
            Self::NgramMod => sys::LSYS_SPEC_NGRAM_MOD,
            Self::NgramCache => sys::LSYS_SPEC_NGRAM_CACHE,
            Self::DraftSimple => sys::LSYS_SPEC_DRAFT_SIMPLE,
            Self::DraftEagle3 => sys::LSYS_SPEC_DRAFT_EAGLE3,
            Self::DraftMtp => sys::LSYS_SPEC_DRAFT_MTP,
            Self::DraftDflash => sys::LSYS_SPEC_DRAFT_DFLASH,
            Self::DraftDspark => sys::LSYS_SPEC_DRAFT_DSPARK,
        })
    }

    pub(crate) fn from_raw(raw: sys::lsys_spec_type) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.raw() == Some(raw))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
            let known = Self::ALL.iter().map(Self::to_string).chain(["none".to_owned()]).collect();
            Error::UnknownMethod { name: name.to_owned(), known }
        })
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.name().to_owned()
    }
}

impl TryFrom<String> for Method {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn names_and_numbers_lead_back() {
        for method in Method::ALL {
            assert_eq!(method.name().parse::<Method>().unwrap(), method);
            assert!(method.raw().is_none_or(|raw| Method::from_raw(raw) == Some(method)));
        }
    }

    #[test]
    fn lists_are_strict() {
        assert!(Method::parse_list("").is_err());
        assert!(Method::parse_list("none,ngram-mod").is_err());
        assert!(Method::parse_list("ngram-mod,").is_err());
        assert_eq!(Method::parse_list(" ngram-mod , draft-simple ").unwrap().len(), 2);
    }
}
