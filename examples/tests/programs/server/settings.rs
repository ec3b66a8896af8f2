//! Settings from flags, environment and file.

use super::super::common::{Run, finish, start};
use super::process::server;
use std::fs;

/// Runs it with this file, environment and flags.
fn with(file: &str, environment: &[(&str, &str)], flags: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.toml");
    fs::write(&path, file).unwrap();
    let mut command = server(&["--config", path.to_str().unwrap()]);
    command.args(flags).envs(environment.iter().copied());
    finish(start(command, ""))
}

/// What `--print-config` says of an option.
fn line<'a>(run: &'a Run, option: &str) -> &'a str {
    let mut lines = run.stdout.lines().filter(|line| line.starts_with(&format!("{option} = ")));
    let line = lines.next().unwrap_or_else(|| panic!("no {option}: {run:?}"));
    assert_eq!(lines.next(), None);
    line
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let file = "slots = 2\nqueue = 20\ngrace = 2.5\nno_supervise = true\nspec = \"ngram-mod\"\ncors-origin = [\"a://b\", \"c://d\"]\n";
    let environment = [("LLAMA_SPEC_SLOTS", "3"), ("LLAMA_SPEC_QUEUE", "30"), ("LLAMA_SPEC_VERBOSE", "true")];
    let shown = with(file, &environment, &["--print-config", "--slots", "4"]).succeeded();
    for (option, expected) in [
        ("slots", "slots = 4 # flag"),
        ("queue", "queue = 30 # environment"),
        ("verbose", "verbose = true # environment"),
        ("grace", "grace = 2.5 # file"),
        ("no-supervise", "no-supervise = true # file"),
        ("spec", "spec = \"ngram-mod\" # file"),
        ("cors-origin", "cors-origin = [\"a://b\", \"c://d\"] # file"),
        ("host", "host = \"127.0.0.1\" # default"),
        ("body-timeout", "body-timeout = 30 # default"),
        ("store-mib", "store-mib = 64 # default"),
    ] {
        assert_eq!(line(&shown, option), expected);
    }
    for unset in ["draft", "store-file"] {
        assert!(shown.stdout.contains(&format!("# {unset} is not set\n")), "{shown:?}");
    }
    // What is on in the file can be switched off.
    let shown = with(file, &[], &["--print-config", "--no-supervise=false"]).succeeded();
    assert_eq!(line(&shown, "no-supervise"), "no-supervise = false # flag");
}

#[test]
fn what_is_printed_can_be_read_again() {
    let shown = with("slots = 2\nalias = \"7\"\n", &[], &["--print-config", "--cors-origin", "*", "--grace", "1.5"])
        .succeeded();
    let again = with(&shown.stdout, &[], &["--print-config"]).succeeded();
    let values = |run: &Run| {
        let values = run.stdout.lines().filter_map(|line| Some(line.split_once(" # ")?.0.to_owned()));
        values.collect::<Vec<_>>()
    };
    assert_eq!(values(&shown), values(&again));
    assert!(values(&shown).contains(&"alias = \"7\"".to_owned()), "{shown:?}");
}

#[test]
fn keys_are_not_printed() {
    let environment = [("LLAMA_SPEC_API_KEY", "secret-1,secret-2")];
    for shown in [
        with("", &environment, &["--print-config"]),
        with("api-key = [\"secret-1\", \"secret-2\"]", &[], &["--print-config"]),
        with("", &[], &["--print-config", "--api-key", "secret-1", "--api-key", "secret-2"]),
    ] {
        // Nor is anything that would be a key when this is read as a file.
        assert!(shown.stdout.contains("\n# api-key is set (2 not shown) # "), "{shown:?}");
        assert!(!shown.stdout.contains("secret"), "{shown:?}");
    }
}

#[test]
fn files_that_make_no_sense() {
    for (file, said) in [
        ("ports = 1", "unknown key `ports`"),
        ("[network]\nport = 1", "unknown key `network`"),
        ("config = \"x\"", "unknown key `config`"),
        ("port = {}", "`port` is neither"),
        ("port = 70000", "65535"),
        ("port = \"http\"", "http"),
        ("port = 1\nport = 2", "line 2"),
        ("log_format = \"human\"\nlog-format = \"json\"", "`log-format` is there twice"),
        ("slots = 2.5", "2.5"),
        ("no-supervise = \"perhaps\"", "perhaps"),
        ("spec = \"ngram\"", "unknown speculative method"),
        ("port 1", "line 1"),
        ("\n\napi-key = \"secret", "line 3"),
        ("host = \"\"", "--host"),
    ] {
        let refused = with(file, &[], &[]);
        refused.refused(2, &["server.toml", said]);
        assert!(!refused.stderr.contains("secret"), "{refused:?}");
    }
    let mut missing = server(&["--config", "/no/such/file.toml"]);
    missing.env("LLAMA_SPEC_SLOTS", "2");
    finish(start(missing, "")).refused(2, &["/no/such/file.toml"]);
}

#[test]
fn a_wrong_value_in_the_environment_is_named() {
    with("", &[("LLAMA_SPEC_SLOTS", "many")], &[]).refused(2, &["LLAMA_SPEC_SLOTS", "many"]);
    let shown = with("", &[("LLAMA_SPEC_SLOTS", "many")], &["--print-config", "--slots", "2"]).succeeded();
    assert_eq!(line(&shown, "slots"), "slots = 2 # flag");
}
