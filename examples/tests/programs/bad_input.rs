//! What makes no sense is refused by both programs with one line and an exit status, never with a panic or a signal.

use super::common::{CHAT, GENERATE, command, file, finish, path, run, start, without_bos};
use llama_spec_tests::broken;
use std::fs;

const BOTH: [&str; 2] = [GENERATE, CHAT];

#[test]
fn files_that_are_no_model() {
    let dir = tempfile::tempdir().unwrap();
    let said = |name: &str| match name {
        "missing" => "No such file",
        "directory" => "is a directory",

        "empty" | "text" | "random" => "is not a GGUF model",
        _ => "",
    };
    let target = file("chat");
    for broken in broken::all(dir.path()).unwrap() {
        let name = match broken.name {
            // It is the second part that is not there.
            "split-part-missing" => "model-00002-of-00003.gguf".to_owned(),
            _ => broken.path.file_name().unwrap().to_str().unwrap().to_owned(),
        };
        let broken_file = path(broken.path);
        for program in BOTH {
            let refused = run(program, ["--model", &broken_file], "a\n");
            refused.refused(4, &[&name, said(broken.name)]);
            let refused = run(program, ["--model", &target, "--draft", &broken_file], "a\n");
            refused.refused(4, &[&name, said(broken.name)]);
        }
    }
}

#[test]
fn arguments_that_make_no_sense() {
    let target = file("chat");
    let all: [(&[&str], &str); 30] = [
        (&["--spec", "ngram"], "unknown speculative method `ngram`; known: lookup"),
        (&["--spec", ""], "unknown speculative method"),
        (&["--spec", "none,ngram-mod"], "unknown speculative method `none`"),
        (&["-n", "0"], "--tokens"),
        (&["-n", "-1"], "-1"),
        (&["-n", "many"], "many"),
        (&["-n", "4294967296"], "4294967296"),
        (&["--temp", "NaN"], "0 (always the most probable token) or a number from 0.0001 to 1000"),
        (&["--temp", "-0.5"], "-0.5"),
        (&["--temp", "inf"], "inf"),
        (&["--temp", "0,7"], "0,7"),
        (&["--seed", "-1"], "--seed"),
        (&["--seed", "4294967295"], "--seed"),
        (&["--threads", "0"], "--threads"),
        (&["--threads", "-2"], "--threads"),
        (&["--threads", "513"], "512"),
        (&["--context", "-1"], "--context"),
        (&["--context", "1"], "a number of tokens from 2"),
        (&["--batch", "0"], "--batch"),
        (&["--batch", "1"], "--batch"),
        (&["--ubatch", "-5"], "--ubatch"),
        (&["--draft-max", "0"], "--draft-max"),
        (&["--draft-max", "-3"], "--draft-max"),
        (&["--top-k", "-1"], "--top-k"),
        (&["--top-p", "1.5"], "a number from 0 to 1"),
        (&["--min-p", "-0.1"], "a number from 0 to 1"),
        (&["--gpu-layers", "-1"], "`auto`, `all`, or a number of layers"),
        (&["--stop", ""], "--stop"),
        (&["--color", "sometimes"], "sometimes"),
        (&["--modell", "x"], "--modell"),
    ];
    for program in BOTH {
        for (args, said) in all {
            let refused = run(program, ["--model", &target].iter().chain(args), "a\n");
            refused.refused(2, &[said, "--help"]);
        }
        run(program, [""; 0], "").refused(2, &["--model <FILE>"]);
        run(program, ["--model"], "").refused(2, &["--model <FILE>"]);
        run(program, ["--model", &target, "stray"], "").refused(2, &["stray"]);
    }
    run(GENERATE, ["--model", &target, "-p", "a", "--prompt-file", "b"], "").refused(2, &["--prompt-file"]);
}

#[test]
fn settings_that_no_argument_checks_alone() {
    let target = file("chat");
    // More room than llama.cpp can number.
    for program in BOTH {
        let refused = run(program, ["--model", &target, "--context", "4294967295"], "a\n");
        refused.refused(2, &["length_per_slot"]);
    }
    let mut wrong = command(GENERATE, ["--model", &target, "-p", "a"]);
    wrong.env("RUST_LOG", "llama.cpp=very");
    finish(start(wrong, "")).refused(2, &["RUST_LOG"]);
}

/// A build without GPU support never has a GPU.
#[cfg(not(any(feature = "cuda", feature = "metal", feature = "vulkan", feature = "hip")))]
#[test]
fn gpus_that_are_not_there() {
    let target = file("chat");
    for program in BOTH {
        for layers in ["20", "all"] {
            let refused = run(program, ["--model", &target, "--gpu-layers", layers], "a\n");
            refused.refused(1, &["no such device", &format!("for {layers} layers"), "0 layers to stay on the CPU"]);
        }
    }
    for layers in ["0", "auto"] {
        run(GENERATE, ["--model", &target, "--gpu-layers", layers, "-p", "a", "-n", "1"], "").succeeded();
    }
}

#[test]
fn drafts_that_do_not_fit() {
    let (target, draft) = (file("chat"), file("draft-0.8"));
    for program in BOTH {
        let refused = |args: &[&str], said: &[&str]| {
            run(program, ["--model", &target].iter().chain(args), "a\n").refused_by_rules(said);
        };
        refused(&["--draft", &file("draft-other-vocabulary")], &["vocab-text", "target's tokenizer"]);
        refused(&["--draft", &file("draft-other-tokenizer")], &["vocab-type"]);
        refused(&["--draft", &draft, "--spec", "ngram-mod"], &["draft-unused"]);
        refused(&["--draft", &target], &["same-file"]);
        refused(&["--spec", "draft-simple"], &["draft-missing"]);
        refused(&["--spec", "draft-mtp"], &["mtp-heads"]);
        refused(&["--draft", &file("eagle3"), "--spec", "draft-simple"], &["method-file", "choose draft-eagle3"]);
        refused(&["--draft", &file("eagle3-other-width")], &["target-width"]);
        refused(&["--draft", &file("eagle3-layer-beyond")], &["layer-ids"]);
    }
}

#[test]
fn drafts_are_no_models_of_their_own() {
    for name in ["eagle3", "dflash", "gemma4-assistant", "embedding"] {
        for program in BOTH {
            run(program, ["--model", &file(name)], "a\n").refused_by_rules(&["target-kind"]);
        }
    }
}

#[test]
fn prompts_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let target = without_bos();
    let prompt_file = dir.path().join("prompt.txt");
    let refused = |content: &[u8], status: i32, said: &[&str]| {
        fs::write(&prompt_file, content).unwrap();
        let name = prompt_file.to_str().unwrap();
        run(GENERATE, ["--model", &target, "--context", "256", "--prompt-file", name], "").refused(status, said);
        run(GENERATE, ["--model", &target, "--context", "256", "--json", "--prompt-file", name], "")
            .refused(status, said);
    };
    refused(b"caf\xe9 au lait", 1, &["prompt.txt is not valid UTF-8: byte 3"]);
    refused(b"ends in the middle \xf0\x9f\x98", 1, &["prompt.txt is not valid UTF-8: byte 19"]);
    refused("long ".repeat(60).as_bytes(), 1, &["the prompt has 300 tokens and the context holds 256", "--context N"]);
    refused(b"", 1, &["the prompt is empty"]);
    refused(b"\n", 1, &["the prompt is empty"]);
    run(GENERATE, ["--model", &target], b"\xff").refused(1, &["standard input is not valid UTF-8: byte 0"]);
    run(GENERATE, ["--model", &target], b"").refused(1, &["the prompt is empty"]);
    let missing = path(dir.path().join("none.txt"));
    run(GENERATE, ["--model", &target, "--prompt-file", &missing], "").refused(1, &["none.txt", "No such file"]);
    let directory = dir.path().to_str().unwrap();
    run(GENERATE, ["--model", &target, "--prompt-file", directory], "").refused(1, &["cannot read"]);
}

#[cfg(unix)]
#[test]
fn arguments_that_are_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let target = file("target");
    let args = [OsStr::new("--model"), target.as_ref(), "-p".as_ref(), OsStr::from_bytes(b"a\xff")];
    run(GENERATE, args, "").refused(2, &["UTF-8"]);
    // A file may have any name; that it is not there is what is wrong with this one.
    run(GENERATE, [OsStr::new("--model"), OsStr::from_bytes(b"a\xff\nb.gguf")], "a").refused(4, &["No such file"]);
}

#[test]
fn chat_templates_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    run(CHAT, ["--model", &file("target")], "a\n").refused(1, &["no chat template", "--chat-template"]);
    let target = file("chat");
    let template = dir.path().join("template.jinja");
    for (content, said) in [(&b"{% for"[..], "chat template"), (b"a\xff", "byte 1"), (b"  ", "the template is empty")] {
        fs::write(&template, content).unwrap();
        run(CHAT, ["--model", &target, "--chat-template", template.to_str().unwrap()], "a\n").refused(1, &[said]);
    }
    run(CHAT, ["--model", &target, "--chat-template", "none.jinja"], "a\n").refused(1, &["none.jinja"]);
}

#[test]
fn help_and_version_are_no_errors() {
    for program in BOTH {
        let help = run(program, ["--help"], "").succeeded();
        assert!(help.stdout.contains("--draft-max") && help.stdout.contains("Exit status"), "{help:?}");
        assert_eq!(help.stderr, "");
        assert!(run(program, ["--version"], "").succeeded().stdout.contains(env!("CARGO_PKG_VERSION")));
    }
}
