//! What is tried: files of the zoo and methods that go together.

use crate::lengths::config;
use llama_spec::file::Kind;
use llama_spec::spec::{Method, SpecConfig, Stats};
use llama_spec::{ContextOptions, Event, GenerateOptions, Generator, Model};
use llama_spec_tests::zoo;

/// A target, what drafts for it, and how much of it must be accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) target: &'static str,
    /// None for lookup methods and the target's own heads.
    pub(crate) draft: Option<&'static str>,
    pub(crate) methods: &'static [Method],
    /// The least share of the drafted tokens, for drafts of three, in percent.
    pub(crate) accepted: u64,
}

pub(crate) const fn pair(
    target: &'static str,
    draft: Option<&'static str>,
    methods: &'static [Method],
    accepted: u64,
) -> Pair {
    Pair { target, draft, methods, accepted }
}

const LOOKUP: &[Method] = &[Method::NgramSimple, Method::NgramMapK, Method::NgramMod];
const EAGLE3: &[Method] = &[Method::DraftEagle3];
const DFLASH: &[Method] = &[Method::DraftDflash];
const DSPARK: &[Method] = &[Method::DraftDspark];
const MTP: &[Method] = &[Method::DraftMtp];
const SIMPLE: &[Method] = &[Method::DraftSimple];

/// All that works.
pub(crate) const PAIRS: &[Pair] = &[
    pair("target", Some("eagle3"), EAGLE3, 50),
    pair("target", Some("eagle3-borrowing"), EAGLE3, 50),
    pair("target", Some("eagle3-reduced"), EAGLE3, 50),
    pair("target", Some("eagle3-narrow"), EAGLE3, 50),
    pair("recall", Some("eagle3-recall"), EAGLE3, 15),
    pair("target", Some("dflash"), DFLASH, 50),
    pair("target", Some("dflash-borrowing"), DFLASH, 50),
    pair("target", Some("dflash-reduced"), DFLASH, 50),
    pair("target", Some("dflash2"), DFLASH, 50),
    pair("target", Some("dspark"), DSPARK, 50),
    pair("target", Some("dspark-in-place"), DSPARK, 50),
    pair("target", Some("eagle3"), &[Method::NgramMod, Method::DraftEagle3], 50),
    pair("target", Some("dflash"), &[Method::NgramSimple, Method::DraftDflash], 50),
    // Heads on the target's hidden states: one head, several in a chain, in the target's file or one of their own.
    pair("qwen35-mtp", None, MTP, 50),
    pair("qwen35", Some("qwen35-mtp-head"), MTP, 50),
    pair("qwen35", Some("qwen35-mtp"), MTP, 50),
    pair("chained-mtp", None, MTP, 40),
    pair("chained", Some("chained-mtp-heads"), MTP, 40),
    pair("hy-v3-mtp", None, MTP, 40),
    // An assistant in the target's own memory.
    pair("gemma4", Some("gemma4-assistant"), MTP, 50),
    pair("gemma4", Some("gemma4-assistant"), &[Method::NgramSimple, Method::DraftMtp], 30),
    // A hybrid target goes back by snapshots, as far as the longest draft of all methods reaches.
    pair("qwen35", None, LOOKUP, 0),
    pair("qwen35-mtp", None, &[Method::NgramMod, Method::DraftMtp], 30),
    // With a hybrid draft, both go back to a checkpoint.
    pair("qwen35", Some("qwen35-mtp"), SIMPLE, 99),
    pair("qwen35", Some("mamba"), SIMPLE, 0),
    // Recurrent targets go back to a checkpoint, recurrent drafts as well.
    pair("mamba", None, LOOKUP, 0),
    pair("mamba", Some("mamba-draft-0.8"), SIMPLE, 50),
    pair("mamba", Some("mamba-draft-0.8"), &[Method::NgramMod, Method::DraftSimple], 30),
    // Models that do not agree: nearly everything is rejected.
    pair("mamba", Some("draft-0.8"), SIMPLE, 0),
    pair("target", Some("mamba"), SIMPLE, 0),
];

/// The loaded models of a pair.
pub(crate) struct Loaded {
    pub(crate) pair: Pair,
    pub(crate) target: Model,
    pub(crate) draft: Option<Model>,
}

impl Loaded {
    pub(crate) fn new(pair: Pair) -> Self {
        let heads = pair.methods.contains(&Method::DraftMtp);
        let load = |name: &str| Model::builder(zoo::file(name)).mtp(heads).load().unwrap_or_else(|e| panic!("{e}"));
        Self { pair, target: load(pair.target), draft: pair.draft.map(load) }
    }

    /// Speculates in drafts of at most `length` tokens.
    pub(crate) fn generator(&self, length: u32) -> Generator {
        self.with(length, context())
    }

    pub(crate) fn with(&self, length: u32, context: ContextOptions) -> Generator {
        let builder = Generator::builder(self.target()).context(context).speculation(self.config(length));
        let builder = self.draft().into_iter().fold(builder, |builder, draft| builder.draft(draft));
        builder.build().unwrap_or_else(|error| panic!("{:?}: {error}", self.pair))
    }

    /// With drafts of at most `length` tokens, or of as many as the file can draft.
    pub(crate) fn config(&self, length: u32) -> SpecConfig {
        let mut config = config(self.pair.methods, length);
        let file = self.draft.as_ref().unwrap_or(&self.target).file();
        let facts = file.description();
        let most = match facts.kind {
            Kind::Dflash | Kind::Dflash2 | Kind::Dspark => facts.block_size.map(|block| block - 1),
            Kind::Gemma4Assistant => None,
            _ => Some(facts.mtp_layers).filter(|heads| *heads > 1),
        };
        config.draft_model.max = most.map_or(length, |most| most.min(length));
        config
    }

    pub(crate) fn target(&self) -> &Model {
        &self.target
    }

    pub(crate) fn draft(&self) -> Option<&Model> {
        self.draft.as_ref()
    }

    /// Decodes without speculation.
    pub(crate) fn plain(&self) -> Generator {
        Generator::builder(&self.target).context(context()).build().unwrap()
    }
}

pub(crate) fn context() -> ContextOptions {
    ContextOptions::default().length_per_slot(1024).batch(256).micro_batch(64).threads(1)
}

pub(crate) fn greedy(tokens: u32) -> GenerateOptions {
    GenerateOptions::greedy().max_tokens(tokens)
}

/// The tokens of an answer and its numbers; speculation must still be what it was.
pub(crate) fn run(generator: &mut Generator, prompt: &str, options: GenerateOptions) -> (Vec<i32>, Stats) {
    let mut generation = generator.generate(prompt, options).unwrap();
    let mut tokens = Vec::new();
    for event in generation.by_ref() {
        if let Event::Token { token, .. } = event.unwrap() {
            tokens.push(token.id());
        }
    }
    let stats = generation.stats().clone();
    drop(generation);
    assert_eq!(generator.speculation().reason, None, "speculation broke down on the way");
    (tokens, stats)
}
