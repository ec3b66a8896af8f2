//! Loading and unloading, and looking at the files.

use super::fake::{Fake, problem};
use super::*;
use llama_spec_tests::zoo;
use serde_json::json;

#[tokio::test]
async fn only_the_owner_loads() {
    let fake = Fake::ready();
    for path in ["/admin/load", "/admin/reload", "/admin/unload", "/admin/draft"] {
        let got = post(&over(&fake), path, json!({ "model": "x.gguf" })).await;
        assert_eq!((got.error().0, got.error().1.as_str()), (403, "admin_disabled"));
        // A page of somebody else cannot send it from a browser either.
        let request = Request::post(path).header("content-type", "text/plain").body(Body::from("{}")).unwrap();
        assert_eq!(send(&with(&fake, |options| options.admin = true), request).await.error().0, 415);
    }
    assert!(fake.commands().is_empty());
}

#[tokio::test]
async fn commands_reach_the_engine() {
    let fake = Fake::ready();
    let router = with(&fake, |options| options.admin = true);
    for (path, body) in [
        ("/admin/load", json!({ "model": "other.gguf", "running": "cancel" })),
        ("/admin/load", json!({ "context": { "slots": 3 } })),
        ("/admin/load", json!({ "draft": "d.gguf", "spec": "draft-simple" })),
        ("/admin/reload", json!({})),
        ("/admin/unload", json!({ "running": "finish" })),
        ("/admin/draft", json!({ "draft": null, "running": "cancel" })),
        ("/admin/draft", json!({ "draft": "d.gguf", "spec": ["draft-simple", "ngram-mod"] })),
        ("/admin/draft", json!({ "draft": "d.gguf", "spec": "none" })),
    ] {
        let got = post(&router, path, body).await;
        assert_has(&got.json(), &json!({ "status": "ok", "state": "ready" }));
    }
    let kept = "/srv/secret/models/big-model-00001-of-00002.gguf";
    let expected = [
        "load other.gguf None Cancel".to_owned(),
        format!("load {kept} Some(\"/srv/secret/models/small.gguf\") Finish"),
        format!("load {kept} Some(\"d.gguf\") Finish"),
        "reload Finish".to_owned(),
        "unload Finish".to_owned(),
        "draft None None Cancel".to_owned(),
        "draft Some(\"d.gguf\") Some([DraftSimple, NgramMod]) Finish".to_owned(),
        "draft Some(\"d.gguf\") Some([]) Finish".to_owned(),
    ];
    assert_eq!(fake.commands(), expected);
}

#[tokio::test]
async fn mistakes_are_named() {
    let fake = Fake::ready();
    let router = with(&fake, |options| options.admin = true);
    for (path, body, param) in [
        ("/admin/load", json!({ "modle": "x" }), "modle"),
        ("/admin/load", json!({ "context": { "slot": 3 } }), "context.slot"),
        ("/admin/load", json!({ "context": { "slots": "three" } }), "context.slots"),
        ("/admin/load", json!({ "spec": "magic" }), "spec"),
        ("/admin/load", json!({ "running": "maybe" }), "running"),
        ("/admin/draft", json!({ "draft": 5 }), "draft"),
        ("/admin/unload", json!({ "model": "x" }), "model"),
    ] {
        let (status, _, found, message) = post(&router, path, body.clone()).await.error();
        assert_eq!((status, found.as_deref()), (400, Some(param)), "{body}: {message}");
    }
    fake.refuses(problem("invalid", "the vocabularies differ", None));
    let (status, _, _, message) = post(&router, "/admin/reload", json!({})).await.error();
    assert_eq!((status, message.as_str()), (400, "the vocabularies differ"));
}

#[tokio::test]
async fn what_inspect_says_without_paths() {
    let fake = Fake::ready();
    let target = zoo::file("target");
    let folder = target.parent().unwrap().to_string_lossy().into_owned();
    fake.change(|status| status.requested = Some(llama_spec::supervise::Load::new(&target)));
    let got = get(&over(&fake), "/inspect").await;
    let report = got.json();
    assert_eq!(report["target"]["path"], target.file_name().unwrap().to_str().unwrap());
    assert!(report["checks"].is_array() && report["verdict"].is_string());
    assert!(!got.body.contains(&folder), "{}", got.body);
    // Files that are gone are no reason to say where they were.
    fake.change(|status| status.requested = Some(llama_spec::supervise::Load::new("/srv/secret/gone.gguf")));
    let got = get(&over(&fake), "/inspect").await;
    assert_eq!(got.error().0, 503);
    assert!(!got.body.contains("secret"));
    fake.change(|status| status.requested = None);
    assert_eq!(get(&over(&fake), "/inspect").await.error().0, 404);
}
