//! How long drafts are, and whether batches and contexts have room for them.

use super::{Facts, Found, Rule, Severity, Side, Stage, Test};
use crate::arch::MtpGraph;
use crate::context::MAX_SLOTS;
use crate::spec::{DRAFT_MAX, DraftModelSettings, Method, SpecConfig};

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "draft-length",
        about: "drafts are no longer than the draft model can make them",
        applies: "draft-mtp with several heads, draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "lower draft_model.max",
        source: "llama.cpp shortens them with a warning, or without one (common/speculative.cpp, the constructors of the drafters)",
        test: Test::One(draft_length),
    },
    Rule {
        code: "slot-count",
        about: "there are 1 to 256 slots",
        applies: "every choice of methods",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose 1 to 256 slots",
        source: "llama.cpp makes no context (src/llama-cparams.h, LLAMA_MAX_SEQ; src/llama-context.cpp, the constructor)",
        test: Test::One(slot_count),
    },
    Rule {
        code: "batch-room",
        about: "the drafts of all slots and one token each fit one batch, which is no longer than the context",
        applies: "every method",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "raise batch and context, or lower the longest draft or the number of slots",
        source: "llama.cpp aborts, or fails the requests of all slots (common/speculative.cpp, \
                 common_speculative_get_output_limits; common/common.cpp, common_batch::get_sub_batch)",
        test: Test::One(batch_room),
    },
    Rule {
        code: "block-room",
        about: "the blocks of all slots fit one micro-batch of the draft",
        applies: "draft-dflash, draft-dspark",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "raise the draft's micro-batch, or lower draft_model.max or the number of slots",
        source: "llama.cpp aborts when enough slots draft at once (src/llama-context.cpp, llama_context::decode)",
        test: Test::One(block_room),
    },
    Rule {
        code: "draft-context",
        about: "the draft's context is as long as the target's",
        applies: "every draft that is used",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "leave the draft's context out: it then is as long as the target's",
        source: "llama.cpp fails requests once the draft's context is full (common/speculative.cpp, the process functions)",
        test: Test::One(draft_context),
    },
    Rule {
        code: "draft-trained-context",
        about: "the draft was trained for texts as long as the context",
        applies: "every draft that is used",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "choose a shorter context, or expect fewer accepted tokens in long texts",
        source: "llama.cpp warns, and the draft guesses worse beyond its length (src/llama-context.cpp, the constructor)",
        test: Test::One(draft_trained_context),
    },
    Rule {
        code: "context-there",
        about: "the context has a length",
        applies: "contexts as long as the target was trained for",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose the length of the context",
        source: "llama.cpp makes no context (src/llama-context.cpp, llama_init_from_model)",
        test: Test::One(context_there),
    },
];

/// The longest draft that this model can make with the method, in tokens.
fn limit(side: &Side<'_>, method: Method) -> Option<u32> {
    /// llama.cpp's block size where the file gives none.
    const BLOCK: u32 = 16;
    let block = side.description.block_size.unwrap_or(BLOCK);
    match method {
        // A DSpark block begins with a drafted token, a DFlash block with the one sampled last.
        Method::DraftDspark if side.anchor_first => Some(block),
        Method::DraftDspark | Method::DraftDflash => Some(block.saturating_sub(1)),
        Method::DraftMtp if side.architecture.is_some_and(|row| row.mtp == MtpGraph::Chained) => {
            Some(side.description.mtp_layers)
        }
        _ => None,
    }
}

/// The limit of the draft that is used, with its method.
fn limited(facts: &Facts<'_>) -> Option<(Method, u32)> {
    let method = facts.model_methods().next()?;
    let side = if method == Method::DraftMtp { facts.heads() } else { facts.draft_for(&[method]) }?;
    Some((method, limit(&side, method)?))
}

/// The longest draft of any method.
pub(crate) fn longest(facts: &Facts<'_>) -> u32 {
    facts.config.longest(limited(facts).map(|(_, limit)| limit)).min(fitting(facts))
}

/// The longest draft in tokens: the default is shortened so that those of all slots fit one batch.
fn fitting(facts: &Facts<'_>) -> u32 {
    match facts.config.draft_max {
        DRAFT_MAX => {
            let each = (batch(facts) / u64::from(facts.conditions.slots.max(1))).saturating_sub(1);
            each.clamp(1, DRAFT_MAX.into()) as u32
        }
        asked => asked,
    }
}

/// The settings with default lengths that are too long shortened: to what the draft can make, and to what fits one batch.
pub(crate) fn clamped(facts: &Facts<'_>) -> SpecConfig {
    let mut config = facts.config.clone();
    config.draft_max = fitting(facts);
    if let Some((_, limit)) = limited(facts)
        && config.draft_model.max == DraftModelSettings::default().max
    {
        config.draft_model.max = config.draft_model.max.min(limit).max(1);
    }
    config
}

fn draft_length(facts: &Facts<'_>) -> Option<Found> {
    let (method, limit) = limited(facts)?;
    let max = facts.config.draft_model.max;
    // The default is shortened, a length that was asked for is not.
    let right = limit > 0 && (max <= limit || max == DraftModelSettings::default().max);
    let found = Found::new(right).target(format!("draft_model.max = {max}")).draft(format!("at most {limit} tokens"));
    let found = found.says(format!("{method} drafts at most {limit} tokens with this file"));
    Some(if limit > 0 { found.cure(format!("choose a value of draft_model.max from 1 to {limit}")) } else { found })
}

fn slot_count(facts: &Facts<'_>) -> Option<Found> {
    let slots = facts.conditions.slots;
    let found = Found::new((1..=MAX_SLOTS).contains(&slots)).target(format!("{slots} slots"));
    Some(found.says("the number of slots is out of its range"))
}

fn batch_room(facts: &Facts<'_>) -> Option<Found> {
    let (slots, longest) = (facts.conditions.slots, longest(facts));
    let needed = (u64::from(slots) * (u64::from(longest) + 1)).max(2);
    let batch = batch(facts);
    let found = Found::new(batch >= needed);
    let found = found.target(format!("a batch of {batch} tokens, {slots} slots, drafts of up to {longest}"));
    let found = found
        .says(format!("{needed} tokens must fit one batch"))
        .cure(format!("raise batch and context to {needed}, or lower the longest draft or the number of slots"));
    facts.speculates().then_some(found)
}

/// The most tokens of one batch: llama.cpp makes it no longer than the whole context.
fn batch(facts: &Facts<'_>) -> u64 {
    u64::from(facts.conditions.batch).min(u64::from(context(facts)) * u64::from(facts.conditions.slots))
}

fn block_room(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftDflash, Method::DraftDspark])?;
    let (_, limit) = limited(facts)?;
    let rows = match draft.whole_blocks {
        true => u64::from(draft.description.block_size.unwrap_or(limit)),
        false => u64::from(facts.config.draft_model.max.min(facts.config.draft_max).min(limit)) + 1,
    };
    let conditions = facts.conditions;
    let room = conditions.draft_micro_batch.unwrap_or(conditions.micro_batch).min(conditions.batch);
    let needed = rows * u64::from(conditions.slots);
    let found = Found::new(u64::from(room) >= needed).target(format!("{} slots", conditions.slots));
    let found = found.draft(format!("blocks of {rows} tokens, a micro-batch of {room}"));
    Some(found.says(format!("{needed} tokens must fit one micro-batch of the draft")))
}

fn context(facts: &Facts<'_>) -> u32 {
    match facts.conditions.context {
        0 => facts.target.description.trained_context.unwrap_or(0),
        context => context,
    }
}

fn draft_context(facts: &Facts<'_>) -> Option<Found> {
    facts.used_draft()?;
    let (target, draft) = (context(facts), facts.conditions.draft_context?);
    let found = Found::new(draft >= target).target(format!("{target} tokens")).draft(format!("{draft} tokens"));
    Some(found.says("the draft's context is shorter than the target's"))
}

fn draft_trained_context(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.used_draft()?;
    let (context, trained) = (context(facts), draft.description.trained_context?);
    let found = Found::new(context <= trained).target(format!("a context of {context} tokens"));
    let found = found.draft(format!("trained for {trained}"));
    Some(found.says("the draft was trained for shorter texts"))
}

fn context_there(facts: &Facts<'_>) -> Option<Found> {
    let applies = facts.conditions.context == 0 && facts.target.description.kind.is_generative();
    let length = context(facts);
    applies.then(|| Found::new(length > 0).target(length).says("the file does not say what length it was trained for"))
}
