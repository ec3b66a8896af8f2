//! All that can be had of the zoo: each target with each drafter that fits it.

use crate::pairs::{Loaded, PAIRS, Pair, context, pair};
use crate::support::Plain;
use llama_spec::spec::{Method, SpecConfig};
use llama_spec::{Engine, Request};

const SIMPLE: &[Method] = &[Method::DraftSimple];
const SEVERAL: &[Method] = &[Method::NgramMod, Method::NgramSimple, Method::DraftSimple];
const LOOKUP: &[Method] =
    &[Method::NgramSimple, Method::NgramMapK, Method::NgramMapK4v, Method::NgramMod, Method::NgramCache];

/// What is not in the table of the methods that read hidden states: small models, and every lookup on a target of its own.
const OTHERS: &[Pair] = &[
    pair("target", Some("draft-0.8"), SIMPLE, 50),
    pair("recall", Some("recall-draft-0.8"), SIMPLE, 50),
    pair("target", Some("draft-0.5"), SEVERAL, 20),
    pair("target-f16", Some("draft-0.8"), SIMPLE, 50),
    pair("gemma4", Some("draft-0.8"), SIMPLE, 50),
    pair("gemma3", Some("draft-0.8"), SIMPLE, 50),
    pair("qwen2", Some("draft-0.8"), SIMPLE, 50),
    pair("qwen3", Some("draft-0.8"), SIMPLE, 50),
    pair("qwen3moe", Some("draft-0.8"), SIMPLE, 50),
    pair("target", None, &[Method::Lookup], 0),
    pair("recall", None, &[Method::Lookup], 0),
    pair("gemma4", None, &[Method::Lookup], 0),
    pair("chained", None, &[Method::Lookup], 0),
    pair("target", None, &[Method::NgramSimple], 0),
    pair("target", None, &[Method::NgramMapK], 0),
    pair("target", None, &[Method::NgramMapK4v], 0),
    pair("target", None, &[Method::NgramMod], 0),
    pair("target", None, &[Method::NgramCache], 0),
    pair("recall", None, LOOKUP, 0),
    pair("gemma4", None, LOOKUP, 0),
    pair("gemma3", None, LOOKUP, 0),
    pair("qwen2", None, LOOKUP, 0),
    pair("qwen3", None, LOOKUP, 0),
    pair("qwen3moe", None, LOOKUP, 0),
    pair("chained", None, LOOKUP, 0),
];

/// Every target once.
pub(crate) const TARGETS: &[&str] = &[
    "target",
    "target-f16",
    "recall",
    "chat",
    "gemma4",
    "gemma3",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "mamba",
    "qwen35",
    "chained",
];

pub(crate) fn all() -> impl Iterator<Item = Pair> {
    PAIRS.iter().chain(OTHERS).copied()
}

/// One pair for each method and for each way of going back in a memory: for tests that would take too long with all.
pub(crate) fn few() -> impl Iterator<Item = Pair> {
    const NAMES: &[(&str, Option<&str>, &[Method])] = &[
        ("target", Some("draft-0.8"), SIMPLE),
        ("target", Some("draft-0.5"), SEVERAL),
        ("target", Some("eagle3"), &[Method::DraftEagle3]),
        ("recall", Some("eagle3-recall"), &[Method::DraftEagle3]),
        ("target", Some("dflash"), &[Method::DraftDflash]),
        ("target", Some("dspark"), &[Method::DraftDspark]),
        ("qwen35-mtp", None, &[Method::DraftMtp]),
        ("qwen35", None, &[Method::NgramSimple, Method::NgramMapK, Method::NgramMod]),
        ("chained-mtp", None, &[Method::DraftMtp]),
        ("gemma4", Some("gemma4-assistant"), &[Method::DraftMtp]),
        ("mamba", Some("mamba-draft-0.8"), SIMPLE),
        ("mamba", None, &[Method::NgramSimple, Method::NgramMapK, Method::NgramMod]),
        ("target", None, &[Method::NgramSimple]),
        ("target", None, &[Method::NgramMapK]),
        ("target", None, &[Method::NgramMapK4v]),
        ("target", None, &[Method::NgramCache]),
    ];
    let found = |&(target, draft, methods): &(&str, Option<&str>, &[Method])| {
        let same = |pair: &Pair| (pair.target, pair.draft, pair.methods) == (target, draft, methods);
        all().find(same).unwrap_or_else(|| panic!("{target}, {draft:?}, {methods:?} is in no table"))
    };
    NAMES.iter().map(found)
}

impl Loaded {
    /// An engine that speculates in drafts of at most `length` tokens.
    pub(crate) fn engine(&self, slots: u32, length: u32) -> Engine {
        self.engine_with(context().slots(slots), self.config(length))
    }

    pub(crate) fn engine_with(&self, context: llama_spec::ContextOptions, config: SpecConfig) -> Engine {
        let builder = Engine::builder(&self.target).context(context).speculation(config);
        let builder = self.draft.iter().fold(builder, |builder, draft| builder.draft(draft));
        builder.build().unwrap_or_else(|error| panic!("{:?}: {error}", self.pair))
    }

    /// What decodes alone.
    pub(crate) fn reference(&self) -> Plain {
        Plain::new(&self.target)
    }
}

/// Prompts of which one is longer than a micro-batch of 64 tokens and one is a single token.
pub(crate) const PROMPTS: [&str; 6] = [
    "The quick brown fox",
    "a",
    "A prompt of more than one micro-batch, so that drafters have to follow the target through several of them, and the \
     last of which is not full.",
    "0123456789",
    "The quick brown cat",
    "xyz xyz xyz xyz xyz xyz",
];

pub(crate) fn greedy(prompt: &str, tokens: u32) -> Request {
    Request::prompt(prompt).greedy().max_tokens(tokens)
}
