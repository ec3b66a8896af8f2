//! Models, clients and files write what they like: nothing of it becomes part of the page.

use crate::browser::browse;
use crate::stand_in::{Answer, StandIn, Step, done, piece};
use serde_json::json;

const HOSTILE: &str = "<script>window.harm=1</script><img src=x onerror='window.harm=2'><b>bold</b>&amp;";

#[tokio::test]
async fn hostile_text_is_text() {
    let server = StandIn::start().await;
    server.status(|status| {
        for place in ["/reason", "/model/id", "/model/draft", "/model/description", "/speculation/reason"] {
            *status.pointer_mut(place).unwrap() = json!(HOSTILE);
        }
        status["recoveries"] = json!([{ "at_ms_ago": 1200, "what": HOSTILE }]);
        status["speculation"]["effective"] = json!([HOSTILE]);
        status["state"] = json!("degraded");
    });
    server.inspect(json!({
        "verdict": HOSTILE, "reason": HOSTILE, "requested": HOSTILE, "effective": [HOSTILE],
        "target": { "name": HOSTILE, "path": HOSTILE, "kind": HOSTILE, "architecture": HOSTILE,
            "layers": 1, "width": 1, "layer_kinds": [HOSTILE] },
        "draft": { "error": HOSTILE },
        "checks": [{ "code": HOSTILE, "severity": HOSTILE, "passed": false, "target": HOSTILE, "draft": HOSTILE,
            "message": HOSTILE, "cure": HOSTILE }],
    }));
    let call = json!({ "index": 0, "function": { "name": HOSTILE, "arguments": HOSTILE } });
    server.stream([
        piece(json!({ "reasoning_content": HOSTILE }), &[(HOSTILE, HOSTILE)]),
        piece(json!({ "content": HOSTILE }), &[(HOSTILE, "target")]),
        piece(json!({ "tool_calls": [call] }), &[]),
        Step::Chunk(json!({ "choices": [], "recovery": { "event": "paused", "reason": HOSTILE } })),
        Step::Chunk(json!({ "choices": [], "speculation": { "requested": HOSTILE, "effective": [HOSTILE],
            "reason": HOSTILE, "drafted": 0, "accepted": 0 } })),
        done(),
    ]);
    server.answer(Answer::Refusal(500, None, json!({ "error": { "message": HOSTILE } }).to_string()));
    browse(&server, async |page| {
        page.js("window.violations = []; addEventListener('securitypolicyviolation', \
                 (event) => window.violations.push(event.violatedDirective))")
            .await;
        page.send(HOSTILE).await;
        page.says(".numbers", &[HOSTILE]).await;
        page.click(".reasoning summary").await;
        for place in [".user", ".reasoning .text", ".assistant > .text", ".tool strong", ".tool code", "#recoveries li"]
        {
            assert!(page.text(place).await.contains(HOSTILE), "{place}");
        }
        page.hover(".assistant > .text .token").await;
        page.says("#card .piece", &["<script>"]).await;
        page.click("#regenerate").await;
        page.says(".error p", &[HOSTILE]).await;
        page.click("nav a[data-view=compatibility]").await;
        page.says("#report .checks", &[HOSTILE]).await;
        page.picture("hostile").await;
        for made in ["body img", "body script", "body b"] {
            assert_eq!(page.count(made).await, 0, "{made}");
        }
        assert_eq!(page.js("return window.violations").await, json!([]), "nothing was even tried");
    })
    .await;
}

/// If the page should ever make a mistake, the browser does not.
#[tokio::test]
async fn the_policy_stops_what_the_page_would_let_through() {
    let server = StandIn::start().await;
    browse(&server, async |page| {
        page.js("window.violations = []; addEventListener('securitypolicyviolation', \
                 (event) => window.violations.push(event.effectiveDirective))")
            .await;
        let markup = "try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch (error) { return error.name }";
        assert_eq!(page.js(markup).await, json!("TypeError"));
        page.js(
            "const it = document.createElement('img'); it.src = 'http://127.0.0.2:9/x.png'; document.body.append(it)",
        )
        .await;
        let handler = "try { document.querySelector('#send').setAttribute('onfocus', 'window.harm = 1'); return 'set' } \
                       catch (error) { return error.name }";
        assert_eq!(page.js(handler).await, json!("TypeError"));
        page.until("['require-trusted-types-for', 'img-src'].every((it) => window.violations.includes(it))").await;
        // What was loaded came from the server of the page.
        let hosts =
            "return [...new Set(performance.getEntriesByType('resource').map((it) => new URL(it.name).origin))]";
        let own = server.address().trim_end_matches('/');
        let loaded = page.js(hosts).await;
        let others =
            loaded.as_array().unwrap().iter().filter(|host| *host != own && *host != "http://127.0.0.2:9").count();
        assert_eq!(others, 0, "{loaded}");
    })
    .await;
}
