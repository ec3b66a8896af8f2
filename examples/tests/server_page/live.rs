//! The numbers beside the chat, and the report on the loaded pair.

use crate::browser::browse;
use crate::stand_in::StandIn;
use llama_spec::compat::{Conditions, Report};
use llama_spec::file::ModelFile;
use llama_spec_tests::zoo;
use serde_json::json;

#[tokio::test]
async fn plots_fill_as_the_server_counts() {
    let server = StandIn::start().await;
    browse(&server, async |page| {
        // Before anything has changed, the acceptance since the start is all there is.
        page.says("#acceptance-said", &["since the start"]).await;
        assert_eq!(page.count("#acceptance .bar").await, 3);
        let label = page.js("return document.querySelector('#acceptance').getAttribute('aria-label')").await;
        assert!(label.as_str().unwrap().contains("position 1: 90.0 % of 30"), "{label}");
        assert!(page.text("#speed").await.contains("nothing yet"));
        // 50 tokens a second and then 200, in drafts of 3 and of 5.
        for (generated, seconds, drafted, drafts) in [(150, 2.5, 110, 40), (350, 3.5, 210, 60), (550, 4.5, 310, 80)] {
            server.status(|status| {
                let totals = &mut status["totals"];
                totals["generated"] = json!(generated);
                totals["generation_seconds"] = json!(seconds);
                totals["drafted"] = json!(drafted);
                totals["drafts"] = json!(drafts);
                totals["drafted_per_position"] = json!([drafts, drafts, drafts, drafts]);
                totals["accepted_per_position"] = json!([drafts - 3, drafts / 2, drafts / 4, 0]);
            });
            let said = if generated == 150 {
                ("50", "0.500 × plain", "3 tokens a draft")
            } else {
                ("200", "2 × plain", "5 tokens a draft")
            };
            page.says("#speed-said", &[said.0, said.1]).await;
            page.says("#length-said", &[said.2]).await;
        }
        page.says("#acceptance-said", &["2 minutes"]).await;
        assert_eq!(page.count("#acceptance .bar").await, 4);
        page.until("document.querySelector('#speed .line').getAttribute('d').split(/[ML]/).length > 2").await;
        assert_eq!(page.count("#speed .baseline").await, 1);
        assert!(page.text("#speed").await.contains("plain 100"));
        assert_eq!(page.count("#length .baseline").await, 0);
        // Slots.
        assert_eq!(page.text("#slots li:first-child").await, "1 busy1,024 of 4,096 tokens");
        assert_eq!(page.js("return document.querySelector('#slots progress').value").await, json!(1024));
        assert_eq!(page.text("#slots .idle").await, "2 idle0 of 4,096 tokens");
        page.picture("live").await;
        // An engine that counts from zero again is no negative speed.
        server.status(|status| {
            status["totals"]["generated"] = json!(5);
            status["totals"]["drafted"] = json!(0);
            status["restarts"] = json!(1);
            status["recoveries"] = json!([
                { "at_ms_ago": 90_000, "what": "restarted as it was" },
                { "at_ms_ago": 65_000, "what": "restarted without draft-simple" },
            ]);
        });
        page.says("#recoveries", &["65 s ago: restarted without draft-simple90 s ago: restarted as it was"]).await;
        assert_eq!(page.count("#speed .event").await, 1);
    })
    .await;
}

#[tokio::test]
async fn every_state_is_named_with_its_reason() {
    let server = StandIn::start().await;
    browse(&server, async |page| {
        page.says("#facts", &["the draft is a language model", "1.40 × plain"]).await;
        page.says("#server", &["12 ms ago, worked", "1 running, 10 finished, 2 cancelled"]).await;
        assert!(!page.find("#banner").await.is_displayed().await.unwrap());
        for state in ["starting", "degraded", "recovering", "failed", "unloaded", "stopping"] {
            server.status(|status| {
                status["state"] = json!(state);
                status["reason"] = json!(format!("because of {state}"));
                status["progress"] =
                    if state == "starting" { json!({ "target": 1.0, "draft": 0.25 }) } else { json!(null) };
                status["model"] = json!(null);
                status["slots"] = json!([]);
            });
            page.says("#state-name", &[state]).await;
            page.says("#banner", &[&format!("because of {state}")]).await;
            assert!(page.find("#banner").await.is_displayed().await.unwrap());
            assert_eq!(page.count("#progress progress").await, if state == "starting" { 2 } else { 0 });
            if state == "starting" {
                assert!(page.text("#progress").await.contains("loading the draft, 25.0 %"));
                page.picture("starting").await;
            }
        }
        server.status(|status| {
            status["state"] = json!("ready");
            status["reason"] = json!(null);
            status["speculation"] =
                json!({ "active": false, "requested": ["draft-mtp"], "effective": [], "reason": "runtime_error" });
        });
        page.says("#facts", &["Speculationoff", "Asked fordraft-mtp", "Whyruntime_error"]).await;
        page.until("document.querySelector('#banner').hidden").await;
    })
    .await;
}

/// The report is the library's own.
#[tokio::test]
async fn the_report_on_the_pair_is_shown() {
    let server = StandIn::start().await;
    let open = |name| ModelFile::open(zoo::file(name)).unwrap();
    let report = |draft| Report::new(&open("target"), Some(&open(draft)), None, &Conditions::default());
    let (good, bad) = (report("draft-0.8"), report("draft-other-vocabulary"));
    server.inspect(serde_json::to_value(&good).unwrap());
    browse(&server, async |page| {
        page.click("nav a[data-view=compatibility]").await;
        page.says("#report .verdict", &["Works with draft-simple"]).await;
        assert_eq!(page.count("#report .checks tr").await as usize, good.checks.len() + 1);
        assert_eq!(
            page.count("#report .checks .good").await as usize,
            good.checks.iter().filter(|it| it.passed).count()
        );
        let sides = page.text("#report .sides").await;
        for part in ["Target", "Draft", "llama", "Tokenizer", "gpt2"] {
            assert!(sides.contains(part), "{part:?} is not in {sides:?}");
        }
        page.picture("report").await;
        // Another pair is loaded.
        server.inspect(serde_json::to_value(&bad).unwrap());
        server.status(|status| status["model"]["draft"] = json!("another"));
        page.says("#report .verdict", &["Does not work"]).await;
        for check in bad.failed() {
            let row = page
                .text(&format!("#report .checks .{}", serde_json::to_value(check.severity).unwrap().as_str().unwrap()))
                .await;
            for part in [&check.code, &check.message, &check.cure] {
                assert!(row.contains(&**part), "{part:?} is not in {row:?}");
            }
        }
        page.picture("report-bad").await;
    })
    .await;
}
