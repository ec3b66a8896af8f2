//! How a generator is made: contexts that fit the methods, and their drafters.

use super::Generator;
use super::engine::{Engine, Resume};
use crate::context::{Context, ContextOptions, Role};
use crate::error::{Error, Result};
use crate::ffi::speculation::RawSpeculation;
use crate::memory::Rollback;
use crate::model::Model;
use crate::spec::{Method, SpecConfig, Speculation, Stats};

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
    /// The methods of speculation. Default: the draft model if there is one, else none.
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
    /// [`Error::Speculation`] when the methods cannot be had with these models, with the reason; else as [`Model::context`].
    pub fn build(self) -> Result<Generator> {
        let default = || self.draft.map_or_else(SpecConfig::off, |draft| SpecConfig::new([method_of(draft)]));
        let config = self.config.clone().unwrap_or_else(default);
        config.validate()?;
        let engine = match config.is_off() {
            true => {
                let role = Role { outputs: 1, ..Role::default() };
                let mut target = Context::with_role(self.target, &self.context.clone().slots(1), &role)?;
                let rollback = target.probe_rollback()?;
                Engine::plain(target, rollback)
            }
            false => self.speculative(&config)?,
        };
        let speculation =
            Speculation { requested: config.methods.clone(), effective: in_order(&config.methods), reason: None };
        tracing::info!(requested = %config.names(), active = speculation.is_active(), "speculation");
        let (history, stats) = (Vec::new(), Stats::default());
        Ok(Generator { engine, config, speculation, history, dirty: false, stats })
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
        let mut methods = in_order(&config.methods).into_iter().filter(|method| !method.is_lookup());
        let method = methods.next();
        if let (Some(first), Some(second)) = (method, methods.next()) {
            return Err(format!("{first} and {second} both draft with a model, and there can be one such method"));
        }
        match (method, self.draft) {
            (None, Some(_)) => {
                let cure = "add the method it is for, or leave it out";
                Err(format!("a draft model was given, but none of the methods uses it; {cure}"))
            }
            (Some(Method::DraftMtp), draft) => heads_are_there(self.target, draft).map(|()| method),
            (Some(_), None) => Err("it needs a draft model, and none was given".into()),
            _ => Ok(method),
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
        let own = self.draft_context.clone().unwrap_or_else(|| options.clone());
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

/// Heads of multi-token prediction must be in the draft, or without one in the target, and must have been loaded.
fn heads_are_there(target: &Model, draft: Option<&Model>) -> Result<(), String> {
    let (model, name) = draft.map_or((target, "target"), |draft| (draft, "draft"));
    match model.mtp_layers() {
        0 if draft.is_none() => {
            Err("the target has no heads for multi-token prediction, and no draft model was given".into())
        }
        0 => Err("the draft model has no heads for multi-token prediction".into()),
        // All of an assistant's layers are such heads, and always loaded.
        _ if model.has_loaded_mtp() || model.architecture() == "gemma4-assistant" => Ok(()),
        _ => Err(format!("the {name}'s heads for multi-token prediction were not loaded; load it with `mtp(true)`")),
    }
}

/// The method that a draft model is for, as far as its architecture tells.
fn method_of(draft: &Model) -> Method {
    match draft.architecture().as_str() {
        "eagle3" => Method::DraftEagle3,
        "dflash" => Method::DraftDflash,
        "gemma4-assistant" => Method::DraftMtp,
        _ => Method::DraftSimple,
    }
}

/// The methods in the order in which they are asked, each once.
fn in_order(methods: &[Method]) -> Vec<Method> {
    Method::ALL.into_iter().filter(|method| methods.contains(method)).collect()
}
