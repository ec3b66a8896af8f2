//! Supervisors of zoo models, and what their texts must be.

use llama_spec::engine::Output;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::supervise::{Answers, Load, Policy, Problem, State, Supervisor, SupervisorBuilder, Task, Update};
use llama_spec::{ContextOptions, Engine, ModelFile, Request, SamplerOptions};
use llama_spec_tests::zoo;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

pub(crate) fn context(slots: u32) -> ContextOptions {
    ContextOptions::default().length_per_slot(1024).slots(slots).threads(1).batch(256).micro_batch(64)
}

/// This file of the zoo, without a trial, so that workers come quickly.
pub(crate) fn load(target: &str, slots: u32) -> Load {
    let mut load = Load::new(zoo::file(target));
    load.context = context(slots);
    load.probe = false;
    load.speculation = Some(SpecConfig::off());
    load
}

/// With a draft beside it.
pub(crate) fn drafted(slots: u32) -> Load {
    let mut load = load("recall", slots);
    load.draft = Some(zoo::file("recall-draft-0.8"));
    load.speculation = Some(SpecConfig::new([Method::NgramMod, Method::DraftSimple]).fixed_length(4));
    load
}

pub(crate) fn builder(load: Load) -> SupervisorBuilder {
    let mut policy = Policy::default();
    policy.first_pause = Duration::from_millis(20);
    Supervisor::builder(load).policy(policy)
}

/// A supervisor whose engine serves.
pub(crate) fn serving(builder: SupervisorBuilder) -> Supervisor {
    let supervisor = builder.start().unwrap();
    pollster::block_on(supervisor.first_load()).unwrap();
    supervisor
}

pub(crate) fn greedy(prompt: &str, tokens: u32) -> Request {
    Request::prompt(prompt).greedy().max_tokens(tokens)
}

/// Sampling in which about every second token is not the most probable one.
pub(crate) fn varied(prompt: &str, seed: u32, tokens: u32) -> Request {
    let sampler = SamplerOptions::default().top_p(1.0).min_p(0.0).temperature(4.0).seed(seed);
    Request::prompt(prompt).sampler(sampler).max_tokens(tokens)
}

pub(crate) const PROMPTS: [&str; 8] =
    ["abc", "The quick", "brown fox", "jumps", "over the", "lazy dog", "a", "xyzzy 12"];

/// What the plain target gives in this process, undisturbed.
pub(crate) fn undisturbed(target: &str, requests: &[Request]) -> Vec<Output> {
    let file = ModelFile::open(zoo::file(target)).unwrap();
    let engine = Engine::builder(file).context(context(1)).speculation(SpecConfig::off());
    let engine = engine.probe(llama_spec::probe::Probe::Off).build().unwrap();
    requests.iter().map(|request| engine.generate(request.clone()).unwrap().output().unwrap()).collect()
}

/// An answer as its client sees it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) output: Output,
    pub(crate) pauses: usize,
    pub(crate) speculation: Option<llama_spec::spec::Speculation>,
    pub(crate) problem: Option<Problem>,
}

impl Seen {
    pub(crate) fn note(&mut self, step: Result<Update, Problem>) {
        match step {
            Err(problem) => self.problem = Some(problem),
            Ok(Update::Tokens(tokens)) => {
                for token in tokens {
                    self.output.tokens.push(token.token);
                    self.output.text += &token.text;
                }
            }
            Ok(Update::Paused { .. }) => self.pauses += 1,
            Ok(Update::Finished(finish)) => {
                self.output.text += &finish.text;
                self.output.reason = Some(finish.reason);
                self.output.stats = *finish.stats;
                self.speculation = Some(finish.speculation);
            }
            Ok(_) => {}
        }
    }
}

/// Reads all answers of several tasks, each on a thread of its own. What each of them sees is looked at by `look` meanwhile.
pub(crate) fn read(tasks: Vec<Answers>, look: impl Fn(usize, &Seen) + Copy + Send + Sync) -> Vec<Seen> {
    thread::scope(|scope| {
        let readers = tasks.into_iter().enumerate().map(|(number, answers)| {
            scope.spawn(move || {
                let mut seen = Seen::default();
                for (_, step) in answers {
                    seen.note(step);
                    look(number, &seen);
                }
                seen
            })
        });
        readers.collect::<Vec<_>>().into_iter().map(|reader| reader.join().unwrap()).collect()
    })
}

pub(crate) fn submit(supervisor: &Supervisor, requests: &[Request]) -> Vec<Answers> {
    requests.iter().map(|request| supervisor.submit(Task::text(request.clone())).unwrap()).collect()
}

/// The texts are those of an undisturbed engine; how many pauses there were in all of them.
pub(crate) fn same(seen: &[Seen], expected: &[Output]) -> usize {
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(expected) {
        assert_eq!(seen.problem, None);
        assert_eq!(seen.output.text, expected.text);
        assert_eq!(seen.output.tokens, expected.tokens);
        assert_eq!(seen.output.reason, expected.reason);
        let stats = &seen.output.stats;
        assert_eq!(stats.generated_tokens, expected.stats.generated_tokens, "{seen:?}");
        assert_eq!(stats.prompt_tokens, expected.stats.prompt_tokens, "{seen:?}");
    }
    seen.iter().map(|seen| seen.pauses).sum()
}

pub(crate) fn until(supervisor: &Supervisor, what: &str, is_so: impl Fn(&Supervisor) -> bool) {
    let start = Instant::now();
    while !is_so(supervisor) {
        assert!(start.elapsed() < LONG, "never {what}: {:?}", supervisor.status());
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn until_serving(supervisor: &Supervisor) {
    until(supervisor, "serving", |supervisor| supervisor.status().state.is_serving());
}

pub(crate) fn is_recovering(supervisor: &Supervisor) -> bool {
    matches!(supervisor.status().state, State::Recovering { .. })
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{name} was not sent to {process}");
}

/// Whether this process has no child, alive or waiting to be waited for. Where that cannot be seen, it has none.
pub(crate) fn no_process_is_left() -> bool {
    let left = children(process::id());
    if !left.is_empty() {
        eprintln!("processes are left: {left:?}");
    }
    left.is_empty()
}

/// The children of a process, as Linux tells.
pub(crate) fn children(of: u32) -> BTreeSet<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return BTreeSet::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| stat(*id).is_some_and(|(_, parent)| parent == of)).collect()
}

/// Whether a process is there and not a zombie that nobody waits for.
pub(crate) fn runs(id: u32) -> bool {
    stat(id).is_some_and(|(state, _)| state != "Z")
}

/// State and parent of a process.
fn stat(id: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat")).ok()?;
    // The name before it is in brackets and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
