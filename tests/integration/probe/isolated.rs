//! Trying an engine in another process: this program is its own worker, so it has a `main` that calls the hook.
//!
//! Started under another name it is a worker that goes wrong; see [`ROLES`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/roles.rs"]
mod roles;

use llama_spec::engine::EngineBuilder;
use llama_spec::isolate::{Isolation, Program};
use llama_spec::options::SplitMode;
use llama_spec::probe::Outcome;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{ContextOptions, Engine, Error, ModelFile, Request};
use llama_spec_tests::zoo;
use std::path::Path;
use std::time::Duration;
use std::{fs, process, thread};

/// What this program does if it is started under such a name.
const ROLES: &[roles::Named] = &[
    ("crashes", || {
        eprintln!("a kernel is missing");
        process::abort()
    }),
    ("hangs", || thread::sleep(Duration::from_secs(600))),
];

const TESTS: &[roles::Named] = &[
    ("what_works_there_serves_here", what_works_there_serves_here),
    ("a_crash_fails_the_build_with_the_last_words", a_crash_fails_the_build_with_the_last_words),
    ("a_crash_leaves_the_lookup_methods", a_crash_leaves_the_lookup_methods),
    ("a_crash_is_kept", a_crash_is_kept),
    ("what_hangs_tells_nothing", what_hangs_tells_nothing),
    ("what_is_risky_must_have_worked_there", what_is_risky_must_have_worked_there),
];

fn main() {
    roles::run(ROLES, TESTS, || true);
}

/// This program under another name.
fn under_the_name(name: &str, folder: &Path) -> Isolation {
    let path = roles::under_the_name(name, folder);
    Isolation { program: Program::At(path), timeout: Duration::from_secs(60) }
}

fn builder(methods: &[Method], target: &str, draft: Option<&str>) -> EngineBuilder {
    let open = |name: &str| ModelFile::open(zoo::file(name)).unwrap();
    let context = ContextOptions::default().length_per_slot(256).slots(2).batch(128).micro_batch(64).threads(1);
    let builder = Engine::builder(open(target)).context(context).speculation(SpecConfig::new(methods).fixed_length(12));
    let builder = builder.probe_budget(Duration::from_secs(60));
    draft.map(open).into_iter().fold(builder, EngineBuilder::draft)
}

fn chain() -> EngineBuilder {
    builder(&[Method::NgramSimple, Method::DraftSimple], "target", Some("draft-0.8"))
}

fn serves(engine: &Engine) {
    let output = engine.generate(Request::prompt("Hello").max_tokens(8)).unwrap().output().unwrap();
    assert_eq!(output.stats.generated_tokens, 8);
}

fn what_works_there_serves_here() {
    let engine = chain().isolation(Isolation::default()).build().unwrap();
    let report = engine.probe().unwrap();
    assert!(report.worked() && report.exact_rows.is_some() && report.skipped.is_empty(), "{report}");
    assert!(report.accepted.iter().any(|one| one.accepted > 0), "{report}");
    serves(&engine);
}

fn a_crash_fails_the_build_with_the_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let error = chain().isolation(under_the_name("crashes", folder.path())).build().unwrap_err();
    let Error::Probe { report, refusal } = &error else { panic!("{error}") };
    let Outcome::Failed { reason } = &report.outcome else { panic!("{report}") };
    assert!(reason.contains("a kernel is missing"), "{reason}");
    assert!(!cfg!(unix) || reason.contains("signal 6"), "{reason}");
    assert!(refusal.as_ref().unwrap().has("rounds-work"), "{error}");
}

fn a_crash_leaves_the_lookup_methods() {
    let folder = tempfile::tempdir().unwrap();
    let isolation = under_the_name("crashes", folder.path());
    let model = builder(&[Method::DraftSimple], "target", Some("draft-0.8"));
    for (builder, asked, left) in [
        (chain(), &[Method::NgramSimple, Method::DraftSimple][..], Method::NgramSimple),
        (model, &[Method::DraftSimple][..], Method::Lookup),
    ] {
        let engine = builder.isolation(isolation.clone()).degrade(true).build().unwrap();
        let speculation = engine.speculation();
        assert_eq!((speculation.requested.as_slice(), speculation.effective.as_slice()), (asked, &[left][..]));
        assert!(speculation.reason.as_ref().unwrap().contains("a kernel is missing"), "{speculation:?}");
        // What is left was tried here.
        let report = engine.probe().unwrap();
        assert!(report.worked() && report.methods == [left], "{report}");
        serves(&engine);
    }
}

fn a_crash_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let isolation = under_the_name("crashes", folder.path());
    let build = |isolation| chain().isolation(isolation).probe_cache(folder.path().join("cache")).build();
    let first = build(isolation).unwrap_err();
    // It would work now, but is not tried again.
    let again = build(Isolation::default()).unwrap_err();
    let Error::Probe { report, .. } = &again else { panic!("{again}") };
    assert!(report.cached, "{report}");
    assert_eq!(first.to_string(), again.to_string());
}

fn what_hangs_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let isolation = Isolation { timeout: Duration::from_millis(300), ..under_the_name("hangs", folder.path()) };
    let cache = folder.path().join("cache");
    let engine = chain().isolation(isolation).probe_cache(&cache).build().unwrap();
    let report = engine.probe().unwrap();
    assert!(matches!(&report.outcome, Outcome::Inconclusive { .. }), "{report}");
    assert_eq!(engine.speculation().effective, [Method::NgramSimple, Method::DraftSimple]);
    assert_eq!(fs::read_dir(cache).map_or(0, Iterator::count), 0);
    serves(&engine);
}

fn what_is_risky_must_have_worked_there() {
    let folder = tempfile::tempdir().unwrap();
    let risky = || builder(&[Method::DraftMtp], "qwen35-mtp", None).split_mode(SplitMode::Row);
    let refused = |error: Error| match error {
        Error::Incompatible(why) => assert!(why.has("split-hidden"), "{why}"),
        other => panic!("{other}"),
    };
    refused(risky().build().unwrap_err());
    let short = Duration::from_millis(300);
    let hangs = Isolation { timeout: short, ..under_the_name("hangs", folder.path()) };
    refused(risky().isolation(hangs).build().unwrap_err());
    serves(&risky().isolation(Isolation::default()).build().unwrap());
    serves(&risky().accept_risk(true).build().unwrap());
}
