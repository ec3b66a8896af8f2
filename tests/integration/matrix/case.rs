//! The cases: files, methods and settings.

use super::drive::{self, Outcome};
use llama_spec::compat::{Conditions, Incompatible};
use llama_spec::file::ModelFile;
use llama_spec::options::{FlashAttention, KvType};
use llama_spec::spec::{Method, NgramMapSettings, NgramModSettings, SpecConfig};
use llama_spec_tests::zoo;
use llama_sys as sys;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

/// Files of the zoo, methods and settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) target: String,
    pub(super) draft: Option<String>,
    pub(super) methods: Vec<Method>,
    pub(super) settings: Settings,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) draft_max: u32,
    pub(super) slots: u32,
    pub(super) batch: u32,
    pub(super) micro_batch: u32,
    pub(super) kv_types: [KvType; 2],
    pub(super) flash_attention: FlashAttention,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            draft_max: 3,
            slots: 1,
            batch: 256,
            micro_batch: 64,
            kv_types: [KvType::F16; 2],
            flash_attention: FlashAttention::Auto,
        }
    }
}

/// An outcome between processes.
#[derive(Serialize, Deserialize)]
pub(super) enum Told {
    Works { drafted: usize, accepted: usize, same_text: bool },
    Refused { step: String, by_shim: bool, why: String },
}

impl From<&Outcome> for Told {
    fn from(outcome: &Outcome) -> Self {
        match outcome.clone() {
            Outcome::Works { drafted, accepted, same_text } => Self::Works { drafted, accepted, same_text },
            Outcome::Refused { step, by_shim, why } => Self::Refused { step: step.to_owned(), by_shim, why },
        }
    }
}

const MODEL_METHODS: [Method; 5] =
    [Method::DraftSimple, Method::DraftEagle3, Method::DraftMtp, Method::DraftDflash, Method::DraftDspark];

/// Every target with every draft and every method, and pairs that work with settings that matter.
pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let settings = Settings::default();
    let case = |target: &str, draft: Option<&str>, methods: &[Method]| Case {
        target: target.to_owned(),
        draft: draft.map(str::to_owned),
        methods: methods.to_vec(),
        settings: settings.clone(),
    };
    for target in files() {
        // Our own lookup is nothing that llama.cpp could be asked about.
        let theirs = Method::ALL.into_iter().filter(|method| raw_method(*method).is_some());
        for method in theirs.filter(|method| method.is_lookup() || *method == Method::DraftMtp) {
            cases.push(case(target, None, &[method]));
        }
        cases.push(case(target, None, &[Method::NgramMod, Method::DraftMtp]));
        if !open(target).kind().is_generative() {
            continue;
        }
        for draft in files() {
            for method in MODEL_METHODS {
                cases.push(case(target, Some(draft), &[method]));
            }
            cases.push(case(target, Some(draft), &[Method::NgramMod]));
        }
    }
    for (target, draft, method) in [
        ("target", Some("draft-0.8"), Method::DraftSimple),
        ("target", Some("eagle3"), Method::DraftEagle3),
        ("target", Some("eagle3-borrowing"), Method::DraftEagle3),
        ("target", Some("dflash"), Method::DraftDflash),
        ("target", Some("dspark"), Method::DraftDspark),
        ("gemma4", Some("gemma4-assistant"), Method::DraftMtp),
        ("qwen35-mtp", None, Method::DraftMtp),
        ("qwen35", Some("qwen35-mtp-head"), Method::DraftMtp),
        ("chained-mtp", None, Method::DraftMtp),
        ("mamba", None, Method::NgramMod),
        ("mamba", Some("mamba-draft-0.8"), Method::DraftSimple),
        ("qwen35", None, Method::NgramMod),
    ] {
        cases.push(case(target, draft, &[Method::NgramMod, method]));
        let with = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            Case { settings, ..case(target, draft, &[method]) }
        };
        for slots in [2, 5, 257] {
            cases.push(with(&|settings| settings.slots = slots));
        }
        for draft_max in [1, 8, 15, 16, 40, 100] {
            cases.push(with(&|settings| settings.draft_max = draft_max));
            cases.push(with(&|settings| (settings.draft_max, settings.slots) = (draft_max, 3)));
        }
        for (batch, micro_batch) in [(4, 4), (8, 4), (3, 3), (2, 2), (1, 1), (256, 2), (64, 256)] {
            cases.push(with(&|settings| (settings.batch, settings.micro_batch) = (batch, micro_batch)));
            cases.push(with(&|settings| {
                (settings.batch, settings.micro_batch, settings.slots) = (batch, micro_batch, 2);
            }));
        }
        for k in [KvType::F16, KvType::F32, KvType::Q8_0, KvType::Q4_0] {
            for v in [KvType::F16, KvType::Bf16, KvType::Q8_0] {
                for flash_attention in [FlashAttention::Auto, FlashAttention::Off, FlashAttention::On] {
                    cases.push(with(&|settings| {
                        (settings.kv_types, settings.flash_attention) = ([k, v], flash_attention);
                    }));
                }
            }
        }
    }
    cases
}

/// All files of the zoo but the large ones and those that are like another.
pub(super) fn files() -> Vec<&'static str> {
    let alike = ["target-f16", "draft-0.5", "draft-0.95", "chat", "recall-draft-0.8"];
    let left_out = |name: &&str| name.starts_with("bench") || name.starts_with("huge") || alike.contains(name);
    zoo::named().into_iter().map(|named| named.name).filter(|name| !left_out(name)).collect()
}

/// A file of the zoo, opened once.
pub(super) fn open(name: &str) -> ModelFile {
    static FILES: LazyLock<Mutex<HashMap<String, ModelFile>>> = LazyLock::new(Mutex::default);
    let mut files = FILES.lock().unwrap();
    files.entry(name.to_owned()).or_insert_with(|| ModelFile::open(zoo::file(name)).unwrap()).clone()
}

impl Case {
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap()
    }

    pub(super) fn parse(line: &str) -> Self {
        serde_json::from_str(line).unwrap()
    }

    /// What the library says.
    pub(super) fn check(&self) -> Result<SpecConfig, Incompatible> {
        let Settings { draft_max, slots, batch, micro_batch, kv_types: [k, v], flash_attention } = self.settings;
        let mut config = SpecConfig::new(self.methods.clone()).draft_max(draft_max);
        config.draft_model.max = draft_max;
        config.ngram_mod = NgramModSettings { lookup: 8, min: 2, max: draft_max.max(2) as u16 };
        let map = NgramMapSettings { lookup: 4, draft: draft_max.max(4) as u16, ..Default::default() };
        (config.ngram_simple, config.ngram_map_k, config.ngram_map_k4v) = (map, map, map);
        let conditions = Conditions::default()
            .context(CONTEXT)
            .slots(slots)
            .batch(batch)
            .micro_batch(micro_batch)
            .kv_types(k, v)
            .draft_kv_types(k, v)
            .flash_attention(flash_attention);
        config.check(&open(&self.target), self.draft.as_deref().map(open).as_ref(), &conditions)
    }

    /// What llama.cpp does.
    pub(super) fn drive(&self) -> Outcome {
        let (target, draft) = (zoo::file(&self.target), self.draft.as_deref().map(zoo::file));
        let settings = &self.settings;
        drive::drive(&drive::Case {
            target: &target,
            draft: draft.as_deref(),
            types: self.methods.iter().filter_map(|method| raw_method(*method)).collect(),
            draft_max: settings.draft_max,
            slots: settings.slots,
            context: CONTEXT,
            batch: settings.batch,
            micro_batch: settings.micro_batch,
            kv_types: settings.kv_types.map(raw_type),
            flash_attention: match settings.flash_attention {
                FlashAttention::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
                FlashAttention::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
                FlashAttention::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
            },
        })
    }
}

/// Room of each sequence in tokens.
const CONTEXT: u32 = 256;

/// As llama.cpp numbers it, where it has it.
fn raw_method(method: Method) -> Option<sys::lsys_spec_type> {
    Some(match method {
        Method::Lookup => return None,
        Method::NgramSimple => sys::LSYS_SPEC_NGRAM_SIMPLE,
        Method::NgramMapK => sys::LSYS_SPEC_NGRAM_MAP_K,
        Method::NgramMapK4v => sys::LSYS_SPEC_NGRAM_MAP_K4V,
        Method::NgramMod => sys::LSYS_SPEC_NGRAM_MOD,
        Method::NgramCache => sys::LSYS_SPEC_NGRAM_CACHE,
        Method::DraftSimple => sys::LSYS_SPEC_DRAFT_SIMPLE,
        Method::DraftEagle3 => sys::LSYS_SPEC_DRAFT_EAGLE3,
        Method::DraftMtp => sys::LSYS_SPEC_DRAFT_MTP,
        Method::DraftDflash => sys::LSYS_SPEC_DRAFT_DFLASH,
        Method::DraftDspark => sys::LSYS_SPEC_DRAFT_DSPARK,
    })
}

fn raw_type(kind: KvType) -> sys::ggml_type {
    match kind {
        KvType::F32 => sys::GGML_TYPE_F32,
        KvType::F16 => sys::GGML_TYPE_F16,
        KvType::Bf16 => sys::GGML_TYPE_BF16,
        KvType::Q8_0 => sys::GGML_TYPE_Q8_0,
        KvType::Q5_1 => sys::GGML_TYPE_Q5_1,
        KvType::Q5_0 => sys::GGML_TYPE_Q5_0,
        KvType::Q4_1 => sys::GGML_TYPE_Q4_1,
        KvType::Q4_0 => sys::GGML_TYPE_Q4_0,
        KvType::Iq4Nl => sys::GGML_TYPE_IQ4_NL,
    }
}
