//! Files with one part changed, loaded by llama.cpp in processes of their own: what it refuses, and what ends the process.

use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use llama_spec::ModelFile;
use llama_spec_tests::{
    broken,
    zoo::{self, named},
};

use crate::raw;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// A context was made and, where the model takes tokens alone, a token decoded.
    Works,
    /// The file was refused.
    NotLoaded,
    /// The context was refused.
    NoContext,
    /// The token was refused.
    NotDecoded,
    /// The process ended while the file was loaded.
    DiedLoading,
    /// The process ended while the context was made.
    DiedInContext,
    /// The process ended while the token was decoded.
    DiedDecoding,
}

impl Outcome {
    const REFUSED: [(&str, Self); 4] = [
        ("works", Self::Works),
        ("not loaded", Self::NotLoaded),
        ("no context", Self::NoContext),
        ("not decoded", Self::NotDecoded),
    ];

    fn died(self) -> bool {
        matches!(self, Self::DiedLoading | Self::DiedInContext | Self::DiedDecoding)
    }
}

const LIST: &str = "ZOO_BROKEN_LIST";

/// Not a test of its own: the child process of the others, which loads the files of a list and says after each how it went.
#[test]
#[ignore = "the child process of the tests here"]
fn child() {
    let Ok(list) = env::var(LIST) else { return };
    for path in fs::read_to_string(list).unwrap().lines() {
        println!("\nloading");
        println!("\nend {}", raw::attempt(Path::new(path)));
    }
}

/// Loads the files one after the other; where that ends the process, another one goes on behind it.
fn outcomes(paths: &[String], folder: &Path) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while outcomes.len() < paths.len() {
        let list = folder.join("list.txt");
        fs::write(&list, paths[outcomes.len()..].join("\n")).unwrap();
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "broken::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(LIST, &list)
            // llama.cpp asks a debugger for a backtrace before it aborts.
            .env("GGML_NO_BACKTRACE", "1")
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let before = outcomes.len();
        let mut died = Outcome::DiedLoading;
        for line in String::from_utf8_lossy(&child.stdout).lines() {
            match line {
                "loading" => died = Outcome::DiedLoading,
                "making a context" => died = Outcome::DiedInContext,
                "decoding" => died = Outcome::DiedDecoding,
                _ => {
                    let outcome = line.strip_prefix("end ").and_then(|end| {
                        Outcome::REFUSED.iter().find(|(word, _)| *word == end).map(|(_, outcome)| *outcome)
                    });
                    outcomes.extend(outcome);
                }
            }
        }
        if !child.status.success() {
            outcomes.push(died);
        }
        assert!(outcomes.len() > before, "{child:?}");
    }
    outcomes
}

/// What became of a case, and whether its header was said to be that of a model that loads.
type Seen = (Outcome, bool);

/// What became of the cases of a file that `wanted` takes.
fn survey(name: &str, wanted: impl Fn(usize, &broken::Case) -> bool) -> BTreeMap<String, Seen> {
    let model = named().into_iter().find(|named| named.name == name).unwrap().model();
    let folder = tempfile::tempdir_in(zoo::directory().unwrap()).unwrap();
    let mut all = BTreeMap::new();
    let cases = broken::cases(&model.gguf()).enumerate().filter(|(index, case)| wanted(*index, case));
    let cases: Vec<broken::Case> = cases.map(|(_, case)| case).collect();
    for some in cases.chunks(100) {
        let write = |(index, case): (usize, &broken::Case)| {
            let path = folder.path().join(format!("{index}.gguf"));
            fs::write(&path, &case.bytes).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let paths: Vec<String> = some.iter().enumerate().map(write).collect();
        let said = paths.iter().map(|path| ModelFile::open(path).is_ok_and(|file| file.description().loads()));
        let seen: Vec<Seen> = outcomes(&paths, folder.path()).into_iter().zip(said).collect();
        all.extend(some.iter().map(|case| case.name.clone()).zip(seen));
    }
    all
}

/// What ends the process is in the list of what may, and its header was not said to load.
fn check(name: &str, all: &BTreeMap<String, Seen>) {
    for (case, (outcome, said)) in all {
        assert!(!outcome.died() || broken::may_end_the_process(case), "{name}: {case}: {outcome:?}");
        assert!(!outcome.died() || !said, "{name}: {case}: said to load, and {outcome:?}");
    }
}

#[test]
fn what_ends_the_process_is_known() {
    for name in ["target", "eagle3"] {
        let all = survey(name, |index, case| index % 60 == 0 || broken::may_end_the_process(&case.name));
        check(name, &all);
        let died = all.values().filter(|(outcome, _)| outcome.died()).count();
        assert!(died >= 9, "{name}: {all:?}");
        assert_eq!(all["unchanged"], (Outcome::Works, true));
    }
    let folder = tempfile::tempdir().unwrap();
    let dspark = zoo::file("dspark-no-block-size").to_str().unwrap().to_owned();
    assert_ne!(outcomes(&[dspark], folder.path()), [Outcome::Works]);
}

/// The files whose names are in the variable `ZOO_BROKEN`, separated by commas; prints what ends the process.
#[test]
#[ignore = "minutes: thousands of files"]
fn survey_of_all() {
    let mut unknown = 0;
    let default = "target,mamba,eagle3,dflash,dspark,embedding-causal,vocabulary,lora,projector";
    for name in env::var("ZOO_BROKEN").as_deref().unwrap_or(default).split(',') {
        let all = survey(name, |_, _| true);
        let mut counts = BTreeMap::new();
        all.values().for_each(|outcome| *counts.entry(outcome).or_insert(0) += 1);
        println!("{name}: {counts:?}");
        for (case, (outcome, said)) in &all {
            let known = if !outcome.died() || broken::may_end_the_process(case) { "" } else { " (not in the list)" };
            if outcome.died() || (*said && *outcome != Outcome::Works) {
                println!("{outcome:?}{}: {case}{known}", if *said { ", said to load" } else { "" });
            }
            unknown += usize::from(outcome.died() && (*said || !known.is_empty()));
        }
    }
    assert_eq!(unknown, 0);
}
