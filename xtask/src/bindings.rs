//! Makes the bindings of `llama-sys` anew, or checks that the committed ones are what bindgen makes.

use crate::run::{Run, root, say, target};
use crate::tools;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;

/// How many lines of each side a difference shows.
const SHOWN: usize = 15;

/// Writes `llama-sys/src/bindings.rs`, or with `check` compares it with what would be written.
pub(crate) fn bindings(check: bool) -> Result<()> {
    let committed = root().join("llama-sys").join("src").join("bindings.rs");
    let fresh = generate()?;
    let old = std::fs::read_to_string(&committed).unwrap_or_default().replace("\r\n", "\n");
    if old == fresh {
        say("the committed bindings are what bindgen makes");
        return Ok(());
    }
    let difference = difference(&old, &fresh);
    if check {
        bail!("llama-sys/src/bindings.rs is not what bindgen makes: run `cargo xtask bindings`\n{difference}");
    }
    std::fs::write(&committed, fresh).with_context(|| format!("cannot write {}", committed.display()))?;
    say(format!("wrote {}:\n{difference}", committed.display()));
    Ok(())
}

fn generate() -> Result<String> {
    let messages = Run::cargo()
        .args(["check", "--package", "llama-sys", "--features", "bindgen", "--message-format=json-render-diagnostics"])
        .env("LLAMA_SYS_SKIP_NATIVE", "1")
        .env("CARGO_TARGET_DIR", target("check"))
        .envs(&tools::libclang()?)
        .run_and_read()?;
    let file = out_dir(&messages).context("cargo named no output folder of llama-sys")?.join("bindings.rs");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.replace("\r\n", "\n"))
}

/// The folder into which the build script of `llama-sys` writes, from Cargo's messages.
fn out_dir(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut scripts = messages.filter(|message| message["reason"] == "build-script-executed");
    let script = scripts.find(|script| script["package_id"].as_str().is_some_and(|id| id.contains("llama-sys")))?;
    Some(script["out_dir"].as_str()?.into())
}

/// Lines that only one of the two has.
fn difference(old: &str, new: &str) -> String {
    let mut counts: HashMap<&str, i64> = HashMap::new();
    new.lines().for_each(|line| *counts.entry(line).or_default() += 1);
    old.lines().for_each(|line| *counts.entry(line).or_default() -= 1);
    let mut only = |text: &'static str, lines: &str, sign: i64| {
        let lines: Vec<_> =
            lines.lines().filter(|line| counts.get_mut(*line).is_some_and(|count| take(count, sign))).collect();
        let more = lines.len().saturating_sub(SHOWN);
        let mut shown: Vec<_> = lines.iter().take(SHOWN).map(|line| format!("{text}{line}")).collect();
        if more > 0 {
            shown.push(format!("{text}... and {more} more"));
        }
        shown
    };
    let shown = [only("- ", old, -1), only("+ ", new, 1)].concat();
    if shown.is_empty() { "the same lines in another order".to_owned() } else { shown.join("\n") }
}

/// Moves a count one step towards zero if it has that sign.
fn take(count: &mut i64, sign: i64) -> bool {
    let taken = *count * sign > 0;
    if taken {
        *count -= sign;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_both_sides() {
        assert_eq!(difference("a\nb\nc", "a\nc\nd"), "- b\n+ d");
        assert_eq!(difference("a\na", "a"), "- a");
        assert_eq!(difference("a\nb", "b\na"), "the same lines in another order");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let new: String = (0..20).map(|n| format!("{n}\n")).collect();
        let shown = difference("", &new);
        assert_eq!(shown.lines().count(), SHOWN + 1);
        assert!(shown.ends_with("+ ... and 5 more"), "{shown}");
    }

    #[test]
    fn the_output_folder_is_that_of_llama_sys() {
        let messages = [
            r#"{"reason":"build-script-executed","package_id":"registry#serde@1","out_dir":"a"}"#,
            r#"{"reason":"compiler-artifact","package_id":"path+file:///x/llama-sys#0.1.0"}"#,
            r#"{"reason":"build-script-executed","package_id":"path+file:///x/llama-sys#0.1.0","out_dir":"b"}"#,
        ];
        assert_eq!(out_dir(&messages.join("\n")), Some(PathBuf::from("b")));
        assert_eq!(out_dir(messages[0]), None);
    }
}
