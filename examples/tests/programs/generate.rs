//! The program `generate` on models whose text is known.

use super::common::{
    CHAT, GENERATE, Run, command, continuation, file, finish, model, path, run, start, text, tokens, without_bos,
};
use llama_spec_tests::zoo::Llama;
use serde_json::Value;
use std::io::{Read, Write};

/// One thread: the models are tiny, and tests run side by side.
fn generate(model: &str, args: &[&str], input: &str) -> Run {
    let fixed = ["--model", model, "--threads", "1"];
    run(GENERATE, fixed.iter().chain(args), input)
}

fn json(model: &str, args: &[&str]) -> Value {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    let run = generate(model, &args, "").succeeded();
    assert_eq!(run.stderr, "", "nothing is said beside the object");
    run.json()
}

/// The main promise: whatever guesses, the tokens are those of the model alone.
#[test]
fn every_method_gives_the_tokens_of_the_model() {
    for (target, draft) in [("target", "draft-0.8"), ("recall", "recall-draft-0.8")] {
        let (known, target_file, draft_file) = (model(target), file(target), file(draft));
        let prompt = "Hello, world";
        let expected = continuation(&known, prompt, 300);
        for methods in
            ["none", "lookup", "ngram-simple", "ngram-map-k", "ngram-mod", "draft-simple", "ngram-mod,draft-simple"]
        {
            let mut args = vec!["-p", prompt, "-n", "300", "--spec", methods, "--draft-length", "12"];
            if methods.contains("draft") {
                args.extend(["--draft", &draft_file]);
            }
            let json = json(&target_file, &args);
            assert_eq!(tokens(&json), expected, "{target} with {methods}");
            assert_eq!(json["text"], text(&known, &expected), "{target} with {methods}");
            assert_eq!(json["stop_reason"], "max-tokens");
            let wanted: Vec<_> = methods.split(',').filter(|method| *method != "none").collect();
            assert_eq!(json["speculation"]["requested"], Value::from(wanted.clone()));
            assert_eq!(json["speculation"]["effective"], Value::from(wanted));
            assert_eq!(json["speculation"]["reason"], Value::Null);
            let (drafted, accepted) = (count(&json, "drafted"), count(&json, "accepted"));
            assert_eq!(drafted == 0, methods == "none", "{target} with {methods} drafted {drafted}");
            if target == "target" && methods != "none" {
                assert!(accepted > 50, "{target} with {methods}: {accepted} of {drafted} accepted");
            }
        }
    }
}

fn count(json: &Value, key: &str) -> u64 {
    json["stats"][key].as_u64().unwrap_or_else(|| panic!("{key} in {json}"))
}

#[test]
fn the_object_has_these_keys_and_its_numbers_fit_together() {
    let json = json(&file("target"), &["--draft", &file("draft-0.8"), "--draft-length", "4", "-p", "abc", "-n", "60"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let sorted = |mut keys: Vec<&'static str>| {
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys(&json), ["speculation", "stats", "stop_reason", "text", "tokens"]);
    assert_eq!(keys(&json["speculation"]), ["effective", "own_drafters", "reason", "requested"]);
    let (counts, rates) = (
        ["prompt_tokens", "cached_tokens", "generated_tokens", "rounds", "drafts", "drafted", "accepted"],
        ["prompt_tokens_per_second", "tokens_per_second", "acceptance_rate", "mean_accepted_length"],
    );
    let times = ["prefill_ms", "draft_ms", "verify_ms", "sample_ms", "rollback_ms", "generation_ms", "load_ms"];
    let lists = ["drafted_per_position", "accepted_per_position"];
    let all = [&counts[..], &rates, &times, &lists].concat();
    assert_eq!(keys(&json["stats"]), sorted(all));

    let stats = &json["stats"];
    let number = |key: &str| stats[key].as_f64().unwrap_or_else(|| panic!("{key} in {stats}"));
    let list = |key: &str| -> Vec<u64> {
        stats[key].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    };
    let counted = |key: &str| count(&json, key);
    assert_eq!((counted("prompt_tokens"), counted("cached_tokens"), counted("generated_tokens")), (4, 0, 60));
    assert_eq!(list("drafted_per_position").iter().sum::<u64>(), counted("drafted"));
    assert_eq!(list("accepted_per_position").iter().sum::<u64>(), counted("accepted"));
    assert!(0 < counted("accepted") && counted("accepted") < counted("drafted"), "{stats}");
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b.abs(), "{a} is not {b}");
    close(number("acceptance_rate"), number("accepted") / number("drafted"));
    close(number("mean_accepted_length"), (number("accepted") + number("drafts")) / number("drafts"));
    close(number("tokens_per_second"), 60.0 / (number("generation_ms") / 1000.0));
    for key in times {
        assert!(number(key) >= 0.0, "{key}");
    }
    let parts = ["draft_ms", "verify_ms", "sample_ms", "rollback_ms"].map(number).iter().sum::<f64>();
    assert!(parts <= number("generation_ms") && number("verify_ms") > 0.0 && number("load_ms") > 0.0, "{stats}");
}

#[test]
fn what_cannot_be_divided_is_null() {
    let json = json(&without_bos(), &["-p", "a", "-n", "1", "--spec", "none"]);
    for key in ["acceptance_rate", "mean_accepted_length", "prompt_tokens_per_second"] {
        assert_eq!(json["stats"][key], Value::Null, "{key}");
    }
    assert_eq!(json["stats"]["accepted_per_position"], Value::Array(Vec::new()));
    assert_eq!(json["speculation"]["requested"], Value::Array(Vec::new()));
}

#[test]
fn standard_output_is_the_text_and_one_line_follows_beside_it() {
    let known = model("target");
    let run = generate(&file("target"), &["-p", "abc", "-n", "200", "--draft-length", "12"], "").succeeded();
    assert_eq!(run.stdout, text(&known, &continuation(&known, "abc", 200)));
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    for part in ["200 tokens, ", "tokens/s", "drafted tokens accepted (", " (lookup); ", "ended: token limit"] {
        assert!(run.stderr.contains(part), "{part:?}: {run:?}");
    }
}

#[test]
fn the_default_needs_no_choice() {
    let target = file("target");
    let effective = |args: &[&str]| json(&target, args)["speculation"]["effective"].clone();
    assert_eq!(effective(&["-p", "a", "-n", "2"]), Value::from(vec!["lookup"]));
    assert_eq!(effective(&["-p", "a", "-n", "2", "--draft", &file("draft-0.5")]), Value::from(vec!["draft-simple"]));
}

#[test]
fn the_prompt_comes_from_an_argument_a_file_or_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let prompt_file = dir.path().join("prompt.txt");
    std::fs::write(&prompt_file, "- one,\n- two\r\n").unwrap();
    let prompt_file = path(prompt_file);
    let target = file("target");
    let argument = generate(&target, &["-p", "- one,\n- two", "-n", "9", "--json"], "").succeeded().json();
    assert_eq!(count(&argument, "prompt_tokens"), 13);
    let from_file = generate(&target, &["--prompt-file", &prompt_file, "-n", "9", "--json"], "").succeeded().json();
    let from_input = generate(&target, &["-n", "9", "--json"], "- one,\n- two\n").succeeded().json();
    for other in [from_file, from_input] {
        assert_eq!(other["tokens"], argument["tokens"]);
        assert_eq!(count(&other, "prompt_tokens"), 13);
    }
}

#[test]
fn stop_strings_end_the_text() {
    let json = json(&file("target"), &["-p", "a", "--stop", "nothing like it", "--stop", "fgh"]);
    assert_eq!((&json["text"], &json["stop_reason"]), (&Value::from("bcde"), &Value::from("stop-string")));
}

#[test]
fn a_model_that_ends_its_text_ends_it() {
    let json = json(&file("chat"), &["-p", "X"]);
    assert_eq!((&json["text"], &json["stop_reason"]), (&Value::from("YZ."), &Value::from("end-of-text")));
    assert_eq!(count(&json, "generated_tokens"), 3);
}

#[test]
fn a_full_context_ends_the_text() {
    let json = json(&file("target"), &["-p", "abc", "-n", "100000", "--context", "256"]);
    assert_eq!(json["stop_reason"], "context-full");
    let known = model("target");
    let generated = tokens(&json);
    assert!((250..=256).contains(&generated.len()), "{}", generated.len());
    assert_eq!(generated, continuation(&known, "abc", generated.len()));
}

/// Characters whose bytes are spread over tokens come out whole, in the object and in the stream.
#[test]
fn characters_are_whole() {
    let known = Llama::target(1).with_cycle("a\u{e9}\u{20ac}\u{1f600}");
    let target = path(known.cached().unwrap());
    let expected = "\u{e9}\u{20ac}\u{1f600}a\u{e9}\u{20ac}\u{1f600}a";
    let tokens = expected.len().to_string();
    assert_eq!(json(&target, &["-p", "a", "-n", &tokens])["text"], expected);
    assert_eq!(generate(&target, &["-p", "a", "-n", &tokens], "").succeeded().stdout, expected);
}

#[test]
fn a_seed_makes_chance_repeat() {
    let target = path(Llama::target(1).with_peak(4.0).labelled("flat").cached().unwrap());
    let sampled = |seed: &str| {
        let args = ["-p", "a", "-n", "40", "--temp", "1.2", "--seed", seed, "--spec", "none"];
        json(&target, &args)["tokens"].clone()
    };
    let one = sampled("7");
    assert_eq!(one, sampled("7"));
    assert_ne!(one, sampled("8"));
}

#[test]
fn colours_mark_exactly_what_was_guessed_and_right() {
    let (target, draft, known) = (file("target"), file("draft-0.8"), model("target"));
    let args = ["-p", "abc", "-n", "80", "--draft", &draft, "--draft-length", "4"];
    let accepted = count(&json(&target, &args), "accepted");
    let run = generate(&target, &[&args[..], &["--color", "always"]].concat(), "").succeeded();
    assert_eq!(run.stdout.matches("\u{1b}[32m").count() as u64, accepted);
    assert_eq!(console::strip_ansi_codes(&run.stdout), text(&known, &continuation(&known, "abc", 80)));
    assert!(!generate(&target, &args, "").stdout.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_log_is_shown_when_asked_for() {
    let args = ["--model", &file("target"), "--threads", "1", "-p", "a", "-n", "3"];
    let quiet = run(GENERATE, args, "").succeeded();
    assert!(!quiet.stderr.contains("llama.cpp"), "{quiet:?}");
    let verbose = run(GENERATE, args.iter().chain(&["--verbose"]), "").succeeded();
    assert!(verbose.stderr.contains("DEBUG llama.cpp: "), "{verbose:?}");
    assert_eq!(verbose.stdout, "bcd");
    let mut chosen = command(GENERATE, args);
    chosen.env("RUST_LOG", "llama_spec=info");
    let chosen = finish(start(chosen, "")).succeeded();
    assert!(chosen.stderr.contains("INFO llama_spec") && !chosen.stderr.contains("llama.cpp: "), "{chosen:?}");
}

/// `generate ... | head -c 5`
#[test]
fn a_reader_that_leaves_is_no_error() {
    let args = ["--model", &file("target"), "--threads", "1", "-p", "a", "-n", "1000000", "--context", "100000"];
    let mut child = start(command(GENERATE, args), "");
    let mut first = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"bcdef");
    drop(child.stdout.take());
    let run = finish(child).succeeded();
    assert_eq!(run.stderr, "");
}

/// `chat 2>&1 | head -c 5`, and a log that nobody reads.
#[test]
fn nobody_reading_standard_error_is_no_error() {
    let lines = "hi\n/help\n/nonsense\n/stats\nhi\n";
    for program in [GENERATE, CHAT] {
        for more in [&[][..], &["--verbose"]] {
            let args = ["--model", &file("chat"), "--threads", "1", "--temp", "0"];
            let mut child = command(program, args.iter().chain(more)).spawn().unwrap();
            drop(child.stderr.take());
            child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
            let run = finish(child);
            // The line that is no command makes the status of `chat` 1.
            assert_eq!(run.status.code(), Some(i32::from(program == CHAT)), "{run:?}");
            assert!(!run.stdout.is_empty(), "{run:?}");
        }
    }
}

#[test]
fn the_files_alone_decide_how_it_drafts() {
    for (target, draft, method) in [
        ("target", Some("draft-0.8"), "draft-simple"),
        ("target", Some("eagle3"), "draft-eagle3"),
        ("target", Some("dflash-borrowing"), "draft-dflash"),
        ("target", Some("dspark"), "draft-dspark"),
        ("gemma4", Some("gemma4-assistant"), "draft-mtp"),
        ("qwen35", Some("qwen35-mtp-head"), "draft-mtp"),
        ("qwen35-mtp", None, "draft-mtp"),
        ("chained-mtp", None, "draft-mtp"),
        ("mamba", Some("mamba-draft-0.8"), "draft-simple"),
    ] {
        let target = file(target);
        let usual =
            ["--model", &target, "--threads", "1", "-p", "The sea", "-n", "60", "--json", "--draft-length", "4"];
        let plain = run(GENERATE, usual.iter().chain(&["--spec", "none"]), "").succeeded().json();
        let draft = draft.map(file);
        let with = draft.iter().flat_map(|draft| ["--draft", draft]);
        let got = run(GENERATE, usual.iter().copied().chain(with), "").succeeded().json();
        assert_eq!(got["tokens"], plain["tokens"], "{target} with {draft:?}");
        assert_eq!(got["speculation"]["effective"], serde_json::json!([method]));
        assert!(got["stats"]["accepted"].as_u64().unwrap() > 0, "{got}");
    }
}

#[test]
fn the_wrong_method_for_a_file_is_refused_by_name() {
    let (target, assistant) = (file("gemma4"), file("gemma4-assistant"));
    let args = ["--model", &target, "--draft", &assistant, "-p", "a", "--spec", "draft-simple"];
    run(GENERATE, args, "").refused_by_rules(&["method-file", "choose draft-mtp"]);
    let wide = file("gemma4-assistant-wide");
    run(GENERATE, ["--model", &target, "--draft", &wide, "-p", "a"], "").refused_by_rules(&["mtp-width"]);
}
