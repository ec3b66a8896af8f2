//! Choosing methods from files: what works is found without its name, and the rest is refused with its reasons.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use llama_spec::compat::{Conditions, Incompatible, Report, Verdict};
use llama_spec::file::ModelFile;
use llama_spec::options::SplitMode;
use llama_spec::spec::{DraftModelSettings, Method, NgramCacheSettings, Requested, SpecConfig};
use llama_spec_tests::zoo;

fn open(name: &str) -> ModelFile {
    ModelFile::open(zoo::file(name)).unwrap()
}

fn codes(why: &Incompatible) -> Vec<&str> {
    why.checks.iter().map(|check| check.code.as_str()).collect()
}

#[test]
fn a_plain_draft_is_used_and_nothing_else_looks_up() {
    let (target, draft) = (open("target"), open("draft-0.8"));
    let config = SpecConfig::auto(&target, Some(&draft)).unwrap();
    assert_eq!((config.requested(), config.effective()), (Requested::Auto, vec![Method::DraftSimple]));
    assert_eq!(config.reason(), Some("the draft is a language model"));
    let config = SpecConfig::auto(&target, None).unwrap();
    assert_eq!(config.effective(), [Method::Lookup]);
    assert_eq!(config.reason(), Some("no draft was given and the target has no MTP heads"));
}

#[test]
fn an_assistant_works_with_its_target_and_with_no_other() {
    let (target, draft) = (open("gemma4"), open("gemma4-assistant"));
    let config = SpecConfig::auto(&target, Some(&draft)).unwrap();
    assert_eq!((config.requested(), config.effective()), (Requested::Auto, vec![Method::DraftMtp]));
    assert_eq!(config.reason(), Some("the draft is a Gemma 4 assistant"));

    let plain = SpecConfig::new([Method::DraftSimple]).check(&target, Some(&draft), &Conditions::default());
    let why = plain.unwrap_err();
    assert!(codes(&why).contains(&"method-file") && why.to_string().contains("mtp"), "{why}");

    let why = SpecConfig::auto(&target, Some(&open("gemma4-assistant-wide"))).unwrap_err();
    assert_eq!(codes(&why), ["mtp-width"]);
    let why = SpecConfig::auto(&open("gemma3"), Some(&draft)).unwrap_err();
    assert!(codes(&why).contains(&"mtp-hidden-state"), "{why}");
}

#[test]
fn drafts_of_one_text_go_with_all_architectures_that_have_it() {
    for name in ["qwen2", "qwen3", "qwen3moe", "gemma3", "gemma4"] {
        let target = open(name);
        let config = SpecConfig::auto(&target, Some(&open("draft-0.8"))).unwrap();
        assert_eq!(config.effective(), [Method::DraftSimple], "{name}");
        let reading = SpecConfig::auto(&target, Some(&open("eagle3")));
        match name {
            "qwen2" | "gemma3" => assert!(codes(&reading.unwrap_err()).contains(&"target-layers"), "{name}"),
            // Of another width
            "gemma4" => assert!(reading.is_err(), "{name}"),
            _ => assert_eq!(reading.unwrap().effective(), [Method::DraftEagle3], "{name}"),
        }
    }
}

#[test]
fn another_vocabulary_is_refused_with_the_first_token_that_differs() {
    let (target, draft) = (open("target"), open("draft-other-vocabulary"));
    let why = SpecConfig::auto(&target, Some(&draft)).unwrap_err();
    let check = why.checks.iter().find(|check| check.code == "vocab-text").unwrap();
    let id = target.tokenizer().unwrap().first_difference(draft.tokenizer().unwrap(), 5).unwrap();
    assert!(check.message.contains(&format!("token {id} ")), "{check}");
    let text = |file: &ModelFile| String::from_utf8_lossy(file.tokenizer().unwrap().text(id).unwrap()).into_owned();
    assert_eq!(check.target.as_deref(), Some(&*format!("{:?}", text(&target))));
    assert_eq!(check.draft.as_deref(), Some(&*format!("{:?}", text(&draft))));
    assert_ne!(check.target, check.draft);
}

#[cfg(unix)]
#[test]
fn the_targets_own_file_is_no_draft() {
    let folder = tempfile::tempdir().unwrap();
    let linked = folder.path().join("draft.gguf");
    std::os::unix::fs::symlink(zoo::file("target"), &linked).unwrap();
    let (target, draft) = (open("target"), ModelFile::open(&linked).unwrap());
    let why = SpecConfig::auto(&target, Some(&draft)).unwrap_err();
    assert_eq!(codes(&why), ["same-file"]);
    assert!(why.checks[0].cure.contains("leave the draft out"), "{why}");
}

#[test]
fn what_cannot_be_had_can_be_given_up() {
    let (target, draft) = (open("target"), open("draft-other-vocabulary"));
    let conditions = Conditions::default();
    let degraded = SpecConfig::auto_or_degrade(&target, Some(&draft), &conditions);
    assert_eq!((degraded.requested(), degraded.effective()), (Requested::Auto, vec![Method::Lookup]));
    assert!(degraded.reason().unwrap().contains("vocab-text"), "{:?}", degraded.reason());
    let asked = SpecConfig::new([Method::DraftMtp]);
    let off = asked.or_degrade(&target, None, &conditions.clone().slots(0));
    assert_eq!((off.requested(), off.effective()), (Requested::Methods(vec![Method::DraftMtp]), vec![]));
    assert_eq!(asked.or_degrade(&target, None, &conditions).effective(), [Method::Lookup]);
}

#[test]
fn explicit_choices_are_held_against_the_files() {
    let (target, draft) = (open("target"), open("draft-0.8"));
    let conditions = Conditions::default();
    let refused = |config: SpecConfig, draft: Option<&ModelFile>| {
        config
            .check(&target, draft, &conditions)
            .unwrap_err()
            .checks
            .into_iter()
            .map(|check| check.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(refused(SpecConfig::new([Method::DraftSimple]), None), ["draft-missing"]);
    assert_eq!(refused(SpecConfig::new([Method::DraftEagle3]), Some(&draft)), ["method-file"]);
    assert_eq!(refused(SpecConfig::new([Method::NgramMod]), Some(&draft)), ["draft-unused"]);
    assert!(refused(SpecConfig::new([Method::DraftMtp]), None).contains(&"mtp-heads".to_owned()));
    let both = SpecConfig::new([Method::DraftSimple, Method::DraftMtp]);
    assert!(refused(both, Some(&draft)).contains(&"one-model-method".to_owned()));
    let long = SpecConfig::builder().draft_simple(DraftModelSettings { max: 2000, ..Default::default() });
    assert_eq!(codes(&long.check(&target, Some(&draft), &conditions).unwrap_err()), ["setting-range"]);
    let cache = NgramCacheSettings { fixed: Some(zoo::file("target")), learned: None };
    let broken = SpecConfig::builder().ngram_cache(cache);
    assert_eq!(codes(&broken.check(&target, None, &conditions).unwrap_err()), ["lookup-cache"]);
}

#[test]
fn the_report_tells_what_holds_too() {
    let (target, draft) = (open("target"), open("draft-0.8"));
    let report = Report::new(&target, Some(&draft), None, &Conditions::default());
    assert_eq!(report.verdict, Verdict::Works);
    assert!(report.failed().is_empty(), "{:?}", report.failed());
    assert!(report.checks.iter().any(|check| check.code == "vocab-text" && check.passed));
    let memory = report.memory;
    assert!(memory.target_weights > memory.draft_weights && memory.draft_weights > 0);
    assert!(memory.target_cache > 0 && memory.draft_cache > 0, "{memory:?}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "works");
    assert_eq!(json["requested"], "auto");
    assert_eq!(json["effective"][0], "draft-simple");
    assert_eq!(json["checks"][0]["severity"], "impossible");
    assert_eq!(json["target"]["architecture"], "llama");
    let refused = Conditions::default().split_mode(SplitMode::Tensor).gpu(Some(false));
    let report = Report::new(&target, Some(&draft), None, &refused);
    assert_eq!(report.verdict, Verdict::Incompatible);
    assert_eq!(codes(&report.refusal(&refused).unwrap()), ["tensor-split-device"]);
}

/// What is chosen for a pair of named files: the method, or the codes of the rules that refuse it.
fn chosen(target: &str, draft: &str) -> Result<Method, String> {
    let (target, draft) = (open(target), open(draft));
    match SpecConfig::auto(&target, Some(&draft)) {
        Ok(config) => Ok(config.methods[0]),
        Err(why) => Err(codes(&why).join(" ")),
    }
}

#[test]
fn every_kind_of_draft_is_recognised_or_refused() {
    let refused = |codes: &str| Err(codes.to_owned());
    for (target, draft, expected) in [
        ("target", "draft-0.5", Ok(Method::DraftSimple)),
        ("mamba", "mamba-draft-0.8", Ok(Method::DraftSimple)),
        ("target", "mamba-draft-0.8", Ok(Method::DraftSimple)),
        ("target", "draft-other-tokenizer", refused("vocab-type vocab-bos vocab-text")),
        ("target", "eagle3", Ok(Method::DraftEagle3)),
        ("target", "eagle3-borrowing", Ok(Method::DraftEagle3)),
        ("target", "eagle3-reduced", Ok(Method::DraftEagle3)),
        ("target", "eagle3-narrow", Ok(Method::DraftEagle3)),
        ("target", "eagle3-other-width", refused("target-width")),
        ("target", "eagle3-layer-beyond", refused("layer-ids")),
        ("mamba", "eagle3", refused("target-layers")),
        ("target", "dflash", Ok(Method::DraftDflash)),
        ("target", "dflash-borrowing", Ok(Method::DraftDflash)),
        ("target", "dflash-reduced", Ok(Method::DraftDflash)),
        ("target", "dflash2", Ok(Method::DraftDflash)),
        ("target", "dflash-no-mask", refused("mask-token")),
        ("target", "dflash-other-width", refused("target-width")),
        ("target", "dflash-layer-beyond", refused("layer-ids")),
        ("target", "dspark", Ok(Method::DraftDspark)),
        ("target", "dspark-in-place", Ok(Method::DraftDspark)),
        ("target", "dspark-no-mask", refused("mask-token")),
        ("target", "dspark-no-block-size", refused("draft-defect")),
        ("target", "dspark-other-width", refused("target-width")),
        ("eagle3", "target", refused("target-kind")),
        ("gemma4", "gemma4-assistant", Ok(Method::DraftMtp)),
        ("gemma4", "gemma4-assistant-wide", refused("mtp-width")),
        ("gemma4", "eagle3", refused("target-width")),
        ("qwen35", "qwen35-mtp-head", Ok(Method::DraftMtp)),
        ("qwen35-mtp", "qwen35-mtp-head", Ok(Method::DraftMtp)),
        ("qwen35-declared", "qwen35-mtp", Ok(Method::DraftMtp)),
        ("qwen35", "draft-0.8", Ok(Method::DraftSimple)),
        ("qwen35", "qwen35-narrow-mtp", Ok(Method::DraftSimple)),
        ("chained", "chained-mtp-heads", Ok(Method::DraftMtp)),
        ("qwen2", "eagle3", refused("target-layers")),
        ("qwen3", "eagle3", Ok(Method::DraftEagle3)),
    ] {
        assert_eq!(chosen(target, draft), expected, "{target} with {draft}");
    }
}

#[test]
fn what_is_no_model_is_told_as_what_it_is() {
    for name in [
        "encoder",
        "embedding",
        "embedding-causal",
        "reranker",
        "encoder-decoder",
        "encoder-of-t5",
        "diffusion",
        "lora",
        "control-vector",
        "projector",
        "importance-matrix",
        "vocabulary",
    ] {
        let file = open(name);
        let as_draft = SpecConfig::auto(&open("target"), Some(&file)).unwrap_err();
        let as_target = SpecConfig::auto(&file, None).unwrap_err();
        assert_eq!((codes(&as_draft)[0], codes(&as_target)[0]), ("draft-kind", "target-kind"), "{name}");
        for why in [&as_draft, &as_target] {
            // The file of a vocabulary cannot be loaded either.
            assert!(codes(why)[1..].iter().all(|code| code.ends_with("-defect")), "{name}: {why}");
            assert!(why.checks[0].message.contains(&file.kind().to_string()), "{name}: {why}");
        }
    }
}

#[test]
fn real_sizes_are_judged_from_their_headers() {
    assert_eq!(chosen("huge", "huge-draft"), Ok(Method::DraftSimple));
    assert_eq!(chosen("target", "huge-draft"), Err("vocab-size".to_owned()));
}

#[test]
fn the_original_complaint() {
    let (target, assistant) = (open("gemma4"), open("gemma4-assistant"));
    let forced = SpecConfig::new([Method::DraftSimple]);
    let why = forced.check(&target, Some(&assistant), &Conditions::default()).unwrap_err();
    assert_eq!(codes(&why), ["method-file"]);
    assert!(why.to_string().contains("choose draft-mtp for this file"), "{why}");
    let elsewhere = SpecConfig::auto(&open("target"), Some(&assistant)).unwrap_err();
    for code in ["mtp-hidden-state", "mtp-architecture", "assistant-attention"] {
        assert!(elsewhere.has(code), "{code}: {elsewhere}");
    }
}

#[test]
fn the_targets_own_heads_are_used_where_they_work() {
    let auto = |name: &str, conditions: &Conditions| SpecConfig::auto_with(&open(name), None, conditions).unwrap();
    let usual = Conditions::default();
    for name in ["qwen35-mtp", "chained-mtp", "hy-v3-mtp"] {
        let config = auto(name, &usual);
        assert_eq!(config.effective(), [Method::DraftMtp], "{name}: {:?}", config.reason());
    }
    assert_eq!(auto("hy-v3-mtp", &usual).draft_model.max, 3, "as many as there are heads");
    for name in ["qwen35", "qwen35-declared", "gemma4"] {
        assert_eq!(auto(name, &usual).effective(), [Method::Lookup], "{name}");
    }
    let divided = Conditions::default().split_mode(SplitMode::Tensor);
    let config = auto("qwen35-mtp", &divided);
    assert_eq!(config.effective(), [Method::Lookup]);
    assert!(config.reason().unwrap().contains("split-hidden"), "{:?}", config.reason());
    assert_eq!(auto("qwen35-mtp", &divided.accept_risk(true)).effective(), [Method::DraftMtp]);
}
