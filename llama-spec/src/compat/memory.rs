//! How much memory target, draft and caches take, from headers and settings.

use super::Facts;
use crate::file::{Description, Kind};
use crate::options::KvType;
use crate::spec::Method;
use serde::{Deserialize, Serialize};

/// Estimated bytes of memory. Buffers for computing are not counted; they depend on the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryEstimate {
    /// The target's weights.
    pub target_weights: u64,
    /// The draft's weights.
    pub draft_weights: u64,
    /// Caches and states of the target, over all slots.
    pub target_cache: u64,
    /// Caches and states of the draft, over all slots.
    pub draft_cache: u64,
    /// All of it.
    pub total: u64,
}

impl MemoryEstimate {
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let conditions = facts.conditions;
        let target = facts.target.description;
        let context = match conditions.context {
            0 => target.trained_context.unwrap_or(0),
            context => context,
        };
        let draft_context = conditions.draft_context.unwrap_or(context);
        let target_types = [conditions.kv_type_k, conditions.kv_type_v];
        let draft_types = [conditions.draft_kv_type_k, conditions.draft_kv_type_v];
        let copies = match (facts.target.architecture, facts.speculates()) {
            (Some(row), true) if row.snapshots => 1 + u64::from(super::rules::longest_draft(facts)),
            _ => 1,
        };
        let target_cache = cache(facts, target, context, target_types, copies);
        let draft = facts.used_draft().map(|draft| draft.description);
        let draft_cache = match draft {
            // It works in the target's memory.
            Some(draft) if draft.kind == Kind::Gemma4Assistant => 0,
            _ if facts.has(Method::DraftMtp) => {
                let heads = draft.unwrap_or(target);
                heads_cache(heads, draft_types).saturating_mul(u64::from(draft_context) * u64::from(conditions.slots))
            }
            Some(draft) => cache(facts, draft, draft_context, draft_types, 1),
            None => 0,
        };
        let (target_weights, draft_weights) = (target.weight_bytes, draft.map_or(0, |draft| draft.weight_bytes));
        let parts = [target_weights, draft_weights, target_cache, draft_cache];
        let total = parts.into_iter().fold(0, u64::saturating_add);
        Self { target_weights, draft_weights, target_cache, draft_cache, total }
    }
}

/// Caches and states of a whole model over all slots.
fn cache(facts: &Facts<'_>, model: &Description, context: u32, [k, v]: [KvType; 2], copies: u64) -> u64 {
    let conditions = facts.conditions;
    let window = match model.sliding_window {
        Some(window) if !conditions.full_sliding_window => context.min(window.saturating_add(conditions.micro_batch)),
        _ => context,
    };
    let everything = model.kv_bytes_per_token(k, v).saturating_mul(context.into());
    let windows = model.window_bytes_per_token(k, v).saturating_mul(window.into());
    let states = model.state_bytes().saturating_mul(copies);
    everything.saturating_add(windows).saturating_add(states).saturating_mul(conditions.slots.into())
}

/// Bytes for one token of the caches of MTP heads: each is an attention layer like the others.
fn heads_cache(model: &Description, [k, v]: [KvType; 2]) -> u64 {
    let attention = |kind: &&crate::file::LayerKind| **kind == crate::file::LayerKind::Attention;
    let layers = model.layer_kinds.iter().filter(attention).count().max(1) as u64;
    (model.kv_bytes_per_token(k, v) / layers).saturating_mul(model.mtp_layers.into())
}
