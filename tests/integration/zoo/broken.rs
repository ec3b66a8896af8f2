//! Files with one part changed, loaded by llama.cpp in processes of their own: what it refuses, and what ends the process.

use std::{collections::BTreeMap, env, fs, path::Path};

use llama_spec::ModelFile;
use llama_spec_tests::{
    broken,
    children::{self, End},
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
    /// What the child says where nothing died.
    const SAID: [(&str, Self); 4] = [
        ("works", Self::Works),
        ("not loaded", Self::NotLoaded),
        ("no context", Self::NoContext),
        ("not decoded", Self::NotDecoded),
    ];

    fn of(end: &End) -> Self {
        match end {
            End::Said(said) => Self::SAID.iter().find(|(word, _)| word == said).map(|(_, outcome)| *outcome).unwrap(),
            End::Died { step, .. } => match step.as_str() {
                raw::MAKING_A_CONTEXT => Self::DiedInContext,
                raw::DECODING => Self::DiedDecoding,
                _ => Self::DiedLoading,
            },
        }
    }

    fn died(self) -> bool {
        matches!(self, Self::DiedLoading | Self::DiedInContext | Self::DiedDecoding)
    }
}

/// Not a test of its own: the child process of the others, which loads the files of a list.
#[test]
#[ignore = "the child process of the tests here"]
fn child() {
    for path in children::cases().unwrap_or_default() {
        children::step("loading");
        children::end(raw::attempt(Path::new(&path), children::step));
    }
}

/// Loads the files one after the other, in processes that may die.
fn outcomes(paths: &[String], folder: &Path) -> Vec<Outcome> {
    children::run("broken::child", paths, folder).unwrap().iter().map(Outcome::of).collect()
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
