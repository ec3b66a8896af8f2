//! Workers that die under the streams of many clients: every client gets its whole text, and nobody is told that all is well.

use super::super::common::file;
use super::process::Server;
use super::streams::Stream;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

const PROMPTS: [&str; 8] = ["abc", "The quick", "0123", "Hello, world", "a", "xyz", "Lorem ipsum", "ABC"];
const TOKENS: u32 = 600;

/// A server that drafts with a model, in four slots.
fn drafted(args: &[&str]) -> Server {
    let (target, draft) = (file("recall"), file("recall-draft-0.8"));
    let mut all = vec!["--model", &target, "--draft", &draft, "--spec", "draft-simple", "--slots", "4"];
    all.extend(["--draft-length", "4", "--context", "4096", "--verbose"]);
    all.extend(args);
    let mut server = Server::spawn(super::process::server_of(&all));
    server.wait_for("ready: ");
    server
}

/// The texts of all prompts, side by side; `happens` once all of them are under way.
fn texts(server: &Server, happens: impl Fn() + Sync) -> Vec<Stream> {
    let begun = Barrier::new(PROMPTS.len());
    let started = AtomicUsize::new(0);
    thread::scope(|scope| {
        let streams: Vec<_> = PROMPTS
            .iter()
            .map(|prompt| {
                let (begun, started, happens) = (&begun, &started, &happens);
                scope.spawn(move || {
                    let mut stream = Stream::begin(server, prompt, TOKENS);
                    // The first four have a slot; the others wait for one.
                    if started.fetch_add(1, Ordering::SeqCst) < 4 {
                        assert!(stream.next());
                    }
                    if begun.wait().is_leader() {
                        happens();
                    }
                    stream.finish()
                })
            })
            .collect();
        streams.into_iter().map(|stream| stream.join().unwrap()).collect()
    })
}

/// The process that has the engine.
fn worker(server: &Server) -> String {
    let id = server.id();
    // Whichever thread started it.
    let mut all = fs::read_dir(format!("/proc/{id}/task")).unwrap().flat_map(|task| {
        let path = task.unwrap().path().join("children");
        fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    all.next().unwrap_or_else(|| panic!("no worker"))
}

/// Asks all the time whether it is ready, and compares that with what it says of itself.
fn watch(server: &Server, over: &AtomicBool, seen: &Mutex<Vec<String>>) {
    while !over.load(Ordering::SeqCst) {
        let ready = server.get("/ready", &[]);
        let body = ready.json();
        let state = body["state"].as_str().unwrap().to_owned();
        let serving = matches!(state.as_str(), "ready" | "degraded");
        assert_eq!(ready.status == 200, body["ready"] == true, "{ready:?}");
        assert!(serving || ready.status == 503, "{ready:?}");
        assert_eq!(server.get("/health", &[]).status, 200);
        let mut seen = seen.lock().unwrap();
        if seen.last() != Some(&state) {
            seen.push(state);
        }
        drop(seen);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs the texts under watch and compares them with those of a server that nothing happened to. Gives the states that were seen.
fn endures(server: &Server, expected: &[Stream], restarts: u64, happens: impl Fn() + Sync) -> Vec<String> {
    let (over, seen) = (AtomicBool::new(false), Mutex::default());
    thread::scope(|scope| {
        scope.spawn(|| watch(server, &over, &seen));
        let got = texts(server, happens);
        over.store(true, Ordering::SeqCst);
        for ((prompt, got), expected) in PROMPTS.iter().zip(&got).zip(expected) {
            assert!(got.done, "{prompt}");
            assert_eq!(got.text, expected.text, "{prompt}");
        }
        // Those that ended behind the breakdown say what it did to them.
        let told = |stream: &Stream| stream.speculation["reason"].as_str().unwrap_or_default().to_owned();
        assert!(got.iter().filter(|stream| told(stream).starts_with("runtime_error")).count() >= 4);
    });
    let status = server.get("/status", &[]).json();
    assert_eq!((&status["restarts"], &status["state"]), (&restarts.into(), &"degraded".into()), "{status}");
    assert_eq!(status["speculation"]["requested"], json!(["draft-simple"]), "{status}");
    assert_eq!(status["speculation"]["effective"], json!([]), "{status}");
    assert_ne!(status["recoveries"], Value::Array(Vec::new()), "{status}");
    seen.into_inner().unwrap()
}

#[test]
fn a_killed_worker_costs_no_client_its_text() {
    let expected = texts(&drafted(&[]), || ());
    assert!(expected.iter().all(|stream| stream.speculation["reason"].is_null() && stream.text.len() > 300));
    let server = drafted(&[]);
    let before = worker(&server);
    let seen = endures(&server, &expected, 1, || {
        assert!(std::process::Command::new("kill").args(["-9", &before]).status().unwrap().success());
    });
    assert!(seen.iter().any(|state| state == "recovering"), "{seen:?}");
    assert_ne!(worker(&server), before);

    // So does one that aborts while it drafts.
    let server = drafted(&["--inject-fault", "abort-in-draft@40"]);
    let _ = endures(&server, &expected, 1, || ());
}

#[test]
fn neither_does_one_that_hangs_or_one_whose_successor_dies_at_once() {
    let expected = texts(&drafted(&[]), || ());
    let hangs = drafted(&["--inject-fault", "hang-in-draft@40", "--patience", "1"]);
    let seen = endures(&hangs, &expected, 1, || ());
    assert!(seen.iter().any(|state| state == "recovering"), "{seen:?}");
    let dies_twice = drafted(&["--inject-fault", "abort@5x2"]);
    let _ = endures(&dies_twice, &expected, 2, || ());
}

#[test]
fn it_is_not_ready_while_requests_fail() {
    // Each worker dies at its first round, until it is given up.
    let server = drafted(&["--inject-fault", "abort@1"]);
    let answer = server.send("POST", "/v1/completions", &[], &json!({"prompt": "abc", "max_tokens": 4}).to_string());
    answer.refused(503, "unavailable");
    let ready = server.get("/ready", &[]);
    assert_eq!((ready.status, &ready.json()["state"]), (503, &"failed".into()), "{ready:?}");
    let status = server.get("/status", &[]);
    assert!(!status.body.contains(".gguf\"") && !answer.body.contains('/'), "{answer:?}");
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn a_worker_that_is_stopped_does_not_outlive_the_server() {
    let server = drafted(&[]);
    let worker = worker(&server);
    assert!(std::process::Command::new("kill").args(["-STOP", &worker]).status().unwrap().success());
    server.signal("KILL");
    let deadline = std::time::Instant::now() + super::process::LONG;
    // Whoever adopts it may leave it unburied.
    while fs::read_to_string(format!("/proc/{worker}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
    {
        assert!(std::time::Instant::now() < deadline, "{worker} is still there");
        thread::sleep(Duration::from_millis(20));
    }
}
