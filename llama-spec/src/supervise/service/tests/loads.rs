//! Loading, attaching and detaching, and why something is not loaded.

use super::support::{PANICS, Worker, greedy, load};
use crate::engine::Loading;
use crate::spec::{Method, SpecConfig};
use crate::supervise::Load;
use crate::supervise::wire::{FromWorker, RefusalKind, ToWorker};
use llama_spec_tests::zoo;

/// Which models were loaded from their files: targets and drafts.
fn loaded(worker: &mut Worker) -> (usize, usize) {
    let ends = worker.said().into_iter().filter_map(|said| match said {
        FromWorker::Progress(Loading::Target(share)) if share >= 1.0 => Some((1, 0)),
        FromWorker::Progress(Loading::Draft(share)) if share >= 1.0 => Some((0, 1)),
        _ => None,
    });
    ends.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn with_draft() -> Load {
    let mut load = load("target");
    load.draft = Some(zoo::file("draft-0.8"));
    load
}

#[test]
fn a_draft_comes_and_goes_without_the_target() {
    let mut worker = Worker::new();
    let text = |worker: &mut Worker, id| {
        worker.start(id, greedy("Hello", 40));
        let told = worker.told(id, 0);
        (told.text(), told.end().stats.accepted > 0)
    };
    let alone = Load { speculation: Some(SpecConfig::off()), ..load("target") };
    let info = worker.load(alone.clone());
    assert!(!info.speculation.is_active() && info.slots == 2 && info.context >= 512);
    assert_eq!(loaded(&mut worker), (1, 0));
    let (plain, drafted) = text(&mut worker, 1);
    assert!(!drafted);
    let info = worker.load(with_draft());
    assert!(info.speculation.effective.contains(&Method::DraftSimple), "{:?}", info.speculation);
    assert_eq!(loaded(&mut worker), (0, 1));
    assert_eq!(text(&mut worker, 2), (plain.clone(), true));
    // Both stay when only settings change.
    let mut other = with_draft();
    other.context.slots = 1;
    assert_eq!(worker.load(other).slots, 1);
    assert_eq!(loaded(&mut worker), (0, 0));
    worker.load(alone);
    assert_eq!(loaded(&mut worker), (0, 0));
    assert_eq!(text(&mut worker, 3), (plain, false));
    // It is gone by now.
    worker.load(with_draft());
    assert_eq!(loaded(&mut worker), (0, 1));
}

#[test]
fn heads_that_were_left_out_are_loaded_when_they_are_wanted() {
    let mut worker = Worker::new();
    let off = Load { speculation: Some(SpecConfig::off()), ..load("qwen35-mtp") };
    worker.load(off.clone());
    assert_eq!(loaded(&mut worker), (1, 0));
    let info = worker.load(load("qwen35-mtp"));
    assert_eq!(info.speculation.effective, [Method::DraftMtp]);
    assert_eq!(loaded(&mut worker), (1, 0));
    // Those that are there do no harm.
    assert!(!worker.load(off).speculation.is_active());
    assert_eq!(loaded(&mut worker), (0, 0));
}

#[test]
fn what_is_not_loaded_is_told_by_its_kind() {
    let mut worker = Worker::new();
    let folder = std::env::temp_dir().join(format!("llama-spec-service-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let no_model = folder.join("no-model.gguf");
    std::fs::write(&no_model, "no model at all").unwrap();
    let mut too_many = load("target");
    too_many.context.slots = 100_000;
    let cases = [
        (RefusalKind::File, Load::new(folder.join("missing.gguf"))),
        (RefusalKind::File, Load::new(no_model)),
        (RefusalKind::Pair, Load { draft: Some(zoo::file("draft-other-vocabulary")), ..load("target") }),
        (RefusalKind::Pair, Load { speculation: Some(SpecConfig::new([Method::DraftMtp])), ..load("target") }),
        (RefusalKind::Setting, too_many),
        (RefusalKind::Setting, Load { chat_template: Some("{% for %}".into()), ..load("target") }),
        (RefusalKind::Trial, Load { queue: PANICS, ..load("target") }),
    ];
    for (kind, load) in cases {
        let what = format!("{load:?}");
        worker.say(ToWorker::Load { load: Box::new(load), restarts: 0 });
        let refusal = worker.refusal();
        assert_eq!(refusal.kind, kind, "{what}: {}", refusal.message);
        assert!(!refusal.message.is_empty());
    }
    std::fs::remove_dir_all(folder).unwrap();
    // It can go on.
    worker.load(load("target"));
    worker.start(1, greedy("Hello", 3));
    assert_eq!(worker.told(1, 0).tokens.len(), 3);
}

#[test]
fn a_degraded_load_says_so() {
    let mut worker = Worker::new();
    let mismatched = Load { draft: Some(zoo::file("draft-other-vocabulary")), degrade: true, ..load("target") };
    let info = worker.load(Load { speculation: Some(SpecConfig::new([Method::DraftSimple])), ..mismatched });
    assert!(!info.speculation.effective.contains(&Method::DraftSimple), "{:?}", info.speculation);
    assert_eq!(info.speculation.requested, [Method::DraftSimple]);
    assert!(info.speculation.reason.is_some());
}
