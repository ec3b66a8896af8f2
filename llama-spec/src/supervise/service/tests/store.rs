//! Texts that are kept for lookup: over loads, over workers, and not for others.

use super::support::{Worker, greedy, load};
use crate::spec::{Method, SpecConfig};
use crate::supervise::Load;
use crate::supervise::task::Task;
use crate::supervise::wire::FromWorker;
use std::fs;
use std::path::Path;

const PROMPT: &str = "a text of some length, which stands in the store";

fn keeping(file: Option<&Path>) -> Load {
    let speculation = Some(SpecConfig::new([Method::Lookup]).fixed_length(8));
    Load { speculation, store_bytes: 1 << 20, store_file: file.map(Path::to_owned), ..load("target") }
}

/// The text, and how much of it was drafted right.
fn run(worker: &mut Worker, id: u64, tenant: &str) -> (String, u64) {
    let task = greedy(PROMPT, 60);
    let task = Task { request: task.request.tenant(tenant), ..task };
    worker.start(id, task);
    let told = worker.told(id, 0);
    (told.text(), told.end().stats.accepted)
}

fn warnings(worker: &mut Worker) -> Vec<String> {
    let said = worker.said().into_iter();
    said.filter_map(|said| if let FromWorker::Warning(what) = said { Some(what) } else { None }).collect()
}

#[test]
fn texts_outlive_engines_and_workers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut worker = Worker::loaded(keeping(Some(&path)));
    let (text, fresh) = run(&mut worker, 1, "anna");
    let mut other = keeping(Some(&path));
    other.context.slots = 1;
    worker.load(other);
    let (again, more) = run(&mut worker, 2, "anna");
    assert!(again == text && more > fresh, "{more} after {fresh}");
    worker.service.stop();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let mut next = Worker::loaded(keeping(Some(&path)));
    assert_eq!(run(&mut next, 1, "bert"), (text.clone(), fresh));
    assert_eq!(run(&mut next, 2, "anna"), (text, more));
    assert!(warnings(&mut worker).is_empty() && warnings(&mut next).is_empty());
}

#[test]
fn without_a_file_or_without_room_nothing_outlives_the_worker() {
    let mut worker = Worker::loaded(keeping(None));
    let (_, fresh) = run(&mut worker, 1, "");
    worker.load(Load { probe: true, ..keeping(None) });
    assert!(run(&mut worker, 2, "").1 > fresh);
    worker.load(Load { store_bytes: 0, ..keeping(None) });
    assert_eq!(run(&mut worker, 3, "").1, fresh);
    assert_eq!(run(&mut Worker::loaded(keeping(None)), 1, "").1, fresh);
}

#[test]
fn what_cannot_be_read_is_told_and_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut worker = Worker::loaded(keeping(Some(&path)));
    let (text, fresh) = run(&mut worker, 1, "");
    worker.service.stop();
    let mut bytes = fs::read(&path).unwrap();
    let whole = bytes.len();
    bytes.truncate(whole - 1);
    fs::write(&path, &bytes).unwrap();

    let mut worker = Worker::loaded(keeping(Some(&path)));
    let told = warnings(&mut worker);
    assert!(told.len() == 1 && told[0].contains("damaged") && told[0].contains("begun anew"), "{told:?}");
    assert_eq!(run(&mut worker, 1, ""), (text, fresh));
    worker.service.stop();
    assert_eq!(fs::read(&path).unwrap().len(), whole);

    // Another vocabulary is another store.
    let mut other = keeping(Some(&path));
    other.model = llama_spec_tests::zoo::file("draft-other-vocabulary");
    let mut worker = Worker::loaded(other);
    let told = warnings(&mut worker);
    assert!(told.len() == 1 && told[0].contains("another model"), "{told:?}");
}

#[test]
fn what_is_no_store_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    fs::write(&path, "Dear Anna,").unwrap();
    let mut worker = Worker::loaded(keeping(Some(&path)));
    let (_, fresh) = run(&mut worker, 1, "");
    worker.load(Load { queue: 9, ..keeping(Some(&path)) });
    assert!(run(&mut worker, 2, "").1 > fresh);
    worker.service.stop();
    let told = warnings(&mut worker);
    assert!(told.len() == 1 && told[0].contains("no lookup store") && told[0].contains("left as it is"), "{told:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "Dear Anna,");
}
