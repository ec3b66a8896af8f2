//! How a runner is made: contexts that fit the methods, and their drafters.

use super::chooser::Chooser;
use super::clock::Clock;
use super::fault::Faults;
use super::machine::{Machine, Resume};
use super::round::Buffers;
use super::stepwise::Stepwise;
use super::trouble::Trouble;
use super::{Counts, Runner, Seat};
use crate::compat::Conditions;
use crate::context::{Context, ContextOptions, Role};
use crate::error::{Error, Result};
use crate::ffi::speculation::{RawSpeculation, check};
use crate::ffi::status::Failed;
use crate::file::Kind;
use crate::memory::Rollback;
use crate::model::Model;
use crate::spec::{Factory, Method, Methods, SpecConfig, Stats};

/// What a [`Runner`] is made of.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) target: Model,
    pub(crate) draft: Option<Model>,
    /// The methods. Without them: what the draft model is for if there is one, else none.
    pub(crate) config: Option<SpecConfig>,
    pub(crate) context: ContextOptions,
    /// As the target's if not given.
    pub(crate) draft_context: Option<ContextOptions>,
    /// The user's drafters.
    pub(crate) own: Vec<Factory>,
    /// Models draft in the loops of llama.cpp, even where there are loops of ours. For comparisons.
    pub(crate) llama_cpp_loops: bool,
    pub(crate) faults: Faults,
    pub(crate) clock: Clock,
}

impl Setup {
    pub(crate) fn new(target: &Model) -> Self {
        Self {
            target: target.clone(),
            draft: None,
            config: None,
            context: ContextOptions::default(),
            draft_context: None,
            own: Vec::new(),
            llama_cpp_loops: false,
            faults: Faults::default(),
            clock: Clock::default(),
        }
    }

    /// Makes the contexts and the drafters.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with every rule that refuses the methods with these models and options,
    /// [`Error::Speculation`] for what only loading shows; else as [`Model::context`].
    pub(crate) fn build(&self) -> Result<Runner> {
        let config = self.checked()?;
        let mut machine = match config.methods.iter().all(|method| method.raw().is_none()) {
            true => self.plain(&config)?,
            false => self.speculative(&config)?,
        };
        machine.faults = self.faults.clone();
        let active = !config.is_off();
        tracing::info!(requested = %config.names(), own = self.own.len(), active, "speculation");
        let slots = machine.target().slots();
        let rows = machine.target().batch_size() as usize;
        let chooser = Chooser::new(
            &config,
            self.own.len(),
            self.longest(&config) as usize,
            machine.can_pause(),
            machine.can_go_on(),
        );
        Ok(Runner {
            machine,
            chooser,
            slots: (0..slots).map(|_| Seat::new(&config)).collect(),
            trouble: Trouble::new(&config, self.clock.clone()),
            outputs: self.longest(&config) + 1,
            config,
            own: self.own.clone(),
            rows,
            returned: Vec::new(),
            ended: Vec::new(),
            kept: Vec::new(),
            crowded: false,
            turn: 0,
            clock: 0,
            step_start: None,
            buffers: Buffers::default(),
            total: Stats::default(),
            counts: Counts::default(),
        })
    }

    /// The configuration, held against the rules; without one, what the draft is for.
    fn checked(&self) -> Result<SpecConfig> {
        let conditions = Conditions::of(&self.context, self.draft_context.as_ref());
        let (target, draft) = (self.target.file(), self.draft.as_ref().map(Model::file));
        match (&self.config, draft) {
            (None, None) => Ok(SpecConfig::off()),
            (None, draft) => Ok(SpecConfig::auto_with(target, draft, &conditions)?),
            // Plain decoding asks nothing of the files.
            (Some(config), _) if config.is_off() => Ok(config.clone()),
            (Some(config), draft) => Ok(config.check(target, draft, &conditions)?),
        }
    }

    /// The longest draft that anybody can make, in tokens.
    fn longest(&self, config: &SpecConfig) -> u32 {
        match self.own.is_empty() {
            true => config.longest(None),
            false => config.draft_max,
        }
    }

    /// Nothing of llama.cpp drafts.
    fn plain(&self, config: &SpecConfig) -> Result<Machine> {
        let longest = self.longest(config);
        let role = Role { outputs: longest + 1, ..Role::default() };
        let mut target = Context::with_role(&self.target, &self.target_options(longest, None), &role)?;
        let rollback = target.probe_rollback()?;
        if rollback == Rollback::None && !config.is_off() {
            return Err(no_way_back(config));
        }
        Ok(Machine::plain(target, rollback))
    }

    fn speculative(&self, config: &SpecConfig) -> Result<Machine> {
        let impossible = |reason: &str| Error::Speculation { method: config.names(), reason: reason.to_owned() };
        let method = self.model_method(config).map_err(|reason| impossible(&reason))?;
        let longest = self.longest(config);
        let options = self.target_options(longest, method);
        let role = Role { outputs: longest + 1, ..Role::default() };
        let mut target = Context::with_role(&self.target, &options, &role)?;
        let rollback = target.probe_rollback()?;
        if rollback == Rollback::None {
            return Err(no_way_back(config));
        }
        // After the trial above and before anything is decoded: this context may share the target's memory.
        let mut draft = method.map(|method| self.draft_of(method, &target, &options, config)).transpose()?;
        let draft_rollback = match (&mut draft, method) {
            // The others keep keys and values, and cannot all decode tokens alone, which the trial does.
            (Some(draft), Some(Method::DraftSimple)) => draft.probe_rollback()?,
            _ => Rollback::Partial,
        };
        if draft_rollback == Rollback::None {
            return Err(impossible("the draft model has no memory from which its guesses could be taken back"));
        }
        let resume = match method {
            Some(Method::DraftMtp) => Resume::Seeded,
            Some(Method::DraftEagle3) => Resume::Earlier,
            _ => Resume::Anywhere,
        };
        let failed = |failed: Failed| impossible(&failed.failure.to_string());
        check(&target, draft.as_ref(), config).map_err(failed)?;
        let stepwise = match (method.filter(|method| Stepwise::knows(*method)), &mut draft) {
            (Some(method), Some(draft)) if !self.llama_cpp_loops => {
                Some(Stepwise::new(method, config, &mut target, draft).map_err(failed)?)
            }
            _ => None,
        };
        let others = stepwise.as_ref().map_or(Methods::NONE, |stepwise| Methods::of(&[stepwise.method()]));
        let raw = RawSpeculation::new(target, draft, config, others).map_err(failed)?;
        Ok(Machine::new(raw, stepwise, rollback, draft_rollback, resume))
    }

    /// The method that drafts with a model or with heads, or why it cannot.
    fn model_method(&self, config: &SpecConfig) -> Result<Option<Method>, String> {
        match config.methods.iter().copied().find(|method| !method.is_lookup()) {
            Some(Method::DraftMtp) => self.heads_are_there().map(|()| Some(Method::DraftMtp)),
            method => Ok(method),
        }
    }

    /// Heads of multi-token prediction must have been loaded.
    fn heads_are_there(&self) -> Result<(), String> {
        let (model, name) = self.draft.as_ref().map_or((&self.target, "target"), |draft| (draft, "draft"));
        // All of an assistant's layers are such heads, and always loaded.
        match model.has_loaded_mtp() || is_assistant(model) {
            true => Ok(()),
            false => {
                Err(format!("the {name}'s heads for multi-token prediction were not loaded; load it with `mtp(true)`"))
            }
        }
    }

    /// The target's options, with snapshots of a recurrent memory for the longest draft.
    fn target_options(&self, longest: u32, method: Option<Method>) -> ContextOptions {
        let options = self.context.clone();
        // A recurrent draft goes back to a checkpoint, and then the target computes the accepted tokens again with it.
        let recurrent = |model: &Model| model.is_recurrent() || model.is_hybrid();
        let replays = method == Some(Method::DraftSimple) && self.draft.as_ref().is_some_and(recurrent);
        // Where slots share their cells, snapshots of one could be moved by another.
        let shared = options.unified_kv && options.slots > 1;
        let snapshots = match options.snapshots {
            _ if replays => 0,
            0 if shared => 0,
            0 => longest.min(options.micro_batch.min(options.batch).saturating_sub(2)),
            asked => asked,
        };
        options.snapshots(snapshots)
    }

    /// The context that drafts.
    fn draft_of(
        &self,
        method: Method,
        target: &Context,
        options: &ContextOptions,
        config: &SpecConfig,
    ) -> Result<Context> {
        let mut own = self.draft_context.clone().unwrap_or_else(|| options.clone());
        if self.draft.as_ref().is_some_and(is_assistant) {
            // It reads the target's memory, so whatever shapes that is the target's.
            let threads = (own.threads, own.batch_threads);
            own = options.clone();
            (own.threads, own.batch_threads) = threads;
        }
        // A block draft computes all its tokens at once, with an output for each.
        let block = matches!(method, Method::DraftDflash | Method::DraftDspark);
        let outputs = if block { config.draft_model.max.min(config.draft_max) + 1 } else { 1 };
        let micro_batch = own.micro_batch.max(outputs);
        let own = own.slots(target.slots()).length_per_slot(target.length_per_slot()).batch(target.batch_size());
        let own = own.micro_batch(micro_batch).snapshots(0).unified_kv(options.unified_kv).embeddings(None);
        let role = Role { target: Some(target), heads: method == Method::DraftMtp, outputs };
        Context::with_role(self.draft.as_ref().unwrap_or(&self.target), &own, &role)
    }
}

fn no_way_back(config: &SpecConfig) -> Error {
    let reason = "the target has no memory from which rejected tokens could be taken back".to_owned();
    Error::Speculation { method: config.names(), reason }
}

/// It drafts in the memory of its target.
fn is_assistant(model: &Model) -> bool {
    model.file().kind() == Kind::Gemma4Assistant
}
