//! `inspect`: verdicts, exit statuses, and what is in the report.

use super::common::{INSPECT, Run, file, path, run};
use llama_spec_tests::broken;
use serde_json::Value;

fn inspect(args: &[&str]) -> Run {
    run(INSPECT, args, "")
}

/// The report as JSON, with the status that goes with its verdict.
fn report(args: &[&str]) -> Value {
    let run = inspect(&[args, &["--json"]].concat());
    let json = run.json();
    let status = match json["verdict"].as_str() {
        Some("works") => 0,
        Some("incompatible") => 3,
        Some("broken") => 4,
        other => panic!("{other:?}"),
    };
    assert_eq!(run.status.code(), Some(status), "{run:?}");
    assert_eq!(run.stderr, "");
    json
}

/// The codes of the checks that failed and refuse.
fn failed(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap().iter();
    let refuses = |check: &&Value| check["passed"] == false && check["severity"] != "wasteful";
    checks.filter(refuses).map(|check| check["code"].as_str().unwrap()).collect()
}

#[test]
fn what_works_is_found_without_a_method() {
    let target = file("target");
    for (draft, method) in [
        ("draft-0.8", "draft-simple"),
        ("eagle3", "draft-eagle3"),
        ("eagle3-borrowing", "draft-eagle3"),
        ("eagle3-reduced", "draft-eagle3"),
        ("dflash", "draft-dflash"),
        ("dspark", "draft-dspark"),
        ("gemma4-assistant", "draft-mtp"),
    ] {
        let target = if draft == "gemma4-assistant" { file("gemma4") } else { target.clone() };
        let report = report(&[&target, "--draft", &file(draft)]);
        assert_eq!(report["verdict"], "works", "{draft}: {:?}", failed(&report));
        assert_eq!((&report["requested"], &report["effective"]), (&"auto".into(), &vec![method].into()));
        assert!(report["reason"].as_str().unwrap().starts_with("the draft is "), "{report}");
        assert!(report["memory"]["total"].as_u64().unwrap() > 0);
    }
    let alone = report(&[&target]);
    assert_eq!((&alone["effective"][0], &alone["draft"]), (&"lookup".into(), &Value::Null));
}

#[test]
fn what_does_not_work_has_its_reasons_and_cures() {
    let target = file("target");
    let refused = |args: &[&str], code: &str| {
        let report = report(&[&[target.as_str()], args].concat());
        assert_eq!(report["verdict"], "incompatible", "{args:?}");
        assert!(failed(&report).contains(&code), "{args:?}: {:?}", failed(&report));
        for check in report["checks"].as_array().unwrap() {
            assert_eq!(check["passed"] == true, check["cure"] == "", "{check}");
        }
    };
    refused(&["--draft", &file("draft-other-vocabulary")], "vocab-text");
    refused(&["--draft", &file("draft-other-tokenizer")], "vocab-type");
    refused(&["--draft", &file("eagle3"), "--spec", "draft-simple"], "method-file");
    refused(&["--draft", &file("eagle3-other-width")], "target-width");
    refused(&["--draft", &file("eagle3-layer-beyond")], "layer-ids");
    refused(&["--draft", &file("dflash-no-mask")], "mask-token");
    refused(&["--draft", &target], "same-file");
    refused(&["--spec", "draft-mtp"], "mtp-heads");
    refused(&["--slots", "300"], "slot-count");
    refused(&["--kv-type-v", "q8_0", "--flash-attn", "off"], "kv-flash");
}

#[test]
fn files_that_are_no_model() {
    let dir = tempfile::tempdir().unwrap();
    let target = file("target");
    for broken in broken::all(dir.path()).unwrap() {
        let name = broken.name;
        let broken = path(broken.path);
        for args in [&[broken.as_str()][..], &[&target, "--draft", &broken]] {
            let report = report(args);
            assert_eq!(report["verdict"], "broken", "{name}");
            let run = inspect(args);
            assert_eq!(run.status.code(), Some(4), "{run:?}");
            assert!(run.stderr.starts_with("error: ") || run.stdout.contains("broken"), "{run:?}");
        }
    }
}

#[test]
fn what_is_no_language_model_is_told_as_what_it_is() {
    for (name, verdict) in [
        ("lora", "broken"),
        ("control-vector", "broken"),
        ("projector", "broken"),
        ("vocabulary", "broken"),
        ("importance-matrix", "broken"),
        ("dspark-no-block-size", "broken"),
        ("embedding", "incompatible"),
        ("encoder-decoder", "incompatible"),
        ("diffusion", "incompatible"),
        ("eagle3", "incompatible"),
    ] {
        let alone = report(&[&file(name)]);
        assert_eq!(alone["verdict"], verdict, "{name}");
        assert_ne!(alone["target"]["kind"], "generative", "{name}");
        if verdict == "broken" {
            assert_eq!(report(&[&file("target"), "--draft", &file(name)])["verdict"], verdict, "{name}");
        }
    }
}

#[test]
fn tensor_split_with_heads_is_a_risk_to_accept() {
    let target = file("qwen35-mtp");
    let args = [target.as_str(), "--spec", "draft-mtp", "--split-mode", "tensor"];
    let refused = report(&args);
    assert_eq!((refused["verdict"].as_str(), failed(&refused)), (Some("incompatible"), vec!["split-hidden"]));
    assert_eq!(report(&[&args[..], &["--accept-risk"]].concat())["verdict"], "works");
}

#[test]
fn the_report_for_people_has_verdict_values_and_cure() {
    let run = inspect(&[&file("target"), "--draft", &file("draft-other-vocabulary")]);
    assert_eq!((run.status.code(), run.stderr.as_str()), (Some(3), ""));
    for part in ["architecture llama", "FAILS  vocab-text", "from token 5 on", "cure: ", "verdict  does not work"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'), "no colours in a pipe");
    let works = inspect(&[&file("target")]);
    assert_eq!(works.status.code(), Some(0));
    assert!(works.stdout.contains("verdict  works with lookup"), "{}", works.stdout);
}

#[test]
fn arguments_that_make_no_sense() {
    let target = file("target");
    inspect(&[]).refused(2, &["TARGET"]);
    for (args, said) in [
        (["--kv-type-k", "q9"], "q8_0"),
        (["--split-mode", "halves"], "tensor"),
        (["--flash-attn", "maybe"], "auto"),
        (["--spec", "ngram"], "unknown speculative method"),
        (["--slots", "-1"], "--slots"),
        (["--draft-max", "0"], "--draft-max"),
    ] {
        inspect(&[&[target.as_str()], &args[..]].concat()).refused(2, &[said, "--help"]);
    }
    assert!(inspect(&["--help"]).succeeded().stdout.contains("Exit status"));
}
