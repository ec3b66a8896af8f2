//! The page of the documentation with what the library chooses for each pair of files of the zoo.

use super::case::{files, open};
use llama_spec::spec::SpecConfig;
use std::fmt::Write as _;
use std::path::Path;

/// `cargo xtask rules` sets this to have the page written instead of compared.
const WRITE: &str = "LLAMA_SPEC_WRITE_RULES";

/// The page must be what the rules say now.
pub(super) fn check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pairs.md");
    let page = page();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(kept == page, "docs/pairs.md is not what the rules say: run `cargo xtask rules`");
}

fn page() -> String {
    let targets: Vec<&str> = files().into_iter().filter(|name| open(name).kind().is_generative()).collect();
    let mut page = String::from(
        "# Which draft goes with which target\n\n\
         What `SpecConfig::auto` says of each pair of files of the zoo (`cargo run -p llama-spec-tests --bin zoo -- --list` \
         tells what they are): the method it chooses, or the codes of the rules that refuse the pair \
         ([what they mean](compatibility.md)). A test keeps this page up to date, and another runs every pair with every \
         method in llama.cpp, each in a process that may die: `cargo nextest run --workspace -E 'binary(matrix)'`.\n",
    );
    for target in targets {
        let file = open(target);
        let alone = match SpecConfig::auto(&file, None) {
            Ok(config) => config.names(),
            Err(why) => codes(&why),
        };
        let kind = file.kind();
        let architecture = file.description().architecture.clone().unwrap_or_default();
        _ = write!(
            page,
            "\n## `{target}`: {kind}, {architecture}\n\nWithout a draft: {alone}\n\n| draft | |\n|---|---|\n"
        );
        for draft in files() {
            let verdict = match SpecConfig::auto(&file, Some(&open(draft))) {
                Ok(config) => format!("**{}**", config.names()),
                Err(why) => codes(&why),
            };
            _ = writeln!(page, "| `{draft}` | {verdict} |");
        }
    }
    page
}

fn codes(why: &llama_spec::compat::Incompatible) -> String {
    let mut codes: Vec<String> = why.checks.iter().map(|check| format!("`{}`", check.code)).collect();
    codes.dedup();
    codes.join(", ")
}
