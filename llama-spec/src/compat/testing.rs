//! Descriptions and pairs written by hand, for the tests of the rules.

use super::facts::{Side, TokenDifference};
use super::{Check, Conditions, Facts, Observed};
use crate::file::{Description, DraftVocabulary, Kind, LayerKind, TokenizerSummary, VocabularyType};
use crate::spec::{Method, SpecConfig};
use std::path::PathBuf;

/// Two models, settings, and what is known about them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub target: Description,
    pub draft: Option<Description>,
    pub config: SpecConfig,
    pub conditions: Conditions,
    pub same_file: bool,
    pub difference: Option<TokenDifference>,
    pub early_difference: Option<TokenDifference>,
    pub unreadable_caches: Vec<(PathBuf, String)>,
    pub observed: Observed,
    pub anchor_first: bool,
    pub head_rows: Option<u64>,
    pub missing_head_tensor: Option<(u32, &'static str)>,
}

impl Case {
    pub(crate) fn new(target: Description, draft: Option<Description>, methods: &[Method]) -> Self {
        Self {
            target,
            draft,
            config: SpecConfig::new(methods),
            conditions: Conditions::default(),
            same_file: false,
            difference: None,
            early_difference: None,
            unreadable_caches: Vec::new(),
            observed: Observed::default(),
            anchor_first: true,
            head_rows: None,
            missing_head_tensor: None,
        }
    }

    /// The same with something changed.
    pub(crate) fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The same with something of the target changed.
    pub(crate) fn target(mut self, change: impl FnOnce(&mut Description)) -> Self {
        change(&mut self.target);
        self
    }

    /// The same with something of the draft changed.
    pub(crate) fn draft(mut self, change: impl FnOnce(&mut Description)) -> Self {
        change(self.draft.as_mut().expect("a case with a draft"));
        self
    }

    /// The same with one condition changed.
    pub(crate) fn conditions(mut self, change: impl FnOnce(Conditions) -> Conditions) -> Self {
        self.conditions = change(self.conditions);
        self
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            target: Side { missing_head_tensor: self.missing_head_tensor, ..Side::from(&self.target) },
            draft: self.draft.as_ref().map(|draft| Side {
                anchor_first: self.anchor_first,
                head_rows: self.head_rows,
                ..Side::from(draft)
            }),
            config: &self.config,
            conditions: &self.conditions,
            same_file: self.same_file,
            difference: self.difference.clone(),
            early_difference: self.early_difference.clone(),
            unreadable_caches: self.unreadable_caches.clone(),
            observed: self.observed,
        }
    }

    pub(crate) fn checks(&self) -> Vec<Check> {
        super::rule::check_all(&self.facts())
    }

    /// The codes of the rules that do not hold.
    pub(crate) fn failed(&self) -> Vec<String> {
        self.checks().into_iter().filter(|check| !check.passed).map(|check| check.code).collect()
    }
}

pub(crate) fn differs(id: u32) -> Option<TokenDifference> {
    Some(TokenDifference { id, target: "one".into(), draft: "two".into() })
}

/// A model of 4 layers of width 64 that generates text.
pub(crate) fn model(architecture: &str) -> Description {
    Description {
        path: PathBuf::from(format!("{architecture}.gguf")),
        parts: vec![PathBuf::from(format!("{architecture}.gguf"))],
        kind: Kind::Generative,
        architecture: Some(architecture.to_owned()),
        name: None,
        quantization: "F16".into(),
        file_bytes: 1 << 20,
        weight_bytes: 1 << 20,
        parameters: 1 << 19,
        trained_context: Some(8192),
        width: Some(64),
        output_width: Some(64),
        block_count: Some(4),
        layers: 4,
        mtp_layers: 0,
        mtp_heads: false,
        trunk: true,
        layer_kinds: vec![LayerKind::Attention; 4],
        sliding_window: None,
        heads: vec![2; 4],
        kv_heads: vec![2; 4],
        key_length: Some(32),
        value_length: Some(32),
        key_length_swa: None,
        value_length_swa: None,
        shared_layers: vec![false; 4],
        latent_attention: false,
        experts: None,
        experts_used: None,
        target_layers: Vec::new(),
        target_width: None,
        block_size: None,
        own_embeddings: true,
        own_head: true,
        draft_vocabulary: None,
        confidence_head: false,
        causal: true,
        pooling: None,
        multi_axis_rope: false,
        mask_token: None,
        chat_template: false,
        tokenizer: Some(tokenizer()),
        state_elements: 0,
        defects: Vec::new(),
    }
}

fn tokenizer() -> TokenizerSummary {
    TokenizerSummary {
        model: "gpt2".into(),
        vocabulary: VocabularyType::Bpe,
        pre: None,
        size: 1000,
        bos: Some(1),
        eos: Some(2),
        eot: None,
        unk: None,
        sep: None,
        pad: None,
        mask: None,
        add_bos: true,
        add_eos: false,
        add_sep: false,
    }
}

/// The tokenizer of a case's model, to change it.
pub(crate) fn tokens(model: &mut Description) -> &mut TokenizerSummary {
    model.tokenizer.as_mut().expect("a model with a tokenizer")
}

fn small(architecture: &str, kind: Kind) -> Description {
    Description { kind, weight_bytes: 1 << 16, ..model(architecture) }
}

/// A llama target with a plain draft.
pub(crate) fn plain() -> Case {
    Case::new(model("llama"), Some(small("llama", Kind::Generative)), &[Method::DraftSimple])
}

/// A target that looks up.
pub(crate) fn lookup(architecture: &str) -> Case {
    Case::new(model(architecture), None, &[Method::NgramMod])
}

/// A model with heads in its own file.
pub(crate) fn embedded(architecture: &str) -> Case {
    let target = Description {
        kind: Kind::GenerativeWithMtp,
        block_count: Some(5),
        mtp_layers: 1,
        mtp_heads: true,
        ..model(architecture)
    };
    Case::new(target, None, &[Method::DraftMtp])
}

/// A target with heads in a file of their own.
pub(crate) fn separate() -> Case {
    let draft = Description {
        kind: Kind::MtpHead,
        block_count: Some(5),
        mtp_layers: 1,
        mtp_heads: true,
        trunk: false,
        ..small("qwen35", Kind::MtpHead)
    };
    Case::new(model("qwen35"), Some(draft), &[Method::DraftMtp])
}

/// A Gemma 4 target with its assistant.
pub(crate) fn assistant() -> Case {
    let mut target = model("gemma4");
    target.layer_kinds =
        vec![LayerKind::SlidingWindow, LayerKind::Attention, LayerKind::SlidingWindow, LayerKind::Attention];
    target.sliding_window = Some(16);
    (target.key_length_swa, target.value_length_swa) = (Some(16), Some(16));
    let draft = Description {
        width: Some(32),
        mtp_layers: 4,
        layers: 0,
        layer_kinds: Vec::new(),
        trunk: false,
        key_length_swa: Some(16),
        value_length_swa: Some(16),
        sliding_window: Some(16),
        ..small("gemma4-assistant", Kind::Gemma4Assistant)
    };
    Case::new(target, Some(draft), &[Method::DraftMtp])
}

/// A llama target with an EAGLE-3 draft.
pub(crate) fn eagle3() -> Case {
    let draft = Description {
        block_count: Some(1),
        layers: 1,
        target_layers: vec![0, 2, 3],
        target_width: Some(64),
        ..small("eagle3", Kind::Eagle3)
    };
    Case::new(model("llama"), Some(draft), &[Method::DraftEagle3])
}

/// A llama target with a block-diffusion draft.
pub(crate) fn dflash() -> Case {
    let draft = Description {
        target_layers: vec![1, 3],
        block_size: Some(8),
        mask_token: Some(999),
        ..small("dflash", Kind::Dflash)
    };
    Case::new(model("llama"), Some(draft), &[Method::DraftDflash])
}

/// A llama target with a block-diffusion draft with a Markov head.
pub(crate) fn dspark() -> Case {
    let case = dflash().draft(|draft| (draft.kind, draft.confidence_head) = (Kind::Dspark, true));
    Case { config: SpecConfig::new([Method::DraftDspark]), ..case }
}

/// A map of a reduced vocabulary.
pub(crate) fn reduced() -> DraftVocabulary {
    DraftVocabulary { kind: "i64", size: 100, largest: Some(999), smallest: Some(0) }
}
