//! Devices, how models are divided among them, and the types of caches.

use super::{Facts, Found, Rule, Severity, Side, Stage, Test};
use crate::file::{Description, Kind};
use crate::options::{FlashAttention, KvType, SplitMode};
use crate::spec::Method;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "tensor-split-architecture",
        about: "the target's architecture can be divided by rows",
        applies: "split mode `tensor`",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose split mode `layer`",
        source: "llama.cpp does not load the model (src/llama-arch.cpp, llm_arch_supports_sm_tensor)",
        test: Test::One(tensor_split_architecture),
    },
    Rule {
        code: "tensor-split-device",
        about: "there is a GPU to divide the target among",
        applies: "split mode `tensor`, when the devices are known",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose split mode `layer`",
        source: "llama.cpp does not load the model (src/llama.cpp, llama_prepare_model_devices)",
        test: Test::One(tensor_split_device),
    },
    Rule {
        code: "tensor-split-flash",
        about: "flash attention is not off",
        applies: "split mode `tensor`",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose flash attention `auto` or `on`, or split mode `layer`",
        source: "llama.cpp makes no context (src/llama-context.cpp, llama_init_from_model)",
        test: Test::One(tensor_split_flash),
    },
    Rule {
        code: "split-shared",
        about: "what a draft shares with its target is not divided by rows",
        applies: "split mode `tensor` with drafts that borrow tensors or memory of the target",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose split mode `layer`, or take a draft with embeddings and output matrix of its own",
        source: "llama.cpp aborts when it places the shared tensors (ggml/src/ggml-backend.cpp, \
                 ggml_backend_sched_backend_id_from_cur; llama.cpp issues 27833 and 28777)",
        test: Test::One(split_shared),
    },
    Rule {
        code: "split-hidden",
        about: "hidden states are not read from a target that is divided by rows",
        applies: "split modes `tensor` and `row` with draft-mtp, draft-eagle3, draft-dflash, draft-dspark",
        severity: Severity::Risky,
        stage: Stage::Settings,
        cure: "choose split mode `layer`; or accept the risk, or run supervised, so that a crash is survived",
        source: "llama.cpp runs it and can abort after some requests (llama.cpp issues 23500, 24309 and 25522)",
        test: Test::One(split_hidden),
    },
    Rule {
        code: "shared-device",
        about: "a draft that shares tensors or memory with its target is on the target's devices",
        applies: "drafts that borrow tensors or memory of the target, with devices of their own",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "leave the draft's devices out",
        source: "llama.cpp aborts when the context is made (ggml/src/ggml-backend.cpp, ggml_backend_sched_backend_id_from_cur)",
        test: Test::One(shared_device),
    },
    Rule {
        code: "draft-on-cpu",
        about: "the draft is on a GPU if the target is",
        applies: "every draft that is used",
        severity: Severity::Wasteful,
        stage: Stage::Settings,
        cure: "keep the draft's layers on the GPU",
        source: "a draft on the CPU takes longer for a token than the target on a GPU",
        test: Test::One(draft_on_cpu),
    },
    Rule {
        code: "kv-flash",
        about: "a quantized V cache has flash attention",
        applies: "quantized V caches",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose flash attention `auto` or `on`, or V of type f16",
        source: "llama.cpp makes no context (src/llama-context.cpp, llama_init_from_model)",
        test: Test::One(kv_flash),
    },
    Rule {
        code: "kv-block",
        about: "whole blocks of a quantized cache fit one head",
        applies: "quantized caches",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose f16 for this cache",
        source: "llama.cpp makes no context (src/llama-context.cpp, llama_init_from_model)",
        test: Test::One(kv_block),
    },
    Rule {
        code: "kv-types-equal",
        about: "K and V of latent attention are stored in one type",
        applies: "targets and drafts with latent attention",
        severity: Severity::Impossible,
        stage: Stage::Settings,
        cure: "choose the same type for K and V",
        source: "llama.cpp makes no context (src/llama-context.cpp, llama_init_from_model)",
        test: Test::One(kv_types_equal),
    },
];

fn tensor_split_architecture(facts: &Facts<'_>) -> Option<Found> {
    if facts.conditions.split_mode != SplitMode::Tensor {
        return None;
    }
    let divides = facts.target.architecture.is_some_and(|row| row.tensor_split);
    let found = Found::new(divides).target(facts.target.name());
    Some(found.says(format!("models of the architecture {} cannot be divided by rows", facts.target.name())))
}

fn tensor_split_device(facts: &Facts<'_>) -> Option<Found> {
    let gpu = facts.conditions.gpu.filter(|_| facts.conditions.split_mode == SplitMode::Tensor)?;
    Some(Found::new(gpu).target(if gpu { "GPU" } else { "CPU" }).says("there is no GPU for split mode `tensor`"))
}

fn tensor_split_flash(facts: &Facts<'_>) -> Option<Found> {
    if facts.conditions.split_mode != SplitMode::Tensor {
        return None;
    }
    let found = Found::new(facts.conditions.flash_attention != FlashAttention::Off).target("flash attention");
    Some(found.says("split mode `tensor` needs flash attention"))
}

/// The draft, if it uses tensors or memory of the target.
fn sharing<'a>(facts: &Facts<'a>) -> Option<(Side<'a>, &'static str)> {
    let methods = [Method::DraftEagle3, Method::DraftDflash, Method::DraftDspark, Method::DraftMtp];
    let draft = facts.draft_for(&methods)?;
    let it = draft.description;
    match it.kind {
        Kind::Gemma4Assistant => Some((draft, "the target's memory and embeddings")),
        Kind::MtpHead | Kind::GenerativeWithMtp => None,
        _ => match (it.own_embeddings, it.own_head) {
            (true, true) => None,
            (false, true) => Some((draft, "the target's embeddings")),
            (true, false) => Some((draft, "the target's output matrix")),
            (false, false) => Some((draft, "the target's embeddings and output matrix")),
        },
    }
}

fn split_shared(facts: &Facts<'_>) -> Option<Found> {
    let (_, shared) = sharing(facts).filter(|_| facts.conditions.split_mode == SplitMode::Tensor)?;
    let found = Found::new(false).target("split mode `tensor`").draft(format!("uses {shared}"));
    Some(found.says("the draft cannot use what is divided by rows"))
}

fn split_hidden(facts: &Facts<'_>) -> Option<Found> {
    let mode = match facts.conditions.split_mode {
        SplitMode::Tensor => "tensor",
        SplitMode::Row => "row",
        SplitMode::None | SplitMode::Layer => return None,
    };
    let method = facts.model_methods().find(|method| *method != Method::DraftSimple)?;
    let found = Found::new(false).target(format!("split mode `{mode}`")).draft(method);
    Some(found.says("reading hidden states of a divided target can crash after some requests"))
}

fn shared_device(facts: &Facts<'_>) -> Option<Found> {
    let (_, shared) = sharing(facts)?;
    let conditions = facts.conditions;
    let apart = match conditions.draft_devices.is_empty() {
        true => conditions.gpu == Some(true) && conditions.draft_gpu == Some(false),
        false => conditions.draft_devices.iter().all(|device| !conditions.devices.contains(device)),
    };
    let list = |devices: &[String]| if devices.is_empty() { "not named".to_owned() } else { devices.join(", ") };
    let found = Found::new(!apart).target(list(&conditions.devices)).draft(list(&conditions.draft_devices));
    Some(found.says(format!("the draft uses {shared} and is on other devices")))
}

fn draft_on_cpu(facts: &Facts<'_>) -> Option<Found> {
    facts.used_draft()?;
    let (target, draft) = (facts.conditions.gpu?, facts.conditions.draft_gpu?);
    let place = |gpu: bool| if gpu { "GPU" } else { "CPU" };
    let found = Found::new(draft || !target).target(place(target)).draft(place(draft));
    Some(found.says("the draft is slower on the CPU than the target on its GPU"))
}

/// Each model with the types of its cache: the target, and what drafts if it has a cache of its own.
fn caches<'a>(facts: &Facts<'a>) -> Vec<(Side<'a>, [KvType; 2])> {
    let conditions = facts.conditions;
    let drafter = facts.used_draft().or_else(|| facts.heads());
    let own = drafter.filter(|side| side.description.kind != Kind::Gemma4Assistant);
    let target = (facts.target, [conditions.kv_type_k, conditions.kv_type_v]);
    let draft = own.map(|draft| (draft, [conditions.draft_kv_type_k, conditions.draft_kv_type_v]));
    [Some(target), draft].into_iter().flatten().collect()
}

/// One finding for both caches: what each has, and whether both are right.
fn judge(
    facts: &Facts<'_>,
    applies: fn(&Side<'_>, [KvType; 2]) -> bool,
    holds: impl Fn(&Side<'_>, [KvType; 2]) -> bool,
) -> Option<Found> {
    let caches = caches(facts);
    if !caches.iter().any(|(side, types)| applies(side, *types)) {
        return None;
    }
    let right = |(side, types): &(Side<'_>, [KvType; 2])| !applies(side, *types) || holds(side, *types);
    let text = |(_, [k, v]): &(Side<'_>, [KvType; 2])| format!("K of type {k:?}, V of type {v:?}").to_lowercase();
    let found = Found::new(caches.iter().all(right)).target(text(&caches[0]));
    Some(match caches.get(1) {
        Some(draft) => found.draft(text(draft)),
        None => found,
    })
}

fn kv_flash(facts: &Facts<'_>) -> Option<Found> {
    let on = facts.conditions.flash_attention != FlashAttention::Off;
    let found = judge(facts, |_, [_, v]| v.is_quantized(), |_, _| on)?;
    Some(found.says("a quantized V cache needs flash attention"))
}

fn kv_block(facts: &Facts<'_>) -> Option<Found> {
    /// The values that all quantized types of caches store together.
    const BLOCK: u32 = 32;
    let fits =
        |length: Option<u32>, kind: KvType| !kind.is_quantized() || length.is_none_or(|length| length % BLOCK == 0);
    let holds = |side: &Side<'_>, [k, v]: [KvType; 2]| {
        let Description { key_length, value_length, key_length_swa, value_length_swa, .. } = side.description;
        fits(*key_length, k) && fits(*key_length_swa, k) && fits(*value_length, v) && fits(*value_length_swa, v)
    };
    let found = judge(facts, |_, types| types.iter().any(|kind| kind.is_quantized()), holds)?;
    Some(found.says("the length of a head is not a multiple of 32, so that it cannot be quantized"))
}

fn kv_types_equal(facts: &Facts<'_>) -> Option<Found> {
    let latent = |side: &Side<'_>, _: [KvType; 2]| {
        side.description.latent_attention || matches!(side.name(), "deepseek4" | "deepseek41")
    };
    let found = judge(facts, latent, |_, [k, v]| k == v)?;
    Some(found.says("latent attention keeps one row for key and value, in one type"))
}
