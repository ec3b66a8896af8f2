//! Which methods draft, and how much.

use super::{Method, Requested};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The longest draft of any method where nothing else is asked for, in tokens.
pub(crate) const DRAFT_MAX: u32 = 32;

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
    /// The methods. When several are given, the one whose draft pays most is taken in each round, and one goes on behind the draft of
    /// another; with a [fixed length](DraftLength::Fixed), they are asked in the order of [`Method::ALL`] and the first draft is taken.
    pub methods: Vec<Method>,
    /// The longest draft of any method, in tokens. Default: 32, or fewer where not so many of each slot fit one batch.
    ///
    /// The kernels for quantized weights round differently for large batches, so a long draft can turn near-ties of the target
    /// around; an engine that was [probed](crate::probe) stays below the length from which they do.
    pub draft_max: u32,
    /// How long drafts are. Default: as long as they pay.
    pub length: DraftLength,
    /// The most time that may be lost against plain decoding while it is found out what pays, as a share of the time that the texts
    /// take, 0 to 1. Default: 0.01.
    pub loss_max: f64,
    /// Settings of `lookup`.
    pub lookup: LookupSettings,
    /// Settings of the method that drafts with a model or with heads; there is at most one.
    pub draft_model: DraftModelSettings,
    /// Settings of `ngram-simple`.
    pub ngram_simple: NgramMapSettings,
    /// Settings of `ngram-map-k`.
    pub ngram_map_k: NgramMapSettings,
    /// Settings of `ngram-map-k4v`.
    pub ngram_map_k4v: NgramMapSettings,
    /// Settings of `ngram-mod`.
    pub ngram_mod: NgramModSettings,
    /// Settings of `ngram-cache`.
    pub ngram_cache: NgramCacheSettings,
    /// What was asked for and why it is not, or not only, [`methods`](Self::methods). Set by [`SpecConfig::auto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) choice: Option<Choice>,
}

/// What was asked for, and why something else was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choice {
    pub(super) requested: Requested,
    pub(super) reason: String,
    /// What was chosen first, if that could not be had.
    #[serde(default)]
    pub(super) first: Vec<Method>,
}

/// How long drafts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DraftLength {
    /// In every round as long as pays by what was measured, and no draft when none does ([`crate::control`]). Where
    /// [drawn drafts](DraftModelSettings::probabilistic) are rejected by chance, the text of a seed then depends on what pays.
    #[default]
    Adaptive,
    /// As many tokens as the first method gives, in the order of [`Method::ALL`], up to this number.
    #[serde(untagged)]
    Fixed(u32),
}

/// Settings of `lookup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LookupSettings {
    /// The longest draft, 1 to 1024. Default: 32.
    pub max: u16,
}

/// Settings of a draft model, of heads, or of a draft that reads the target's layers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DraftModelSettings {
    /// The longest draft in tokens. Default: 16, or fewer where the draft cannot make so many.
    pub max: u32,
    /// Shorter drafts are thrown away. Default: 0.
    pub min: u32,
    /// Drafting stops at a token the draft gives a lower probability, 0 to 1. DSpark asks its confidence head instead.
    /// Default: 0.
    pub probability_min: f32,
    /// Draft tokens are drawn from the draft's distribution when the text is sampled, and rejected by it (Leviathan et al. 2023,
    /// section 2.3): the text has the target's distribution, though with a seed it is another text than without speculation.
    /// Else the most probable token is drafted and compared. For `draft-simple`, `draft-mtp` and DFlash2 drafts. Default: off.
    pub probabilistic: bool,
    /// The draft's candidates are selected on the device that computes them: for block drafts (DFlash, DSpark) of an engine with
    /// one slot, since llama.cpp mixes up several there. The other methods read the logits. Default: on.
    pub sample_on_device: bool,
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

/// Files of `ngram-cache`, as llama.cpp's lookup programs write them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NgramCacheSettings {
    /// Counts from a large collection of texts; read only, and must exist.
    pub fixed: Option<PathBuf>,
    /// Counts from earlier texts; read if it exists, and written at the end.
    pub learned: Option<PathBuf>,
}

impl Default for SpecConfig {
    fn default() -> Self {
        Self {
            methods: Vec::new(),
            draft_max: DRAFT_MAX,
            length: DraftLength::default(),
            loss_max: 0.01,
            lookup: LookupSettings::default(),
            draft_model: DraftModelSettings::default(),
            ngram_simple: NgramMapSettings::default(),
            ngram_map_k: NgramMapSettings::default(),
            ngram_map_k4v: NgramMapSettings::default(),
            ngram_mod: NgramModSettings::default(),
            ngram_cache: NgramCacheSettings::default(),
            choice: None,
        }
    }
}

impl Default for DraftModelSettings {
    fn default() -> Self {
        Self { max: 16, min: 0, probability_min: 0.0, probabilistic: false, sample_on_device: true }
    }
}

impl Default for LookupSettings {
    fn default() -> Self {
        Self { max: 32 }
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

    /// Sets [`SpecConfig::length`](field@SpecConfig::length).
    pub fn length(mut self, length: DraftLength) -> Self {
        self.length = length;
        self
    }

    /// Drafts of up to so many tokens, whatever they cost: [`DraftLength::Fixed`].
    pub fn fixed_length(self, tokens: u32) -> Self {
        self.length(DraftLength::Fixed(tokens))
    }

    /// Sets [`SpecConfig::lookup`](field@SpecConfig::lookup).
    pub fn lookup(mut self, settings: LookupSettings) -> Self {
        self.lookup = settings;
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

    /// Sets [`SpecConfig::ngram_cache`](field@SpecConfig::ngram_cache).
    pub fn ngram_cache(mut self, settings: NgramCacheSettings) -> Self {
        self.ngram_cache = settings;
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

    /// The longest draft of any method in tokens, when the draft model can make at most `limit`.
    pub(crate) fn longest(&self, limit: Option<u32>) -> u32 {
        /// What llama.cpp drafts at most from its lookup caches.
        const CACHE: u32 = 8;
        let length = |method: &Method| match method {
            Method::Lookup => self.lookup.max.into(),
            Method::NgramSimple => self.ngram_simple.draft.into(),
            Method::NgramMapK => self.ngram_map_k.draft.into(),
            Method::NgramMapK4v => self.ngram_map_k4v.draft.into(),
            Method::NgramMod => self.ngram_mod.max.into(),
            Method::NgramCache => CACHE,
            _ => self.draft_model.max.min(limit.unwrap_or(u32::MAX)),
        };
        let longest = self.methods.iter().map(length).max().unwrap_or(0).min(self.draft_max);
        match self.length {
            DraftLength::Adaptive => longest,
            DraftLength::Fixed(tokens) => longest.min(tokens),
        }
    }

    /// The files of `ngram-cache`, if it is chosen, and whether they must exist.
    pub(crate) fn cache_files(&self) -> impl Iterator<Item = (&Path, bool)> {
        let files = [(&self.ngram_cache.fixed, true), (&self.ngram_cache.learned, false)];
        let files = files.into_iter().filter(|_| self.methods.contains(&Method::NgramCache));
        files.filter_map(|(path, must_exist)| Some((path.as_deref()?, must_exist)))
    }

    /// Every number with its range.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        const MODELS: &[Method] =
            &[Method::DraftSimple, Method::DraftEagle3, Method::DraftMtp, Method::DraftDflash, Method::DraftDspark];
        let range = |of, setting, value: f64, from: f64, to: f64| Range { of, setting, value, from, to };
        let model = self.draft_model;
        let mut ranges = vec![
            range(&[], "draft_max", self.draft_max.into(), 1.0, 1024.0),
            range(&[], "loss_max", self.loss_max, 0.0, 1.0),
            range(&[Method::Lookup], "lookup.max", self.lookup.max.into(), 1.0, 1024.0),
            range(MODELS, "draft_model.max", model.max.into(), 1.0, 1024.0),
            range(MODELS, "draft_model.min", model.min.into(), 0.0, model.max.into()),
            range(MODELS, "draft_model.probability_min", model.probability_min.into(), 0.0, 1.0),
        ];
        let maps: [(&[Method], _, _, _, _); 3] = [
            (
                &[Method::NgramSimple],
                "ngram_simple.lookup",
                "ngram_simple.draft",
                "ngram_simple.hits_min",
                self.ngram_simple,
            ),
            (&[Method::NgramMapK], "ngram_map_k.lookup", "ngram_map_k.draft", "ngram_map_k.hits_min", self.ngram_map_k),
            (
                &[Method::NgramMapK4v],
                "ngram_map_k4v.lookup",
                "ngram_map_k4v.draft",
                "ngram_map_k4v.hits_min",
                self.ngram_map_k4v,
            ),
        ];
        for (of, lookup, draft, hits, settings) in maps {
            ranges.push(range(of, lookup, settings.lookup.into(), 1.0, 1024.0));
            // llama.cpp drops a match shorter than the tokens looked up, so a smaller value would never draft.
            ranges.push(range(of, draft, settings.draft.into(), settings.lookup.into(), 1024.0));
            ranges.push(range(of, hits, settings.hits_min.into(), 1.0, u16::MAX.into()));
        }
        if let DraftLength::Fixed(tokens) = self.length {
            ranges.push(range(&[], "length", tokens.into(), 0.0, 1024.0));
        }
        let table = self.ngram_mod;
        ranges.push(range(&[Method::NgramMod], "ngram_mod.lookup", table.lookup.into(), 1.0, 1024.0));
        ranges.push(range(&[Method::NgramMod], "ngram_mod.max", table.max.into(), 1.0, 1024.0));
        ranges.push(range(&[Method::NgramMod], "ngram_mod.min", table.min.into(), 0.0, table.max.into()));
        ranges
    }

    /// Whether all numbers are in their ranges, also those of methods that are not chosen.
    pub(crate) fn validate(&self) -> Result<()> {
        match self.ranges().into_iter().find(|range| !range.holds()) {
            None => Ok(()),
            Some(Range { setting, value, from, to, .. }) => {
                Err(Error::Setting { setting, value: value.to_string(), expected: format!("{from} to {to}") })
            }
        }
    }
}

/// A number and where it must be.
pub(crate) struct Range {
    /// The methods that read it; empty for all.
    pub(crate) of: &'static [Method],
    pub(crate) setting: &'static str,
    pub(crate) value: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Range {
    pub(crate) fn holds(&self) -> bool {
        (self.from..=self.to).contains(&self.value)
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
