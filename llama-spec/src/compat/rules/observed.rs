//! What files and settings do not tell: known when the models are loaded, or after some rounds.

use super::{Facts, Found, Rule, Severity, Stage, Test};
use crate::memory::Rollback;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "target-rollback",
        about: "rejected tokens can be taken out of the target's memory, or its state copied back",
        applies: "every method, once the target's context is made",
        severity: Severity::Impossible,
        stage: Stage::Loaded,
        cure: "generate without speculation",
        source: "llama.cpp goes on without speculation (common/common.cpp, common_context_can_seq_rm)",
        test: Test::One(target_rollback),
    },
    Rule {
        code: "draft-rollback",
        about: "the draft's memory can follow the target's back",
        applies: "drafts with a context of their own, once it is made",
        severity: Severity::Impossible,
        stage: Stage::Loaded,
        cure: "take a draft with attention only, or lookup drafting",
        source: "llama.cpp aborts at the first rejected token (common/common.cpp, common_memory)",
        test: Test::One(draft_rollback),
    },
    Rule {
        code: "memory-fits",
        about: "models, caches and buffers fit the memory of their devices",
        applies: "everything, once it is loaded",
        severity: Severity::Impossible,
        stage: Stage::Loaded,
        cure: "lower the context or the slots, keep fewer layers on the GPU, or leave the draft out",
        source: "llama.cpp makes no context, or a backend aborts within a graph (src/llama-context.cpp; ggml/src)",
        test: Test::One(memory_fits),
    },
    Rule {
        code: "rounds-work",
        about: "rounds of drafting, verifying and rejecting give what plain decoding gives",
        applies: "every method, once it was tried",
        severity: Severity::Impossible,
        stage: Stage::Probe,
        cure: "try flash attention `off` and split mode `layer`, or generate without speculation",
        source: "some backends lack kernels for the shapes of a draft and abort or give wrong numbers at lengths that a short \
                 trial does not reach (llama.cpp issues 24376 and 24457)",
        test: Test::One(rounds_work),
    },
    Rule {
        code: "drafts-accepted",
        about: "some drafted tokens are accepted on a text that repeats itself",
        applies: "every method, once it was tried",
        severity: Severity::Wasteful,
        stage: Stage::Probe,
        cure: "check that the draft was trained for this target, or choose lookup drafting",
        source: "llama.cpp drafts garbage from heads of another model without a message",
        test: Test::One(drafts_accepted),
    },
];

fn target_rollback(facts: &Facts<'_>) -> Option<Found> {
    let rollback = facts.observed.target_rollback.filter(|_| facts.speculates())?;
    let found = Found::new(rollback != Rollback::None).target(format!("{rollback:?}").to_lowercase());
    Some(found.says("nothing can be taken out of the target's memory"))
}

fn draft_rollback(facts: &Facts<'_>) -> Option<Found> {
    let (target, draft) = (facts.observed.target_rollback?, facts.observed.draft_rollback?);
    facts.speculates().then_some(())?;
    let text = |rollback: Rollback| format!("{rollback:?}").to_lowercase();
    // To a checkpoint it can go back whatever the target does: what was accepted is computed again, with both.
    let found = Found::new(draft != Rollback::None).target(text(target)).draft(text(draft));
    Some(found.says("what the draft guessed wrong cannot be taken out of its memory"))
}

fn memory_fits(facts: &Facts<'_>) -> Option<Found> {
    Some(Found::new(facts.observed.fits?).says("the memory of a device is too small"))
}

fn rounds_work(facts: &Facts<'_>) -> Option<Found> {
    Some(Found::new(facts.observed.rounds_work.filter(|_| facts.speculates())?).says("a trial of some rounds failed"))
}

fn drafts_accepted(facts: &Facts<'_>) -> Option<Found> {
    Some(
        Found::new(facts.observed.drafts.filter(|_| facts.speculates())?).says("hardly any drafted token was accepted"),
    )
}
