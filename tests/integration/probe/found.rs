//! What does not work is found, and told; what could not be tried is no failure.

use crate::support::{USUAL, builder, context, generate, pair};
use llama_spec::probe::{Outcome, Probe};
use llama_spec::spec::{Method, NgramCacheSettings, SpecConfig};
use llama_spec::{Engine, Error, Model};
use llama_spec_tests::zoo;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A copy of a file of the zoo whose last weights are no numbers.
fn with_broken_weights(name: &str, folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(zoo::file(name)).unwrap();
    let from = bytes.len() - 4096;
    bytes[from..].chunks_exact_mut(4).for_each(|weight| weight.copy_from_slice(&f32::NAN.to_le_bytes()));
    let path = folder.join("broken.gguf");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn garbage_is_reported_and_a_good_draft_is_not() {
    let engine = builder(pair("target", "mamba", &[Method::DraftSimple]), 1, 4).build().unwrap();
    let report = engine.probe().unwrap();
    assert_eq!((&report.outcome, report.observed.drafts), (&Outcome::Worked, Some(false)), "{report}");
    assert_eq!(report.checks.iter().map(|check| check.code.as_str()).collect::<Vec<_>>(), ["drafts-accepted"]);
    assert!(report.accepted[0].rate().unwrap() < 0.05, "{report}");
    assert!(report.to_string().contains("drafts-accepted"), "{report}");

    let engine = builder(USUAL, 1, 4).build().unwrap();
    let report = engine.probe().unwrap();
    assert_eq!((report.observed.drafts, report.checks.len()), (Some(true), 0), "{report}");
    let model = report.accepted.iter().find(|one| one.method == Method::DraftSimple).unwrap();
    assert!(model.rate().unwrap() > 0.4, "{report}");
}

#[test]
fn logits_that_are_no_numbers_fail_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let broken = Model::load(with_broken_weights("target", folder.path())).unwrap();
    for config in [SpecConfig::off(), SpecConfig::new([Method::NgramMod]).fixed_length(12)] {
        let speculates = !config.is_off();
        let builder = Engine::builder(&broken).context(context(2)).speculation(config);
        let error = builder.build().unwrap_err();
        let Error::Probe { report, refusal } = &error else { panic!("{error}") };
        assert!(matches!(&report.outcome, Outcome::Failed { reason } if reason.contains("no numbers")), "{report}");
        assert_eq!(refusal.as_ref().is_some_and(|refusal| refusal.has("rounds-work")), speculates, "{error}");
        assert!(error.to_string().contains("no numbers"), "{error}");
    }
}

#[test]
fn nothing_is_left_of_a_broken_target_even_where_less_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let broken = Model::load(with_broken_weights("target", folder.path())).unwrap();
    let error = Engine::builder(&broken).context(context(1)).degrade(true).build().unwrap_err();
    assert!(matches!(error, Error::Probe { refusal: None, .. }), "{error}");
}

#[test]
fn without_time_nothing_is_known_and_the_engine_works() {
    let engine = builder(USUAL, 2, 4).probe_budget(Duration::ZERO).build().unwrap();
    let report = engine.probe().unwrap();
    assert!(matches!(&report.outcome, Outcome::Inconclusive { reason } if reason.contains("time")), "{report}");
    assert_eq!((report.exact_rows, report.observed.rounds_work), (None, None));
    assert_eq!(generate(&engine).len(), 20);
    assert!(engine.speculation().is_active());
}

#[test]
fn a_trial_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let learned = |probe: Probe| {
        let file = folder.path().join(format!("{probe:?}"));
        let cache = NgramCacheSettings { learned: Some(file.clone()), ..Default::default() };
        let config = SpecConfig::new([Method::NgramCache, Method::NgramMod]).fixed_length(12).ngram_cache(cache);
        let target = Model::load(zoo::file("target")).unwrap();
        let engine = Engine::builder(&target).context(context(2)).speculation(config).probe(probe).build().unwrap();
        assert_eq!(engine.probe().is_some(), probe == Probe::Full);
        let stats = engine.stats();
        assert_eq!((stats.total.rounds, stats.decodes, stats.slots[0].tokens), (0, 0, 0));
        assert_eq!(stats.plain_token.is_some(), probe == Probe::Full);
        let tokens = generate(&engine);
        let stats = engine.stats();
        assert_eq!((stats.total.cached_tokens, stats.finished), (0, 1));
        drop(engine);
        (tokens, std::fs::read(file).unwrap())
    };
    assert_eq!(learned(Probe::Full), learned(Probe::Off));
}

/// One cache for all slots, in which two of them have no room for a long prompt at once.
#[test]
fn a_cache_that_all_slots_share_may_be_too_small_for_a_part_of_it() {
    for name in ["target", "qwen35-mtp"] {
        let target = Model::load(zoo::file(name)).unwrap();
        let shared = context(4).length_per_slot(64).unified_kv(true);
        let config = SpecConfig::new([Method::NgramMod]).fixed_length(12);
        let builder = Engine::builder(&target).context(shared).speculation(config);
        let engine = builder.probe_budget(Duration::from_secs(60)).build().unwrap();
        let report = engine.probe().unwrap();
        assert!(report.worked(), "{name}: {report}");
        assert_eq!(generate(&engine).len(), 20, "{name}");
    }
}
