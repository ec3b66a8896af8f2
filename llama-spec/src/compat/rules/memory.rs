//! How rejected tokens are taken out of the memories again.

use super::{Facts, Found, Rule, Severity, Side, Stage, Test};
use crate::arch::MemoryKind;
use crate::spec::Method;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "draft-recurrent",
        about: "what a plain draft guessed wrong can be taken out of its memory without a copy of its state",
        applies: "draft-simple",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "take a draft with attention only, or expect less from it",
        source: "llama.cpp's programs abort at the first rejected token unless the target keeps copies too (common/common.cpp, \
                 common_memory; src/llama-memory-recurrent.cpp, llama_memory_recurrent::seq_rm); this library copies both states",
        test: Test::One(draft_recurrent),
    },
    Rule {
        code: "checkpoints",
        about: "rejected tokens can be taken out of the target's memory without a copy of its state",
        applies: "every method",
        severity: Severity::Wasteful,
        stage: Stage::Files,
        cure: "expect less from speculation with this target, or generate without",
        source: "llama.cpp copies the whole state before each draft and computes accepted tokens again after a rejection \
                 (src/llama-arch.cpp, llm_arch_supports_rs_rollback; common/common.cpp, common_context_can_seq_rm)",
        test: Test::One(checkpoints),
    },
    Rule {
        code: "snapshots",
        about: "there are as many snapshots of a recurrent state as the longest draft has tokens",
        applies: "targets with snapshots, when their number is set",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "leave the number of snapshots out, or lower the longest draft",
        source: "llama.cpp refuses to go further back, and then aborts (src/llama-memory-recurrent.cpp; common/common.cpp, \
                 common_memory)",
        test: Test::One(snapshots),
    },
    Rule {
        code: "snapshot-room",
        about: "the micro-batch is longer than the snapshots and one token",
        applies: "targets with snapshots, when their number is set",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "raise the micro-batch, or lower the longest draft",
        source: "llama.cpp aborts at the first decode (src/llama-batch.cpp, llama_batch_allocr::split_equal)",
        test: Test::One(snapshot_room),
    },
    Rule {
        code: "window-room",
        about: "a whole draft and one token fit one micro-batch of a target that keeps only its window",
        applies: "targets with sliding windows that are not kept in full",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "raise the micro-batch, or keep the whole context in sliding-window layers",
        source: "the window has one micro-batch of spare room, and what left it cannot be had back \
                 (src/llama-kv-cache-iswa.cpp, the constructor)",
        test: Test::One(window_room),
    },
    Rule {
        code: "shift-possible",
        about: "positions can be shifted in the memories of target and draft",
        applies: "context shift",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "switch the context shift off",
        source: "llama.cpp aborts for the draft, and its server looks at the target only (src/llama-kv-cache.cpp, \
                 llama_kv_cache::update and get_can_shift)",
        test: Test::One(shift_possible),
    },
    Rule {
        code: "shift-eagle3",
        about: "an EAGLE-3 draft is not shifted",
        applies: "context shift with draft-eagle3",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "switch the context shift off",
        source: "the drafter keeps a position of its own that is not shifted, so that requests fail (common/speculative.cpp, \
                 common_speculative_impl_draft_eagle3)",
        test: Test::One(shift_eagle3),
    },
];

/// Whether its memory holds a state that cannot be taken apart by tokens.
fn has_state(side: &Side<'_>) -> bool {
    side.architecture.is_some_and(|row| matches!(row.memory, MemoryKind::Recurrent | MemoryKind::Hybrid))
}

fn has_snapshots(side: &Side<'_>) -> bool {
    side.architecture.is_some_and(|row| row.snapshots)
}

fn memory(side: &Side<'_>) -> &'static str {
    match side.architecture.map(|row| (row.memory, row.snapshots)) {
        Some((MemoryKind::Recurrent, _)) => "a recurrent state",
        Some((MemoryKind::Hybrid, true)) => "attention and recurrent states with snapshots",
        Some((MemoryKind::Hybrid, false)) => "attention and recurrent states",
        Some((MemoryKind::Attention, _)) => "attention",
        Some((MemoryKind::None, _)) | None => "none",
    }
}

fn draft_recurrent(facts: &Facts<'_>) -> Option<Found> {
    let draft = facts.draft_for(&[Method::DraftSimple]).filter(|_| facts.has(Method::DraftSimple))?;
    let found = Found::new(!has_state(&draft)).target(memory(&facts.target)).draft(memory(&draft));
    Some(found.says("the states of draft and target are copied before each draft"))
}

fn checkpoints(facts: &Facts<'_>) -> Option<Found> {
    let found = Found::new(!has_state(&facts.target) || has_snapshots(&facts.target)).target(memory(&facts.target));
    facts.speculates().then(|| found.says("the target's state is copied before each draft"))
}

fn snapshots(facts: &Facts<'_>) -> Option<Found> {
    let count = facts.conditions.snapshots.filter(|_| facts.speculates() && has_snapshots(&facts.target))?;
    let longest = super::lengths::longest(facts);
    let found = Found::new(count >= longest).target(format!("{count} snapshots, drafts of up to {longest} tokens"));
    Some(found.says("a draft can be longer than the snapshots go back"))
}

fn snapshot_room(facts: &Facts<'_>) -> Option<Found> {
    if !facts.speculates() || !has_snapshots(&facts.target) {
        return None;
    }
    // Where their number is not set and there is no room for them, states are copied instead.
    let count = facts.conditions.snapshots?;
    let room = facts.conditions.effective_micro_batch();
    let found = Found::new(u64::from(room) > u64::from(count) + 1);
    let found = found.target(format!("a micro-batch of {room} tokens, {count} snapshots"));
    Some(found.says(format!("{count} snapshots need a micro-batch of at least {} tokens", u64::from(count) + 2)))
}

fn window_room(facts: &Facts<'_>) -> Option<Found> {
    facts.target.description.sliding_window.filter(|_| facts.speculates() && !facts.conditions.full_sliding_window)?;
    let (room, longest) = (facts.conditions.effective_micro_batch(), super::lengths::longest(facts));
    let found = Found::new(room > longest).target(format!("a micro-batch of {room} tokens, drafts of up to {longest}"));
    Some(found.says("a draft can push tokens out of the window that are needed after a rejection"))
}

fn shifts(facts: &Facts<'_>, side: &Side<'_>) -> Result<(), &'static str> {
    match side.name() {
        _ if side.description.multi_axis_rope => Err("positions with several components"),
        "step35" => Err("rotary embeddings that differ by layer"),
        "deepseek4" | "deepseek41" => Err("compressed memory"),
        _ if side.description.sliding_window.is_some() && !facts.conditions.full_sliding_window => {
            Err("a sliding window")
        }
        _ => Ok(()),
    }
}

fn shift_possible(facts: &Facts<'_>) -> Option<Found> {
    if !facts.conditions.context_shift || !facts.speculates() {
        return None;
    }
    let target = shifts(facts, &facts.target);
    let draft = facts.used_draft().map(|draft| shifts(facts, &draft));
    let text = |it: Result<(), &'static str>| it.err().unwrap_or("can be shifted");
    let found = Found::new(target.is_ok() && draft.is_none_or(|it| it.is_ok())).target(text(target));
    let found = found.says("the positions in a memory cannot be shifted");
    Some(match draft {
        Some(draft) => found.draft(text(draft)),
        None => found,
    })
}

fn shift_eagle3(facts: &Facts<'_>) -> Option<Found> {
    let applies = facts.conditions.context_shift && facts.has(Method::DraftEagle3);
    applies.then(|| Found::new(false).says("an EAGLE-3 draft loses its place when positions are shifted"))
}
