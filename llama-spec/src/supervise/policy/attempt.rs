//! A load as it is tried: what was asked for, or with less.

use crate::options::{FlashAttention, SplitMode};
use crate::spec::{Method, SpecConfig, Speculation};
use crate::supervise::Load;
use std::fmt;

/// Something that was asked for and is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Tensor parallelism: layers are split instead.
    TensorSplit,
    /// The fused attention kernels.
    FlashAttention,
    /// Methods that draft with a model or with heads, and the draft.
    ModelDrafts,
    /// All speculation.
    Speculation,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TensorSplit => "with whole layers on each GPU instead of tensor parallelism",
            Self::FlashAttention => "without flash attention",
            Self::ModelDrafts => "without the methods that draft with a model",
            Self::Speculation => "without speculation",
        })
    }
}

/// A load, and what it lacks of the one that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attempt {
    pub(super) load: Load,
    /// In the order in which they were made.
    pub(super) cuts: Vec<Cut>,
    /// Why speculation is less than what was asked for, if it was cut.
    pub(super) speculation_cut: Option<String>,
    /// Whether it has served in just this form.
    pub(super) proven: bool,
}

impl Attempt {
    /// What the user asked for.
    pub(super) fn whole(load: Load) -> Self {
        Self { load, cuts: Vec::new(), speculation_cut: None, proven: false }
    }

    /// With the least taken from it that can make a difference to whether it loads; nothing if there is nothing left to take.
    /// Speculation stays as it is until nothing else is left, also where layers are split instead of tensors.
    pub(super) fn with_less(&self, what: &str) -> Option<Self> {
        let context = &self.load.context;
        let mut less = Self { proven: false, ..self.clone() };
        if self.load.split_mode == SplitMode::Tensor {
            less.load.split_mode = SplitMode::Layer;
            less.cuts.push(Cut::TensorSplit);
            return Some(less);
        }
        // A quantized V cache can only be read by the fused kernels.
        if context.flash_attention != FlashAttention::Off && !context.kv_type_v.is_quantized() {
            less.load.context.flash_attention = FlashAttention::Off;
            less.cuts.push(Cut::FlashAttention);
            return Some(less);
        }
        // What the files would be used for is not known before they are loaded: then all of it goes at once.
        let methods = self.load.speculation.as_ref().map(|config| config.methods.as_slice());
        if methods.is_some_and(<[_]>::is_empty) {
            return None;
        }
        let lookup: Vec<Method> =
            methods.unwrap_or_default().iter().copied().filter(|method| method.is_lookup()).collect();
        let some_stay = !lookup.is_empty() && methods.is_some_and(|methods| lookup.len() < methods.len());
        Some(match some_stay {
            true => less.speculating(lookup, Cut::ModelDrafts, what),
            false => less.speculating(Vec::new(), Cut::Speculation, what),
        })
    }

    /// Without the methods that draft with a model or with heads, when these were active: only lookup methods among them stay.
    pub(super) fn without_model_drafts(&self, active: &Speculation, what: &str) -> Self {
        let lookup = active.effective.iter().copied().filter(|method| method.is_lookup()).collect();
        Self { proven: false, ..self.clone() }.speculating(lookup, Cut::ModelDrafts, what)
    }

    fn speculating(mut self, lookup: Vec<Method>, cut: Cut, what: &str) -> Self {
        let asked = self.load.speculation.take().unwrap_or_default();
        // Made anew, so that it does not go on telling why its methods were chosen.
        let config = SpecConfig::new(lookup)
            .draft_max(asked.draft_max)
            .draft_model(asked.draft_model)
            .ngram_simple(asked.ngram_simple)
            .ngram_map_k(asked.ngram_map_k)
            .ngram_map_k4v(asked.ngram_map_k4v)
            .ngram_mod(asked.ngram_mod)
            .ngram_cache(asked.ngram_cache);
        self.load.speculation = Some(config);
        self.load.draft = None;
        if !self.cuts.contains(&cut) {
            self.cuts.push(cut);
        }
        self.speculation_cut = Some(format!("runtime_error: {what}"));
        self
    }

    /// Whether a method that drafts with a model or with heads can be active.
    pub(super) fn may_draft_with_a_model(&self) -> bool {
        self.load.speculation.as_ref().is_none_or(SpecConfig::needs_draft)
    }

    /// What it lacks, for a sentence.
    pub(super) fn lacks(&self) -> String {
        let cuts: Vec<String> = self.cuts.iter().map(Cut::to_string).collect();
        cuts.join(", ")
    }
}

/// The active methods that draft with a model or with heads, for a sentence; nothing if there are none.
pub(super) fn model_drafters(active: &Speculation) -> Option<String> {
    let names: Vec<&str> =
        active.effective.iter().filter(|method| !method.is_lookup()).map(|method| method.name()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::KvType;
    use crate::spec::NgramModSettings;

    fn load(split_mode: SplitMode, speculation: Option<SpecConfig>) -> Load {
        Load { split_mode, speculation, draft: Some("draft.gguf".into()), ..Load::new("target.gguf") }
    }

    /// Everything that is tried, one below the other: the last cut, and the methods.
    fn rungs(load: Load) -> Vec<(Cut, String)> {
        let mut attempt = Attempt::whole(load);
        let mut rungs = Vec::new();
        while let Some(less) = attempt.with_less("it failed") {
            let methods = less.load.speculation.as_ref().map_or("auto".into(), SpecConfig::names);
            assert_eq!(less.load.draft.is_some(), less.load.speculation.as_ref().is_none_or(SpecConfig::needs_draft));
            rungs.push((*less.cuts.last().unwrap(), methods));
            attempt = less;
        }
        rungs
    }

    #[test]
    fn least_is_taken_first() {
        let chain = SpecConfig::new([Method::NgramMod, Method::DraftSimple]);
        let names = "ngram-mod,draft-simple";
        assert_eq!(
            rungs(load(SplitMode::Tensor, Some(chain))),
            [
                (Cut::TensorSplit, names.into()),
                (Cut::FlashAttention, names.into()),
                (Cut::ModelDrafts, "ngram-mod".into()),
                (Cut::Speculation, String::new())
            ]
        );
        assert_eq!(
            rungs(load(SplitMode::Layer, None)),
            [(Cut::FlashAttention, "auto".into()), (Cut::Speculation, String::new())]
        );
        let mut quantized = load(SplitMode::Layer, Some(SpecConfig::new([Method::DraftSimple])));
        quantized.context.kv_type_v = KvType::Q8_0;
        assert_eq!(rungs(quantized), [(Cut::Speculation, String::new())]);
        let mut plain = load(SplitMode::Layer, Some(SpecConfig::off()));
        plain.context.flash_attention = FlashAttention::Off;
        assert_eq!(rungs(plain), []);
    }

    #[test]
    fn chains_keep_what_needs_no_model_and_its_settings() {
        let settings = NgramModSettings { lookup: 5, ..NgramModSettings::default() };
        let asked = SpecConfig::new([Method::NgramMod, Method::NgramSimple, Method::DraftMtp]).ngram_mod(settings);
        let attempt = Attempt::whole(load(SplitMode::Layer, Some(asked)));
        let active = Speculation { effective: vec![Method::NgramMod, Method::DraftMtp], ..Speculation::default() };
        let less = attempt.without_model_drafts(&active, "it crashed");
        let config = less.load.speculation.unwrap();
        assert_eq!(config.methods, [Method::NgramMod], "what was not active does not come into force now");
        assert_eq!(config.ngram_mod, settings);
        assert_eq!(less.load.draft, None);
        assert_eq!(less.speculation_cut.unwrap(), "runtime_error: it crashed");
    }
}
