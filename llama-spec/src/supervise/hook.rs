//! What a program adds to the engine of its workers.

use super::load::Load;
use crate::engine::EngineBuilder;
use crate::isolate;
use std::sync::OnceLock;

type Customise = dyn Fn(EngineBuilder, &Load, u64) -> EngineBuilder + Send + Sync;

static CUSTOMISE: OnceLock<Box<Customise>> = OnceLock::new();

/// As [`isolate::hook`], for programs whose engines have more than a [`Load`] can say, such as drafters of their own: in a
/// worker, `customise` is given each builder before the engine is made, with what is loaded and how many workers there were before
/// this one. To be called once, first in `main`; an engine in this process is made with it as well.
///
/// ```
/// use llama_spec::spec::{Draft, Drafter};
/// use llama_spec::{Token, supervise};
///
/// #[derive(Default)]
/// struct Again(Option<Token>);
///
/// impl Drafter for Again {
///     fn begin(&mut self, text: &[Token]) {
///         self.0 = text.last().copied();
///     }
///     fn extend(&mut self, tokens: &[Token]) {
///         self.0 = tokens.last().copied();
///     }
///     fn propose(&mut self, _limit: usize, draft: &mut Draft) {
///         self.0.iter().for_each(|token| draft.push(*token));
///     }
/// }
///
/// supervise::hook(|engine, _load, restarts| if restarts == 0 { engine.drafter(Again::default) } else { engine });
/// ```
pub fn hook(customise: impl Fn(EngineBuilder, &Load, u64) -> EngineBuilder + Send + Sync + 'static) {
    // What was said first holds, as documented.
    drop(CUSTOMISE.set(Box::new(customise)));
    isolate::hook();
}

/// The builder with what the program adds.
pub(super) fn customised(builder: EngineBuilder, load: &Load, restarts: u64) -> EngineBuilder {
    match CUSTOMISE.get() {
        Some(customise) => customise(builder, load, restarts),
        None => builder,
    }
}
