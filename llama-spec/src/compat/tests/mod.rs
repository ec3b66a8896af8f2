//! Every rule, holding once and failing once.

mod cases;
mod random;

use super::testing::*;
use super::{Rule, Severity};
use crate::file::{Kind, LayerKind};
use crate::options::{FlashAttention, KvType, SplitMode};
use crate::spec::{Method, SpecConfig};
use std::collections::BTreeSet;

#[test]
fn every_rule_holds_once_and_fails_once() {
    let cases = cases::cases();
    let tested: BTreeSet<&str> = cases.iter().map(|(code, _, _)| *code).collect();
    let rules: BTreeSet<&str> = Rule::all().map(|rule| rule.code).collect();
    assert_eq!(tested, rules, "a case for each rule, and no other");
    for (code, holds, fails) in &cases {
        assert!(!holds.failed().iter().any(|failed| failed == code), "{code} should hold: {:?}", holds.failed());
        let checks = fails.checks();
        let check = checks.iter().find(|check| check.code == *code && !check.passed);
        let check = check.unwrap_or_else(|| panic!("{code} should fail"));
        assert!(!check.cure.is_empty() && !check.message.is_empty(), "{check:?}");
        assert!(!check.cure.ends_with('.') && !check.message.ends_with('.'), "{check}");
        assert!(!check.to_string().contains('\n'), "{check}");
        let rule = Rule::find(code).unwrap();
        let refused = super::refusal(&fails.facts()).is_some_and(|why| why.has(code));
        assert_eq!(refused, rule.severity != Severity::Wasteful, "{code}");
    }
}

#[test]
fn codes_are_kebab_case_and_texts_are_there() {
    for rule in Rule::all() {
        let kebab = rule.code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(kebab, "{}", rule.code);
        for text in [rule.about, rule.applies, rule.cure, rule.source] {
            assert!(!text.is_empty() && !text.contains("  ") && !text.ends_with('.'), "{}: {text:?}", rule.code);
        }
    }
}

/// `cargo xtask rules` sets this to have the page written instead of compared.
const WRITE: &str = "LLAMA_SPEC_WRITE_RULES";

#[test]
fn the_page_of_rules_is_what_the_table_says() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compatibility.md");
    let page = super::rules_page();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert!(written == page, "docs/compatibility.md is not what the table says: run `cargo xtask rules`");
}

#[test]
fn what_fits_is_not_refused() {
    for case in
        [plain(), embedded("qwen35"), embedded("glm4moe"), separate(), assistant(), eagle3(), dflash(), dspark()]
    {
        assert_eq!(case.failed(), [] as [&str; 0], "{case:?}");
    }
    assert_eq!(lookup("llama").failed(), [] as [&str; 0]);
    // Works, by copying the state before each draft.
    assert_eq!(lookup("mamba").failed(), ["checkpoints"]);
}

#[test]
fn the_original_complaint() {
    let forced = assistant().but(|case| case.config = SpecConfig::new([Method::DraftSimple]));
    let why = super::refusal(&forced.facts()).unwrap();
    assert!(why.has("method-file"));
    assert!(why.to_string().contains("choose draft-mtp for this file"), "{why}");
    let other_width = assistant().draft(|draft| draft.output_width = Some(128));
    assert_eq!(other_width.failed(), ["mtp-width"]);
    let eagle3_as_plain = eagle3().but(|case| case.config = SpecConfig::new([Method::DraftSimple]));
    assert_eq!(eagle3_as_plain.failed(), ["method-file"]);
}

#[test]
fn all_reasons_are_told() {
    let case = plain()
        .draft(|draft| {
            tokens(draft).bos = Some(7);
            draft.architecture = Some("mamba".into());
        })
        .but(|case| case.difference = differs(139))
        .conditions(|conditions| conditions.slots(0));
    let why = super::refusal(&case.facts()).unwrap();
    for code in ["vocab-bos", "vocab-text", "slot-count"] {
        assert!(why.has(code), "{code}: {why}");
    }
    let text = why.to_string();
    assert_eq!(text.lines().count(), 1 + why.checks.len());
    assert!(text.contains(r#"differ from token 139 on (target: "one"; draft: "two")"#), "{text}");
}

#[test]
fn risks_can_be_accepted() {
    let case = embedded("qwen35").conditions(|conditions| conditions.split_mode(SplitMode::Tensor));
    let why = super::refusal(&case.facts()).unwrap();
    assert_eq!(why.checks.len(), 1);
    let cure = &why.checks[0].cure;
    assert!(cure.contains("accept the risk") && cure.contains("supervised") && cure.contains("`layer`"), "{cure}");
    for accepted in [
        case.clone().conditions(|conditions| conditions.accept_risk(true)),
        case.clone().conditions(|conditions| conditions.supervised(true)),
    ] {
        assert!(super::refusal(&accepted.facts()).is_none());
        assert_eq!(accepted.failed(), ["split-hidden"]);
    }
    // What cannot work is not made possible by accepting it.
    let shared = assistant().conditions(|conditions| conditions.split_mode(SplitMode::Tensor).accept_risk(true));
    assert!(super::refusal(&shared.facts()).unwrap().has("split-shared"));
}

#[test]
fn the_kind_of_the_draft_decides() {
    let method = |case: &Case| {
        let facts = case.facts();
        super::method_for(&facts.target, &facts.draft.unwrap())
    };
    assert_eq!(method(&plain()), Some(Method::DraftSimple));
    assert_eq!(method(&separate()), Some(Method::DraftMtp));
    assert_eq!(method(&assistant()), Some(Method::DraftMtp));
    assert_eq!(method(&eagle3()), Some(Method::DraftEagle3));
    assert_eq!(method(&dflash()), Some(Method::DraftDflash));
    assert_eq!(method(&dspark()), Some(Method::DraftDspark));
    // A whole model with heads: those of this target are used, a small relative drafts as a model.
    let whole = separate().draft(|draft| draft.kind = Kind::GenerativeWithMtp);
    assert_eq!(method(&whole), Some(Method::DraftMtp));
    assert_eq!(method(&whole.draft(|draft| draft.output_width = Some(32))), Some(Method::DraftSimple));
    let unused = |model: &mut crate::file::Description| model.architecture = Some("exaone4".into());
    let skipped = separate().target(unused).draft(|draft| draft.kind = Kind::GenerativeWithMtp).draft(unused);
    assert_eq!(method(&skipped), Some(Method::DraftSimple));
    assert_eq!(method(&plain().draft(|draft| draft.kind = Kind::LoraAdapter)), None);
}

#[test]
fn lengths_are_cut_by_default_only() {
    let shortened = dflash().draft(|draft| draft.block_size = Some(3));
    assert_eq!(shortened.failed(), [] as [&str; 0]);
    assert_eq!(super::clamped(&shortened.facts()).draft_model.max, 2);
    let asked = shortened.but(|case| case.config.draft_model.max = 3);
    assert_eq!(asked.failed(), ["draft-length"]);
    let message = &super::refusal(&asked.facts()).unwrap().checks[0].cure;
    assert!(message.contains("from 1 to 2"), "{message}");
    let second = |case: &mut Case| case.anchor_first = false;
    assert_eq!(dspark().but(|case| case.config.draft_model.max = 8).but(second).failed(), ["draft-length"]);
}

#[test]
fn heads_in_the_targets_file_have_a_cache_of_their_own() {
    let case = embedded("qwen35").conditions(|conditions| {
        conditions.draft_kv_types(KvType::F16, KvType::Q8_0).flash_attention(FlashAttention::Off)
    });
    assert_eq!(case.failed(), ["kv-flash"]);
}

#[test]
fn layer_kinds_matter_to_assistants() {
    let swapped = assistant().target(|target| target.layer_kinds = vec![LayerKind::Attention; 4]);
    assert_eq!(swapped.failed(), ["assistant-attention"]);
}
