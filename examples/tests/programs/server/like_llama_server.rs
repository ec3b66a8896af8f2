//! What llama-server holds to with speculation, this server holds to as well.

use super::super::common::file;
use super::process::{Answer, Server, server_of};
use serde_json::{Value, json};
use std::thread;

fn drafted(slots: &str, context: &str) -> Server {
    let (target, draft) = (file("target"), file("draft-0.8"));
    let args = ["--model", &target, "--draft", &draft, "--draft-length", "4", "--slots", slots, "--context", context];
    let mut server = Server::spawn(server_of(&args));
    server.wait_for("ready: ");
    server
}

fn complete(server: &Server, more: Value) -> Value {
    let mut body = json!({"prompt": "abc", "n_predict": 60, "temperature": 0});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = server.send("POST", "/completion", &[], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// A number of the page for monitoring.
fn metric(page: &Answer, name: &str) -> u64 {
    let line = page.body.lines().find(|line| line.split([' ', '{']).next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {page:?}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_text_is_the_same_with_and_without_drafts() {
    let server = drafted("1", "512");
    let with = complete(&server, json!({}));
    let without = complete(&server, json!({"speculation": "off"}));
    assert_eq!(with["content"], without["content"]);
    assert!(with["timings"]["draft_n"].as_u64() > Some(0) && without["timings"].get("draft_n").is_none());
    for longest in 1..6 {
        let limited = complete(&server, json!({"speculative.n_max": longest}));
        assert_eq!(limited["content"], with["content"], "{longest}");
    }
    let grammar = complete(&server, json!({"grammar": "root ::= [a-f]+ \".\"", "n_predict": 40}));
    assert!(grammar["content"].as_str().unwrap().chars().all(|c| "abcdef.".contains(c)), "{grammar}");
    let plain = complete(&server, json!({"grammar": "root ::= [a-f]+ \".\"", "n_predict": 40, "speculation": "off"}));
    assert_eq!(grammar["content"], plain["content"]);
}

#[test]
fn a_text_ends_where_its_slot_does() {
    let server = drafted("2", "256");
    let context = server.get("/props", &[]).json()["default_generation_settings"]["n_ctx"].as_u64().unwrap();
    for ignore in [false, true] {
        let whole = complete(&server, json!({"n_predict": -1, "ignore_eos": ignore}));
        let (prompt, predicted) = (whole["tokens_evaluated"].as_u64(), whole["tokens_predicted"].as_u64());
        assert_eq!((&whole["stop_type"], &whole["truncated"]), (&"limit".into(), &true.into()), "{whole}");
        let tokens = prompt.unwrap() + predicted.unwrap();
        assert!(context - 1 <= tokens && tokens <= context + 1, "{tokens} of {context}");
    }
    // And the next one is right.
    assert_eq!(complete(&server, json!({"n_predict": 3}))["content"], "def");
}

#[test]
fn side_by_side_is_as_one_after_the_other_and_the_totals_are_the_sums() {
    let server = drafted("4", "512");
    let prompts = ["abc", "The quick", "0123", "Hello, world", "a", "xyz"];
    let ask = |prompt: &str| complete(&server, json!({"prompt": prompt}));
    let alone: Vec<Value> = prompts.iter().map(|prompt| ask(prompt)).collect();
    let together: Vec<Value> = thread::scope(|scope| {
        let asked: Vec<_> = prompts.iter().map(|prompt| scope.spawn(|| ask(prompt))).collect();
        asked.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(alone["content"], together["content"]);
    }
    let sum = |name: &str| -> u64 {
        alone.iter().chain(&together).map(|answer| answer["timings"][name].as_u64().unwrap_or(0)).sum()
    };
    let (drafted, accepted) =
        ("llamacpp:spec_decode_num_draft_tokens_total", "llamacpp:spec_decode_num_accepted_tokens_total");
    // The numbers of the worker are told several times a second.
    let page =
        server.until("/metrics", &[], |page| metric(page, "llamacpp:tokens_predicted_total") >= sum("predicted_n"));
    assert_eq!(metric(&page, "llamacpp:tokens_predicted_total"), sum("predicted_n"));
    assert_eq!(metric(&page, drafted), sum("draft_n"));
    assert_eq!(metric(&page, accepted), sum("draft_n_accepted"));
    let slots = server.get("/slots", &[]).json();
    assert_eq!(slots.as_array().map(Vec::len), Some(4), "{slots}");
}
