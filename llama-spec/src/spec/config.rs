//! Which methods draft, and how much.

use super::Method;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The choice of speculative methods and their settings.
///
/// ```
/// use llama_spec::spec::{Method, SpecConfig};
/// let lookup = SpecConfig::new([Method::NgramMod]).draft_max(8);
/// assert_eq!(lookup.methods, [Method::NgramMod]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpecConfig {
    /// The methods. When several are given, they are asked in the order of [`Method::ALL`] and the first draft is taken.
    pub methods: Vec<Method>,
    /// The longest draft of any method, in tokens. Default: 12.
    ///
    /// Checking a draft costs time for each of its tokens, and the kernels for quantized weights round differently for
    /// large batches, so a long draft can turn near-ties of the target around. Up to this length neither was seen to
    /// matter; see the benches before raising it.
    pub draft_max: u32,
    /// Settings of `draft-simple`.
    pub draft_model: DraftModelSettings,
    /// Settings of `ngram-simple`.
    pub ngram_simple: NgramMapSettings,
    /// Settings of `ngram-map-k`.
    pub ngram_map_k: NgramMapSettings,
    /// Settings of `ngram-map-k4v`.
    pub ngram_map_k4v: NgramMapSettings,
    /// Settings of `ngram-mod`.
    pub ngram_mod: NgramModSettings,
}

/// Settings of a draft model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DraftModelSettings {
    /// The longest draft in tokens. Default: 4.
    pub max: u32,
    /// Shorter drafts are thrown away. Default: 0.
    pub min: u32,
    /// Drafting stops at a token the draft gives a lower probability, 0 to 1. Default: 0.
    pub probability_min: f32,
}

/// Settings of the methods that look up where the last tokens stood before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NgramMapSettings {
    /// Tokens that must match, 1 to 1024.
    pub lookup: u16,
    /// Tokens taken from there, `lookup` to 1024; the draft is cut to [`SpecConfig::draft_max`].
    pub draft: u16,
    /// Sightings before the map methods draft, at least 1. Default: 1.
    pub hits_min: u16,
}

/// Settings of the shared hash table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NgramModSettings {
    /// Tokens that must match, 1 to 1024.
    pub lookup: u16,
    /// Shorter drafts are thrown away.
    pub min: u16,
    /// The longest draft, at most 1024.
    pub max: u16,
}

impl Default for SpecConfig {
    fn default() -> Self {
        Self {
            methods: Vec::new(),
            draft_max: 12,
            draft_model: DraftModelSettings::default(),
            ngram_simple: NgramMapSettings::default(),
            ngram_map_k: NgramMapSettings::default(),
            ngram_map_k4v: NgramMapSettings::default(),
            ngram_mod: NgramModSettings::default(),
        }
    }
}

impl Default for DraftModelSettings {
    fn default() -> Self {
        Self { max: 4, min: 0, probability_min: 0.0 }
    }
}

impl Default for NgramMapSettings {
    fn default() -> Self {
        Self { lookup: 6, draft: 12, hits_min: 1 }
    }
}

impl Default for NgramModSettings {
    fn default() -> Self {
        Self { lookup: 8, min: 2, max: 12 }
    }
}

impl SpecConfig {
    /// Plain decoding.
    pub fn off() -> Self {
        Self::default()
    }

    /// These methods with their default settings.
    pub fn new(methods: impl Into<Vec<Method>>) -> Self {
        Self { methods: methods.into(), ..Self::default() }
    }

    /// Sets [`SpecConfig::draft_max`](field@SpecConfig::draft_max).
    pub fn draft_max(mut self, tokens: u32) -> Self {
        self.draft_max = tokens;
        self
    }

    /// Sets [`SpecConfig::draft_model`](field@SpecConfig::draft_model).
    pub fn draft_model(mut self, settings: DraftModelSettings) -> Self {
        self.draft_model = settings;
        self
    }

    /// Sets [`SpecConfig::ngram_simple`](field@SpecConfig::ngram_simple).
    pub fn ngram_simple(mut self, settings: NgramMapSettings) -> Self {
        self.ngram_simple = settings;
        self
    }

    /// Sets [`SpecConfig::ngram_map_k`](field@SpecConfig::ngram_map_k).
    pub fn ngram_map_k(mut self, settings: NgramMapSettings) -> Self {
        self.ngram_map_k = settings;
        self
    }

    /// Sets [`SpecConfig::ngram_map_k4v`](field@SpecConfig::ngram_map_k4v).
    pub fn ngram_map_k4v(mut self, settings: NgramMapSettings) -> Self {
        self.ngram_map_k4v = settings;
        self
    }

    /// Sets [`SpecConfig::ngram_mod`](field@SpecConfig::ngram_mod).
    pub fn ngram_mod(mut self, settings: NgramModSettings) -> Self {
        self.ngram_mod = settings;
        self
    }

    /// Whether no method is chosen.
    pub fn is_off(&self) -> bool {
        self.methods.is_empty()
    }

    /// Whether one of the methods needs a draft model.
    pub fn needs_draft(&self) -> bool {
        self.methods.iter().any(|method| !method.is_lookup())
    }

    /// The methods as a list of names.
    pub fn names(&self) -> String {
        self.methods.iter().map(Method::to_string).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let check = |setting, value: f64, from: f64, to: f64| match (from..=to).contains(&value) {
            true => Ok(()),
            false => Err(Error::Setting { setting, value: value.to_string(), expected: format!("{from} to {to}") }),
        };
        check("draft_max", self.draft_max.into(), 1.0, 1024.0)?;
        check("draft_model.max", self.draft_model.max.into(), 1.0, 1024.0)?;
        check("draft_model.min", self.draft_model.min.into(), 0.0, self.draft_model.max.into())?;
        check("draft_model.probability_min", self.draft_model.probability_min.into(), 0.0, 1.0)?;
        for (lookup, draft, hits, settings) in [
            ("ngram_simple.lookup", "ngram_simple.draft", "ngram_simple.hits_min", self.ngram_simple),
            ("ngram_map_k.lookup", "ngram_map_k.draft", "ngram_map_k.hits_min", self.ngram_map_k),
            ("ngram_map_k4v.lookup", "ngram_map_k4v.draft", "ngram_map_k4v.hits_min", self.ngram_map_k4v),
        ] {
            check(lookup, settings.lookup.into(), 1.0, 1024.0)?;
            // llama.cpp drops a match shorter than the tokens looked up, so a smaller value would never draft.
            check(draft, settings.draft.into(), settings.lookup.into(), 1024.0)?;
            check(hits, settings.hits_min.into(), 1.0, u16::MAX.into())?;
        }
        check("ngram_mod.lookup", self.ngram_mod.lookup.into(), 1.0, 1024.0)?;
        check("ngram_mod.max", self.ngram_mod.max.into(), 1.0, 1024.0)?;
        check("ngram_mod.min", self.ngram_mod.min.into(), 0.0, self.ngram_mod.max.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        SpecConfig::new(Method::ALL).validate().unwrap();
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let refused = |config: SpecConfig| match config.validate() {
            Err(Error::Setting { setting, .. }) => setting,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(SpecConfig::off().draft_max(0)), "draft_max");
        let nan = DraftModelSettings { probability_min: f32::NAN, ..Default::default() };
        assert_eq!(refused(SpecConfig::off().draft_model(nan)), "draft_model.probability_min");
        let never = NgramMapSettings { lookup: 12, draft: 11, hits_min: 1 };
        assert_eq!(refused(SpecConfig::off().ngram_map_k(never)), "ngram_map_k.draft");
    }

    #[test]
    fn survives_json() {
        let config = SpecConfig::new([Method::NgramMod, Method::DraftSimple]).draft_max(3);
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<SpecConfig>(&json).unwrap(), config);
        assert_eq!(
            serde_json::from_str::<SpecConfig>(r#"{"methods":["ngram-mod"]}"#).unwrap(),
            SpecConfig::new([Method::NgramMod])
        );
    }
}
