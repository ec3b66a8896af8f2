//! Choosing methods one by one, each with its settings.

use super::{
    DraftLength, DraftModelSettings, LookupSettings, Method, NgramCacheSettings, NgramMapSettings, NgramModSettings,
    SpecConfig,
};
use crate::compat::{Conditions, Incompatible};
use crate::error::Result;
use crate::file::ModelFile;

/// A choice of methods with their settings. Made by [`SpecConfig::builder`].
///
/// ```
/// use llama_spec::spec::{DraftModelSettings, Method, SpecConfig};
/// let settings = DraftModelSettings { max: 6, ..Default::default() };
/// let config = SpecConfig::builder().ngram_mod(Default::default()).draft_simple(settings).draft_max(8).build()?;
/// assert_eq!(config.methods, [Method::NgramMod, Method::DraftSimple]);
/// # Ok::<_, llama_spec::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SpecBuilder {
    config: SpecConfig,
}

impl SpecConfig {
    /// Begins with no method.
    pub fn builder() -> SpecBuilder {
        SpecBuilder::default()
    }
}

macro_rules! model_methods {
    ($($name:ident: $method:ident, $what:literal;)*) => {
        $(
            #[doc = concat!("Adds ", $what, " There can be one method that drafts with a model or with heads.")]
            pub fn $name(mut self, settings: DraftModelSettings) -> Self {
                self.config.draft_model = settings;
                self.add(Method::$method)
            }
        )*
    };
}

macro_rules! lookup_methods {
    ($($name:ident: $method:ident, $settings:ty;)*) => {
        $(
            #[doc = concat!("Adds [`Method::", stringify!($method), "`].")]
            pub fn $name(mut self, settings: $settings) -> Self {
                self.config.$name = settings;
                self.add(Method::$method)
            }
        )*
    };
}

impl SpecBuilder {
    model_methods! {
        draft_simple: DraftSimple, "`draft-simple`: a small model of the same vocabulary.";
        eagle3: DraftEagle3, "`draft-eagle3`: an EAGLE-3 draft.";
        mtp: DraftMtp, "`draft-mtp`: the heads of a draft, or without one those of the target.";
        dflash: DraftDflash, "`draft-dflash`: a block-diffusion draft.";
        dspark: DraftDspark, "`draft-dspark`: a block-diffusion draft with a Markov head.";
    }

    lookup_methods! {
        lookup: Lookup, LookupSettings;
        ngram_simple: NgramSimple, NgramMapSettings;
        ngram_map_k: NgramMapK, NgramMapSettings;
        ngram_map_k4v: NgramMapK4v, NgramMapSettings;
        ngram_mod: NgramMod, NgramModSettings;
        ngram_cache: NgramCache, NgramCacheSettings;
    }

    /// How long drafts are.
    pub fn length(mut self, length: DraftLength) -> Self {
        self.config.length = length;
        self
    }

    /// The longest draft of any method, in tokens.
    pub fn draft_max(mut self, tokens: u32) -> Self {
        self.config.draft_max = tokens;
        self
    }

    /// The configuration, with its numbers checked. Whether it goes with files is not checked: see [`SpecBuilder::check`].
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for the first number out of its range.
    pub fn build(self) -> Result<SpecConfig> {
        self.config.validate()?;
        Ok(self.config)
    }

    /// The configuration, checked with files and conditions.
    ///
    /// # Errors
    /// Every rule that refuses it.
    pub fn check(
        self,
        target: &ModelFile,
        draft: Option<&ModelFile>,
        conditions: &Conditions,
    ) -> Result<SpecConfig, Incompatible> {
        self.config.check(target, draft, conditions)
    }

    fn add(mut self, method: Method) -> Self {
        if !self.config.methods.contains(&method) {
            self.config.methods.push(method);
        }
        self
    }
}
