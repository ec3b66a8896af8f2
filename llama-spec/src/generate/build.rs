//! How a generator is made.

use super::Generator;
use crate::context::ContextOptions;
use crate::error::Result;
use crate::lookup::Store;
use crate::model::Model;
use crate::runner::Setup;
use crate::spec::{Method, SpecConfig, Stats};

/// How a [`Generator`] is made.
#[derive(Debug)]
pub struct GeneratorBuilder {
    setup: Setup,
    store: Option<Store>,
}

impl GeneratorBuilder {
    pub(super) fn new(target: &Model) -> Self {
        Self { setup: Setup::new(target), store: None }
    }

    /// What drafts: a small model of the same vocabulary, an EAGLE-3, DFlash or DSpark draft, heads of multi-token
    /// prediction in a file of their own (loaded with [`mtp`](crate::ModelBuilder::mtp)), or a Gemma 4 assistant. The
    /// target's own heads need no draft.
    pub fn draft(mut self, draft: &Model) -> Self {
        self.setup.draft = Some(draft.clone());
        self
    }

    /// The methods of speculation. Default: what the draft model is for if there is one (see [`SpecConfig::auto`]), else none.
    pub fn speculation(mut self, config: SpecConfig) -> Self {
        self.setup.config = Some(config);
        self
    }

    /// Options of the target's context. One slot is used, whatever they say.
    pub fn context(mut self, options: ContextOptions) -> Self {
        self.setup.context = options;
        self
    }

    /// Options of the draft's context, such as its threads. It always gets the room of the target's. Default: as the target's.
    pub fn draft_context(mut self, options: ContextOptions) -> Self {
        self.setup.draft_context = Some(options);
        self
    }

    /// Keeps the texts of all generations, under the tenant `""`, for [`Method::Lookup`] to draft from; see
    /// [`EngineBuilder::lookup_store`](crate::EngineBuilder::lookup_store). Default: none is kept.
    pub fn lookup_store(mut self, store: Store) -> Self {
        self.store = Some(store);
        self
    }

    /// Lets models and heads draft in the loops of llama.cpp instead of ours: for the bench that compares them.
    #[doc(hidden)]
    pub fn llama_cpp_loops(mut self) -> Self {
        self.setup.llama_cpp_loops = true;
        self
    }

    /// Makes the contexts and the drafters.
    ///
    /// # Errors
    /// [`Error::Incompatible`](crate::Error::Incompatible) with every rule that refuses the methods with these models and
    /// options, [`Error::Speculation`](crate::Error::Speculation) for what only loading shows; else as [`Model::context`].
    pub fn build(mut self) -> Result<Generator> {
        self.setup.context.slots = 1;
        let runner = self.setup.build()?;
        let speculation = runner.speculation();
        let store = self.store.filter(|_| runner.config().methods.contains(&Method::Lookup));
        Ok(Generator { runner, speculation, store, stats: Stats::default(), broken: false })
    }
}
