//! With the Python package `openai`.

use super::{HEADER, KEY, base, serving};
use std::process::Command;

/// Tells where the package is.
const VARIABLE: &str = "LLAMA_SPEC_TEST_OPENAI";

#[test]
fn the_python_client_gets_what_it_expects() {
    let Some(package) = std::env::var_os(VARIABLE) else {
        panic!("{VARIABLE} does not name a folder with the Python package `openai`: `cargo xtask test` gets it");
    };
    let server = serving();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/server/clients/openai_client.py");
    let run =
        Command::new("python3").arg(script).args([&base(&server), KEY]).env("PYTHONPATH", package).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}{}", text(&run.stdout), text(&run.stderr));
    assert_eq!(text(&run.stdout).lines().filter(|line| line.ends_with(" holds")).count(), 11);
    // The last check closed its stream: the slot is free at once, though the text could have gone on for long.
    server.until("/slots", &[HEADER], |answer| {
        answer.body.contains("\"is_processing\":false") && !answer.body.contains("\"is_processing\":true")
    });
    server.until("/status", &[HEADER], |answer| answer.json()["requests"]["cancelled"] == 1);
}
