//! Files with one part changed, loaded by llama.cpp in processes of their own: what it refuses, and what ends the process.

use std::{
    collections::BTreeMap,
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use llama_spec_tests::{
    broken,
    zoo::{self, named},
};
use llama_sys as sys;

use crate::raw;

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Loaded,
    Refused,
    /// The process ended.
    Died,
}

const LIST: &str = "ZOO_BROKEN_LIST";

/// Not a test of its own: the child process of the others, which loads the files of a list and says after each how it went.
#[test]
#[ignore = "the child process of the tests here"]
fn child() {
    let Ok(list) = env::var(LIST) else { return };
    for path in fs::read_to_string(list).unwrap().lines() {
        println!("begin {path}");
        let c_path = raw::c_path(Path::new(path));
        let mut model = std::ptr::null_mut();
        // SAFETY: as in `raw::load`; the model is freed before the next.
        let outcome = unsafe {
            sys::lsys_log_set(None, std::ptr::null_mut(), false);
            let params = sys::llama_model_default_params();
            let status = sys::lsys_model_load(&mut c_path.as_ptr(), 1, &params, &mut model);
            sys::llama_model_free(model);
            if status == sys::LSYS_OK { "loaded" } else { "refused" }
        };
        println!("end {outcome}");
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
        for line in String::from_utf8_lossy(&child.stdout).lines() {
            match line {
                "end loaded" => outcomes.push(Outcome::Loaded),
                "end refused" => outcomes.push(Outcome::Refused),
                _ => {}
            }
        }
        if !child.status.success() {
            outcomes.push(Outcome::Died);
        }
        assert!(outcomes.len() > before, "{child:?}");
    }
    outcomes
}

/// What became of all cases of a file.
fn survey(name: &str) -> BTreeMap<String, Outcome> {
    let model = named().into_iter().find(|named| named.name == name).unwrap().model();
    let folder = tempfile::tempdir_in(zoo::directory().unwrap()).unwrap();
    let mut all = BTreeMap::new();
    let cases: Vec<broken::Case> = broken::cases(&model.gguf()).collect();
    for some in cases.chunks(100) {
        let paths: Vec<String> = some
            .iter()
            .enumerate()
            .map(|(index, case)| {
                let path = folder.path().join(format!("{index}.gguf"));
                fs::write(&path, &case.bytes).unwrap();
                path.to_str().unwrap().to_owned()
            })
            .collect();
        let outcomes = outcomes(&paths, folder.path());
        all.extend(some.iter().map(|case| case.name.clone()).zip(outcomes));
    }
    all
}

#[test]
#[ignore = "minutes: thousands of files"]
fn survey_of_all() {
    for name in env::var("ZOO_BROKEN").unwrap_or_else(|_| "eagle3".into()).split(',') {
        let all = survey(name);
        let count = |outcome| all.values().filter(|other| **other == outcome).count();
        println!(
            "{name}: {} loaded, {} refused, {} died",
            count(Outcome::Loaded),
            count(Outcome::Refused),
            count(Outcome::Died)
        );
        for (case, outcome) in all.iter().filter(|(_, outcome)| **outcome == Outcome::Died) {
            println!("{outcome:?}: {case}");
        }
    }
}
