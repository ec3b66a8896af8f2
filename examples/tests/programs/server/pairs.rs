//! What the server was made for: a target with its assistant is served as it should be, or not at all.

use super::super::common::file;
use super::process::{Server, server_of};
use serde_json::json;

#[test]
fn a_target_with_its_assistant_needs_no_more() {
    let (target, assistant) = (file("gemma4"), file("gemma4-assistant"));
    let mut server = Server::spawn(server_of(&["--model", &target, "--draft", &assistant]));
    server.wait_for("ready: ");
    let status = server.get("/status", &[]).json();
    assert_eq!(status["speculation"]["effective"], json!(["draft-mtp"]), "{status}");
    // On a model this small drafts do not pay, so they are asked for.
    let speculation = json!({"draft_length": 4});
    let body = json!({"prompt": "abc", "max_tokens": 60, "temperature": 0, "speculation": speculation}).to_string();
    let answer = server.send("POST", "/v1/completions", &[], &body).json();
    assert_eq!(answer["speculation"]["effective"], json!(["draft-mtp"]), "{answer}");
    assert!(answer["speculation"]["accepted"].as_u64() > Some(10), "{answer}");
    assert_eq!(server.get("/ready", &[]).status, 200);
}

#[test]
fn a_pair_that_cannot_work_is_never_served() {
    let (target, assistant) = (file("gemma4"), file("gemma4-assistant"));
    let wide = file("gemma4-assistant-wide");
    for args in [
        ["--model", &target, "--draft", &assistant, "--spec", "draft-simple"],
        ["--model", &target, "--draft", &wide, "--slots", "1"],
    ] {
        let run = super::super::common::finish(super::super::common::start(server_of(&args), ""));
        assert_eq!(run.status.code(), Some(3), "{run:?}");
        assert!(!run.stderr.contains("listening"), "{run:?}");
        let report = run.stdout.clone() + &run.stderr;
        assert!(report.contains("FAILS") && report.contains("draft"), "{report}");
    }
}
