//! Reports are kept, and found again where nothing has changed.

use crate::support::{USUAL, builder, generate};
use llama_spec::engine::EngineBuilder;
use llama_spec::probe::ProbeReport;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Engine, ModelFile};
use llama_spec_tests::zoo;
use std::path::Path;
use std::time::Duration;

fn report(builder: EngineBuilder, folder: &Path) -> ProbeReport {
    let engine = builder.probe_cache(folder).build().unwrap();
    assert_eq!(generate(&engine).len(), 20);
    engine.probe().unwrap().clone()
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn what_was_tried_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = report(builder(USUAL, 2, 4), folder.path());
    assert!(first.worked() && !first.cached, "{first}");
    let mut second = report(builder(USUAL, 2, 4), folder.path());
    assert!(second.cached, "{second}");
    assert!(second.to_string().contains("from the cache"), "{second}");
    second.cached = false;
    assert_eq!(second, first);
}

#[test]
fn what_has_changed_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let opened = |target: &Path| {
        let files = [target, &zoo::file("draft-0.8")].map(|path| ModelFile::open(path).unwrap());
        let config = SpecConfig::new([Method::DraftSimple]).fixed_length(4);
        Engine::builder(&files[0]).draft(&files[1]).context(crate::support::context(1)).speculation(config)
    };
    let target = folder.path().join("target.gguf");
    std::fs::copy(zoo::file("target"), &target).unwrap();
    let cache = folder.path().join("cache");
    for (name, builder) in [
        ("the first", opened(&target)),
        ("slots", opened(&target).slots(2)),
        (
            "the methods",
            opened(&target).speculation(SpecConfig::new([Method::NgramMod, Method::DraftSimple]).fixed_length(4)),
        ),
        ("a setting", opened(&target).speculation(SpecConfig::new([Method::DraftSimple]).fixed_length(4).draft_max(5))),
        ("the draft", opened(&target).draft(ModelFile::open(zoo::file("draft-0.95")).unwrap())),
    ] {
        let before = files(&cache);
        assert!(!report(builder, &cache).cached, "{name}");
        assert_eq!(files(&cache), before + 1, "{name}");
    }
    // Wherever the file is, it is the same.
    let moved = folder.path().join("moved.gguf");
    std::fs::rename(&target, &moved).unwrap();
    assert!(report(opened(&moved), &cache).cached);
    // The header is the same, the first weights are not.
    let mut bytes = std::fs::read(&moved).unwrap();
    let header = ModelFile::open(&moved).unwrap().header_bytes() as usize;
    let weight = header + 1024;
    bytes[weight..weight + 4].copy_from_slice(&0.001f32.to_le_bytes());
    std::fs::write(&moved, bytes).unwrap();
    assert!(!report(opened(&moved), &cache).cached);
}

#[test]
fn what_tells_nothing_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let builder = |budget| builder(USUAL, 1, 4).probe_budget(Duration::from_secs(budget));
    assert!(!report(builder(0), &cache).worked());
    assert_eq!(files(&cache), 0);
    let again = report(builder(60), &cache);
    assert!(again.worked() && !again.cached, "{again}");
    // A budget does not matter to what is known.
    assert!(report(builder(0), &cache).cached);
}
