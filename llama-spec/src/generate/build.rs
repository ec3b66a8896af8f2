//! How a generator is made: contexts that fit the methods, and their drafters.

use super::Generator;
use super::engine::{Engine, Resume};
use crate::compat::Conditions;
use crate::context::{Context, ContextOptions, Role};
use crate::error::{Error, Result};
use crate::ffi::speculation::RawSpeculation;
use crate::file::Kind;
use crate::memory::Rollback;
use crate::model::Model;
use crate::spec::{Method, SpecConfig, Stats};

/// How a [`Generator`] is made.
#[derive(Debug)]
pub struct GeneratorBuilder<'m> {
    target: &'m Model,
    draft: Option<&'m Model>,
    config: Option<SpecConfig>,
    context: ContextOptions,
    draft_context: Option<ContextOptions>,
}

impl<'m> GeneratorBuilder<'m> {
    pub(super) fn new(target: &'m Model) -> Self {
        Self { target, draft: None, config: None, context: ContextOptions::default(), draft_context: None }
    }

    /// What drafts: a small model of the same vocabulary, an EAGLE-3, DFlash or DSpark draft, heads of multi-token
    /// prediction in a file of their own (loaded with [`mtp`](crate::ModelBuilder::mtp)), or a Gemma 4 assistant. The
    /// target's own heads need no draft.
    pub fn draft(mut self, draft: &'m Model) -> Self {
        self.draft = Some(draft);
        self
    }
}

impl GeneratorBuilder<'_> {
    /// The methods of speculation. Default: what the draft model is for if there is one (see [`SpecConfig::auto`]), else none.
    pub fn speculation(mut self, config: SpecConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Options of the target's context. One slot is used, whatever they say.
    pub fn context(mut self, options: ContextOptions) -> Self {
        self.context = options;
        self
    }

    /// Options of the draft's context, such as its threads. It always gets the room of the target's. Default: as the target's.
    pub fn draft_context(mut self, options: ContextOptions) -> Self {
        self.draft_context = Some(options);
        self
    }

    /// Makes the contexts and the drafters.
    ///
    /// # Errors
    /// [`Error::Incompatible`] with every rule that refuses the methods with these models and options,
    /// [`Error::Speculation`] for what only loading shows; else as [`Model::context`].
    pub fn build(self) -> Result<Generator> {
        let config = self.checked()?;
        let engine = match config.is_off() {
            true => {
                let role = Role { outputs: 1, ..Role::default() };
                let mut target = Context::with_role(self.target, &self.context.clone().slots(1), &role)?;
                let rollback = target.probe_rollback()?;
                Engine::plain(target, rollback)
            }
            false => self.speculative(&config)?,
        };
        let speculation = config.speculation();
        tracing::info!(requested = %config.names(), active = speculation.is_active(), "speculation");
        let (history, stats) = (Vec::new(), Stats::default());
        Ok(Generator { engine, config, speculation, history, dirty: false, stats })
    }

    /// The configuration, held against the rules; without one, what the draft is for.
    fn checked(&self) -> Result<SpecConfig> {
        let options = self.context.clone().slots(1);
        let mut conditions = Conditions::from(&options);
        if let Some(own) = &self.draft_context {
            conditions = conditions.draft_kv_types(own.kv_type_k, own.kv_type_v);
        }
        let (target, draft) = (self.target.file(), self.draft.map(Model::file));
        match (&self.config, draft) {
            (None, None) => Ok(SpecConfig::off()),
            (None, draft) => Ok(SpecConfig::auto_with(target, draft, &conditions)?),
            // Plain decoding asks nothing of the files.
            (Some(config), _) if config.is_off() => Ok(config.clone()),
            (Some(config), draft) => Ok(config.check(target, draft, &conditions)?),
        }
    }

    fn speculative(&self, config: &SpecConfig) -> Result<Engine> {
        let impossible = |reason: &str| Error::Speculation { method: config.names(), reason: reason.to_owned() };
        let method = self.model_method(config).map_err(|reason| impossible(&reason))?;
        let options = self.target_options(config, method);
        let role = Role { outputs: config.longest(None) + 1, ..Role::default() };
        let mut target = Context::with_role(self.target, &options, &role)?;
        let rollback = target.probe_rollback()?;
        if rollback == Rollback::None {
            return Err(impossible("the target has no memory from which rejected tokens could be taken back"));
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
        let raw = RawSpeculation::new(target, draft, config);
        let raw = raw.map_err(|failed| impossible(&failed.failure.to_string()))?;
        Ok(Engine::new(raw, rollback, draft_rollback, resume))
    }

    /// The method that drafts with a model or with heads, or why it cannot.
    fn model_method(&self, config: &SpecConfig) -> Result<Option<Method>, String> {
        match config.methods.iter().copied().find(|method| !method.is_lookup()) {
            Some(Method::DraftMtp) => heads_are_there(self.target, self.draft).map(|()| Some(Method::DraftMtp)),
            method => Ok(method),
        }
    }

    /// The target's options, with snapshots of a recurrent memory for the longest draft.
    fn target_options(&self, config: &SpecConfig, method: Option<Method>) -> ContextOptions {
        let options = self.context.clone().slots(1);
        // A recurrent draft goes back to a checkpoint, and then the target computes the accepted tokens again with it.
        let recurrent = |model: &Model| model.is_recurrent() || model.is_hybrid();
        let replays = method == Some(Method::DraftSimple) && self.draft.is_some_and(recurrent);
        let snapshots = match options.snapshots {
            _ if replays => 0,
            0 => config.longest(None).min(options.micro_batch.min(options.batch).saturating_sub(2)),
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
        if self.draft.is_some_and(is_assistant) {
            // It reads the target's memory, so whatever shapes that is the target's.
            let threads = (own.threads, own.batch_threads);
            own = options.clone();
            (own.threads, own.batch_threads) = threads;
        }
        // A block draft computes all its tokens at once, with an output for each.
        let block = matches!(method, Method::DraftDflash | Method::DraftDspark);
        let outputs = if block { config.draft_model.max.min(config.draft_max) + 1 } else { 1 };
        let micro_batch = own.micro_batch.max(outputs);
        let own = own.slots(1).length_per_slot(target.length_per_slot()).batch(target.batch_size());
        let own = own.micro_batch(micro_batch).snapshots(0).unified_kv(options.unified_kv).embeddings(None);
        let role = Role { target: Some(target), heads: method == Method::DraftMtp, outputs };
        Context::with_role(self.draft.unwrap_or(self.target), &own, &role)
    }
}

/// Heads of multi-token prediction must have been loaded.
fn heads_are_there(target: &Model, draft: Option<&Model>) -> Result<(), String> {
    let (model, name) = draft.map_or((target, "target"), |draft| (draft, "draft"));
    // All of an assistant's layers are such heads, and always loaded.
    match model.has_loaded_mtp() || is_assistant(model) {
        true => Ok(()),
        false => {
            Err(format!("the {name}'s heads for multi-token prediction were not loaded; load it with `mtp(true)`"))
        }
    }
}

/// It drafts in the memory of its target.
fn is_assistant(model: &Model) -> bool {
    model.file().kind() == Kind::Gemma4Assistant
}
