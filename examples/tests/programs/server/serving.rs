//! Answers: what they leave in the log, clients that do not read them, and how they end when the server does.

use super::super::common::{command, file, path};
use super::process::{Server, server};
use llama_spec_tests::zoo::{CHAT_TEMPLATE, Llama};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A server of a model that never ends a text by itself.
fn endless(args: &[&str]) -> Server {
    let mut server = Server::spawn(endless_command(args));
    server.wait_for("ready: ");
    server
}

fn endless_command(args: &[&str]) -> Command {
    let model = path(Llama::target(1).with_chat_template(CHAT_TEMPLATE).labelled("endless-chat").cached().unwrap());
    let fixed = ["--model", &model, "--threads", "1", "--context", "200000", "--slots", "2"];
    let mut command = command(super::super::common::SERVER, fixed.iter().chain(args));
    command.env("LLAMA_SPEC_PORT", "0");
    command
}

/// A conversation to be answered with so many tokens.
fn chat(tokens: u32, more: Value) -> String {
    let mut body =
        json!({"messages": [{"role": "user", "content": "abcdefgh"}], "max_tokens": tokens, "temperature": 0});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

const PATH: &str = "/v1/chat/completions";

/// Begins a stream and reads its first event.
fn stream(server: &Server, body: &str) -> BufReader<TcpStream> {
    let mut stream = server.connect();
    let length = body.len();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no event");
    }
    reader
}

/// What is left of a stream.
fn rest(mut stream: BufReader<TcpStream>) -> String {
    let mut all = Vec::new();
    // The connection may be cut off.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8(all).unwrap()
}

#[test]
fn a_line_of_the_log_has_the_tokens_and_not_the_text() {
    let mut server = Server::start(&["--log-format", "json", "--verbose", "--api-key", "the-key"]);
    server.wait_for("\"ready\"");
    let body = json!({"messages": [{"role": "user", "content": "zebra crossing"}], "max_tokens": 5, "temperature": 0});
    let answer = server.send("POST", PATH, &["X-Api-Key: the-key"], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let line: Value = serde_json::from_str(&server.wait_for(PATH)).unwrap();
    assert_eq!((&line["status"], &line["method"]), (&200.into(), &"POST".into()), "{line}");
    assert_eq!(line["tokens"], answer.json()["usage"]["completion_tokens"], "{line}");
    server.signal("TERM");
    let run = server.end();
    for secret in ["zebra", "the-key"] {
        assert!(!run.stderr.contains(secret), "{run:?}");
    }
}

#[test]
fn without_a_worker_it_serves_as_well() {
    let mut server = Server::start(&["--no-supervise"]);
    server.wait_for("ready: ");
    assert_eq!(server.get("/ready", &[]).status, 200);
    assert_eq!(server.send("POST", PATH, &[], &chat(5, json!({}))).status, 200);
    assert_eq!(server.get("/", &[]).status, 200);
    server.signal("TERM");
    assert_eq!(server.end().status.code(), Some(0));
}

#[test]
fn answers_have_time_to_end() {
    let server = endless(&["--grace", "600"]);
    let stream = stream(&server, &chat(2000, json!({"stream": true})));
    server.signal("TERM");
    let rest = rest(stream);
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.contains("data: [DONE]"), "{rest}");
    let run = server.end();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
}

#[test]
fn ctrl_c_in_a_terminal_does_not_end_the_worker() {
    let mut command = endless_command(&["--grace", "600"]);
    // A terminal sends it to every process of the group.
    command.process_group(0);
    let mut server = Server::spawn(command);
    server.wait_for("ready: ");
    let stream = stream(&server, &chat(2000, json!({"stream": true})));
    server.signal_group("INT");
    let rest = rest(stream);
    assert!(rest.contains("data: [DONE]") && !rest.contains("recovery"), "{rest}");
    assert_eq!(server.end().status.code(), Some(0));
}

#[test]
fn answers_that_take_longer_are_cut_off() {
    let mut server = endless(&["--grace", "1"]);
    let stream = stream(&server, &chat(150_000, json!({"stream": true})));
    server.signal("INT");
    server.wait_for("stopping");
    // Until its end it says what it does.
    let ready = server.get("/ready", &[]);
    assert_eq!((ready.status, &ready.json()["state"]), (503, &"stopping".into()), "{ready:?}");
    let refused = server.send("POST", PATH, &[], &chat(5, json!({})));
    assert_eq!(refused.status, 503, "{refused:?}");
    let run = server.end();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let rest = rest(stream);
    assert!(!rest.contains("\"finish_reason\":\"length\""), "{rest}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = endless(&["--grace", "600"]);
    let _stream = stream(&server, &chat(150_000, json!({"stream": true})));
    server.signal("TERM");
    server.wait_for("stopping");
    server.signal("TERM");
    let run = server.end();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
}

#[test]
fn who_does_not_read_is_dropped() {
    let mut server = endless(&["--write-timeout", "0.5"]);
    let body = json!({"stream": true, "logprobs": true, "top_logprobs": 20});
    let _unread = stream(&server, &chat(150_000, body));
    let line = server.wait_for("the client went away");
    assert!(line.contains(PATH), "{line}");
    // Its slot is free: both are.
    for _ in 0..2 {
        assert_eq!(server.send("POST", PATH, &[], &chat(5, json!({}))).status, 200);
    }
}

#[test]
fn a_worker_that_breaks_on_purpose_is_replaced_and_the_text_goes_on() {
    let body = chat(40, json!({}));
    let text = |server: &Server| -> Value {
        let answer = server.send("POST", PATH, &[], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["choices"][0]["message"]["content"].clone()
    };
    let undisturbed = text(&endless(&[]));
    for fault in ["abort@5x1", "exit@5x1"] {
        let mut server = endless(&["--inject-fault", fault]);
        assert_eq!(text(&server), undisturbed, "{fault}");
        server.wait_for("recover");
        assert_eq!(server.get("/ready", &[]).status, 200);
    }
}

#[test]
fn an_engine_that_cannot_be_loaded_ends_the_server() {
    let mut command = server(&[]);
    command.env("LLAMA_SPEC_INJECT_FAULT", "abort-at-load@1000");
    let run = Server::spawn(command).end();
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(run.stderr.contains("error: "), "{run:?}");
}

#[test]
fn paths_of_clients_are_not_taken_without_a_key() {
    let server = endless(&[]);
    let answer = server.send("POST", "/admin/load", &[], &json!({"model": file("chat")}).to_string());
    answer.refused(403, "admin_disabled");
}
