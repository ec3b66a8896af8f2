//! Texts that are continued: OpenAI's way.

use super::fake::{Fake, Script, Step, begun, ended, token};
use super::*;
use llama_spec::Token;
use llama_spec::engine::Prompt;
use llama_spec::sample::Grammar;
use llama_spec::supervise::{Question, Reply};
use serde_json::json;

const PATH: &str = "/v1/completions";

/// An answer of two rounds, in no conversation.
pub(super) fn text(answer: u32) -> Vec<Step> {
    let round = |texts: &[&str]| {
        let tokens: Vec<_> = texts.iter().enumerate().map(|(index, text)| token(index, text, false)).collect();
        serde_json::from_value(json!({ "tokens": tokens })).unwrap()
    };
    let steps =
        [begun(), round(&["On", "ce"]), round(&[" upon"]), ended(json!({ "text": "\n", "reason": "max-tokens" }))];
    steps.map(|update| (answer, Ok(update))).into()
}

#[tokio::test]
async fn a_whole_text() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    let got = post(&over(&fake), PATH, json!({ "prompt": "P", "max_tokens": 3 })).await;
    let expected = json!({
        "object": "text_completion", "model": "big-model",
        "choices": [{ "text": "Once upon\n", "index": 0, "logprobs": null, "finish_reason": "length" }],
        "usage": { "prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7 },
        "timings": { "predicted_n": 3 }, "speculation": { "drafted": 2, "accepted": 1 },
    });
    assert_has(&got.json(), &expected);
    let task = fake.task();
    assert_eq!((task.request.prompt, task.chat), (Prompt::Text("P".into()), None));
    assert_eq!(task.request.options.max_tokens, Some(3));
}

#[tokio::test]
async fn tokens_are_counted_for_the_log() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    let mut request = posting(PATH, json!({ "prompt": "P" }).to_string());
    let tokens = crate::server::access::Tokens::default();
    request.extensions_mut().insert(tokens.clone());
    send(&over(&fake), request).await;
    assert!(format!("{tokens:?}").contains('3'), "{tokens:?}");
}

#[tokio::test]
async fn a_stream_of_text() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    let body = json!({ "prompt": "P", "stream": true, "stream_options": { "include_usage": true }, "logprobs": 1 });
    let events = post(&over(&fake), PATH, body).await.events();
    let texts: Vec<_> = events.iter().filter_map(|event| event["choices"][0]["text"].as_str()).collect();
    assert_eq!(texts, ["Once", " upon", "\n"]);
    let columns = json!({
        "tokens": ["On", "ce"], "token_logprobs": [-0.25, -0.25], "text_offset": [0, 2],
        "top_logprobs": [{ "On": -0.25, "other": -2.5 }, { "ce": -0.25, "other": -2.5 }],
    });
    assert_eq!(events[0]["choices"][0]["logprobs"], columns);
    assert_eq!(events[1]["choices"][0]["logprobs"]["text_offset"], json!([4]));
    assert_has(&events[2], &json!({ "choices": [{ "finish_reason": "length" }], "speculation": { "drafted": 2 } }));
    assert_has(&events[3], &json!({ "choices": [], "usage": { "total_tokens": 7 } }));
    assert_eq!((&events[4], events.len()), (&json!("[DONE]"), 5));
}

#[tokio::test]
async fn many_prompts_are_numbered_through() {
    let fake = Fake::ready();
    let play = || (0..2).for_each(|_| fake.plays(Script::Play([text(0), text(1)].concat())));
    play();
    let body = json!({ "prompt": ["a", [1, 2]], "n": 2, "logprobs": 0 });
    let got = post(&over(&fake), PATH, body.clone()).await.json();
    let choices = got["choices"].as_array().unwrap();
    assert_eq!(choices.iter().map(|choice| choice["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_has(&got["usage"], &json!({ "prompt_tokens": 8, "completion_tokens": 12 }));
    assert_eq!((fake.tasks(), fake.task().answers), (2, 2));
    assert_eq!(fake.task().request.prompt, Prompt::Tokens(vec![Token::new(1), Token::new(2)]));

    play();
    let mut streamed = body;
    streamed["stream"] = true.into();
    let events = post(&over(&fake), PATH, streamed).await.events();
    for index in 0..4 {
        let mine = events.iter().filter(|event| event["choices"][0]["index"] == index);
        assert_eq!(mine.filter_map(|event| event["choices"][0]["text"].as_str()).collect::<String>(), "Once upon\n");
    }
}

#[tokio::test]
async fn if_one_prompt_is_refused_none_is_answered() {
    let fake = Fake::ready();
    let (sender, steps) = tokio::sync::mpsc::channel(1);
    fake.plays(Script::Live(steps));
    fake.plays(Script::Refuse(super::fake::problem("busy", "full", None)));
    let got = post(&over(&fake), PATH, json!({ "prompt": ["a", "b"] })).await;
    assert_eq!(got.error().0, 429);
    assert!(sender.is_closed());
}

#[tokio::test]
async fn the_prompt_is_repeated() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    let got = post(&over(&fake), PATH, json!({ "prompt": "P: ", "echo": true })).await.json();
    assert_eq!(got["choices"][0]["text"], "P: Once upon\n");
    fake.plays(Script::Play(text(0)));
    fake.replies(Ok(Reply::Text("from tokens ".into())));
    let got = post(&over(&fake), PATH, json!({ "prompt": [5, 6], "echo": true, "stream": true })).await.events();
    assert_eq!(got[0]["choices"][0]["text"], "from tokens ");
}

#[tokio::test]
async fn tokens_and_texts_are_mixed() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    fake.replies(Ok(Reply::Tokens(vec![(Token::new(7), vec![1]), (Token::new(8), vec![2])])));
    post(&over(&fake), PATH, json!({ "prompt": [5, "ab", 6] })).await;
    let tokens = [5, 7, 8, 6].map(Token::new).to_vec();
    assert_eq!(fake.task().request.prompt, Prompt::Tokens(tokens));
    let asked = Question::Tokenize { text: "ab".into(), add_special: false, parse_special: true };
    assert_eq!(fake.questions(), [asked]);
}

#[tokio::test]
async fn the_form_of_a_text() {
    let fake = Fake::ready();
    let schema = json!({ "type": "integer" });
    for (fields, grammar) in [
        (json!({ "grammar": "root ::= \"a\"" }), Grammar::gbnf("root ::= \"a\"")),
        (json!({ "json_schema": schema }), Grammar::JsonSchema(schema.clone())),
        (json!({ "response_format": { "type": "json_object" } }), Grammar::JsonSchema(json!({ "type": "object" }))),
    ] {
        fake.plays(Script::Play(text(0)));
        let mut body = json!({ "prompt": "P" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(post(&over(&fake), PATH, body).await.status, 200);
        assert_eq!(fake.task().request.options.sampler.grammar, Some(grammar));
    }
}

#[tokio::test]
async fn texts_in_a_bias_are_tokens() {
    let fake = Fake::ready();
    fake.plays(Script::Play(text(0)));
    fake.replies(Ok(Reply::Tokens(vec![(Token::new(7), vec![]), (Token::new(9), vec![])])));
    let bias = json!([["Hi there", false], [5, 1.0], [9, 2.0]]);
    assert_eq!(post(&over(&fake), PATH, json!({ "prompt": "P", "logit_bias": bias })).await.status, 200);
    let sampler = fake.task().request.options.sampler;
    assert_eq!(sampler.banned, [Token::new(7)]);
    let bias: Vec<_> = sampler.logit_bias.iter().map(|entry| (entry.token.id(), entry.bias)).collect();
    assert_eq!(bias, [(5, 1.0), (9, 2.0)]);
}

#[tokio::test]
async fn what_cannot_be_had_is_named() {
    let fake = Fake::ready();
    for (bad, param) in [
        (json!({}), "prompt"),
        (json!({ "prompt": 7 }), "prompt"),
        (json!({ "prompt": [[1], [true]] }), "prompt[1][0]"),
        (json!({ "prompt": [1, -2] }), "prompt[1]"),
        (json!({ "prompt": [1, 512] }), "prompt"),
        (json!({ "prompt": vec!["x"; 65] }), "prompt"),
        (json!({ "prompt": { "prompt_string": "x", "multimodal_data": ["AAAA"] } }), "prompt.multimodal_data"),
        (json!({ "prompt": "P", "suffix": "S" }), "suffix"),
        (json!({ "prompt": "P", "best_of": 3 }), "best_of"),
        (json!({ "prompt": "P", "logprobs": 101 }), "logprobs"),
        (json!({ "prompt": "P", "logprobs": 1, "echo": true }), "echo"),
        (json!({ "prompt": "P", "grammar": "root ::= \"a\"", "json_schema": {} }), "grammar"),
        (json!({ "prompt": "P", "json_schema": "x" }), "json_schema"),
    ] {
        let (status, _, found, message) = post(&over(&fake), PATH, bad.clone()).await.error();
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{bad}: {message}");
    }
    assert_eq!(fake.tasks(), 0);
}

#[tokio::test]
async fn embeddings_are_explained() {
    let fake = Fake::ready();
    for path in ["/v1/embeddings", "/embedding", "/v1/rerank", "/infill"] {
        let (status, code, _, _) = post(&over(&fake), path, json!({ "input": "x" })).await.error();
        assert_eq!((status, code.as_str()), (400, "unsupported"));
    }
}
