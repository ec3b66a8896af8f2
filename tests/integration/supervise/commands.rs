//! What users ask for at run time.

use crate::hostile::{Deed, Plan};
use crate::support::{
    LONG, builder, children, drafted, greedy, is_recovering, load, read, runs, same, serving, submit, undisturbed,
    until, until_serving,
};
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::supervise::{Policy, ProblemKind, Running, State};
use llama_spec_tests::zoo;
use pollster::block_on;
use std::io::{BufRead as _, BufReader};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn the_users_load_wins_over_a_recovery() {
    let plan = Plan { deed: Deed::Abort, step: 30, workers: 2 };
    let mut policy = Policy::default();
    policy.first_pause = Duration::from_secs(3600);
    policy.longest_pause = policy.first_pause;
    let supervisor = serving(builder(plan.put_into(load("recall", 2))).policy(policy));
    let requests = [greedy("abc", 200), greedy("xyz", 200)];
    let tasks = submit(&supervisor, &requests);
    // After the second crash nothing would happen for an hour.
    until(&supervisor, "twice down", |supervisor| {
        supervisor.status().recoveries.len() == 2 && is_recovering(supervisor)
    });
    block_on(supervisor.load(load("recall", 2), Running::Finish)).unwrap();
    same(&read(tasks, |_, _| ()), &undisturbed("recall", &requests));
    assert_eq!(supervisor.status().state, State::Ready);
}

pub(crate) fn a_draft_comes_and_goes_without_a_new_process() {
    let supervisor = serving(builder(load("recall", 2)));
    let process = supervisor.status().process;
    let requests = [greedy("abc", 60), greedy("xyz", 60)];
    let expected = undisturbed("recall", &requests);
    let draft = Some(zoo::file("recall-draft-0.8"));
    let simple = SpecConfig::new([Method::DraftSimple]).fixed_length(4);
    for (draft, speculation, active) in [(draft, Some(simple.clone()), true), (None, Some(SpecConfig::off()), false)] {
        block_on(supervisor.set_draft(draft, speculation, Running::Finish)).unwrap();
        let seen = read(submit(&supervisor, &requests), |_, _| ());
        assert_eq!(same(&seen, &expected), 0);
        assert_eq!(seen[0].output.stats.drafted > 0, active, "{seen:?}");
        assert_eq!((supervisor.status().process, supervisor.status().state), (process, State::Ready));
    }
    // What does not fit is refused, and what was there goes on.
    let other = Some(zoo::file("draft-other-vocabulary"));
    let why = block_on(supervisor.set_draft(other, Some(simple), Running::Finish)).unwrap_err();
    assert_eq!(why.kind, ProblemKind::Unavailable);
    until_serving(&supervisor);
    same(&read(submit(&supervisor, &requests), |_, _| ()), &expected);
    assert_eq!(supervisor.status().requested.unwrap().draft, None);
}

pub(crate) fn nothing_is_left_after_an_unload() {
    let supervisor = serving(builder(drafted(2)));
    let process = supervisor.status().process.unwrap();
    block_on(supervisor.unload(Running::Finish)).unwrap();
    assert!(!children(process::id()).contains(&process));
    let status = supervisor.status();
    assert_eq!((status.state, status.process, status.restarts), (State::Unloaded, None, 0));
    block_on(supervisor.load(load("target", 1), Running::Finish)).unwrap();
    let seen = read(submit(&supervisor, &[greedy("abc", 5)]), |_, _| ());
    assert_eq!(seen[0].output.text, "defgh");
}

pub(crate) fn a_shutdown_lets_texts_end() {
    let plan = Plan { deed: Deed::Slow, step: 1, workers: 1 };
    let supervisor = serving(builder(plan.put_into(load("target", 2))));
    let requests = [greedy("abc", 100), greedy("xyz", 100)];
    let tasks = submit(&supervisor, &requests);
    block_on(supervisor.shutdown(LONG));
    same(&read(tasks, |_, _| ()), &undisturbed("target", &requests));
    let status = supervisor.status();
    assert_eq!((status.state, status.process, status.restarts), (State::Stopping, None, 0));
}

/// Says which process is its worker, and ends without caring for it.
pub(crate) fn dies_with_a_worker() {
    llama_spec::supervise::hook(crate::hostile::customise);
    let supervisor = serving(builder(load("target", 1)));
    println!("{}", supervisor.status().process.unwrap());
    process::exit(0);
}

pub(crate) fn a_worker_ends_with_its_parent() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = crate::roles::under_the_name("is-dropped-by-its-parent", folder.path());
    let mut parent = Command::new(path).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(parent.wait().unwrap().success());
    let worker: u32 = line.trim().parse().unwrap();
    let start = Instant::now();
    while runs(worker) {
        assert!(start.elapsed() < LONG, "the worker {worker} lives on");
        thread::sleep(Duration::from_millis(20));
    }
}
