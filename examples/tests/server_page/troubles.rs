//! What the page says when something is wrong, and the way out that it offers.

use crate::browser::browse;
use crate::stand_in::{Answer, StandIn, Step, end, tokens};
use serde_json::json;

const BROKEN: &str = "The connection broke before the answer was finished.";

#[tokio::test]
async fn a_key_is_asked_for_and_the_message_sent_again() {
    let server = StandIn::start().await;
    server.key(Some("secret"));
    server.stream([tokens(&[("Welcome", "target")])].into_iter().chain(end()));
    browse(&server, async |page| {
        assert!(!page.find("#key-form").await.is_displayed().await.unwrap());
        page.send("Let me in").await;
        page.says(".error", &["an API key is needed"]).await;
        assert!(page.find("#key-form").await.is_displayed().await.unwrap());
        // The keyboard is already there.
        page.press("wrong\u{E007}").await;
        page.says("#key-refused", &["refused"]).await;
        page.picture("key").await;
        page.press("secret\u{E007}").await;
        page.says(".assistant .text", &["Welcome"]).await;
        assert!(!page.find("#key-form").await.is_displayed().await.unwrap());
        assert_eq!(page.count(".user").await, 1);
        assert_eq!(page.count(".error").await, 0);
        // The report on the pair needs it too, and it is still known.
        page.reload().await;
        page.click("nav a[data-view=compatibility]").await;
        page.says("#report", &["Works"]).await;
        page.js("sessionStorage.clear()").await;
        page.reload().await;
        page.says("#report .error", &["an API key is needed"]).await;
        page.press("secret\u{E007}").await;
        page.says("#report", &["Works"]).await;
        assert_eq!(page.js("return Object.keys(localStorage).length + document.cookie.length").await, json!(0));
    })
    .await;
}

#[tokio::test]
async fn errors_are_readable_and_can_be_tried_again() {
    let server = StandIn::start().await;
    let error = |message: &str, kind: &str| json!({ "error": { "message": message, "type": kind, "code": null } });
    let refusal = |status, after, message| Answer::Refusal(status, after, error(message, "server_error").to_string());
    let half = tokens(&[("Half", "target")]);
    server.answer(refusal(503, Some(7), "no model is loaded"));
    server.answer(refusal(429, Some(3), "the queue is full"));
    server.answer(Answer::Refusal(502, None, "<html>Bad gateway</html>".to_owned()));
    server.stream([half.clone(), Step::Chunk(error("the engine gave up", "engine_error"))]);
    // Browsers ask again by themselves if a connection breaks before anything came.
    server.stream([half.clone(), Step::Wait, Step::Break]);
    server.stream([half.clone()]);
    server.stream([half.clone(), Step::Raw(b"data: {nonsense\n\n".to_vec())]);
    server.stream([tokens(&[("All of it", "target")])].into_iter().chain(end()));
    browse(&server, async |page| {
        page.send("Hi").await;
        for (number, said) in [
            "no model is loaded Try again in 7 s.",
            "the queue is full Try again in 3 s.",
            "The server answered with status 502.",
            "the engine gave up",
            BROKEN,
            BROKEN,
            "The server sent something that cannot be read.",
        ]
        .into_iter()
        .enumerate()
        {
            if number == 4 {
                page.says(".assistant .text", &["Half"]).await;
                server.go_on();
            }
            page.says(".error", &[said]).await;
            assert_eq!(page.count(".error").await, 1, "{said}");
            page.picture("error").await;
            page.click(".error button").await;
        }
        page.says(".assistant .text", &["All of it"]).await;
        assert_eq!((page.count(".error").await, page.count(".message").await), (0, 2));
    })
    .await;
    let asked = server.asked();
    assert_eq!(asked.len(), 8);
    assert!(asked.iter().all(|request| request["messages"] == json!([{ "role": "user", "content": "Hi" }])));
}

#[tokio::test]
async fn a_pause_is_shown_where_it_was() {
    let server = StandIn::start().await;
    let paused = json!({ "recovery": { "event": "paused", "reason": "the worker died" }, "choices": [] });
    let resumed = json!({ "recovery": { "event": "resumed" }, "choices": [] });
    server.stream(
        [
            Step::Chunk(json!({ "choices": [], "prompt_progress": { "done": 100, "total": 400 } })),
            Step::Raw(b": still here\r\n\r\n".to_vec()),
            Step::Wait,
            tokens(&[("Before", "draft-simple")]),
            Step::Chunk(paused),
            Step::Wait,
            Step::Chunk(resumed),
            tokens(&[(" and", "target"), (" after", "target")]),
        ]
        .into_iter()
        .chain(end()),
    );
    browse(&server, async |page| {
        page.send("Hi").await;
        page.says(".waiting", &["100 of 400"]).await;
        server.go_on();
        page.says(".mark", &["engine restarting", "the worker died"]).await;
        server.status(|status| {
            status["state"] = json!("recovering");
            status["reason"] = json!("the worker died");
        });
        page.says("#banner", &["being restarted", "the worker died"]).await;
        page.picture("pause").await;
        server.go_on();
        page.says(".mark", &["engine restarted, going on", "the worker died"]).await;
        page.says(".numbers", &["tokens"]).await;
        assert_eq!(page.text(".assistant .text").await, "Before and after");
        assert_eq!((page.count(".waiting").await, page.count(".mark").await), (0, 1));
        let place = "return document.querySelector('.mark').previousSibling.textContent";
        assert_eq!(page.js(place).await, json!("Before"));
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_noticed_and_so_is_its_return() {
    let server = StandIn::start().await;
    browse(&server, async |page| {
        let offline =
            |offline| json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        page.devtools("Network.enable", json!({})).await;
        page.devtools("Network.emulateNetworkConditions", offline(true)).await;
        page.says("#banner", &["cannot be reached"]).await;
        page.devtools("Network.emulateNetworkConditions", offline(false)).await;
        page.until("document.querySelector('#state').dataset.state === 'ready'").await;
        assert!(!page.find("#banner").await.is_displayed().await.unwrap());
    })
    .await;
}
