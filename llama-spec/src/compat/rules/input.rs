//! What goes in besides text, and what is to come out besides it.

use super::{Facts, Found, Rule, Severity, Stage, Test, show};
use crate::options::Pooling;
use crate::spec::Method;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "embeddings-off",
        about: "the context gives logits, not embeddings",
        applies: "every method",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "make a context of its own for embeddings, or switch speculation off",
        source: "llama.cpp aborts or gives no logits to verify with; pooled contexts give no hidden states \
                 (src/llama-context.cpp, llama_context::decode; llama.cpp issue 26352)",
        test: Test::One(embeddings_off),
    },
    Rule {
        code: "images-eagle3",
        about: "an EAGLE-3 draft sees every position of a prompt",
        applies: "images or sound with draft-eagle3",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "switch speculation off for requests with images, or choose another method",
        source: "llama.cpp leaves images out of the draft's memory and fails the request at the next token \
                 (common/speculative.cpp, common_speculative_impl_draft_eagle3; src/llama-batch.cpp, llama_batch_allocr::init)",
        test: Test::One(images_eagle3),
    },
    Rule {
        code: "images-positions",
        about: "the draft counts positions as the target does",
        applies: "images or sound with a draft",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "switch speculation off for requests with images, or take a draft of the target's family",
        source: "llama.cpp fails the request: positions jump after an image (src/llama-batch.cpp, llama_batch_allocr::init)",
        test: Test::One(images_positions),
    },
    Rule {
        code: "images-width",
        about: "the draft can read the embeddings of images",
        applies: "images or sound with draft-simple",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "expect fewer accepted tokens after images, or take a draft as wide as the target",
        source: "llama.cpp gives zeros to the draft in place of the image (common/speculative.cpp, \
                 common_speculative_impl_draft_simple)",
        test: Test::One(images_width),
    },
    Rule {
        code: "adapters-on-target-only",
        about: "target and draft have the same adapters",
        applies: "LoRA adapters or control vectors with a method that drafts with a model",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "expect fewer accepted tokens, or choose lookup drafting",
        source: "llama.cpp applies adapters to the target only",
        test: Test::One(adapters),
    },
];

fn embeddings_off(facts: &Facts<'_>) -> Option<Found> {
    let asked = facts.conditions.embeddings;
    let found =
        Found::new(asked.is_none())
            .target(asked.map_or("no embeddings".to_owned(), |it: Pooling| {
                format!("embeddings, pooling {it:?}").to_lowercase()
            }));
    facts.speculates().then(|| found.says("there is nothing to verify drafts with"))
}

fn images_eagle3(facts: &Facts<'_>) -> Option<Found> {
    let applies = facts.conditions.multimodal && facts.has(Method::DraftEagle3);
    applies.then(|| Found::new(false).says("an EAGLE-3 draft cannot follow images"))
}

fn images_positions(facts: &Facts<'_>) -> Option<Found> {
    let methods = [Method::DraftSimple, Method::DraftDflash, Method::DraftDspark];
    let draft = facts.draft_for(&methods).filter(|_| facts.conditions.multimodal)?;
    let (target, draft) = (facts.target.description.multi_axis_rope, draft.description.multi_axis_rope);
    let text = |several: bool| if several { "several positions of a token" } else { "one position of a token" };
    let found = Found::new(draft || !target).target(text(target)).draft(text(draft));
    Some(found.says("the draft cannot follow the positions of images"))
}

fn images_width(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftSimple]).filter(|_| facts.conditions.multimodal)?;
    let (target, draft) = (facts.target.description.width, draft.description.width);
    let found = Found::new(target == draft).target(show(target)).draft(show(draft));
    Some(found.says("the draft does not see images"))
}

fn adapters(facts: &Facts<'_>) -> Option<Found> {
    let applies = facts.conditions.adapters && facts.model_methods().next().is_some();
    applies.then(|| Found::new(false).says("the target has adapters that the draft does not have"))
}
