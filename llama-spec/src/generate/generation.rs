//! A generation under way, driven by whoever asks for its events.

use super::{Event, Generator};
use crate::error::{Error, Result};
use crate::runner::Job;
use crate::spec::{Speculation, Stats};
use crate::token::Token;
use async_channel::Receiver;

/// A running generation: an iterator of events. Dropping it cancels; the generator can then be used for the next request.
#[derive(Debug)]
pub struct Generation<'g> {
    generator: &'g mut Generator,
    prompt: Vec<Token>,
    /// Until the first event is asked for.
    waiting: Option<Job>,
    events: Receiver<Result<Event>>,
    stats: Stats,
}

impl<'g> Generation<'g> {
    pub(super) fn new(
        generator: &'g mut Generator,
        prompt: Vec<Token>,
        job: Job,
        events: Receiver<Result<Event>>,
    ) -> Self {
        let stats = Stats { cached_tokens: generator.runner.reusable(&prompt) as u64, ..job.stats.clone() };
        Self { generator, prompt, waiting: Some(job), events, stats }
    }

    /// The numbers of this generation so far.
    pub fn stats(&self) -> &Stats {
        match self.waiting {
            Some(_) => &self.stats,
            None => self.generator.runner.seats().next().map_or(&self.stats, |(_, _, stats)| stats),
        }
    }

    /// What speculation came to, as it is now.
    pub fn speculation(&self) -> &Speculation {
        &self.generator.speculation
    }

    /// The prompt in tokens.
    pub fn prompt(&self) -> &[Token] {
        &self.prompt
    }

    fn advance(&mut self) -> Result<()> {
        let runner = &mut self.generator.runner;
        let done = match self.waiting.take() {
            Some(job) => runner.start(job),
            None => runner.step(),
        };
        self.generator.tell_ends();
        self.generator.speculation = self.generator.runner.speculation();
        if let Err(broken) = done {
            self.generator.broken = true;
            drop(self.generator.runner.take_jobs());
            return Err(Error::Context { failure: broken.0 });
        }
        // With one slot nobody takes it away but for want of memory, and then it goes on at once.
        for job in self.generator.runner.take_returned() {
            self.waiting = Some(job);
        }
        Ok(())
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Ok(event) = self.events.try_recv() {
                return Some(event);
            }
            if self.waiting.is_none() && self.generator.runner.is_idle() {
                return None;
            }
            if let Err(error) = self.advance() {
                return Some(Err(error));
            }
        }
    }
}

impl Drop for Generation<'_> {
    fn drop(&mut self) {
        if self.waiting.is_none() {
            self.generator.runner.cancel(0);
            self.generator.tell_ends();
            let stats = self.stats().clone();
            self.generator.stats.add(&stats);
        }
    }
}
