//! Texts that are kept for lookup: over restarts, and for each key by itself.

use super::process::Server;
use std::fs;
use std::path::Path;

/// Starts a server whose drafts can be counted.
fn start(file: &Path) -> Server {
    let fixed = ["--spec", "lookup", "--draft-length", "8", "--slots", "1", "--api-key", "anna-key,bert-key,carl-key"];
    let mut server = Server::start(&[&fixed, &["--store-file", file.to_str().unwrap()][..]].concat());
    server.wait_for("ready: ");
    server
}

/// The text for this client, and how much of it was drafted right.
fn ask(server: &Server, key: &str) -> (String, u64) {
    let body = r#"{"prompt": "a text of some length, which stands in the store", "max_tokens": 40, "temperature": 0}"#;
    let answer = server.send("POST", "/v1/completions", &[&format!("X-Api-Key: {key}")], body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    (answer["choices"][0]["text"].as_str().unwrap().to_owned(), answer["speculation"]["accepted"].as_u64().unwrap())
}

/// Ends it in order, and gives what it said.
fn end(server: Server) -> String {
    server.signal("TERM");
    let run = server.end();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    run.stderr
}

#[test]
fn texts_outlive_the_server_for_those_who_have_their_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store");
    let server = start(&file);
    let (text, fresh) = ask(&server, "anna-key");
    // Texts are kept a moment after they end.
    let kept = |answer: &super::process::Answer| {
        let tokens = answer.body.lines().find_map(|line| line.strip_prefix("llama_spec_store_tokens "));
        tokens.is_some_and(|tokens| tokens != "0")
    };
    server.until("/metrics", &["X-Api-Key: anna-key"], kept);
    let (again, more) = ask(&server, "anna-key");
    assert!(again == text && more > fresh, "{more} after {fresh}");
    assert_eq!(ask(&server, "bert-key"), (text.clone(), fresh));
    assert!(!end(server).contains("WARN"));
    let bytes = fs::read(&file).unwrap();
    assert!(!bytes.windows(4).any(|part| part == b"anna"), "a key is in the file");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let server = start(&file);
    assert_eq!(ask(&server, "carl-key"), (text.clone(), fresh));
    assert_eq!(ask(&server, "anna-key"), (text.clone(), more));
    end(server);

    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let server = start(&file);
    assert_eq!(ask(&server, "anna-key"), (text, fresh));
    let said = end(server);
    let warned: Vec<_> = said.lines().filter(|line| line.contains("WARN")).collect();
    assert!(warned.len() == 1 && warned[0].contains("damaged or cut short"), "{said}");
    assert!(fs::read(&file).unwrap().len() < bytes.len(), "it was not begun anew");
}
