//! Engines of zoo models that are tried.

use crate::pairs::{Loaded, Pair};
use llama_spec::engine::EngineBuilder;
use llama_spec::spec::Method;
use llama_spec::{ContextOptions, Engine, Request};
use std::time::Duration;

pub(crate) fn context(slots: u32) -> ContextOptions {
    ContextOptions::default().length_per_slot(256).slots(slots).batch(128).micro_batch(64).threads(1)
}

/// With drafts of at most `length` tokens, and so much time that nothing is left out.
pub(crate) fn builder(pair: Pair, slots: u32, length: u32) -> EngineBuilder {
    let loaded = Loaded::new(pair);
    let builder = Engine::builder(loaded.target()).context(context(slots)).speculation(loaded.config(length));
    let builder = builder.probe_budget(Duration::from_secs(60));
    loaded.draft().into_iter().fold(builder, |builder, draft| builder.draft(draft))
}

pub(crate) const fn pair(target: &'static str, draft: &'static str, methods: &'static [Method]) -> Pair {
    Pair { target, draft: Some(draft), methods, accepted: 0 }
}

/// What most tests try.
pub(crate) const USUAL: Pair = pair("target", "draft-0.8", &[Method::NgramMod, Method::DraftSimple]);

pub(crate) fn generate(engine: &Engine) -> Vec<i32> {
    let request = Request::prompt("The quick brown fox").max_tokens(20).greedy();
    engine.generate(request).unwrap().output().unwrap().tokens.iter().map(|token| token.id()).collect()
}
