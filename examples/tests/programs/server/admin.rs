//! Loading and unloading while it runs.

use super::super::common::{file, path};
use super::process::{Answer, Server, server_of};
use serde_json::{Value, json};

const KEY: &[&str] = &["Authorization: Bearer k"];

fn admin(server: &Server, what: &str, body: &Value) -> Answer {
    server.send("POST", &format!("/admin/{what}"), KEY, &body.to_string())
}

/// The slots it tells of, once it has told its numbers.
fn slots(server: &Server) -> usize {
    let count = |answer: &Answer| answer.json().as_array().unwrap().len();
    count(&server.until("/slots", KEY, |answer| count(answer) > 0))
}

/// Whether it answers.
fn works(server: &Server) {
    let body = json!({"prompt": "a", "max_tokens": 2}).to_string();
    let answer = server.send("POST", "/v1/completions", KEY, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn settings_are_kept_and_what_cannot_be_loaded_does_no_harm() {
    let target = file("target");
    let all = ["--model", &target, "--slots", "3", "--context", "1024", "--api-key", "k"];
    let mut server = Server::spawn(server_of(&all));
    server.wait_for("ready: ");
    for (what, body) in [("reload", json!({})), ("load", json!({"model": target})), ("load", json!({}))] {
        assert_eq!(admin(&server, "unload", &json!({})).status, 200);
        let loaded = admin(&server, what, &body);
        assert_eq!(loaded.status, 200, "{loaded:?}");
        assert_eq!(slots(&server), 3, "{what} {body}");
    }
    assert_eq!(server.get("/props", KEY).json()["default_generation_settings"]["n_ctx"], 1024);

    // Refused in front, so that the engine does not notice.
    for (what, body) in [
        ("load", json!({"model": "/no/such.gguf"})),
        ("load", json!({"model": file!()})),
        ("load", json!({"draft": file("draft-other-vocabulary")})),
        ("draft", json!({"draft": file("draft-other-vocabulary")})),
    ] {
        admin(&server, what, &body).refused(400, "not_loadable");
        assert_eq!(server.get("/ready", KEY).status, 200, "{what} {body}");
        works(&server);
    }
    // Refused by the engine only: what was there is loaded again.
    let body = json!({"model": file("chat"), "gpu_layers": {"count": 5}});
    let refused = admin(&server, "load", &body);
    assert!(refused.status != 200, "{refused:?}");
    server.until("/ready", KEY, |answer| answer.status == 200);
    works(&server);
    assert_eq!(slots(&server), 3);
}

#[test]
fn a_text_does_not_go_on_with_another_model() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model.gguf");
    std::fs::copy(file("recall"), &model).unwrap();
    let mut command =
        server_of(&["--model", &path(model.clone()), "--spec", "none", "--context", "100000", "--slots", "1"]);
    // The worker dies in the middle of the text.
    command.args(["--inject-fault", "abort@60x1"]);
    let mut server = Server::spawn(command);
    server.wait_for("ready: ");
    let other = dir.path().join("other.gguf");
    std::fs::copy(file("chat"), &other).unwrap();
    std::fs::rename(&other, &model).unwrap();
    let body = json!({"prompt": "abc", "max_tokens": 2000, "temperature": 0, "ignore_eos": true}).to_string();
    server.send("POST", "/v1/completions", &[], &body).refused(503, "interrupted");
    let status = server.until("/status", &[], |answer| answer.json()["state"] == "ready").json();
    assert!(status["recoveries"].to_string().contains("not the one it was"), "{status}");
    server.wait_for("not the one it was");
}
