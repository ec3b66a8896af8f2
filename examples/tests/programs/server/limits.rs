//! What clients may do to it: nothing that stops it for others.

use super::process::{Answer, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};

/// The path to which bodies are sent; that there may be nobody to read them does not matter, since they are read before.
const PATH: &str = "/v1/chat/completions";

fn works(server: &Server) {
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn bodies_have_a_largest_size() {
    let server = Server::start(&["--max-body", "1"]);
    let large = "x".repeat((1 << 20) + 1);
    server.send("POST", PATH, &[], &large).refused(413, "body_too_large");
    // Announced and never sent.
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n");
    Answer::read(&server.raw(head)).refused(413, "body_too_large");
    // Not announced.
    let mut text = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..17 {
        text += &format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    }
    Answer::read(&server.raw(text + "0\r\n\r\n")).refused(413, "body_too_large");
    let fits = server.send("POST", PATH, &[], &"x".repeat(1 << 20));
    assert_ne!(fits.status, 413, "{fits:?}");
    works(&server);
}

#[test]
fn bodies_that_do_not_come_are_not_waited_for() {
    let server = Server::start(&["--body-timeout", "0.3"]);
    let answer = server.raw(format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{{"));
    Answer::read(&answer).refused(408, "body_timeout");
    works(&server);
}

#[test]
fn bodies_that_are_badly_framed_are_refused() {
    let server = Server::start(&[]);
    let chunked = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    Answer::read(&server.raw(chunked)).refused(400, "body_broken");
    works(&server);
}

#[test]
fn heads_have_a_largest_size_and_count() {
    let server = Server::start(&[]);
    let long = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(70 << 10));
    let many = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X-Many: x\r\n".repeat(101));
    for head in [long, many] {
        assert_eq!(Answer::read(&server.raw(head)).status, 431);
    }
    for garbage in
        [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n"]
    {
        assert_eq!(Answer::read(&server.raw(garbage)).status, 400, "{garbage:?}");
    }
    works(&server);
}

#[test]
fn heads_that_do_not_come_are_not_waited_for() {
    let server = Server::start(&["--header-timeout", "0.3"]);
    // Reading ends when the server closes the connection.
    for slow in ["", "GET /health HTTP/1.1\r\nHost:"] {
        let answer = server.raw(slow);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
    // A connection that was used and is kept.
    let answer = server.raw("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(Answer::read(&answer).status, 200);
    works(&server);
}

#[test]
fn connections_have_a_largest_number() {
    let server = Server::start(&["--max-connections", "2"]);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = server.connect();
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        held.push(stream);
    }
    let mut refused = Vec::new();
    server.connect().read_to_end(&mut refused).unwrap();
    Answer::read(&refused).refused(503, "connections");
    drop(held);
    // The server sees them go at some time.
    while server.get("/health", &[]).status != 200 {}
}

#[test]
fn a_schema_that_would_take_long_is_refused_and_holds_up_nobody() {
    let server = Server::start(&["--slots", "2"]);
    server.until("/ready", &[], |answer| answer.status == 200);
    let chat = |more: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.send("POST", "/v1/chat/completions", &[], &body.to_string())
    };
    let properties: serde_json::Map<_, _> = (0..2000).map(|index| (format!("p{index}"), json!({}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": schema}});
    for (field, value) in [("response_format", format), ("tools", json!([tool]))] {
        let refused = chat(json!({field: value}));
        refused.refused(400, "invalid_value");
        let error = refused.json()["error"].clone();
        assert!(error["param"].as_str().unwrap().starts_with(field), "{error}");
        assert!(error["message"].as_str().unwrap().contains("at most 64"), "{error}");
        assert_eq!(chat(json!({})).status, 200);
    }
    // What is wrong with a schema is told of it, and in few words.
    let schema = json!({"$ref": "#/nope"});
    let refused = chat(json!({"response_format": {"type": "json_object", "schema": schema}}));
    refused.refused(400, "invalid_value");
    let error = refused.json()["error"].clone();
    assert_eq!(error["param"], "response_format", "{error}");
    assert!(error["message"].as_str().unwrap().starts_with("JSON schema error"), "{error}");
    let refused = chat(json!({"grammar": "root ::= nope"}));
    assert_eq!(refused.json()["error"]["param"], "grammar", "{refused:?}");
}

#[test]
fn tools_that_the_template_cannot_call_cannot_be_required() {
    let tool =
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}});
    let named = json!({"type": "function", "function": {"name": "f"}});
    let ask = |server: &Server, choice: &Value| {
        let body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 60, "tools": [tool], "tool_choice": choice});
        server.send("POST", "/v1/chat/completions", &[], &body.to_string())
    };
    let server = Server::start(&[]);
    server.until("/ready", &[], |answer| answer.status == 200);
    for choice in [json!("required"), named.clone()] {
        let refused = ask(&server, &choice);
        refused.refused(400, "unsupported_value");
        assert_eq!(refused.json()["error"]["param"], "tool_choice");
    }
    assert_eq!(ask(&server, &json!("auto")).status, 200);
}
