//! Jobs in a process of their own: this program is its own worker, so it has a `main` that calls the hook.
//!
//! Started under another name it is a program that does something wrong; see [`ROLES`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/roles.rs"]
mod roles;

use llama_spec::isolate::{Isolation, Lost, Program, hook, testing};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, panic, process, thread};

/// What this program does if it is started under such a name.
const ROLES: &[roles::Named] = &[
    ("forgets-and-ends", || eprintln!("no hook here")),
    ("forgets-and-fails", || process::exit(2)),
    ("forgets-and-stays", || thread::sleep(Duration::from_secs(600))),
    ("forgets-and-isolates", isolates_again),
    ("asks-and-dies", asks_and_dies),
];

const TESTS: &[roles::Named] = &[
    ("an_answer_comes_back", an_answer_comes_back),
    ("a_long_answer_comes_back", a_long_answer_comes_back),
    ("noise_does_not_disturb_the_answer", noise_does_not_disturb_the_answer),
    ("a_crash_is_told_with_its_signal_and_last_words", a_crash_is_told_with_its_signal_and_last_words),
    ("an_end_without_an_answer_is_a_crash", an_end_without_an_answer_is_a_crash),
    ("a_panic_is_a_crash", a_panic_is_a_crash),
    ("what_hangs_is_killed", what_hangs_is_killed),
    ("what_cannot_be_done_is_told", what_cannot_be_done_is_told),
    ("a_program_without_the_hook_is_found_out", a_program_without_the_hook_is_found_out),
    ("a_worker_starts_no_workers", a_worker_starts_no_workers),
    ("a_program_that_is_missing_is_named", a_program_that_is_missing_is_named),
    ("many_at_once", many_at_once),
    ("a_worker_ends_with_its_parent", a_worker_ends_with_its_parent),
];

fn main() {
    roles::run(ROLES, TESTS, no_process_is_left);
}

fn isolation() -> Isolation {
    Isolation::default()
}

fn lost(job: Value) -> Lost {
    testing::run(&isolation(), job).unwrap_err()
}

/// A job for this program under another name, and how long it took to be lost.
fn lost_under_the_name(name: &str, timeout: Duration) -> (Lost, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let path = roles::under_the_name(name, folder.path());
    let start = Instant::now();
    let lost = testing::run(&Isolation { program: Program::At(path), timeout }, json!({"echo": 1})).unwrap_err();
    (lost, start.elapsed())
}

fn an_answer_comes_back() {
    let said = json!({"text": "a \"quoted\" line\nand another", "numbers": [1, 2.5, null]});
    assert_eq!(testing::run(&isolation(), json!({"echo": said})), Ok(said));
    let this = Isolation { program: Program::At(env::current_exe().unwrap()), ..isolation() };
    assert_eq!(testing::run(&this, json!({"echo": null})), Ok(Value::Null));
}

/// More than a pipe holds, in both directions.
fn a_long_answer_comes_back() {
    let long = json!("0123456789".repeat(300_000));
    assert!(testing::run(&isolation(), json!({"echo": long})) == Ok(long));
}

fn noise_does_not_disturb_the_answer() {
    assert_eq!(testing::run(&isolation(), json!("noise")), Ok(json!("done")));
}

fn a_crash_is_told_with_its_signal_and_last_words() {
    let lost = lost(json!("abort"));
    let Lost::Crashed { signal, code, log } = &lost else { panic!("{lost:?}") };
    if cfg!(unix) {
        assert_eq!((*signal, *code), (Some(6), None));
    }
    assert_eq!(log.last().map(String::as_str), Some("about to abort"));
    assert!(lost.to_string().ends_with("it wrote: about to abort"), "{lost}");
}

fn an_end_without_an_answer_is_a_crash() {
    for status in [0, 3] {
        let expected = Lost::Crashed { signal: None, code: Some(status), log: Vec::new() };
        assert_eq!(lost(json!({"exit": status})), expected);
    }
}

fn a_panic_is_a_crash() {
    let lost = lost(json!("panic"));
    assert!(matches!(&lost, Lost::Crashed { code: Some(101), .. }), "{lost:?}");
    assert_eq!(lost.log().last().map(String::as_str), Some("panicked: a job that panics"), "{lost}");
}

fn what_hangs_is_killed() {
    let start = Instant::now();
    // Long enough to have begun on a busy machine.
    let timeout = Duration::from_secs(3);
    let lost = testing::run(&Isolation { timeout, ..isolation() }, json!("hang")).unwrap_err();
    assert_eq!(lost, Lost::TimedOut { after: timeout, begun: true, log: vec!["about to hang".into()] });
    assert!((timeout..timeout * 4).contains(&start.elapsed()), "{:?}", start.elapsed());
    let at_once = Isolation { timeout: Duration::ZERO, ..isolation() };
    assert!(matches!(testing::run(&at_once, json!("hang")), Err(Lost::TimedOut { begun: false, .. })));
}

fn what_cannot_be_done_is_told() {
    let lost = lost(json!({"probe": {}}));
    assert!(matches!(&lost, Lost::Failed { reason, .. } if reason.contains("no errand")), "{lost:?}");
}

fn a_program_without_the_hook_is_found_out() {
    let minute = Duration::from_secs(60);
    let (lost, _) = lost_under_the_name("forgets-and-ends", minute);
    assert_eq!(lost, Lost::NotHooked { code: Some(0), log: vec!["no hook here".into()] });
    assert!(lost.to_string().contains("isolate::hook()"), "{lost}");
    let (lost, _) = lost_under_the_name("forgets-and-fails", minute);
    assert_eq!(lost, Lost::NotHooked { code: Some(2), log: Vec::new() });
    let short = Duration::from_secs(1);
    let (lost, took) = lost_under_the_name("forgets-and-stays", short);
    assert_eq!(lost, Lost::TimedOut { after: short, begun: false, log: Vec::new() });
    assert!(took < minute, "{took:?}");
}

/// A program that forgot the hook and isolates something as its first work.
fn isolates_again() {
    let lost = lost(json!({"echo": 1}));
    let refused = matches!(&lost, Lost::NotStarted { reason } if reason.contains("is a worker itself"));
    process::exit(if refused { 7 } else { 8 });
}

fn a_worker_starts_no_workers() {
    let (lost, _) = lost_under_the_name("forgets-and-isolates", Duration::from_secs(60));
    assert!(matches!(lost, Lost::NotHooked { code: Some(7), .. }), "{lost:?}");
}

fn a_program_that_is_missing_is_named() {
    let missing = Isolation { program: Program::At("no-such-folder/no-such-program".into()), ..isolation() };
    let lost = testing::run(&missing, json!("abort")).unwrap_err();
    assert!(matches!(&lost, Lost::NotStarted { reason } if reason.contains("no-such-program")), "{lost:?}");
}

fn many_at_once() {
    let threads = (0..4).map(|thread| {
        thread::spawn(move || {
            for round in 0..3 {
                let said = json!([thread, round]);
                assert_eq!(testing::run(&isolation(), json!({"echo": said})), Ok(said));
                assert!(matches!(lost(json!("abort")), Lost::Crashed { .. }));
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// Says which process is its worker, and ends without caring for it.
fn asks_and_dies() {
    hook();
    thread::spawn(|| testing::run(&isolation(), json!("hang")));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if let Some(worker) = children(process::id()).into_iter().next() {
            // It must have read its job, or it would not know that it is a worker.
            thread::sleep(Duration::from_secs(1));
            println!("{worker}");
            process::exit(0);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn a_worker_ends_with_its_parent() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = roles::under_the_name("asks-and-dies", folder.path());
    let mut parent = Command::new(path).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(parent.wait().unwrap().success());
    let worker: u32 = line.trim().parse().unwrap();
    let start = Instant::now();
    while runs(worker) {
        assert!(start.elapsed() < Duration::from_secs(30), "the worker {worker} lives on");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether this process has no child, alive or waiting to be waited for. Where that cannot be seen, it has none.
fn no_process_is_left() -> bool {
    let left = children(process::id());
    if !left.is_empty() {
        eprintln!("processes are left: {left:?}");
    }
    left.is_empty()
}

/// The children of a process, as Linux tells.
fn children(of: u32) -> BTreeSet<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return BTreeSet::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| stat(*id).is_some_and(|(_, parent)| parent == of)).collect()
}

/// Whether a process is there and not a zombie that nobody waits for.
fn runs(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state != "Z")
}

/// State and parent of a process.
fn stat(id: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat")).ok()?;
    // The name before it is in brackets and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
