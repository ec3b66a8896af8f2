//! A supervisor with workers that are played: they do what a script says, and what real ones would do only by accident.

mod bookkeeping;
mod commands;
mod fake;
mod recoveries;

use super::{Answers, Supervisor, SupervisorBuilder};
use crate::Request;
use crate::supervise::load::Load;
use crate::supervise::policy::Policy;
use crate::supervise::status::State;
use crate::supervise::task::{Finish, Problem, Task, Update};
use crate::token::Token;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for whatever happens at all.
const LONG: Duration = Duration::from_secs(60);

fn builder() -> SupervisorBuilder {
    // Pauses that a test need not wait for.
    let policy = Policy { first_pause: Duration::from_millis(5), ..Policy::default() };
    Supervisor::builder(Load::new("target.gguf")).policy(policy)
}

fn task(tokens: u32) -> Task {
    Task::text(Request::prompt("p").greedy().max_tokens(tokens))
}

/// Waits until that is so.
fn until(supervisor: &Supervisor, what: &str, is_so: impl Fn(&Supervisor) -> bool) {
    let start = Instant::now();
    while !is_so(supervisor) {
        assert!(start.elapsed() < LONG, "never {what}: {:?}", supervisor.status());
        thread::sleep(Duration::from_millis(2));
    }
}

fn until_ready(supervisor: &Supervisor) {
    until(supervisor, "ready", |supervisor| supervisor.status().state == State::Ready);
}

/// An answer as its client sees it.
#[derive(Debug, Default)]
struct Seen {
    tokens: Vec<Token>,
    text: String,
    pauses: usize,
    resumptions: usize,
    finish: Option<Box<Finish>>,
    problem: Option<Problem>,
}

impl Seen {
    /// Takes in a step, and checks that it may come now.
    fn note(&mut self, begun: &mut bool, step: Result<Update, Problem>) {
        assert!(self.finish.is_none() && self.problem.is_none(), "{step:?} after the end: {self:?}");
        match step {
            Err(problem) => self.problem = Some(problem),
            Ok(Update::Begun { .. }) => assert!(!std::mem::replace(begun, true), "begun twice"),
            Ok(Update::Finished(finish)) => self.finish = Some(finish),
            Ok(update) => {
                assert!(*begun, "{update:?} before it began");
                match update {
                    Update::Tokens(tokens) => {
                        for token in tokens {
                            self.tokens.push(token.token);
                            self.text += &token.text;
                        }
                    }
                    Update::Paused { .. } => self.pauses += 1,
                    Update::Resumed => self.resumptions += 1,
                    _ => {}
                }
                let standing_still = self.pauses - self.resumptions;
                assert!(standing_still <= 1, "{} pauses, {} resumptions", self.pauses, self.resumptions);
            }
        }
    }
}

/// All answers of a task, each as it is seen.
fn seen(answers: Answers, count: usize) -> Vec<Seen> {
    let mut all: Vec<(bool, Seen)> = (0..count).map(|_| Default::default()).collect();
    for (answer, step) in answers {
        let (begun, seen) = &mut all[answer as usize];
        seen.note(begun, step);
    }
    all.into_iter().map(|(_, seen)| seen).collect()
}

fn seen_one(answers: Answers) -> Seen {
    seen(answers, 1).remove(0)
}

/// What a played worker generates.
fn expected(tokens: usize) -> Vec<Token> {
    (0..tokens).map(fake::token_at).collect()
}
