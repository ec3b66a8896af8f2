//! llama-server's own interface.

use super::completions::text;
use super::fake::{Fake, Script, begun, ended};
use super::*;
use llama_spec::Token;
use llama_spec::engine::Drafters;
use llama_spec::supervise::{Question, Reply};
use serde_json::json;

const PATH: &str = "/completion";

#[tokio::test]
async fn a_completion_with_its_settings() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    let body = json!({
        "prompt": "P", "n_predict": 3, "temperature": 0.7, "top_k": 5, "seed": 11, "stop": ["x"], "return_tokens": true,
        "n_probs": 2, "logit_bias": [[5, 1.5], [6, false]], "cache_prompt": true, "id_slot": 0, "speculative.n_max": 4,
    });
    let got = post(&over(&fake), PATH, body).await.json();
    let expected = json!({
        "index": 0, "content": "Once upon\n", "tokens": [10, 11, 10], "id_slot": -1, "stop": true, "model": "big-model",
        "tokens_predicted": 3, "tokens_evaluated": 4, "tokens_cached": 2, "prompt": "P", "has_new_line": true,
        "truncated": false, "stop_type": "limit", "stopping_word": "",
        "timings": { "predicted_per_second": 100.0, "prompt_per_second": 200.0, "draft_n": 2, "draft_n_accepted": 1 },
        "generation_settings": {
            "n_predict": 3, "max_tokens": 3, "temperature": 0.7, "top_k": 5, "top_p": 0.95, "seed": 11, "stop": ["x"],
            "n_probs": 2, "logit_bias": [[5, 1.5], [6, false]], "n_ctx": 1024, "stream": false, "speculative.n_max": 4,
            "typical_p": 1.0, "top_n_sigma": -1.0, "mirostat": 0, "grammar": "",
            "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
        },
        "speculation": { "mode": "auto", "drafted": 2 },
    });
    assert_has(&got, &expected);
    let first = json!({
        "id": 10, "token": "On", "bytes": [79, 110], "logprob": -0.25,
        "top_logprobs": [
            { "id": 10, "token": "On", "bytes": [79, 110], "logprob": -0.25 },
            { "id": 99, "token": "other", "bytes": [111, 116, 104, 101, 114], "logprob": -2.5 },
        ],
    });
    assert_eq!(got["completion_probabilities"][0], first);
    let request = fake.task().request;
    assert_eq!((request.drafting.draft_max, request.drafting.drafters), (Some(4), Drafters::Auto));
}

#[tokio::test]
async fn why_it_stopped() {
    for (end, kind, word, truncated) in [
        (json!({ "reason": "end-of-text" }), "eos", "", false),
        (json!({ "reason": "stop-string", "stop": "END" }), "word", "END", false),
        (json!({ "reason": "context-full" }), "limit", "", true),
    ] {
        let fake = Fake::ready();
        fake.plays(Script::Play(vec![(0, Ok(begun())), (0, Ok(ended(end)))]));
        let got = post(&over(&fake), "/completions", json!({ "prompt": "P" })).await.json();
        assert_has(&got, &json!({ "stop_type": kind, "stopping_word": word, "truncated": truncated, "tokens": [] }));
        assert!(got.get("completion_probabilities").is_none());
    }
}

#[tokio::test]
async fn pieces_of_a_completion() {
    let fake = Fake::ready();
    let mut steps = text(0);
    steps.insert(1, (0, Ok(serde_json::from_value(json!({ "prefill": { "done": 3, "total": 4 } })).unwrap())));
    fake.plays(Script::Play(steps));
    let body = json!({ "prompt": "P", "stream": true, "return_progress": true });
    let got = post(&over(&fake), PATH, body).await;
    let events = got.events();
    assert_has(&events[0], &json!({ "content": "", "stop": false, "prompt_progress": { "total": 4, "processed": 3 } }));
    let second = json!({ "index": 0, "content": "Once", "tokens": [10, 11], "stop": false, "tokens_predicted": 2, "tokens_evaluated": 4 });
    assert_has(&events[1], &second);
    assert_has(
        &events[3],
        &json!({ "content": "\n", "stop": true, "stop_type": "limit", "has_new_line": true, "tokens_predicted": 3 }),
    );
    assert_eq!(events.len(), 4);
    assert!(!got.body.contains("[DONE]"));
}

#[tokio::test]
async fn several_and_selected_fields() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    fake.plays(Script::Play(text(0)));
    let body = json!({ "prompt": ["a", "b"], "response_fields": ["content", "generation_settings/n_predict", "none"] });
    let got = post(&over(&fake), PATH, body).await.json();
    let one = json!({ "content": "Once upon\n", "generation_settings/n_predict": -1 });
    assert_eq!(got, json!([one, one]));
    fake.plays(Script::Play([text(0), text(1)].concat()));
    let got = post(&over(&fake), PATH, json!({ "prompt": "a", "n_cmpl": 2 })).await.json();
    assert_eq!((&got[0]["index"], &got[1]["index"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn tokens_of_texts_and_back() {
    let fake = Fake::ready();
    let router = over(&fake);
    let reply = || Ok(Reply::Tokens(vec![(Token::new(5), b"a".to_vec()), (Token::new(6), vec![0xc3])]));
    fake.replies(reply());
    assert_eq!(post(&router, "/tokenize", json!({ "content": "x" })).await.json(), json!({ "tokens": [5, 6] }));
    fake.replies(reply());
    let got = post(&router, "/tokenize", json!({ "content": "x", "add_special": true, "with_pieces": true })).await;
    assert_eq!(got.json(), json!({ "tokens": [{ "id": 5, "piece": "a" }, { "id": 6, "piece": [195] }] }));
    fake.replies(Ok(Reply::Text("abc".into())));
    assert_eq!(post(&router, "/detokenize", json!({ "tokens": [5, 6] })).await.json(), json!({ "content": "abc" }));
    let text = || "x".to_owned();
    let asked = [
        Question::Tokenize { text: text(), add_special: false, parse_special: true },
        Question::Tokenize { text: text(), add_special: true, parse_special: true },
        Question::Detokenize { tokens: vec![Token::new(5), Token::new(6)] },
    ];
    assert_eq!(fake.questions(), asked);
    for (path, bad, param) in [
        ("/tokenize", json!({}), "content"),
        ("/tokenize", json!({ "content": 5 }), "content"),
        ("/detokenize", json!({ "tokens": ["a"] }), "tokens[0]"),
        ("/detokenize", json!({ "tokens": [512] }), "tokens"),
        ("/detokenize", json!({ "tokens": [-1] }), "tokens"),
    ] {
        let (status, _, found, _) = post(&router, path, bad).await.error();
        assert_eq!((status, found.as_deref()), (400, Some(param)));
    }
    fake.replies(Err(super::fake::problem("unavailable", "loading", None)));
    assert_eq!(post(&router, "/tokenize", json!({ "content": "x" })).await.error().0, 503);
}

#[tokio::test]
async fn a_conversation_as_a_prompt() {
    let fake = Fake::ready();
    fake.replies(Ok(Reply::Text("<user>Hi".into())));
    let got = post(&over(&fake), "/apply-template", json!({ "messages": [{ "role": "user", "content": "Hi" }] })).await;
    assert_eq!(got.json(), json!({ "prompt": "<user>Hi" }));
    assert!(matches!(&fake.questions()[0], Question::Render(chat) if chat.messages[0].text() == "Hi"));
}

#[tokio::test]
async fn properties_and_slots() {
    let fake = Fake::ready();
    let router = over(&fake);
    let props = get(&router, "/props").await.json();
    let expected = json!({
        "default_generation_settings": { "n_ctx": 1024, "params": { "temperature": 0.8, "n_predict": -1, "seed": 4_294_967_295_u32 } },
        "total_slots": 2, "model_alias": "big-model", "model_path": "big-model-00001-of-00002.gguf", "bos_token": "<s>",
        "eos_token": "</s>", "chat_template": "{{ messages }}", "modalities": { "vision": false },
    });
    assert_has(&props, &expected);
    let slots = get(&router, "/slots").await.json();
    assert_has(
        &slots,
        &json!([{ "id": 0, "is_processing": true, "n_ctx": 1024 }, { "id": 1, "is_processing": false }]),
    );
    assert_eq!(get(&router, "/slots?fail_on_no_slot=1").await.status, 200);
    fake.change(|status| status.stats.slots[1].busy = true);
    assert_eq!(get(&router, "/slots?fail_on_no_slot=0").await.status, 200);
    assert_eq!(get(&router, "/slots?fail_on_no_slot=1").await.error().0, 503);
}

#[tokio::test]
async fn numbers_for_prometheus() {
    let fake = Fake::ready();
    fake.change(|status| status.restarts = 3);
    let got = get(&over(&fake), "/metrics").await;
    assert!(got.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        "llama_spec_ready 1",
        "llama_spec_state{state=\"ready\"} 1",
        "llama_spec_state{state=\"failed\"} 0",
        "llama_spec_worker_restarts_total 3",
        "llamacpp:requests_processing 1",
    ] {
        assert!(got.body.lines().any(|found| found == line), "no {line} in {}", got.body);
    }
    let named: Vec<_> = got.body.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let distinct: std::collections::BTreeSet<_> = named.iter().collect();
    assert_eq!(named.len(), distinct.len(), "each family once");
}
