//! How a supervisor is made.

use super::core::Settings;
use super::link::Launch;
use super::{Handle, Shared, Supervisor};
use crate::error::{Error, Result};
use crate::isolate::Program;
use crate::supervise::load::Load;
use crate::supervise::policy::Policy;
use crate::supervise::process::Processes;
use crate::supervise::thread::Threads;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Options of a [`Supervisor`].
#[derive(Debug)]
pub struct SupervisorBuilder {
    load: Load,
    launch: Where,
    settings: Settings,
}

#[derive(Debug)]
enum Where {
    Process(Program),
    Thread,
    #[cfg(test)]
    Fake(Box<dyn Launch>),
}

impl SupervisorBuilder {
    pub(super) fn new(load: Load) -> Self {
        Self { load, launch: Where::Process(Program::Current), settings: Settings::default() }
    }

    /// The program that is started as a worker. Default: the one that runs; it must call [`isolate::hook`](crate::isolate::hook)
    /// or [`supervise::hook`](crate::supervise::hook()) first in its `main`.
    pub fn program(mut self, program: Program) -> Self {
        self.launch = Where::Process(program);
        self
    }

    /// The engine runs in this process. It is made anew when it breaks down, but what ends the process ends everything, and an
    /// engine that hangs keeps its memory. Better not to [accept risks](field@Load::accept_risk) then.
    pub fn in_process(mut self) -> Self {
        self.launch = Where::Thread;
        self
    }

    /// What is done when a worker breaks down.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// How long a worker may make no progress before it is taken for stuck, at least; slow engines get more, by their longest step.
    /// Default: 30 seconds.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// How long an engine that has nothing to do may go without a trial of whether it can generate. Default: 30 seconds.
    pub fn check_every(mut self, interval: Duration) -> Self {
        self.settings.check_every = interval;
        self
    }

    /// Starts it, and returns at once: [`Supervisor::first_load`] waits until it can generate.
    ///
    /// # Errors
    /// [`Error::Backend`] when a thread cannot be started. That no worker can be is told by the first load.
    pub fn start(self) -> Result<Supervisor> {
        let launch: Box<dyn Launch> = match self.launch {
            Where::Process(program) => Box::new(Processes { program }),
            Where::Thread => Box::new(Threads),
            #[cfg(test)]
            Where::Fake(launch) => launch,
        };
        let shared = Shared::new(launch, self.settings);
        let supervisor = Supervisor { handle: Arc::new(Handle(Arc::clone(&shared))) };
        supervisor.shared().core().begin(self.load, std::time::Instant::now());
        let clock = thread::Builder::new().name("llama-spec-supervisor".into()).spawn(move || shared.run());
        clock.map_err(|why| Error::Backend { reason: format!("no thread could be started: {why}") })?;
        Ok(supervisor)
    }

    #[cfg(test)]
    pub(super) fn fake(mut self, launch: impl Launch + 'static) -> Self {
        self.launch = Where::Fake(Box::new(launch));
        self
    }
}
