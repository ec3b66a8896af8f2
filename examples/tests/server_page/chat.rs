//! Messages and answers.

use crate::browser::browse;
use crate::stand_in::{StandIn, Step, done, end, piece, tokens};
use serde_json::json;

#[tokio::test]
async fn an_answer_is_shown_token_by_token() {
    let server = StandIn::start().await;
    let first = [("Hello", "target"), (",", "draft-simple"), (" wor", "draft-simple"), ("ld", "ngram-mod")];
    server.stream(
        [tokens(&first), Step::Wait, tokens(&[("\nSecond", "target"), (" line", "own-0")])].into_iter().chain(end()),
    );
    browse(&server, async |page| {
        page.send("Hi there").await;
        page.says(".assistant .text", &["Hello, world"]).await;
        // In the middle of the answer.
        assert_eq!(page.text(".user").await, "Hi there");
        assert!(page.find("#stop").await.is_displayed().await.unwrap());
        assert!(!page.find("#send").await.is_displayed().await.unwrap());
        assert_eq!(page.count(".assistant .token").await, 4);
        server.go_on();
        page.until("!document.querySelector('[aria-busy]')").await;
        assert_eq!(page.text(".assistant .text").await, "Hello, world\nSecond line");
        let numbers = page.says(".numbers", &["tokens/s"]).await;
        for part in ["34 tokens", "170 tokens/s", "1.70 × plain", "30 of 40", "75.0 %", "draft-simple"] {
            assert!(numbers.contains(part), "{part:?} is not in {numbers:?}");
        }
        // Each source has its own tint, and the legend knows all of them.
        let legend = page.text("#legend").await;
        for part in ["target 2 (33.3 %)", "draft-simple 2", "ngram-mod 1", "own-0 1"] {
            assert!(legend.contains(part), "{part:?} is not in {legend:?}");
        }
        let tints = "return new Set([...document.querySelectorAll('.text .token')]\
                     .map((it) => getComputedStyle(it).backgroundColor)).size";
        assert_eq!(page.js(tints).await, json!(4));
        let copied = "const range = document.createRange(); range.selectNodeContents(document.querySelector('.text')); \
                      getSelection().removeAllRanges(); getSelection().addRange(range); \
                      const event = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true }); \
                      document.querySelector('.text').dispatchEvent(event); return event.clipboardData.getData('text/plain')";
        assert_eq!(page.js(copied).await, json!("Hello, world\nSecond line"));
        page.picture("answer").await;
    })
    .await;
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["messages"], json!([{ "role": "user", "content": "Hi there" }]));
    for (name, value) in [
        ("stream", json!(true)),
        ("stream_options", json!({ "include_usage": true })),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(3)),
        ("speculation", json!("auto")),
        ("return_progress", json!(true)),
        ("token_details", json!(true)),
        ("model", json!("zoo target")),
    ] {
        assert_eq!(asked[0][name], value, "{name}");
    }
    assert!(asked[0].get("temperature").is_none() && asked[0].get("max_completion_tokens").is_none());
}

#[tokio::test]
async fn a_token_says_what_it_is() {
    let server = StandIn::start().await;
    server.stream([tokens(&[("Some", "target"), (" words", "draft-simple")])].into_iter().chain(end()));
    browse(&server, async |page| {
        page.send("Hi").await;
        page.says(".numbers", &["tokens"]).await;
        assert!(!page.find("#card").await.is_displayed().await.unwrap());
        page.hover(".text .token:nth-of-type(2)").await;
        let card = page.says("#card", &["words"]).await;
        for part in ["␣words", "id106", "fromdraft-simple", "60.7 %", "␣other", "22.3 %"] {
            assert!(card.contains(part), "{part:?} is not in {card:?}");
        }
        page.picture("token").await;
        page.hover("h1").await;
        page.until("document.querySelector('#card').hidden").await;
    })
    .await;
}

/// The server's parser holds text back, and leaves tags out.
#[tokio::test]
async fn reasoning_and_tool_calls_have_their_places() {
    let server = StandIn::start().await;
    let call = |call| piece(json!({ "tool_calls": [call] }), &[("{x", "target")]);
    server.stream(
        [
            piece(json!({ "role": "assistant" }), &[("<thi", "target"), ("nk>", "target")]),
            piece(json!({}), &[("Let", "target"), (" me", "draft-simple")]),
            piece(json!({ "reasoning_content": "Let me" }), &[(" think", "ngram-mod"), ("</think>", "target")]),
            piece(json!({ "reasoning_content": " think" }), &[("\n\nThe", "draft-simple"), (" answer", "draft-simple")]),
            piece(json!({ "content": "The answer" }), &[("\u{FFFD}", "target"), ("\u{FFFD}", "ngram-mod")]),
            piece(json!({ "content": "é" }), &[]),
            call(json!({ "index": 0, "id": "a", "type": "function", "function": { "name": "weather", "arguments": "" } })),
            call(json!({ "index": 0, "function": { "arguments": "{\"city\":" } })),
            call(json!({ "index": 0, "function": { "arguments": "\"Bern\"}" } })),
        ]
        .into_iter()
        .chain(end()),
    );
    browse(&server, async |page| {
        page.send("Hi").await;
        page.says(".numbers", &["tokens"]).await;
        assert_eq!(page.text(".assistant .reasoning .text").await, "Let me think");
        assert_eq!(page.text(".assistant > .text").await, "The answeré");
        assert_eq!(page.text(".assistant .tool").await, "weather {\"city\":\"Bern\"}");
        // Closed until someone opens it.
        assert!(!page.find(".reasoning .text").await.is_displayed().await.unwrap());
        page.click(".reasoning summary").await;
        assert!(page.find(".reasoning .text").await.is_displayed().await.unwrap());
        let sources =
            "return [...document.querySelectorAll(SELECTOR)].map((it) => it.textContent + it.className.at(-1))";
        let of = |selector: &str| sources.replace("SELECTOR", &json!(selector).to_string());
        // In the order of their first token: target, draft-simple, ngram-mod.
        assert_eq!(page.js(&of(".reasoning .token")).await, json!(["Let0", " me1", " think2"]));
        assert_eq!(page.js(&of(".assistant > .text .token")).await, json!(["The1", " answer1", "é2"]));
        page.picture("reasoning").await;
    })
    .await;
}

#[tokio::test]
async fn stop_regenerate_and_clear() {
    let server = StandIn::start().await;
    server.stream([tokens(&[("Half", "target")]), Step::Wait]);
    server.stream([tokens(&[("Whole", "target")])].into_iter().chain(end()));
    server.stream([tokens(&[("More", "target")]), done()]);
    browse(&server, async |page| {
        page.send("One").await;
        page.says(".assistant .text", &["Half"]).await;
        page.click("#stop").await;
        server.closed().await;
        page.says(".numbers", &["stopped"]).await;
        page.click("#regenerate").await;
        page.says(".numbers", &["tokens/s"]).await;
        assert_eq!(page.text(".assistant .text").await, "Whole");
        page.send("Two").await;
        page.until("document.querySelectorAll('.assistant .text').length === 2").await;
        page.until("!document.querySelector('[aria-busy]')").await;
        page.click("#clear").await;
        assert_eq!(page.count(".message").await, 0);
        assert_eq!(page.text("#legend").await, "");
        assert!(page.find("#empty").await.is_displayed().await.unwrap());
    })
    .await;
    let asked = server.asked();
    assert_eq!(asked[0]["messages"], asked[1]["messages"]);
    let all = json!([
        { "role": "user", "content": "One" },
        { "role": "assistant", "content": "Whole" },
        { "role": "user", "content": "Two" },
    ]);
    assert_eq!(asked[2]["messages"], all);
}

#[tokio::test]
async fn settings_are_sent_and_kept() {
    let server = StandIn::start().await;
    for _ in 0..3 {
        server.stream([tokens(&[("Yes", "target")]), done()]);
    }
    server.status(|status| {
        status["speculation"]["effective"] = json!(["own-0", "draft-simple"]);
        status["speculation"]["requested"] = json!(["draft-simple", "ngram-mod"]);
    });
    browse(&server, async |page| {
        page.click("#settings summary").await;
        page.keys("#system", "Be brief.").await;
        page.keys("#temperature", "0.25").await;
        page.keys("#max-tokens", "77").await;
        page.until("document.querySelector('#speculation').options.length === 4").await;
        let offered = "return [...document.querySelectorAll('#speculation option')].map((it) => it.value)";
        assert_eq!(page.js(offered).await, json!(["auto", "off", "draft-simple", "ngram-mod"]));
        page.keys("#speculation", "off").await;
        page.picture("settings").await;
        page.reload().await;
        page.until("document.querySelector('#speculation').options.length === 4").await;
        for (number, speculation) in [(1, "off"), (2, "ngram-mod"), (3, "auto")] {
            if number == 2 {
                page.click("#settings summary").await;
                page.keys("#draft-max", "8").await;
            }
            let choose = format!(
                "const it = document.querySelector('#speculation'); it.value = '{speculation}'; \
                 it.dispatchEvent(new Event('input', {{ bubbles: true }}))"
            );
            page.js(&choose).await;
            page.send("Well?").await;
            page.until(&format!("document.querySelectorAll('.assistant .text').length === {number}")).await;
            page.until("!document.querySelector('[aria-busy]')").await;
        }
    })
    .await;
    let asked = server.asked();
    assert_eq!(asked[0]["messages"][0], json!({ "role": "system", "content": "Be brief." }));
    assert_eq!(asked[0]["temperature"], json!(0.25));
    assert_eq!(asked[0]["max_completion_tokens"], json!(77));
    assert_eq!(asked[0]["speculation"], json!("off"));
    assert_eq!(asked[1]["speculation"], json!({ "methods": ["ngram-mod"], "draft_max": 8 }));
    assert_eq!(asked[2]["speculation"], json!({ "draft_max": 8 }));
}
