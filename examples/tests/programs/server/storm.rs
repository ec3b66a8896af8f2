//! Many clients, most of them bad: the server stays, its memory is bounded, and the good ones get what they asked for.

use super::super::common::file;
use super::process::{Answer, Server, server_of};
use super::streams::Stream;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

const BAD: usize = 200;
const GOOD: usize = 20;

/// Megabytes that a process has in memory.
fn megabytes(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}

fn post(path: &str, length: usize, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Something that no good client does. What comes back must be a refusal, an answer or a closed connection.
fn bad(server: &Server, kind: usize) {
    let chat = "/v1/chat/completions";
    let deep = "[".repeat(100_000);
    let schema = (0..5000).fold(json!({"type": "string"}).to_string(), |inner, _| format!("{{\"not\":{inner}}}"));
    let text = match kind % 10 {
        0 => post(chat, 1 << 30, "{\"messages\": [{\"role\""),
        1 => post(chat, 40, "{\"messages\""),
        2 => post(chat, deep.len(), &deep),
        3 => post(chat, 9, "{\"a\": nul"),
        4 => post(chat, 17, "{\"messages\": 5  }"),
        5 => {
            let body = json!({"messages": [{"role": "user", "content": "a"}], "max_tokens": "many"}).to_string();
            post(chat, body.len(), &body)
        }
        6 => {
            let body = format!("{{\"prompt\":\"a\",\"json_schema\":{schema}}}");
            post("/completion", body.len(), &body)
        }
        7 => {
            let body = json!({"prompt": "a", "n_predict": 4, "speculation": {"no": 1}}).to_string();
            post("/completion", body.len(), &body)
        }
        8 => "GET / HTTP/1.1\r\n".to_owned() + &"X-Long: ".repeat(100) + &"y".repeat(200_000),
        _ => {
            // Never reads what it asked for.
            let body = json!({"prompt": "abc", "max_tokens": 2000, "stream": true}).to_string();
            post("/v1/completions", body.len(), &body)
        }
    };
    let mut connection = server.connect();
    // It may be closed in the middle.
    let _ = connection.write_all(text.as_bytes());
    match kind % 10 {
        // Goes away in the middle of its upload, or of the answer.
        1 => {}
        9 => thread::sleep(Duration::from_millis(200)),
        _ => {
            let mut all = Vec::new();
            let _ = connection.set_read_timeout(Some(Duration::from_secs(30)));
            let _ = connection.read_to_end(&mut all);
            if !all.is_empty() {
                let answer = Answer::read(&all);
                assert!((400..500).contains(&answer.status) || answer.status == 503, "{kind}: {answer:?}");
            }
        }
    }
}

/// A good client: its text, and how long it waited for the first of it.
fn good(server: &Server) -> (String, Duration) {
    let start = Instant::now();
    let mut stream = Stream::begin(server, "abc", 30);
    assert!(stream.next());
    let first = start.elapsed();
    let stream = stream.finish();
    assert!(stream.done);
    (stream.text, first)
}

fn slow(times: &mut [Duration]) -> Duration {
    times.sort();
    times[(times.len() * 95).div_ceil(100) - 1]
}

#[test]
fn bad_clients_do_not_disturb_good_ones() {
    let (target, draft) = (file("target"), file("draft-0.8"));
    let args = ["--model", &target, "--draft", &draft, "--slots", "4", "--context", "4096", "--body-timeout", "2"];
    let mut server = Server::spawn(server_of(&args));
    server.wait_for("ready: ");
    let unloaded: Vec<(String, Duration)> = (0..GOOD).map(|_| good(&server)).collect();
    let expected = unloaded[0].0.clone();
    let before = megabytes(&server);

    let (over, mut most) = (AtomicBool::new(false), before);
    let loaded: Vec<(String, Duration)> = thread::scope(|scope| {
        let (server, over) = (&server, &over);
        let storm: Vec<_> = (0..BAD).map(|kind| scope.spawn(move || bad(server, kind))).collect();
        let memory = scope.spawn(move || {
            let mut most = 0;
            while !over.load(Ordering::SeqCst) {
                most = most.max(megabytes(server));
                thread::sleep(Duration::from_millis(20));
            }
            most
        });
        let loaded = (0..GOOD).map(|_| good(server)).collect();
        storm.into_iter().for_each(|bad| bad.join().unwrap());
        over.store(true, Ordering::SeqCst);
        most = most.max(memory.join().unwrap());
        loaded
    });
    assert!(unloaded.iter().chain(&loaded).all(|(text, _)| *text == expected), "the text of a good client changed");
    // 200 connections of less than a megabyte each, and what it had.
    assert!(most < before + 300, "{before} MiB grew to {most}");
    let times = |runs: &[(String, Duration)]| slow(&mut runs.iter().map(|(_, first)| *first).collect::<Vec<_>>());
    println!(
        "first text, slowest 5 %: {:?} without load, {:?} in the storm; memory {before} MiB, at most {most}",
        times(&unloaded),
        times(&loaded)
    );
    let status: Value = server.get("/status", &[]).json();
    assert_eq!((&status["state"], &status["restarts"]), (&"ready".into(), &0.into()), "{status}");
    // All that nobody reads any more is gone.
    server.until("/status", &[], |answer| answer.json()["requests"]["running"] == 0);
}
