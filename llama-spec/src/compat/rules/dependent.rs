//! EAGLE-3, DFlash and DSpark drafts: they read what the target's layers compute.

use super::{Facts, Found, Rule, Severity, Side, Stage, Test, show};
use crate::spec::Method;

const METHODS: [Method; 3] = [Method::DraftEagle3, Method::DraftDflash, Method::DraftDspark];

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "target-layers",
        about: "the target's architecture keeps the inputs of its layers",
        applies: "draft-eagle3, draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "choose another method for this target, such as draft-simple or lookup",
        source: "llama.cpp aborts at the first request (src/llama-graph.cpp, llm_graph_result::set_outputs)",
        test: Test::One(target_layers),
    },
    Rule {
        code: "layer-ids",
        about: "the layers that the draft reads are layers of the target",
        applies: "draft-eagle3, draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take the draft that was trained with this target",
        source: "llama.cpp aborts (common/speculative.cpp, the constructors of the drafters; src/llama-context.cpp, \
                 set_embeddings_layer_inp)",
        test: Test::One(layer_ids),
    },
    Rule {
        code: "last-layer",
        about: "the target gives the output of its last layer to a draft that reads it",
        applies: "draft-eagle3, draft-dflash, draft-dspark with the last layer among those read",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "choose another method for this target, such as draft-simple or lookup",
        source: "llama.cpp aborts, or reads values of another width (common/speculative.cpp, the constructors of the drafters; \
                 src/llama-graph.cpp, llm_graph_result::set_outputs)",
        test: Test::One(last_layer),
    },
    Rule {
        code: "layer-count",
        about: "an EAGLE-3 draft reads three layers, the others at least one",
        applies: "draft-eagle3, draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the draft again",
        source: "llama.cpp throws or aborts (common/speculative.cpp, the constructors of the drafters)",
        test: Test::One(layer_count),
    },
    Rule {
        code: "target-width",
        about: "the target is as wide as the one that the draft was trained with",
        applies: "draft-eagle3, draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take the draft that was trained with this target",
        source: "llama.cpp aborts at the first request (common/common.cpp, common_batch::get_sub_batch)",
        test: Test::One(target_width),
    },
    Rule {
        code: "eagle3-shape",
        about: "an EAGLE-3 draft has one layer, with keys as long as values",
        applies: "draft-eagle3",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the draft again",
        source: "llama.cpp aborts when the context is made (src/models/eagle3.cpp, the decoder's graph)",
        test: Test::One(eagle3_shape),
    },
    Rule {
        code: "borrowed-width",
        about: "a draft without embeddings or output matrix of its own is as wide as the target",
        applies: "draft-eagle3, draft-dflash, draft-dspark that borrow from the target",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with embeddings and output matrix of its own, or the one that was trained with this target",
        source: "llama.cpp aborts when it builds the graph (src/models/eagle3.cpp and dflash.cpp)",
        test: Test::One(borrowed_width),
    },
    Rule {
        code: "borrowed-head",
        about: "a draft without output matrix of its own has as many tokens as the target",
        applies: "draft-eagle3, draft-dflash, draft-dspark that borrow from the target",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft with an output matrix of its own, or the one that was trained with this target",
        source: "llama.cpp reads the draft's logits as if they had its own vocabulary's size (src/llama-context.cpp, \
                 llama_context::decode; src/models/eagle3.cpp)",
        test: Test::One(borrowed_head),
    },
    Rule {
        code: "mask-token",
        about: "the draft's vocabulary has the mask token that its blocks are filled with",
        applies: "draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the draft again, or set `tokenizer.ggml.mask_token_id`",
        source: "llama.cpp aborts at the first draft (common/common.cpp, common_batch::get_sub_batch)",
        test: Test::One(mask_token),
    },
    Rule {
        code: "confidence-head",
        about: "a DSpark draft that is to stop at uncertain tokens has a head that tells how sure it is",
        applies: "draft-dspark with a least probability above 0",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "set draft_model.probability_min to 0",
        source: "llama.cpp throws (common/speculative.cpp, common_speculative_impl_draft_dflash)",
        test: Test::One(confidence_head),
    },
];

fn draft<'a>(facts: &Facts<'a>) -> Option<Side<'a>> {
    facts.draft_for(&METHODS)
}

fn target_layers(facts: &Facts<'_>) -> Option<Found> {
    draft(facts)?;
    let row = facts.target.architecture;
    let found = Found::new(row.is_some_and(|row| row.publishes_layers)).target(facts.target.name());
    Some(found.says(format!("the architecture {} does not keep the inputs of its layers", facts.target.name())))
}

fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

fn layer_ids(facts: &Facts<'_>) -> Option<Found> {
    let (ids, layers) = (&draft(facts)?.description.target_layers, i64::from(facts.target.description.layers));
    let found = Found::new(ids.iter().all(|id| (0..=layers).contains(id))).target(format!("{layers} layers"));
    Some(
        found
            .draft(format!("reads layers {}", list(ids)))
            .says("the draft reads a layer that the target does not have"),
    )
}

fn last_layer(facts: &Facts<'_>) -> Option<Found> {
    let ids = &draft(facts)?.description.target_layers;
    let target = facts.target.description;
    // Where no layers are kept there is a rule of its own.
    let row = facts.target.architecture.filter(|row| row.publishes_layers)?;
    if !ids.contains(&i64::from(target.layers)) {
        return None;
    }
    let given = match facts.has(Method::DraftEagle3) {
        // It takes the hidden state that heads read, which some architectures give in another width.
        true => row.publishes_hidden && target.output_width == target.width,
        false => row.taps_last_layer,
    };
    let found = Found::new(given).target(facts.target.name()).draft(format!("reads layers {}", list(ids)));
    Some(found.says(format!("the architecture {} does not give the output of its last layer", facts.target.name())))
}

fn layer_count(facts: &Facts<'_>) -> Option<Found> {
    let count = draft(facts)?.description.target_layers.len();
    let (right, wanted) = match facts.has(Method::DraftEagle3) {
        true => (count == 3, "three layers"),
        false => (count > 0, "at least one layer"),
    };
    Some(Found::new(right).draft(format!("{count} layers")).says(format!("such a draft reads {wanted}")))
}

fn target_width(facts: &Facts<'_>) -> Option<Found> {
    let draft = draft(facts)?.description;
    // A DFlash draft has no key for it: its own width stands for the target's.
    let wanted = if facts.has(Method::DraftEagle3) { draft.target_width } else { draft.width };
    let width = facts.target.description.width;
    let found = Found::new(width.is_some() && width == wanted).target(show(width)).draft(show(wanted));
    Some(found.says("the draft was trained with a target of another width"))
}

fn eagle3_shape(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftEagle3])?.description;
    let found = Found::new(draft.block_count == Some(1) && draft.key_length == draft.value_length);
    let (key, value) = (show(draft.key_length), show(draft.value_length));
    let found = found.draft(format!("{} layers, keys of length {key}, values of {value}", show(draft.block_count)));
    Some(found.says("llama.cpp runs EAGLE-3 drafts with one layer and keys as long as values only"))
}

fn borrowed_width(facts: &Facts<'_>) -> Option<Found> {
    let draft = draft(facts)?.description;
    if draft.own_embeddings && draft.own_head {
        return None;
    }
    let width = facts.target.description.width;
    let found = Found::new(width.is_some() && width == draft.width).target(show(width)).draft(show(draft.width));
    Some(found.says("the draft borrows the target's embeddings or output matrix, and is of another width"))
}

fn borrowed_head(facts: &Facts<'_>) -> Option<Found> {
    let draft = draft(facts).filter(|draft| !draft.description.own_head)?;
    let (target, own) = (facts.target.vocabulary(), draft.vocabulary());
    let found = Found::new(target.is_some() && target == own).target(show(target)).draft(show(own));
    Some(found.says("the draft borrows the target's output matrix, and has another number of tokens"))
}

fn mask_token(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftDflash, Method::DraftDspark])?;
    let mask = draft.description.mask_token;
    let known = mask.is_some_and(|mask| draft.vocabulary().is_none_or(|size| mask < size));
    Some(Found::new(known).draft(show(mask)).says("the draft's vocabulary has no mask token"))
}

fn confidence_head(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftDspark])?;
    let least = facts.config.draft_model.probability_min;
    if least <= 0.0 {
        return None;
    }
    let found = Found::new(draft.description.confidence_head).target(format!("draft_model.probability_min = {least}"));
    let found = found.draft(if draft.description.confidence_head { "a confidence head" } else { "no confidence head" });
    Some(found.says("the draft cannot tell how sure it is"))
}
