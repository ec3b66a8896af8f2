//! Every rule, holding once and failing once.

use super::testing::*;
use super::{Conditions, Rule, Severity};
use crate::file::{Defect, Kind, LayerKind, Outcome};
use crate::memory::Rollback;
use crate::options::{FlashAttention, KvType, Pooling, SplitMode};
use crate::spec::{DraftModelSettings, Method, NgramCacheSettings, SpecConfig};
use std::collections::BTreeSet;

/// For each rule a case in which it holds or does not apply, and one in which it fails.
fn cases() -> Vec<(&'static str, Case, Case)> {
    let defect = || Defect { place: "llama.block_count".into(), why: "is missing".into(), outcome: Outcome::Aborts };
    let split = |mode| move |conditions: Conditions| conditions.split_mode(mode);
    let model_settings =
        |change: fn(&mut DraftModelSettings)| move |case: &mut Case| change(&mut case.config.draft_model);
    let with_cache = |case: &mut Case| {
        case.config.ngram_cache = NgramCacheSettings { fixed: Some("cache".into()), learned: None };
    };
    let cache = || Case::new(model("llama"), None, &[Method::NgramCache]).but(with_cache);
    let images = |conditions: Conditions| conditions.multimodal(true);
    let shift = |conditions: Conditions| conditions.context_shift(true);
    let borrows = |case: Case| case.draft(|draft| (draft.own_embeddings, draft.own_head) = (false, false));
    let quantized = |conditions: Conditions| conditions.kv_types(KvType::Q8_0, KvType::Q8_0);
    vec![
        ("target-kind", plain(), plain().target(|target| target.kind = Kind::Encoder)),
        ("target-generates", plain(), plain().target(|target| target.causal = false)),
        ("target-defect", plain(), plain().target(|target| target.defects.push(defect()))),
        ("draft-kind", plain(), plain().draft(|draft| draft.kind = Kind::LoraAdapter)),
        ("draft-generates", plain(), plain().draft(|draft| draft.pooling = Some(4))),
        ("draft-defect", plain(), plain().draft(|draft| draft.defects.push(defect()))),
        ("same-file", plain(), plain().but(|case| case.same_file = true)),
        ("draft-larger", plain(), plain().draft(|draft| draft.weight_bytes = 1 << 30)),
        (
            "one-model-method",
            plain(),
            plain().but(|case| case.config = SpecConfig::new([Method::DraftSimple, Method::DraftMtp])),
        ),
        ("method-file", assistant(), assistant().but(|case| case.config = SpecConfig::new([Method::DraftSimple]))),
        ("draft-missing", plain(), plain().but(|case| case.draft = None)),
        ("draft-unused", plain(), plain().but(|case| case.config = SpecConfig::new([Method::NgramMod]))),
        ("draft-without-speculation", plain(), plain().but(|case| case.config = SpecConfig::off())),
        ("setting-range", plain(), plain().but(model_settings(|settings| settings.probability_min = 1.5))),
        (
            "lookup-cache",
            cache(),
            cache().but(|case| case.unreadable_caches.push(("cache".into(), "cannot be read".into()))),
        ),
        (
            "sampled-drafts",
            plain().but(model_settings(|settings| settings.probabilistic = true)),
            eagle3().but(model_settings(|settings| settings.probabilistic = true)),
        ),
        ("vocab-missing", plain(), plain().draft(|draft| draft.tokenizer = None)),
        ("vocab-type", plain(), plain().draft(|draft| tokens(draft).vocabulary = crate::file::VocabularyType::Spm)),
        ("vocab-bos", plain(), plain().draft(|draft| tokens(draft).bos = Some(7))),
        (
            "vocab-eos",
            plain().draft(|draft| tokens(draft).eos = Some(7)),
            plain().draft(|draft| tokens(draft).add_eos = true),
        ),
        (
            "vocab-size",
            plain().draft(|draft| tokens(draft).size = 1128),
            plain().draft(|draft| tokens(draft).size = 1129),
        ),
        ("vocab-text", plain(), plain().but(|case| case.difference = differs(139))),
        ("vocab-first-tokens", plain(), plain().but(|case| case.early_difference = differs(3))),
        ("vocab-draft-smaller", plain(), plain().draft(|draft| tokens(draft).size = 999)),
        (
            "vocab-map",
            eagle3().draft(|draft| draft.draft_vocabulary = Some(reduced())).but(|case| case.head_rows = Some(100)),
            eagle3().draft(|draft| {
                draft.draft_vocabulary = Some(crate::file::DraftVocabulary { largest: Some(1000), ..reduced() });
            }),
        ),
        ("mtp-heads", embedded("qwen35"), embedded("qwen35").target(|target| target.mtp_heads = false)),
        ("mtp-graph", embedded("qwen35"), embedded("exaone4")),
        ("mtp-head-count", embedded("hy_v3").target(|target| target.mtp_layers = 3), {
            embedded("qwen35").target(|target| target.mtp_layers = 3)
        }),
        (
            "mtp-tensors",
            embedded("qwen35"),
            embedded("qwen35").but(|case| case.missing_head_tensor = Some((4, "nextn.enorm"))),
        ),
        ("mtp-latent", embedded("deepseek2").target(|target| target.latent_attention = true), embedded("deepseek2")),
        ("mtp-width", separate(), assistant().draft(|draft| draft.output_width = Some(128))),
        ("mtp-hidden-state", assistant(), assistant().target(|target| target.architecture = Some("llama".into()))),
        ("mtp-architecture", separate(), separate().target(|target| target.architecture = Some("qwen35moe".into()))),
        ("mtp-layers", separate(), separate().target(|target| target.layers = 8)),
        ("assistant-attention", assistant(), assistant().draft(|draft| draft.key_length = Some(64))),
        ("mtp-trunk-unused", separate(), separate().draft(|draft| draft.kind = Kind::GenerativeWithMtp)),
        ("target-layers", eagle3(), eagle3().target(|target| target.architecture = Some("qwen2".into()))),
        ("layer-ids", eagle3(), eagle3().draft(|draft| draft.target_layers = vec![0, 2, 5])),
        (
            "last-layer",
            eagle3()
                .target(|target| target.architecture = Some("gpt-oss".into()))
                .draft(|draft| draft.target_layers = vec![0, 2, 4]),
            dflash().draft(|draft| draft.target_layers = vec![1, 4]),
        ),
        ("layer-count", dflash(), eagle3().draft(|draft| draft.target_layers = vec![0, 2])),
        ("target-width", eagle3(), eagle3().draft(|draft| draft.target_width = Some(128))),
        ("eagle3-shape", eagle3(), eagle3().draft(|draft| draft.block_count = Some(2))),
        ("borrowed-width", borrows(eagle3()), borrows(eagle3()).draft(|draft| draft.width = Some(32))),
        ("borrowed-head", borrows(eagle3()), borrows(eagle3()).draft(|draft| tokens(draft).size = 1001)),
        ("mask-token", dflash(), dflash().draft(|draft| draft.mask_token = None)),
        (
            "confidence-head",
            dspark().but(model_settings(|settings| settings.probability_min = 0.5)),
            dspark()
                .but(model_settings(|settings| settings.probability_min = 0.5))
                .draft(|draft| draft.confidence_head = false),
        ),
        (
            "draft-recurrent",
            plain()
                .target(|target| target.architecture = Some("mamba".into()))
                .draft(|draft| draft.architecture = Some("mamba".into())),
            plain().draft(|draft| draft.architecture = Some("mamba".into())),
        ),
        ("checkpoints", lookup("qwen35"), lookup("mamba")),
        (
            "snapshots",
            lookup("qwen35").conditions(|conditions| conditions.snapshots(Some(12))),
            lookup("qwen35").conditions(|conditions| conditions.snapshots(Some(11))),
        ),
        (
            "snapshot-room",
            lookup("qwen35").conditions(|conditions| conditions.micro_batch(14)),
            lookup("qwen35").conditions(|conditions| conditions.micro_batch(13)),
        ),
        (
            "window-room",
            lookup("gemma3")
                .target(|target| target.sliding_window = Some(32))
                .conditions(|conditions| conditions.micro_batch(1)),
            lookup("gemma3")
                .target(|target| target.sliding_window = Some(32))
                .conditions(|conditions| conditions.micro_batch(12).full_sliding_window(false)),
        ),
        (
            "shift-possible",
            plain().conditions(shift),
            plain().draft(|draft| draft.multi_axis_rope = true).conditions(shift),
        ),
        ("shift-eagle3", plain().conditions(shift), eagle3().conditions(shift)),
        (
            "draft-length",
            dspark().but(model_settings(|settings| settings.max = 8)),
            dflash().but(model_settings(|settings| settings.max = 8)),
        ),
        ("slot-count", plain(), plain().conditions(|conditions| conditions.slots(257))),
        (
            "batch-room",
            plain().conditions(|conditions| conditions.slots(4).batch(20)),
            plain().conditions(|conditions| conditions.slots(4).batch(19)),
        ),
        (
            "block-room",
            dflash().conditions(|conditions| conditions.slots(4).micro_batch(20)),
            dflash().conditions(|conditions| conditions.slots(4).draft_micro_batch(Some(19))),
        ),
        (
            "draft-context",
            plain().conditions(|conditions| conditions.draft_context(Some(4096))),
            plain().conditions(|conditions| conditions.draft_context(Some(4095))),
        ),
        ("draft-trained-context", plain(), plain().draft(|draft| draft.trained_context = Some(2048))),
        (
            "context-there",
            plain().conditions(|conditions| conditions.context(0)),
            plain().target(|target| target.trained_context = None).conditions(|conditions| conditions.context(0)),
        ),
        (
            "tensor-split-architecture",
            plain().conditions(split(SplitMode::Tensor)),
            lookup("mpt").conditions(split(SplitMode::Tensor)),
        ),
        (
            "tensor-split-device",
            lookup("llama").conditions(|conditions| conditions.split_mode(SplitMode::Tensor).gpu(Some(true))),
            lookup("llama").conditions(|conditions| conditions.split_mode(SplitMode::Tensor).gpu(Some(false))),
        ),
        (
            "tensor-split-flash",
            plain().conditions(split(SplitMode::Tensor)),
            plain()
                .conditions(|conditions| conditions.split_mode(SplitMode::Tensor).flash_attention(FlashAttention::Off)),
        ),
        ("split-shared", assistant(), assistant().conditions(split(SplitMode::Tensor))),
        (
            "split-hidden",
            plain().conditions(split(SplitMode::Tensor)),
            embedded("qwen35").conditions(split(SplitMode::Row)),
        ),
        (
            "shared-device",
            eagle3().conditions(|conditions| conditions.gpu(Some(true)).draft_gpu(Some(false))),
            borrows(eagle3())
                .conditions(|conditions| conditions.devices(vec!["CUDA0".into()]).draft_devices(vec!["CUDA1".into()])),
        ),
        (
            "draft-on-cpu",
            plain().conditions(|conditions| conditions.gpu(Some(false)).draft_gpu(Some(false))),
            plain().conditions(|conditions| conditions.gpu(Some(true)).draft_gpu(Some(false))),
        ),
        (
            "kv-flash",
            plain().conditions(quantized),
            plain().conditions(|conditions| {
                conditions.draft_kv_types(KvType::F16, KvType::Q4_0).flash_attention(FlashAttention::Off)
            }),
        ),
        (
            "kv-block",
            plain().conditions(quantized),
            plain().target(|target| target.key_length = Some(48)).conditions(quantized),
        ),
        (
            "kv-types-equal",
            lookup("deepseek2").target(|target| target.latent_attention = true),
            lookup("deepseek2")
                .target(|target| target.latent_attention = true)
                .conditions(|conditions| conditions.kv_types(KvType::Q8_0, KvType::F16)),
        ),
        ("embeddings-off", plain(), plain().conditions(|conditions| conditions.embeddings(Some(Pooling::Mean)))),
        ("images-eagle3", plain().conditions(images), eagle3().conditions(images)),
        (
            "images-positions",
            plain().conditions(images),
            plain().target(|target| target.multi_axis_rope = true).conditions(images),
        ),
        ("images-width", plain().conditions(images), plain().draft(|draft| draft.width = Some(32)).conditions(images)),
        (
            "adapters-on-target-only",
            lookup("llama").conditions(|conditions| conditions.adapters(true)),
            plain().conditions(|conditions| conditions.adapters(true)),
        ),
        (
            "target-rollback",
            lookup("llama").but(|case| case.observed.target_rollback = Some(Rollback::Checkpoint)),
            lookup("llama").but(|case| case.observed.target_rollback = Some(Rollback::None)),
        ),
        (
            "draft-rollback",
            plain().but(|case| case.observed.target_rollback = Some(Rollback::Partial)),
            plain().but(|case| {
                (case.observed.target_rollback, case.observed.draft_rollback) =
                    (Some(Rollback::Partial), Some(Rollback::Checkpoint));
            }),
        ),
        (
            "memory-fits",
            plain().but(|case| case.observed.fits = Some(true)),
            plain().but(|case| case.observed.fits = Some(false)),
        ),
        (
            "rounds-work",
            plain().but(|case| case.observed.rounds_work = Some(true)),
            plain().but(|case| case.observed.rounds_work = Some(false)),
        ),
        (
            "drafts-accepted",
            plain().but(|case| case.observed.drafts = Some(true)),
            plain().but(|case| case.observed.drafts = Some(false)),
        ),
    ]
}

#[test]
fn every_rule_holds_once_and_fails_once() {
    let cases = cases();
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
    for code in ["vocab-bos", "vocab-text", "draft-recurrent", "slot-count"] {
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

mod random {
    use super::*;
    use crate::arch::Architecture;
    use crate::file::Description;
    use proptest::prelude::*;

    const KINDS: [Kind; 19] = [
        Kind::Generative,
        Kind::GenerativeWithMtp,
        Kind::MtpHead,
        Kind::Gemma4Assistant,
        Kind::Eagle3,
        Kind::Dflash,
        Kind::Dflash2,
        Kind::Dspark,
        Kind::Encoder,
        Kind::EncoderDecoder,
        Kind::Embedding,
        Kind::Reranker,
        Kind::LoraAdapter,
        Kind::ControlVector,
        Kind::Projector,
        Kind::VocabularyOnly,
        Kind::ImportanceMatrix,
        Kind::Diffusion,
        Kind::Unknown,
    ];

    fn number() -> impl Strategy<Value = Option<u32>> {
        proptest::option::of(prop_oneof![Just(0), Just(1), Just(64), Just(u32::MAX), any::<u32>()])
    }

    prop_compose! {
        fn description()(
            kind in proptest::sample::select(&KINDS[..]),
            architecture in proptest::option::of(proptest::sample::select(Architecture::ALL)),
            numbers in proptest::collection::vec(number(), 10),
            layers in prop_oneof![Just(0), Just(4), any::<u32>()],
            mtp_layers in prop_oneof![Just(0), Just(1), any::<u32>()],
            flags in proptest::collection::vec(any::<bool>(), 7),
            target_layers in proptest::collection::vec(any::<i64>(), 0..5),
            kinds in proptest::collection::vec(proptest::sample::select(&[LayerKind::Attention, LayerKind::SlidingWindow, LayerKind::Recurrent][..]), 0..4),
            size in any::<u32>(),
        ) -> Description {
            let mut it = model("llama");
            it.kind = kind;
            it.architecture = architecture.map(|row| row.name.to_owned());
            (it.width, it.output_width, it.block_count, it.trained_context) = (numbers[0], numbers[1], numbers[2], numbers[3]);
            (it.key_length, it.value_length, it.sliding_window) = (numbers[4], numbers[5], numbers[6]);
            (it.block_size, it.target_width, it.mask_token) = (numbers[7], numbers[8], numbers[9]);
            (it.layers, it.mtp_layers, it.target_layers, it.layer_kinds) = (layers, mtp_layers, target_layers, kinds);
            (it.mtp_heads, it.own_embeddings, it.own_head, it.causal) = (flags[0], flags[1], flags[2], flags[3]);
            (it.multi_axis_rope, it.confidence_head) = (flags[4], flags[5]);
            tokens(&mut it).size = size;
            if flags[6] { it.tokenizer = None; }
            it
        }
    }

    prop_compose! {
        fn conditions()(
            numbers in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(512), any::<u32>()], 6),
            flags in proptest::collection::vec(any::<bool>(), 6),
            mode in proptest::sample::select(&[SplitMode::None, SplitMode::Layer, SplitMode::Row, SplitMode::Tensor][..]),
        ) -> Conditions {
            Conditions::default()
                .context(numbers[0]).slots(numbers[1]).batch(numbers[2]).micro_batch(numbers[3])
                .draft_context(flags[0].then_some(numbers[4])).snapshots(flags[1].then_some(numbers[5]))
                .multimodal(flags[2]).context_shift(flags[3]).adapters(flags[4]).full_sliding_window(flags[5])
                .split_mode(mode)
        }
    }

    proptest! {
        /// Whatever the files say, the table answers, and what is chosen automatically for a draft that is one is never
        /// refused because of the method.
        #[test]
        fn any_facts_are_judged(
            target in description(),
            draft in proptest::option::of(description()),
            methods in proptest::collection::vec(proptest::sample::select(&Method::ALL[..]), 0..4),
            conditions in conditions(),
        ) {
            let mut case = Case::new(target, draft, &methods);
            case.conditions = conditions;
            let refused = super::super::refusal(&case.facts());
            let failed: Vec<_> = case.checks().into_iter().filter(|check| !check.passed).collect();
            let impossible = failed.iter().filter(|check| check.severity != Severity::Wasteful).count();
            prop_assert_eq!(refused.map_or(0, |why| why.checks.len()), impossible);
            if let Some(draft) = &case.draft {
                let method = super::super::method_for(&case.facts().target, &case.facts().draft.unwrap());
                let drafts = draft.kind.is_generative() || draft.kind.is_dependent_draft();
                prop_assert_eq!(method.is_some(), drafts);
                case.config = SpecConfig::for_draft(method, draft.kind);
                prop_assert_eq!(case.failed().iter().any(|code| code == "method-file"), !drafts);
            }
        }
    }
}
