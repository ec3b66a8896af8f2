//! Errors: in OpenAI's form, with a status that says what to do, and nothing about the machine.

use super::fake::{Fake, Script, problem};
use super::*;
use serde_json::json;

const PATH: &str = "/v1/chat/completions";

#[tokio::test]
async fn problems_have_their_status() {
    for (kind, status, code, retry) in [
        ("invalid", 400, "invalid_value", None),
        ("too-long", 400, "context_length_exceeded", None),
        ("busy", 429, "queue_full", Some("1")),
        ("unavailable", 503, "unavailable", Some("2")),
        ("interrupted", 503, "interrupted", Some("1")),
        ("failed", 500, "failed", None),
    ] {
        let fake = Fake::ready();
        fake.plays(Script::Refuse(problem(kind, "because", Some("penalties.repeat"))));
        let got = post(&over(&fake), PATH, json!({ "messages": [{ "role": "user", "content": "Hi" }] })).await;
        let expected = (status, code.to_owned(), Some("repeat_penalty".to_owned()), "because".to_owned());
        assert_eq!(got.error(), expected);
        assert_eq!(got.headers.get("retry-after").map(|value| value.to_str().unwrap()), retry, "{kind}");
    }
}

#[tokio::test]
async fn nothing_of_the_machine_is_told() {
    let fake = Fake::ready();
    let message = "cannot map /srv/owner/models/x.gguf\nggml_abort: /src/ggml.c:12: assert";
    for kind in ["unavailable", "interrupted", "failed"] {
        fake.plays(Script::Refuse(problem(kind, message, None)));
        let got = post(&over(&fake), PATH, json!({ "messages": [{ "role": "user", "content": "Hi" }] })).await;
        assert_eq!(got.error().3, "cannot map x.gguf");
    }
    fake.change(|status| {
        status.state = serde_json::from_value(json!({ "failed": { "reason": message } })).unwrap();
        status.recoveries = vec![(Duration::from_secs(1), message.into())];
        status.speculation.reason = Some(message.into());
    });
    for path in ["/ready", "/status", "/health", "/v1/models"] {
        let got = get(&over(&fake), path).await;
        assert!(
            !got.body.contains("owner") && !got.body.contains("secret") && !got.body.contains("ggml"),
            "{}",
            got.body
        );
    }
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    let fake = Fake::ready();
    let router = over(&fake);
    let deep = format!("{{\"messages\": {}", "[".repeat(50_000));
    for body in ["", "{", "[1]", "{\"messages\": [}", "\u{1}", deep.as_str()] {
        let (status, code, _, _) = send(&router, posting(PATH, body.to_owned())).await.error();
        assert_eq!((status, code.as_str()), (400, "invalid_json"), "{body:.30}");
    }
    let invalid_utf8 = send(&router, posting(PATH, vec![b'{', b'"', 0xff, 0xfe, b'"', b'}'])).await;
    assert_eq!(invalid_utf8.error().0, 400);
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("jsonish")] {
        let mut request = Request::post(PATH);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let got = send(&router, request.body(Body::from("{}")).unwrap()).await;
        assert_eq!((got.error().0, got.error().1.as_str()), (415, "unsupported_media_type"), "{kind:?}");
    }
    let charset = Request::post(PATH).header("content-type", "application/json; charset=utf-8");
    assert_eq!(send(&router, charset.body(Body::from("{}")).unwrap()).await.error().1, "missing_field");
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let fake = Fake::ready();
    let long = "x".repeat(3 << 20);
    let body = json!({ "messages": [{ "role": "user", "content": long }] });
    let got = post(&over(&fake), PATH, body.clone()).await;
    assert_eq!((got.error().0, got.error().1.as_str()), (413, "body_too_large"));
    let router = with(&fake, |options| options.prompt_bytes = 1000).layer(axum::extract::DefaultBodyLimit::disable());
    let got = post(&router, PATH, body).await;
    assert_eq!((got.error().0, got.error().1.as_str()), (413, "prompt_too_large"));
}

#[tokio::test]
async fn unknown_places_and_methods() {
    let fake = Fake::ready();
    let router = over(&fake);
    for path in ["/v1/nothing", "/v2/chat/completions", "/..%2f..%2fetc/passwd"] {
        assert_eq!(
            (get(&router, path).await.error().0, get(&router, path).await.error().1.as_str()),
            (404, "unknown_url")
        );
    }
    let got = get(&router, PATH).await;
    assert_eq!((got.error().0, got.error().1.as_str()), (405, "method_not_allowed"));
    assert_eq!(got.headers["allow"], "POST");
    for other in ["/v1/models/other", "/v1/models/%ff"] {
        let got = get(&router, other).await;
        assert_eq!((got.error().0, got.error().1.as_str()), (404, "model_not_found"), "{other}");
    }
}
