//! Loading and unloading, and looking at the files.

use super::fake::{Fake, problem};
use super::*;
use llama_spec::supervise::Load;
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

/// An engine with files that are there: what it has loaded, and another draft for it.
fn with_files() -> (Arc<Fake>, String, String) {
    let (fake, target, draft) = (Fake::ready(), zoo::file("target"), zoo::file("draft-0.8"));
    fake.change(|status| {
        let mut load = Load::new(&target);
        load.draft = Some(draft.clone());
        load.context.slots = 3;
        (status.requested, status.last_requested) = (Some(load.clone()), Some(load));
    });
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    (fake, text(target), text(draft))
}

#[tokio::test]
async fn commands_reach_the_engine() {
    let (fake, kept, draft) = with_files();
    let other = zoo::file("chat").to_str().unwrap().to_owned();
    let router = with(&fake, |options| options.admin = true);
    for (path, body) in [
        ("/admin/load", json!({ "model": other, "running": "cancel" })),
        ("/admin/load", json!({ "context": { "slots": 2 } })),
        ("/admin/load", json!({ "draft": draft, "spec": "draft-simple" })),
        ("/admin/reload", json!({})),
        ("/admin/unload", json!({ "running": "finish" })),
        ("/admin/draft", json!({ "draft": null, "running": "cancel" })),
        ("/admin/draft", json!({ "draft": draft, "spec": ["draft-simple", "ngram-mod"] })),
        ("/admin/draft", json!({ "draft": draft, "spec": "none" })),
    ] {
        let got = post(&router, path, body).await;
        assert_has(&got.json(), &json!({ "status": "ok", "state": "ready" }));
    }
    let expected = [
        format!("load {other} None 3 Cancel"),
        format!("load {kept} Some({draft:?}) 2 Finish"),
        format!("load {kept} Some({draft:?}) 3 Finish"),
        "reload Finish".to_owned(),
        "unload Finish".to_owned(),
        "draft None None Cancel".to_owned(),
        format!("draft Some({draft:?}) Some([DraftSimple, NgramMod]) Finish"),
        format!("draft Some({draft:?}) Some([]) Finish"),
    ];
    assert_eq!(fake.commands(), expected);
}

#[tokio::test]
async fn settings_survive_an_unload() {
    let (fake, target, draft) = with_files();
    let router = with(&fake, |options| options.admin = true);
    fake.change(|status| status.requested = None);
    let chat = zoo::file("chat");
    for body in [json!({ "model": target }), json!({}), json!({ "model": chat })] {
        assert_eq!(post(&router, "/admin/load", body).await.status, 200);
    }
    let expected = [
        format!("load {target} Some({draft:?}) 3 Finish"),
        format!("load {target} Some({draft:?}) 3 Finish"),
        format!("load {} None 3 Finish", chat.display()),
    ];
    assert_eq!(fake.commands(), expected);
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_is_dropped() {
    let (fake, target, _) = with_files();
    let router = with(&fake, |options| options.admin = true);
    let (foreign, text) = (zoo::file("draft-other-vocabulary"), file!());
    for (path, body, param, said) in [
        ("/admin/load", json!({ "model": "/secret/nope.gguf" }), "model", "nope.gguf"),
        ("/admin/load", json!({ "model": text }), "model", "admin.rs"),
        ("/admin/load", json!({ "draft": "/secret/nope.gguf" }), "draft", "nope.gguf"),
        ("/admin/load", json!({ "model": target, "draft": foreign }), "draft", "vocabular"),
        ("/admin/load", json!({ "context": { "slots": 1000 } }), "context", "slots"),
        ("/admin/draft", json!({ "draft": "/secret/nope.gguf" }), "draft", "nope.gguf"),
        ("/admin/draft", json!({ "draft": foreign }), "draft", "vocabular"),
    ] {
        let (status, code, found, message) = post(&router, path, body.clone()).await.error();
        assert_eq!((status, code.as_str(), found.as_deref()), (400, "not_loadable", Some(param)), "{body}: {message}");
        assert!(message.contains(said) && !message.contains("secret"), "{body}: {message}");
    }
    fake.change(|status| status.last_requested = Some(Load::new("/secret/nope.gguf")));
    assert_eq!(post(&router, "/admin/reload", json!({})).await.error().0, 400);
    assert!(fake.commands().is_empty(), "{:?}", fake.commands());
}

#[tokio::test]
async fn mistakes_are_named() {
    let (fake, ..) = with_files();
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
