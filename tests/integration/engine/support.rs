//! Engines of zoo models, and what their texts must be.

use llama_spec::engine::{Drafters, EngineBuilder, Output};
use llama_spec::{ContextOptions, Engine, Model, Request, SamplerOptions};
use llama_spec_tests::zoo::{self, Llama};

/// Options that are fast for tiny models.
pub(crate) fn context(slots: u32) -> ContextOptions {
    ContextOptions::default().length_per_slot(512).slots(slots).threads(1).batch(256).micro_batch(64)
}

pub(crate) fn model(target: &str) -> Model {
    Model::load(zoo::file(target)).unwrap()
}

/// An engine builder for a file of the zoo.
pub(crate) fn builder(target: &str, slots: u32) -> EngineBuilder {
    Engine::builder(model(target)).context(context(slots))
}

/// The text of the plain target, by the oracle of the zoo.
pub(crate) fn oracle(target: &Llama, model: &Model, prompt: &str, tokens: usize) -> Vec<i32> {
    let prompt: Vec<u32> = model.vocab().tokenize(prompt).unwrap().iter().map(|token| token.id() as u32).collect();
    target.continuation(&prompt, tokens).into_iter().map(|id| id as i32).collect()
}

pub(crate) fn ids(output: &Output) -> Vec<i32> {
    output.tokens.iter().map(|token| token.id()).collect()
}

/// Sampling in which about every second token is not the most probable one.
pub(crate) fn varied(seed: u32) -> SamplerOptions {
    SamplerOptions::default().top_p(1.0).min_p(0.0).temperature(4.0).seed(seed)
}

/// Runs requests side by side.
pub(crate) fn together(engine: &Engine, requests: Vec<Request>) -> Vec<Output> {
    let responses: Vec<_> = requests.into_iter().map(|request| engine.generate(request).unwrap()).collect();
    responses.into_iter().map(|response| response.output().unwrap()).collect()
}

/// Runs a request by itself.
pub(crate) fn alone(engine: &Engine, request: Request) -> Output {
    engine.generate(request).unwrap().output().unwrap()
}

/// The oracle of everything: a target that decodes one text after the other, token by token.
pub(crate) struct Plain {
    engine: Engine,
}

impl Plain {
    pub(crate) fn new(model: &Model) -> Self {
        let context = context(1).length_per_slot(1024);
        let builder = Engine::builder(model).context(context).speculation(llama_spec::spec::SpecConfig::off());
        Self { engine: builder.build().unwrap() }
    }

    /// What the request gives without speculation.
    pub(crate) fn run(&self, request: &Request) -> Output {
        let output = alone(&self.engine, request.clone().drafters(Drafters::Auto));
        assert_eq!(output.stats.drafted, 0);
        output
    }
}

/// What must be the same, whoever drafts: tokens, text, the reason of the end.
pub(crate) fn assert_same(got: &Output, expected: &Output, about: &dyn std::fmt::Debug) {
    assert_eq!(ids(got), ids(expected), "{about:?}");
    assert_eq!((&got.text, got.reason), (&expected.text, expected.reason), "{about:?}");
    assert_eq!(got.sources.len(), got.tokens.len(), "{about:?}");
}
