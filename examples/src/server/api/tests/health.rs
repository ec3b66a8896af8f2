//! Alive, ready, and what is known.

use super::fake::Fake;
use super::*;
use serde_json::json;

#[tokio::test]
async fn ready_only_while_it_generates() {
    let fake = Fake::ready();
    let router = over(&fake);
    let ready = async || {
        let got = get(&router, "/ready").await;
        (got.status.as_u16(), got.json()["state"].as_str().unwrap().to_owned(), got.headers.contains_key("retry-after"))
    };
    assert_eq!(ready().await, (200, "ready".into(), false));
    fake.change(|status| status.state = state(json!({ "degraded": { "reason": "no draft" } })));
    assert_eq!(ready().await, (200, "degraded".into(), false));
    assert_eq!(get(&router, "/ready").await.json()["reason"], "no draft");
    for (other, retry) in [
        (json!({ "starting": { "target": 0.5, "draft": null } }), true),
        (json!({ "recovering": { "reason": "died" } }), true),
        (json!({ "failed": { "reason": "died" } }), false),
        (json!("unloaded"), false),
        (json!("stopping"), false),
    ] {
        fake.change(|status| status.state = state(other.clone()));
        let (status, name, again) = ready().await;
        assert_eq!((status, again), (503, retry), "{name}");
        assert_eq!(get(&router, "/health").await.status, 200);
    }
    // A state alone is not believed.
    fake.change(|status| status.state = state(json!("ready")));
    for last in [None, Some((Duration::from_secs(1), false)), Some((Duration::from_secs(3600), true))] {
        fake.change(|status| status.last_decode = last);
        assert_eq!(ready().await, (503, "ready".into(), true));
        assert!(get(&router, "/ready").await.json()["reason"].is_string());
    }
}

#[tokio::test]
async fn progress_is_told_while_loading() {
    let fake = Fake::ready();
    fake.change(|status| {
        status.state = state(json!({ "starting": { "target": 0.5, "draft": null } }));
        (status.info, status.effective) = (None, None);
    });
    let router = over(&fake);
    let progress = json!({ "target": 0.5, "draft": null });
    assert_eq!(get(&router, "/ready").await.json()["progress"], progress);
    let status = get(&router, "/status").await.json();
    assert_has(&status, &json!({ "state": "starting", "progress": progress, "model": null }));
    assert_eq!(get(&router, "/v1/models").await.json()["data"][0]["id"], "big-model");
}

#[tokio::test]
async fn the_status_for_the_page() {
    let fake = Fake::ready();
    fake.change(|status| status.recoveries = vec![(Duration::from_millis(1200), "restarted".into())]);
    let status = get(&over(&fake), "/status").await.json();
    let expected = json!({
        "state": "ready", "reason": null, "progress": null,
        "model": { "id": "big-model", "draft": "small", "description": "llama 1B F32", "context": 1024, "slots": 2,
                   "vocabulary": 512, "chat_template": true },
        "speculation": { "active": true, "requested": ["draft-simple", "ngram-mod"], "effective": ["draft-simple"], "reason": null },
        "last_decode": { "age_ms": 12, "ok": true },
        "restarts": 0, "recoveries": [{ "at_ms_ago": 1200, "what": "restarted" }],
        "plain_tokens_per_second": 100.0, "speedup": 1.0,
        "requests": { "running": 1, "queued": 0, "finished": 10, "cancelled": 0, "failed": 0 },
        "totals": { "generated": 3, "drafted": 2, "accepted": 1, "rounds": 2, "drafts": 1, "drafted_per_position": [1, 1],
                    "accepted_per_position": [1, 0], "generation_seconds": 0.03 },
        "slots": [{ "busy": true, "tokens": 120 }, { "busy": false, "tokens": 0 }],
    });
    assert_has(&status, &expected);
}

#[tokio::test]
async fn the_model_is_listed() {
    let fake = Fake::ready();
    let router = with(&fake, |options| options.alias = Some("gpt".into()));
    let list = get(&router, "/v1/models").await.json();
    assert_has(
        &list,
        &json!({ "object": "list", "data": [{ "id": "gpt", "object": "model", "meta": { "n_vocab": 512 } }] }),
    );
    assert_eq!(get(&router, "/v1/models/gpt").await.json(), list["data"][0]);
    fake.change(|status| (status.requested, status.effective, status.info) = (None, None, None));
    assert_eq!(get(&router, "/v1/models").await.json()["data"], json!([]));
}

fn state(value: Value) -> llama_spec::supervise::State {
    serde_json::from_value(value).unwrap()
}
