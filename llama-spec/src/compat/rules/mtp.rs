//! Heads for multi-token prediction, in the target's file or in their own, and Gemma 4 assistants.

use super::{Facts, Found, Rule, Severity, Side, Stage, Test, show};
use crate::arch::{Architecture, MtpGraph};
use crate::file::{Kind, LayerKind};
use crate::spec::Method;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "mtp-heads",
        about: "the heads for multi-token prediction are in the file",
        applies: "draft-mtp",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "give the file with the heads as the draft, convert the model with its heads, or choose lookup drafting",
        source: "llama.cpp makes no context, or aborts on the missing tensor (src/llama-context.cpp, llama_init_from_model; the \
                 graph_mtp of src/models)",
        test: Test::One(mtp_heads),
    },
    Rule {
        code: "mtp-graph",
        about: "llama.cpp can run the heads of this architecture",
        applies: "draft-mtp",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "choose another method, such as lookup",
        source: "llama.cpp reads the heads of some architectures and has no graph for them (src/models, load_arch_tensors and \
                 build_arch_graph)",
        test: Test::One(mtp_graph),
    },
    Rule {
        code: "mtp-head-count",
        about: "an architecture with one head has one",
        applies: "draft-mtp",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the model with one head",
        source: "llama.cpp aborts when the context is made (the graph_mtp of src/models)",
        test: Test::One(mtp_head_count),
    },
    Rule {
        code: "mtp-tensors",
        about: "every head has all the tensors that its architecture runs it with",
        applies: "draft-mtp",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the model again with its heads, or choose lookup drafting",
        source: "llama.cpp aborts on the missing tensor when the context is made (the graph_mtp of src/models)",
        test: Test::One(mtp_tensors),
    },
    Rule {
        code: "mtp-latent",
        about: "heads of DeepSeek 2, DeepSeek 3.2 and GLM-DSA have latent attention",
        applies: "draft-mtp with these architectures",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert the model again, with `attention.key_length_mla`",
        source: "llama.cpp aborts when the context is made (src/models/deepseek2.cpp, deepseek32.cpp and glm-dsa.cpp, graph_mtp)",
        test: Test::One(mtp_latent),
    },
    Rule {
        code: "mtp-width",
        about: "the hidden state that the heads read is as wide as the one that the target gives",
        applies: "draft-mtp with a draft",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take the heads that were trained with this target",
        source: "llama.cpp aborts (common/speculative.cpp, common_speculative_impl_draft_mtp)",
        test: Test::One(mtp_width),
    },
    Rule {
        code: "mtp-hidden-state",
        about: "the target's architecture keeps the hidden states that the heads read",
        applies: "draft-mtp",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "choose another method, such as lookup",
        source: "llama.cpp feeds zeros or old values to the heads, which then guess wrong (src/llama-context.cpp, \
                 llama_context::decode)",
        test: Test::One(mtp_hidden_state),
    },
    Rule {
        code: "mtp-architecture",
        about: "the heads are of the target's architecture",
        applies: "draft-mtp with a draft",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take the heads that were trained with this target",
        source: "llama.cpp does not compare them: heads of another model guess wrong, and an assistant reads the memory of a \
                 target that is not gemma4 as what it is not (src/llama-kv-cache-iswa.cpp, the constructor)",
        test: Test::One(mtp_architecture),
    },
    Rule {
        code: "mtp-layers",
        about: "the heads come after as many layers as the target has",
        applies: "draft-mtp with a draft that is not an assistant",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "take the heads that were trained with this target",
        source: "llama.cpp does not compare them: heads of another model guess wrong",
        test: Test::One(mtp_layers),
    },
    Rule {
        code: "assistant-attention",
        about: "the assistant's heads read keys and values of the lengths that the target's last two layers keep",
        applies: "Gemma 4 assistants",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take the assistant that was made for this target",
        source: "llama.cpp aborts when it builds the graph (src/models/gemma4-assistant.cpp; src/llama-model.cpp, \
                 llama_model::create_memory)",
        test: Test::One(assistant_attention),
    },
    Rule {
        code: "mtp-long-chain",
        about: "the third of several heads gets the hidden state it needs",
        applies: "draft-mtp with hy_v3",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "set draft_model.max to 2",
        source: "llama.cpp keeps the hidden states of hy_v3's heads before it drops the rows without output, and then reads a wrong \
                 row: drafts are wrong from the third token on (src/models/hy-v3.cpp, graph_mtp; seen by running)",
        test: Test::One(mtp_long_chain),
    },
    Rule {
        code: "mtp-trunk-unused",
        about: "a draft that is used for its heads holds only the heads",
        applies: "draft-mtp with a draft",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "convert only the heads, to save memory",
        source: "llama.cpp loads the layers of the draft too and does not use them",
        test: Test::One(mtp_trunk_unused),
    },
];

fn place(facts: &Facts<'_>, found: Found, value: impl std::fmt::Display) -> Found {
    if facts.draft.is_some() { found.draft(value) } else { found.target(value) }
}

fn is_assistant(side: &Side<'_>) -> bool {
    side.description.kind == Kind::Gemma4Assistant
}

fn mtp_heads(facts: &Facts<'_>) -> Option<Found> {
    let heads = facts.heads()?;
    let description = heads.description;
    let there = description.mtp_layers > 0 && (description.mtp_heads || is_assistant(&heads));
    let value = match (description.mtp_layers, there) {
        (0, _) => "no heads".to_owned(),
        (count, true) => format!("{count} heads"),
        (count, false) => format!("{count} heads declared, their tensors missing"),
    };
    Some(place(facts, Found::new(there), value).says("there are no heads for multi-token prediction in the file"))
}

fn mtp_graph(facts: &Facts<'_>) -> Option<Found> {
    let heads = facts.heads()?;
    let usable = heads.architecture.is_some_and(Architecture::has_mtp);
    let found = place(facts, Found::new(usable), heads.name());
    Some(found.says(format!("llama.cpp has no graph for heads of the architecture {}", heads.name())))
}

fn mtp_head_count(facts: &Facts<'_>) -> Option<Found> {
    let heads = facts.heads()?;
    heads.architecture.filter(|row| row.mtp == MtpGraph::Single)?;
    let count = heads.description.mtp_layers;
    let found = place(facts, Found::new(count <= 1), format!("{count} heads"));
    Some(found.says(format!("the architecture {} runs one head", heads.name())))
}

fn mtp_long_chain(facts: &Facts<'_>) -> Option<Found> {
    let heads = facts.heads().filter(|heads| heads.name() == "hy_v3")?;
    let longest = facts.config.draft_model.max.min(heads.description.mtp_layers);
    let found = place(facts, Found::new(longest <= 2), format!("drafts of up to {longest} tokens"));
    Some(found.says("the third token of a draft and those after it will be wrong"))
}

fn mtp_tensors(facts: &Facts<'_>) -> Option<Found> {
    let heads = facts.heads().filter(|heads| heads.description.mtp_heads)?;
    let found = Found::new(heads.missing_head_tensor.is_none());
    Some(match heads.missing_head_tensor {
        None => found,
        Some((block, name)) => {
            place(facts, found, format!("no blk.{block}.{name}.weight")).says("a head is not complete")
        }
    })
}

fn mtp_latent(facts: &Facts<'_>) -> Option<Found> {
    let heads = facts.heads().filter(|heads| matches!(heads.name(), "deepseek2" | "deepseek32" | "glm-dsa"))?;
    let value = if heads.description.latent_attention { "latent attention" } else { "plain attention" };
    Some(
        place(facts, Found::new(heads.description.latent_attention), value)
            .says("these heads run with latent attention only"),
    )
}

fn mtp_width(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftMtp])?;
    let (target, draft) = (facts.target.description.output_width, draft.description.output_width);
    let found = Found::new(target.is_some() && target == draft).target(show(target)).draft(show(draft));
    let advice = "take the heads that were trained with this target";
    let found = found.says("the hidden states are of different widths");
    Some(match facts.draft_for(&[Method::DraftSimple]) {
        Some(_) => found.cure(format!("choose draft-simple to draft with the whole model, or {advice}")),
        None => found,
    })
}

fn mtp_hidden_state(facts: &Facts<'_>) -> Option<Found> {
    facts.heads()?;
    let row = facts.target.architecture;
    let found = Found::new(row.is_some_and(|row| row.publishes_hidden)).target(facts.target.name());
    Some(
        found.says(format!("the architecture {} does not keep the hidden states that heads read", facts.target.name())),
    )
}

fn mtp_architecture(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftMtp])?;
    let wanted = if is_assistant(&draft) { "gemma4" } else { draft.name() };
    let found = Found::new(facts.target.name() == wanted).target(facts.target.name()).draft(draft.name());
    Some(found.says(format!("these heads are for a target of the architecture {wanted}")))
}

fn mtp_layers(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftMtp]).filter(|draft| !is_assistant(draft))?;
    let (target, draft) = (facts.target.description.layers, draft.description.layers);
    let found = Found::new(target == draft).target(format!("{target} layers")).draft(format!("after {draft} layers"));
    Some(found.says("the heads were made for a model of another depth"))
}

fn assistant_attention(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftMtp]).filter(is_assistant)?.description;
    let target = facts.target.description;
    let last: Vec<LayerKind> = target.layer_kinds.iter().rev().take(2).copied().collect();
    let shape = |it: &crate::file::Description| {
        [it.key_length, it.value_length, it.key_length_swa.or(it.key_length), it.value_length_swa.or(it.value_length)]
    };
    let layers_fit = last == [LayerKind::Attention, LayerKind::SlidingWindow];
    let found = Found::new(layers_fit && shape(target) == shape(draft));
    let text = |it: &crate::file::Description| {
        let [key, value, window_key, window_value] = shape(it).map(show);
        format!("keys and values of length {key} and {value}, in the window {window_key} and {window_value}")
    };
    let layers = if layers_fit { "" } else { "; the last layers are not one with a sliding window and one without" };
    let found = found.target(format!("{}{layers}", text(target))).draft(text(draft));
    Some(found.says("the assistant cannot read what the target's last two layers keep"))
}

fn mtp_trunk_unused(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftMtp])?;
    let found = Found::new(draft.description.kind != Kind::GenerativeWithMtp).draft(draft.description.kind);
    Some(found.says("the draft is a whole model, and only its heads are used"))
}
