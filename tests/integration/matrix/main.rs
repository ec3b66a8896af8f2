//! What the library says of files and settings, against what llama.cpp does with them in a process of its own: every
//! target with every draft and every method, and the settings that matter.
//!
//! Where the library says that it works, it must work. Where it says that it does not, llama.cpp may do better, for the
//! reasons in [`justified`].

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod case;
#[path = "../../../llama-sys/testing/drive.rs"]
mod drive;
mod page;

use case::Case;
use llama_spec::compat::Incompatible;
use llama_spec_tests::children::{self, End};
use llama_spec_tests::zoo;
use std::collections::BTreeMap;
use std::thread;

/// Why a rule refuses what llama.cpp may well run without an error.
fn justified(code: &str) -> Option<&'static str> {
    Some(match code {
        "method-file" => "the file is not what the method is for: what it drafts is noise",
        "same-file" => "the draft is the target itself, and only costs",
        "draft-unused" => "no method uses the draft",
        "draft-without-speculation" => "no method uses the draft",
        "vocab-text"
        | "vocab-type"
        | "vocab-size"
        | "vocab-bos"
        | "vocab-eos"
        | "vocab-missing"
        | "vocab-draft-smaller" => {
            "llama.cpp compares vocabularies for draft-simple only; elsewhere a token that differs is never right, or aborts \
             when it comes"
        }
        "target-width" | "mtp-width" | "mtp-architecture" | "mtp-layers" | "layer-ids" | "last-layer" => {
            "it was not made for this target: what it drafts is noise"
        }
        "mtp-hidden-state" => "the target does not give the states that the heads read: what they draft is noise",
        "draft-length" => "llama.cpp shortens the draft, and does not say so",
        "target-kind" => "a draft or an embedding model gives logits too: what it writes alone is noise",
        "draft-kind" => "an embedding model gives logits too: what it drafts is noise",
        "batch-room" => "nothing is drafted, so the batch that would be too large does not come",
        "setting-range" => "a setting outside of its range happens to do no harm",
        _ => return None,
    })
}

/// Not a test of its own: the child process, which runs a list of cases.
#[test]
#[ignore = "the child process of the test here"]
fn child() {
    for line in children::cases().unwrap_or_default() {
        let case = Case::parse(&line);
        children::step(&line);
        let outcome = case.drive();
        children::end(&serde_json::to_string(&case::Told::from(&outcome)).unwrap());
    }
}

#[test]
fn the_library_never_promises_what_llama_cpp_cannot_do() {
    let cases = case::all();
    let folder = tempfile::tempdir_in(zoo::directory().unwrap()).unwrap();
    // Two at a time: one computes on one thread.
    let (first, second) = cases.split_at(cases.len() / 2);
    let run = |cases: &[Case], name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let lines: Vec<String> = cases.iter().map(Case::line).collect();
        children::run("child", &lines, &folder).unwrap()
    };
    let ends = thread::scope(|scope| {
        let other = scope.spawn(|| run(second, "second"));
        let mut ends = run(first, "first");
        ends.extend(other.join().unwrap());
        ends
    });
    let mut wrong = Vec::new();
    let mut better = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (case, end) in cases.iter().zip(&ends) {
        let (said, did) = (case.check(), Did::of(case, end));
        *counts.entry((said.is_ok(), did.word())).or_insert(0) += 1;
        match (said, did) {
            (Ok(_), Did::Works) | (Err(_), Did::Fails(..)) => {}
            (Ok(_), Did::Fails(_, why)) => wrong.push(format!("{}: said to work, but: {why}", case.line())),
            (Err(why), Did::Works) => {
                if !excused(&why) {
                    wrong.push(format!("{}: works, but is refused: {}", case.line(), why.summary()));
                }
                why.checks.iter().for_each(|check| *better.entry(check.code.clone()).or_insert(0) += 1);
            }
        }
    }
    println!("{} cases", cases.len());
    for ((said, did), count) in &counts {
        println!("{count:>5} {} and {did}", if *said { "said to work" } else { "refused" });
    }
    println!("rules that refuse what llama.cpp runs: {better:?}");
    assert!(wrong.is_empty(), "{} disagreements:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether one of the reasons stands for what an outcome does not show.
fn excused(why: &Incompatible) -> bool {
    why.checks.iter().any(|check| justified(&check.code).is_some())
}

/// What llama.cpp did.
enum Did {
    Works,
    /// A word for the table, and all of it.
    Fails(&'static str, String),
}

impl Did {
    fn of(case: &Case, end: &End) -> Self {
        match end {
            End::Died { how, .. } if how == "abort" => Self::Fails("aborts", "the process aborts".into()),
            End::Died { how, .. } => Self::Fails("crashes", how.clone()),
            End::Said(told) => match serde_json::from_str(told).unwrap() {
                case::Told::Refused { step, by_shim, why } => {
                    let word = if by_shim { "is stopped by the shim" } else { "fails with an error" };
                    Self::Fails(word, format!("{step}: {why}"))
                }
                case::Told::Works { same_text: false, .. } => Self::Fails("gives another text", "another text".into()),
                case::Told::Works { drafted: 0, .. } if case.methods.iter().any(|method| !method.is_lookup()) => {
                    Self::Fails("never drafts", "nothing drafted".into())
                }
                case::Told::Works { .. } => Self::Works,
            },
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Fails(word, _) => word,
        }
    }
}

#[test]
fn the_page_of_pairs_is_up_to_date() {
    page::check();
}
