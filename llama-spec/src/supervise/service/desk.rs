//! Work that what clients send can make long: templates, grammars, schemas, tokenizers.
//!
//! A few threads do it, each for one at a time. Whoever takes too long is answered without it, and another thread takes the place
//! of the one that is lost; a thread cannot be ended from outside, so only so many may be lost.

use super::claim::Claim;
use crate::supervise::task::{Problem, ProblemKind};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that work.
const THREADS: usize = 2;
/// Threads that may be lost before there is no point in going on.
const MOST_LOST: usize = 16;

/// One piece of work. It answers by itself unless its claim is taken.
pub(super) struct Work {
    pub(super) claim: Claim,
    pub(super) run: Box<dyn FnOnce() + Send>,
    /// Says what became of it where `run` could not.
    pub(super) refuse: Box<dyn FnOnce(Problem) + Send>,
}

/// The threads and what waits for them. Dropping it lets them end.
pub(super) struct Desk(Arc<Shared>);

struct Shared {
    longest: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Instant, Work)>,
    running: Vec<Running>,
    threads: usize,
    lost: usize,
    /// Counts what was begun.
    begun: u64,
    closed: bool,
}

struct Running {
    number: u64,
    since: Instant,
    claim: Claim,
    refuse: Box<dyn FnOnce(Problem) + Send>,
}

impl Desk {
    /// Work that may take so long.
    pub(super) fn new(longest: Duration) -> Self {
        Self(Arc::new(Shared { longest, state: Mutex::default(), changed: Condvar::new() }))
    }

    pub(super) fn post(&self, work: Work) {
        let mut state = self.0.lock();
        state.waiting.push_back((Instant::now(), work));
        self.hire(&mut state);
        drop(state);
        self.0.changed.notify_one();
    }

    pub(super) fn is_idle(&self) -> bool {
        let state = self.0.lock();
        state.waiting.is_empty() && state.running.is_empty()
    }

    /// Gives up what takes too long. The error says that too much was given up to go on.
    pub(super) fn watch(&self) -> Result<(), String> {
        let longest = self.0.longest;
        let mut state = self.0.lock();
        let late = state.running.extract_if(.., |running| running.since.elapsed() > longest).collect::<Vec<_>>();
        state.threads -= late.len();
        state.lost += late.len();
        // Those that wait have their turn within that time, or all threads are busy with what takes long.
        let mut stuck = Vec::new();
        while state.waiting.front().is_some_and(|(since, _)| since.elapsed() > longest * 2) {
            stuck.extend(state.waiting.pop_front());
        }
        if !state.waiting.is_empty() {
            self.hire(&mut state);
        }
        let lost = state.lost;
        drop(state);
        for running in late.into_iter().filter(|running| running.claim.take()) {
            let message =
                format!("this took longer than {longest:?} to prepare: use a simpler grammar, schema or text");
            (running.refuse)(Problem::new(ProblemKind::Invalid, message));
        }
        for (_, work) in stuck.into_iter().filter(|(_, work)| work.claim.take()) {
            (work.refuse)(Problem::new(ProblemKind::Busy, "too much is being prepared; try again later"));
        }
        match lost > MOST_LOST {
            true => Err(format!("{lost} requests could not be prepared in time and still occupy threads")),
            false => Ok(()),
        }
    }

    fn hire(&self, state: &mut State) {
        while state.threads < THREADS {
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("llama-spec prepare".into()).spawn(move || shared.work());
            match thread {
                Ok(_) => state.threads += 1,
                Err(error) => {
                    tracing::error!(%error, "no thread to prepare requests");
                    return;
                }
            }
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            let Some((_, work)) = state.waiting.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if work.claim.is_taken() {
                continue;
            }
            state.begun += 1;
            let number = state.begun;
            let Work { claim, run, refuse } = work;
            state.running.push(Running { number, since: Instant::now(), claim, refuse });
            drop(state);
            let done = catch_unwind(AssertUnwindSafe(run));
            state = self.lock();
            let Some(place) = state.running.iter().position(|running| running.number == number) else {
                // Given up meanwhile: another thread has this one's place.
                state.lost -= 1;
                return;
            };
            let running = state.running.swap_remove(place);
            if done.is_err() && running.claim.take() {
                drop(state);
                (running.refuse)(Problem::failed("preparing this failed in a way it should not have"));
                state = self.lock();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// What became of a piece of work that waits for `until`.
    fn work(told: &mpsc::Sender<(u32, Option<ProblemKind>)>, number: u32, until: Option<mpsc::Receiver<()>>) -> Work {
        let (claim, told, refused) = (Claim::default(), told.clone(), told.clone());
        let mine = claim.clone();
        let run = move || {
            if let Some(until) = until {
                until.recv().unwrap();
            }
            if mine.take() {
                told.send((number, None)).unwrap();
            }
        };
        let refuse = move |problem: Problem| refused.send((number, Some(problem.kind))).unwrap();
        Work { claim, run: Box::new(run), refuse: Box::new(refuse) }
    }

    #[test]
    fn what_takes_too_long_is_refused_and_holds_up_nobody() {
        let desk = Desk::new(Duration::from_millis(50));
        let (told, heard) = mpsc::channel();
        let mut open = Vec::new();
        for number in 0..3 * THREADS as u32 {
            let (hold, held) = mpsc::channel();
            open.push(hold);
            desk.post(work(&told, number, Some(held)));
        }
        desk.post(work(&told, 99, None));
        let mut outcomes = Vec::new();
        let start = Instant::now();
        while outcomes.len() <= open.len() {
            assert!(start.elapsed() < Duration::from_secs(60), "{outcomes:?}");
            assert_eq!(desk.watch(), Ok(()));
            outcomes.extend(heard.recv_timeout(Duration::from_millis(5)));
        }
        for (number, problem) in outcomes {
            let refused = matches!(problem, Some(ProblemKind::Invalid | ProblemKind::Busy));
            // On a busy machine the short one may have to wait for too long as well.
            assert!(refused || number == 99, "{number}: {problem:?}");
        }
        // When they end after all, nobody hears of it, and their threads are no longer counted as lost.
        drop(told);
        for hold in open {
            _ = hold.send(());
        }
        while desk.0.lock().lost > 0 {
            assert!(start.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(5));
        }
        assert!(desk.is_idle() && heard.try_recv().is_err());
    }

    #[test]
    fn a_panic_is_told_and_survived() {
        let desk = Desk::new(Duration::from_secs(60));
        let (told, heard) = mpsc::channel();
        for number in 0..5 {
            let panics = Work { run: Box::new(|| panic!("a test of panics")), ..work(&told, number, None) };
            desk.post(panics);
        }
        desk.post(work(&told, 5, None));
        let mut outcomes: Vec<_> = heard.iter().take(6).collect();
        outcomes.sort_unstable_by_key(|(number, _)| *number);
        let failed = (0..5).map(|number| (number, Some(ProblemKind::Failed)));
        assert_eq!(outcomes, failed.chain([(5, None)]).collect::<Vec<_>>());
    }

    #[test]
    fn too_many_lost_threads_are_told() {
        let desk = Desk::new(Duration::from_millis(2));
        let (told, _heard) = mpsc::channel();
        let mut open = Vec::new();
        let start = Instant::now();
        while desk.watch().is_ok() {
            assert!(start.elapsed() < Duration::from_secs(60));
            let (hold, held) = mpsc::channel();
            open.push(hold);
            desk.post(work(&told, 0, Some(held)));
            thread::sleep(Duration::from_millis(1));
        }
        assert!(open.len() > MOST_LOST);
    }
}
