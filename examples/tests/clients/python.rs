//! With the Python package `openai`.

use crate::served::{KEY, Served};
use std::process::Command;

/// Tells where the package is.
const VARIABLE: &str = "LLAMA_SPEC_TEST_OPENAI";

#[test]
fn the_python_client_gets_what_it_expects() {
    let Some(package) = std::env::var_os(VARIABLE) else {
        panic!("{VARIABLE} does not name a folder with the Python package `openai`: `cargo xtask test` gets it");
    };
    let served = Served::start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/openai_client.py");
    let run = Command::new("python3")
        .arg(script)
        .args([&format!("{}/v1", served.url), KEY])
        .env("PYTHONPATH", package)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}{}", text(&run.stdout), text(&run.stderr));
    assert_eq!(text(&run.stdout).lines().filter(|line| line.ends_with(" holds")).count(), 11);
    // The last check closed its stream: the slot is free at once, though the text could have gone on for long.
    served.wait_for("/slots", |answer| {
        answer.contains("\"is_processing\":false") && !answer.contains("\"is_processing\":true")
    });
    served.wait_for("/status", |answer| answer.contains("\"cancelled\":1"));
}
