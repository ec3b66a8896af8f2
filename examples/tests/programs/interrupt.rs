//! Ctrl-C: `generate` writes what it has and ends, `chat` ends only the answer.

use super::common::{CHAT, GENERATE, command, continuation, file, finish, model, path, start, tokens};
use llama_spec_tests::zoo::{CHAT_TEMPLATE, Llama};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Far more than is generated before the signal comes.
const ENDLESS: [&str; 6] = ["-n", "1000000", "--context", "200000", "--threads", "1"];

/// As the terminal does at Ctrl-C.
fn interrupt(child: &Child) {
    let sent = Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status().unwrap();
    assert!(sent.success());
}

/// Waits for the beginning of the answer.
fn wait_for_text(child: &mut Child) -> Vec<u8> {
    let mut first = vec![0; 20];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    first
}

#[test]
fn generate_ends_with_what_it_has() {
    let args = ["--model", &file("target"), "-p", "abc"];
    let mut child = start(command(GENERATE, args.iter().chain(&ENDLESS)), "");
    assert_eq!(wait_for_text(&mut child), b"defghijklmnopqrstuvw");
    interrupt(&child);
    let run = finish(child);
    assert_eq!(run.status.code(), Some(130), "{:?}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{:?}", run.stderr);
    assert!(run.stderr.ends_with("ended: interrupted\n"), "{:?}", run.stderr);
}

#[test]
fn generate_writes_the_object_it_has() {
    let args = ["--model", &file("target"), "-p", "abc", "--json", "--spec", "none"];
    let mut verbose = command(GENERATE, args.iter().chain(&ENDLESS));
    // The log says when it has begun.
    verbose.env("RUST_LOG", "llama_spec=info");
    let mut child = start(verbose, "");
    let mut first = [0; 4];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    interrupt(&child);
    let run = finish(child);
    assert_eq!(run.status.code(), Some(130), "{run:?}");
    assert_eq!(run.json()["stop_reason"], "interrupted");
    let generated = tokens(&run.json());
    assert_eq!(generated, continuation(&model("target"), "abc", generated.len()));
}

#[test]
fn chat_ends_the_answer_and_goes_on() {
    let endless = Llama::target(1).with_chat_template(CHAT_TEMPLATE).labelled("endless-chat");
    let args = ["--model", &path(endless.cached().unwrap()), "--temp", "0"];
    let mut child = command(CHAT, args.iter().chain(&ENDLESS)).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for _ in 0..2 {
        input.write_all(b"hi\n").unwrap();
        wait_for_text(&mut child);
        interrupt(&child);
        // All of the answer up to the end of its line, before the next one begins.
        let mut byte = [0];
        while byte != *b"\n" {
            child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        }
    }
    input.write_all(b"/stats\n/quit\n").unwrap();
    let run = finish(child);
    assert_eq!(run.status.code(), Some(0), "{:?}", run.stderr);
    assert_eq!(run.stderr.matches("ended: interrupted").count(), 2, "{:?}", run.stderr);
    assert!(run.stderr.contains("2 answers: "), "{:?}", run.stderr);
}

#[test]
fn chat_that_waits_for_a_message_ends() {
    let args = ["--model", &file("chat"), "--temp", "0", "--threads", "1"];
    let mut child = command(CHAT, args).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"hi\n").unwrap();
    wait_for_text(&mut child);
    // The rest of the answer, and then it waits; a signal that comes earlier only ends the answer.
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "still running");
        std::thread::sleep(Duration::from_millis(100));
        interrupt(&child);
    }
    assert_eq!(finish(child).status.code(), Some(130));
}
