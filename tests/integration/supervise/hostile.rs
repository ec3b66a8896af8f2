//! Drafters that do what drivers do on bad days. What they do, and in which workers, is written into the load: as a comment of its
//! chat template, which is the one text in it that goes through unchanged.

use llama_spec::Token;
use llama_spec::engine::EngineBuilder;
use llama_spec::spec::{Draft, Drafter};
use llama_spec::supervise::Load;
use std::process::abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const TEMPLATE: &str = "{% for message in messages %}{{ message['content'] }}{% endfor %}";

/// What a drafter does at its `step`-th draft, of all its texts, in the first `workers` workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) deed: Deed,
    pub(crate) step: u64,
    pub(crate) workers: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Abort,
    Hang,
    /// Takes its time for each draft from there on, and does no harm.
    Slow,
}

const DEEDS: [(&str, Deed); 3] = [("abort", Deed::Abort), ("hang", Deed::Hang), ("slow", Deed::Slow)];

impl Plan {
    /// The load with this plan in it.
    pub(crate) fn put_into(self, load: Load) -> Load {
        let (name, _) = DEEDS.iter().find(|(_, deed)| *deed == self.deed).unwrap();
        let Self { step, workers, .. } = self;
        let mut load = load;
        load.chat_template = Some(format!("{{#plan {name} {step} {workers}#}}{TEMPLATE}"));
        load
    }

    fn of(load: &Load) -> Option<Self> {
        let plan = load.chat_template.as_deref()?.strip_prefix("{#plan ")?.split("#}").next()?;
        let mut words = plan.split(' ');
        let (name, step, workers) = (words.next()?, words.next()?, words.next()?);
        let (_, deed) = DEEDS.iter().find(|(known, _)| *known == name)?;
        Some(Self { deed: *deed, step: step.parse().ok()?, workers: workers.parse().ok()? })
    }
}

/// Adds the drafter that the load asks for.
pub(crate) fn customise(engine: EngineBuilder, load: &Load, restarts: u64) -> EngineBuilder {
    match Plan::of(load).filter(|plan| restarts < plan.workers) {
        Some(plan) => {
            let steps = Arc::new(AtomicU64::new(0));
            engine.drafter(move || Hostile { plan, steps: Arc::clone(&steps) })
        }
        None => engine,
    }
}

/// Drafts nothing, so that others are asked as well.
struct Hostile {
    plan: Plan,
    steps: Arc<AtomicU64>,
}

impl Drafter for Hostile {
    fn begin(&mut self, _: &[Token]) {}

    fn extend(&mut self, _: &[Token]) {}

    fn propose(&mut self, _: usize, _: &mut Draft) {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        match self.plan.deed {
            Deed::Slow if step >= self.plan.step => thread::sleep(Duration::from_millis(2)),
            Deed::Abort if step == self.plan.step => {
                eprintln!("as planned: abort at step {step}");
                abort()
            }
            Deed::Hang if step == self.plan.step => loop {
                thread::sleep(Duration::from_secs(3600));
            },
            _ => {}
        }
    }
}
