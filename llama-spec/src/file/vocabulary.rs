//! Reads the tokenizer by the rules of `llama_vocab::impl::load` in the pinned `src/llama-vocab.cpp`.

use super::facts::{Facts, Need};
use super::tokenizer::{Tokenizer, TokenizerSummary, VocabularyType};
use crate::gguf::{Header, ItemType, Value};
use std::sync::Arc;

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";

/// What follows from the type of a vocabulary before the file has its say.
#[derive(Clone, Copy, Debug, Default)]
struct Defaults {
    bos: Option<u32>,
    eos: Option<u32>,
    unk: Option<u32>,
    sep: Option<u32>,
    pad: Option<u32>,
    mask: Option<u32>,
    add_bos: bool,
    add_eos: bool,
    add_sep: bool,
}

/// The tokenizer, if llama.cpp can read it; what is wrong with it is noted in `facts`.
pub(super) fn read(facts: &mut Facts<'_>, header: &Arc<Header>) -> Option<Tokenizer> {
    let model = facts.text(MODEL, Need::Required)?;
    let pre = facts.text("tokenizer.ggml.pre", Need::Optional);
    facts.u32("tokenizer.ggml.token_type_count", Need::Optional);
    let Some((vocabulary, defaults)) = vocabulary_type(&model, pre.as_deref()) else {
        facts.refused(MODEL, format!("{model:?} is not the name of a tokenizer that llama.cpp knows"));
        return None;
    };
    let mut summary = TokenizerSummary {
        model,
        vocabulary,
        pre,
        size: 0,
        bos: defaults.bos,
        eos: defaults.eos,
        eot: None,
        unk: defaults.unk,
        sep: defaults.sep,
        pad: defaults.pad,
        mask: defaults.mask,
        add_bos: defaults.add_bos,
        add_eos: defaults.add_eos,
        add_sep: defaults.add_sep,
    };
    if vocabulary == VocabularyType::None {
        let key = facts.key("vocab_size");
        summary.size = facts.u32(&key, Need::Optional).unwrap_or(0);
        return Some(Tokenizer { summary, header: header.clone(), texts: Vec::new() });
    }
    if vocabulary == VocabularyType::Bpe {
        check_pre_tokenizer(facts, &summary);
        check_merges(facts, &summary);
    }
    if vocabulary == VocabularyType::Ugm {
        check_character_map(facts);
    }
    let tokens = match facts.value(TOKENS) {
        Some(Value::Array(array)) if array.item_type() == ItemType::Text => array.len(),
        Some(value) => {
            facts.refused(TOKENS, format!("of type {}; it must be an array of text", value.type_name()));
            return None;
        }
        None => {
            facts.refused(TOKENS, "missing; it must be an array of text");
            return None;
        }
    };
    check_parallel(facts, "tokenizer.ggml.scores", &[ItemType::F32, ItemType::I32], tokens);
    check_parallel(facts, "tokenizer.ggml.token_type", &[ItemType::I32], tokens);
    check_options(facts, vocabulary);
    // The number of items is limited to far less than u32::MAX.
    summary.size = tokens as u32;
    read_special(facts, &mut summary);

    let tokenizer = Tokenizer { summary, header: header.clone(), texts: header.text_positions(TOKENS) };
    if let Some((one, other)) = tokenizer.double() {
        let text = String::from_utf8_lossy(tokenizer.text(one).unwrap_or_default()).into_owned();
        facts.aborts(TOKENS, format!("the tokens {one} and {other} have the same text {text:?}"));
    }
    Some(tokenizer)
}

fn vocabulary_type(model: &str, pre: Option<&str>) -> Option<(VocabularyType, Defaults)> {
    let none = Defaults::default();
    Some(match model {
        "no_vocab" | "none" => (VocabularyType::None, none),
        "llama" => (VocabularyType::Spm, Defaults { bos: Some(1), eos: Some(2), unk: Some(0), add_bos: true, ..none }),
        "bert" => (
            VocabularyType::Wpm,
            Defaults {
                bos: Some(101),
                unk: Some(100),
                sep: Some(102),
                pad: Some(0),
                mask: Some(103),
                add_bos: true,
                add_sep: true,
                ..none
            },
        ),
        "gpt2" | "hybriddna" | "whitespace" => {
            let pre = pre.unwrap_or_default();
            let (add_bos, add_sep) = (PRE_TOKENIZERS_WITH_BOS.contains(&pre), PRE_TOKENIZERS_WITH_SEP.contains(&pre));
            (VocabularyType::Bpe, Defaults { bos: Some(11), eos: Some(11), add_bos, add_sep, ..none })
        }
        "gemma4" => (VocabularyType::Bpe, none),
        "t5" => (VocabularyType::Ugm, Defaults { eos: Some(1), unk: Some(2), pad: Some(0), add_eos: true, ..none }),
        "rwkv" => (VocabularyType::Rwkv, none),
        "test" => (VocabularyType::Test, none),
        "plamo2" | "plamo3" => {
            let kind = if model == "plamo2" { VocabularyType::Plamo2 } else { VocabularyType::Plamo3 };
            (kind, Defaults { bos: Some(1), eos: Some(2), unk: Some(0), pad: Some(3), ..none })
        }
        _ => return None,
    })
}

fn check_pre_tokenizer(facts: &mut Facts<'_>, summary: &TokenizerSummary) {
    let Some(pre) = summary.pre.as_deref().filter(|pre| !pre.is_empty()) else { return };
    let known = [PRE_TOKENIZERS, PRE_TOKENIZERS_WITH_BOS, PRE_TOKENIZERS_WITH_SEP];
    if summary.model != "gemma4" && !known.iter().any(|names| names.contains(&pre)) {
        let why = format!("{pre:?} is not the name of a pre-tokenizer that llama.cpp knows");
        facts.refused("tokenizer.ggml.pre", why);
    }
}

fn check_merges(facts: &mut Facts<'_>, summary: &TokenizerSummary) {
    const MERGES: &str = "tokenizer.ggml.merges";
    match facts.value(MERGES) {
        Some(Value::Array(array)) if array.item_type() == ItemType::Text => {}
        None if summary.model != "gemma4" && summary.pre.as_deref() == Some("kimi-k2") => {}
        None => facts.refused(MERGES, "missing; it must be an array of text"),
        Some(value) => facts.refused(MERGES, format!("of type {}; it must be an array of text", value.type_name())),
    }
}

/// The table by which a unigram tokenizer normalizes text: its size, then itself, then replacements.
fn check_character_map(facts: &mut Facts<'_>) {
    const MAP: &str = "tokenizer.ggml.precompiled_charsmap";
    match facts.value(MAP) {
        None => {}
        Some(Value::Array(array)) if matches!(array.item_type(), ItemType::I8 | ItemType::U8) => {
            let bytes = array.raw();
            let table = bytes.first_chunk().map(|size| u64::from(u32::from_le_bytes(*size)) + 4);
            if table.is_none_or(|end| end >= bytes.len() as u64) {
                facts.refused(MAP, "the table in it does not end inside");
            }
        }
        Some(value) => facts.refused(MAP, format!("of type {}; it must be an array of i8", value.type_name())),
    }
}

/// An optional array with an item for each token.
fn check_parallel(facts: &mut Facts<'_>, key: &str, types: &[ItemType], tokens: usize) {
    let Some(value) = facts.value(key) else { return };
    match value {
        Value::Array(array) if !types.contains(&array.item_type()) => {}
        Value::Array(array) if array.len() >= tokens => return,
        Value::Array(array) => return facts.refused(key, format!("{} items for {tokens} tokens", array.len())),
        _ => {}
    }
    facts.refused(key, format!("of type {}; it must be an array of {}", value.type_name(), types[0]));
}

fn check_options(facts: &mut Facts<'_>, vocabulary: VocabularyType) {
    for option in [
        "add_space_prefix",
        "remove_extra_whitespaces",
        "clean_spaces",
        "dna_auto_tags",
        "normalizer.nfc",
        "normalizer.lowercase",
        "normalizer.strip_accents",
    ] {
        facts.bool(&format!("tokenizer.ggml.{option}"), Need::Optional);
    }
    const SCHEME: &str = "tokenizer.ggml.metaspace.prepend_scheme";
    match (facts.text(SCHEME, Need::Optional).as_deref(), vocabulary) {
        (Some("always"), VocabularyType::Bpe) => facts.refused(SCHEME, "\"always\" does not go with this tokenizer"),
        (None | Some("never" | "first" | "always"), _) => {}
        (Some(other), _) => facts.refused(SCHEME, format!("{other:?}; never, first or always is expected")),
    }
    const SUPPRESS: &str = "tokenizer.ggml.suppress_tokens";
    match facts.value(SUPPRESS) {
        None => {}
        Some(Value::Array(array)) if array.item_type() == ItemType::I32 => {}
        Some(value) => facts.refused(SUPPRESS, format!("of type {}; it must be an array of i32", value.type_name())),
    }
}

/// The ids of special tokens: those of the file where they are in the vocabulary, else the defaults that are.
fn read_special(facts: &mut Facts<'_>, summary: &mut TokenizerSummary) {
    let size = summary.size;
    for (name, id) in [
        ("bos", &mut summary.bos),
        ("eos", &mut summary.eos),
        ("eot", &mut summary.eot),
        ("unknown", &mut summary.unk),
        ("seperator", &mut summary.sep),
        ("padding", &mut summary.pad),
        ("mask", &mut summary.mask),
    ] {
        let given = facts.u32(&format!("tokenizer.ggml.{name}_token_id"), Need::Optional);
        *id = given.filter(|&id| id < size).or(id.filter(|&id| id < size));
    }
    for name in ["eom", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix", "middle"]
    {
        facts.u32(&format!("tokenizer.ggml.{name}_token_id"), Need::Optional);
    }
    for (name, flag) in [
        ("add_bos_token", &mut summary.add_bos),
        ("add_eos_token", &mut summary.add_eos),
        ("add_sep_token", &mut summary.add_sep),
    ] {
        *flag = facts.bool(&format!("tokenizer.ggml.{name}"), Need::Optional).unwrap_or(*flag);
    }
    // Files of the first days say otherwise by mistake, and llama.cpp does not believe them.
    let gemma4 = summary.model == "gemma4"
        || summary.vocabulary == VocabularyType::Bpe
            && matches!(summary.pre.as_deref(), Some("gemma4" | "granite-embed-multi-311m"));
    summary.add_bos |= gemma4;
}

/// Pre-tokenizers with which `bos` is put before a text unless the file says otherwise.
const PRE_TOKENIZERS_WITH_BOS: &[&str] = &[
    "llama3",
    "llama-v3",
    "llama-bpe",
    "falcon3",
    "falcon-h1",
    "midm-2.0",
    "jina-v5-nano",
    "lfm2",
    "tekken",
    "pixtral",
    "tekken-num3",
    "chameleon",
    "nemotron-3.5-embed",
];

/// Pre-tokenizers with which `sep` is put after a text unless the file says otherwise.
const PRE_TOKENIZERS_WITH_SEP: &[&str] = &["jina-v1-en", "jina-v2-code", "roberta-bpe"];

/// The other pre-tokenizers.
const PRE_TOKENIZERS: &[&str] = &[
    "a.x-4.0",
    "afmoe",
    "bailingmoe",
    "bailingmoe2",
    "bloom",
    "chatglm-bpe",
    "codeshell",
    "cohere2moe",
    "command-r",
    "dbrx",
    "deepseek-coder",
    "deepseek-llm",
    "deepseek-r1-qwen",
    "deepseek-v3",
    "default",
    "domyn-small",
    "exaone",
    "exaone-moe",
    "exaone4",
    "f2llmv2",
    "falcon",
    "flint",
    "gemma4",
    "gigachat",
    "glm4",
    "glm5",
    "gpt-2",
    "gpt-4o",
    "gpt3-finnish",
    "granite-docling",
    "granite-embed-multi-311m",
    "granite-embed-multi-97m",
    "grok-2",
    "hunyuan",
    "hunyuan-dense",
    "hy_v4",
    "jais",
    "jais-2",
    "jina-de",
    "jina-es",
    "jina-v2-de",
    "jina-v2-es",
    "joyai-llm",
    "k2-horizon",
    "kanana2",
    "kimi-k2",
    "kormo",
    "laguna",
    "llada-moe",
    "llama4",
    "megrez",
    "mellum",
    "mellum2",
    "minerva-7b",
    "minicpm5",
    "minimax-m2",
    "mmbert",
    "modern-bert",
    "mpt",
    "olmo",
    "phi-2",
    "poro-chat",
    "qwen2",
    "qwen35",
    "refact",
    "sarvam-moe",
    "seed-coder",
    "smaug-bpe",
    "smollm",
    "solar-open",
    "soprano",
    "spark2_5",
    "stablelm2",
    "starcoder",
    "superbpe",
    "talkie",
    "tiny_aya",
    "trillion",
    "ufakzeka",
    "viking",
    "whitespace",
    "youtu",
];
