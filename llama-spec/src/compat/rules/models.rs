//! What each file is, alone.

use super::{Facts, Found, Rule, Severity, Side, Stage, Test};
use crate::arch::MemoryKind;
use crate::file::{Kind, Outcome};

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "target-kind",
        about: "the target is a model that generates text token by token",
        applies: "every target",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "give the language model itself as the target",
        source: "llama.cpp fails to load the file, aborts on it, or has no memory to decode into (src/llama.cpp, \
                 llama_model_load_from_file_impl; src/llama-model.cpp, llama_model::create_memory)",
        test: Test::One(target_kind),
    },
    Rule {
        code: "target-generates",
        about: "the target's attention looks back only, its context has a memory, and its output is not pooled",
        applies: "targets that are language models",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a model for text generation",
        source: "llama.cpp decodes such a model without a memory or gives embeddings in place of logits, and goes on without \
                 speculation (src/llama-model.cpp, llama_model::create_memory; common/common.cpp, common_context_can_seq_rm)",
        test: Test::One(target_generates),
    },
    Rule {
        code: "target-defect",
        about: "the target's header has what llama.cpp needs to load it",
        applies: "every target",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert or download the target again",
        source: "llama.cpp refuses the file, or aborts (src/llama-model.cpp, llama_model_base::load_hparams; \
                 src/llama-model-loader.cpp)",
        test: Test::Many(|facts| defects(facts.target, true)),
    },
    Rule {
        code: "draft-kind",
        about: "the draft file is something that drafts",
        applies: "every draft",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "give a draft model or draft head, or leave the draft out",
        source: "llama.cpp aborts while it reads the arguments, or fails to load the file (common/speculative.cpp, \
                 common_speculative_types_from_gguf)",
        test: Test::One(draft_kind),
    },
    Rule {
        code: "draft-generates",
        about: "a plain draft's attention looks back only and its context has a memory",
        applies: "draft-simple",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "take a draft that generates text",
        source: "llama.cpp drafts nothing, or fails requests (src/llama-model.cpp, llama_model::create_memory)",
        test: Test::One(draft_generates),
    },
    Rule {
        code: "draft-defect",
        about: "the draft's header has what llama.cpp needs to load it",
        applies: "every draft",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "convert or download the draft again",
        source: "llama.cpp refuses the file, or aborts (src/llama-model.cpp, llama_model_base::load_hparams; src/models/eagle3.cpp \
                 and dflash.cpp, load_arch_hparams)",
        test: Test::Many(|facts| facts.draft.map_or_else(Vec::new, |draft| defects(draft, false))),
    },
    Rule {
        code: "same-file",
        about: "target and draft are two files",
        applies: "every draft",
        severity: Severity::Impossible,
        stage: Stage::Files,
        cure: "leave the draft out: the target's own MTP heads are used if it has them, else lookup drafting",
        source: "llama.cpp loads the weights twice and drafts at the target's own cost (common/speculative.cpp, \
                 common_speculative_init_from_params)",
        test: Test::One(same_file),
    },
    Rule {
        code: "draft-larger",
        about: "the draft is smaller than the target",
        applies: "draft-simple",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "take a smaller draft, or swap the two files",
        source: "each drafted token costs about as many bytes of memory traffic as the draft has (Leviathan et al. 2023, arXiv \
                 2211.17192, section 3.3)",
        test: Test::One(draft_larger),
    },
];

fn target_kind(facts: &Facts<'_>) -> Option<Found> {
    let description = facts.target.description;
    let kind = description.kind;
    let found = Found::new(kind.is_generative()).target(kind);
    let found = found.says(format!("the target is {kind}, which does not generate text token by token"));
    Some(match kind {
        _ if kind.is_dependent_draft() => {
            found.cure("give this file as the draft, and the model it was made for as the target")
        }
        Kind::LoraAdapter | Kind::ControlVector => {
            found.cure("give the model that it is for as the target, and load it as an adapter")
        }
        Kind::Projector => found.cure("give the language model that it belongs to as the target"),
        Kind::VocabularyOnly => found.cure("download the file with the weights"),
        Kind::Unknown => found.target(format!("{kind} (architecture {})", facts.target.name())),
        _ => found,
    })
}

/// What of a model keeps it from generating token by token.
fn obstacle(side: Side<'_>) -> Option<String> {
    let description = side.description;
    match () {
        () if side.architecture.is_some_and(|row| row.memory == MemoryKind::None) => {
            Some("no memory to decode into".into())
        }
        () if !description.causal => Some("attention in both directions".into()),
        () if description.pooling.is_some_and(|pooling| pooling > 0) => {
            Some(format!("pooled output (pooling type {})", description.pooling.unwrap_or_default()))
        }
        () => None,
    }
}

fn target_generates(facts: &Facts<'_>) -> Option<Found> {
    let applies = facts.target.description.kind.is_generative();
    applies.then(|| generates(facts.target)).map(|(found, value)| found.target(value))
}

fn draft_generates(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[crate::spec::Method::DraftSimple])?;
    let (found, value) = generates(draft);
    Some(found.draft(value))
}

fn generates(side: Side<'_>) -> (Found, String) {
    let obstacle = obstacle(side);
    let found = Found::new(obstacle.is_none()).says("the model does not generate text");
    (found, obstacle.unwrap_or_else(|| "generates".into()))
}

fn defects(side: Side<'_>, is_target: bool) -> Vec<Found> {
    let place = |found: Found, value: String| if is_target { found.target(value) } else { found.draft(value) };
    let description = side.description;
    if description.defects.is_empty() {
        return vec![place(Found::new(true), "nothing found".into())];
    }
    let failed = description.defects.iter().map(|defect| {
        let outcome = match defect.outcome {
            Outcome::Refused => "llama.cpp refuses the file",
            Outcome::Aborts => "llama.cpp aborts on it",
        };
        place(Found::new(false).says(format!("{}: {outcome}", defect.why)), defect.place.clone())
    });
    failed.collect()
}

fn draft_kind(facts: &Facts<'_>) -> Option<Found> {
    let kind = facts.draft?.description.kind;
    let found = Found::new(kind.drafts()).draft(kind).says(format!("the draft is {kind}, which does not draft"));
    Some(match kind {
        Kind::LoraAdapter | Kind::ControlVector => {
            found.cure("load it as an adapter of its model, and give a draft model or none")
        }
        Kind::Projector => found.cure("load it as the projector of its model, and give a draft model or none"),
        _ => found,
    })
}

fn same_file(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft?;
    let found = Found::new(!facts.same_file).target(facts.target.path().display()).draft(draft.path().display());
    Some(found.says("the draft is the target's own file"))
}

fn draft_larger(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[crate::spec::Method::DraftSimple])?;
    if facts.has(crate::spec::Method::DraftMtp) {
        return None;
    }
    let (target, draft) = (facts.target.description.weight_bytes, draft.description.weight_bytes);
    let found = Found::new(draft < target)
        .target(format!("{target} bytes of weights"))
        .draft(format!("{draft} bytes of weights"));
    Some(found.says("the draft is as large as the target or larger, so drafting costs more than it can save"))
}
