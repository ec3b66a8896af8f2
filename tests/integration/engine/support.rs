//! Engines of zoo models, and what their texts must be.

use llama_spec::engine::{EngineBuilder, Output};
use llama_spec::{ContextOptions, Engine, Model, Request};
use llama_spec_tests::zoo::{self, Llama};

/// Options that are fast for tiny models.
pub(crate) fn context(slots: u32) -> ContextOptions {
    ContextOptions::default().length_per_slot(512).slots(slots).threads(1).batch(256).micro_batch(64)
}

/// An engine builder for a file of the zoo.
pub(crate) fn builder(target: &str, slots: u32) -> EngineBuilder {
    let model = Model::load(zoo::file(target)).unwrap();
    Engine::builder(model).context(context(slots))
}

/// The text of the plain target, by the oracle of the zoo.
pub(crate) fn oracle(target: &Llama, model: &Model, prompt: &str, tokens: usize) -> Vec<i32> {
    let prompt: Vec<u32> = model.vocab().tokenize(prompt).unwrap().iter().map(|token| token.id() as u32).collect();
    target.continuation(&prompt, tokens).into_iter().map(|id| id as i32).collect()
}

pub(crate) fn ids(output: &Output) -> Vec<i32> {
    output.tokens.iter().map(|token| token.id()).collect()
}

/// Runs requests side by side.
pub(crate) fn together(engine: &Engine, requests: Vec<Request>) -> Vec<Output> {
    let responses: Vec<_> = requests.into_iter().map(|request| engine.generate(request).unwrap()).collect();
    responses.into_iter().map(|response| response.output().unwrap()).collect()
}
