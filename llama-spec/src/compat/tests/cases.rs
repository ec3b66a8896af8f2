//! A case for each rule in which it holds, and one in which it does not.

use super::super::Conditions;
use super::super::testing::*;
use crate::file::{Defect, DraftVocabulary, Kind, Outcome, VocabularyType};
use crate::memory::Rollback;
use crate::options::{FlashAttention, KvType, Pooling, SplitMode};
use crate::spec::{DraftModelSettings, Method, NgramCacheSettings, SpecConfig};

/// For each rule a case in which it holds or does not apply, and one in which it fails.
pub(super) fn cases() -> Vec<(&'static str, Case, Case)> {
    let defect = || Defect { place: "llama.block_count".into(), why: "is missing".into(), outcome: Outcome::Aborts };
    let split = |mode| move |conditions: Conditions| conditions.split_mode(mode);
    let model_settings =
        |change: fn(&mut DraftModelSettings)| move |case: &mut Case| change(&mut case.config.draft_model);
    let with_cache = |case: &mut Case| {
        case.config.ngram_cache = NgramCacheSettings { fixed: Some("cache".into()), learned: None };
    };
    let cache = || Case::new(model("llama"), None, &[Method::NgramCache]).but(with_cache);
    let images = |conditions: Conditions| conditions.multimodal(true);
    let shift = |conditions: Conditions| conditions.context_shift(true);
    let borrows = |case: Case| case.draft(|draft| (draft.own_embeddings, draft.own_head) = (false, false));
    let quantized = |conditions: Conditions| conditions.kv_types(KvType::Q8_0, KvType::Q8_0);
    vec![
        ("target-kind", plain(), plain().target(|target| target.kind = Kind::Encoder)),
        ("target-generates", plain(), plain().target(|target| target.causal = false)),
        ("target-defect", plain(), plain().target(|target| target.defects.push(defect()))),
        ("draft-kind", plain(), plain().draft(|draft| draft.kind = Kind::LoraAdapter)),
        ("draft-generates", plain(), plain().draft(|draft| draft.pooling = Some(4))),
        ("draft-defect", plain(), plain().draft(|draft| draft.defects.push(defect()))),
        ("same-file", plain(), plain().but(|case| case.same_file = true)),
        ("draft-larger", plain(), plain().draft(|draft| draft.weight_bytes = 1 << 30)),
        (
            "one-model-method",
            plain(),
            plain().but(|case| case.config = SpecConfig::new([Method::DraftSimple, Method::DraftMtp])),
        ),
        ("method-file", assistant(), assistant().but(|case| case.config = SpecConfig::new([Method::DraftSimple]))),
        ("draft-missing", plain(), plain().but(|case| case.draft = None)),
        ("draft-unused", plain(), plain().but(|case| case.config = SpecConfig::new([Method::NgramMod]))),
        ("draft-without-speculation", plain(), plain().but(|case| case.config = SpecConfig::off())),
        ("setting-range", plain(), plain().but(model_settings(|settings| settings.probability_min = 1.5))),
        (
            "lookup-cache",
            cache(),
            cache().but(|case| case.unreadable_caches.push(("cache".into(), "cannot be read".into()))),
        ),
        (
            "sampled-drafts",
            plain().but(model_settings(|settings| settings.probabilistic = true)),
            eagle3().but(model_settings(|settings| settings.probabilistic = true)),
        ),
        ("vocab-missing", plain(), plain().draft(|draft| draft.tokenizer = None)),
        ("vocab-type", plain(), plain().draft(|draft| tokens(draft).vocabulary = VocabularyType::Spm)),
        ("vocab-bos", plain(), plain().draft(|draft| tokens(draft).bos = Some(7))),
        (
            "vocab-eos",
            plain().draft(|draft| tokens(draft).eos = Some(7)),
            plain().draft(|draft| tokens(draft).add_eos = true),
        ),
        (
            "vocab-size",
            plain().draft(|draft| tokens(draft).size = 1128),
            plain().draft(|draft| tokens(draft).size = 1129),
        ),
        ("vocab-text", plain(), plain().but(|case| case.difference = differs(139))),
        ("vocab-first-tokens", plain(), plain().but(|case| case.early_difference = differs(3))),
        ("vocab-draft-smaller", plain(), plain().draft(|draft| tokens(draft).size = 999)),
        (
            "vocab-map",
            eagle3().draft(|draft| draft.draft_vocabulary = Some(reduced())).but(|case| case.head_rows = Some(100)),
            eagle3().draft(|draft| {
                draft.draft_vocabulary = Some(DraftVocabulary { largest: Some(1000), ..reduced() });
            }),
        ),
        ("mtp-heads", embedded("qwen35"), embedded("qwen35").target(|target| target.mtp_heads = false)),
        ("mtp-graph", embedded("qwen35"), embedded("exaone4")),
        ("mtp-head-count", embedded("hy_v3").target(|target| target.mtp_layers = 3), {
            embedded("qwen35").target(|target| target.mtp_layers = 3)
        }),
        (
            "mtp-long-chain",
            embedded("hy_v3").target(|target| target.mtp_layers = 3).but(model_settings(|settings| settings.max = 2)),
            embedded("hy_v3").target(|target| target.mtp_layers = 3),
        ),
        (
            "mtp-tensors",
            embedded("qwen35"),
            embedded("qwen35").but(|case| case.missing_head_tensor = Some((4, "nextn.enorm"))),
        ),
        ("mtp-latent", embedded("deepseek2").target(|target| target.latent_attention = true), embedded("deepseek2")),
        ("mtp-width", separate(), assistant().draft(|draft| draft.output_width = Some(128))),
        ("mtp-hidden-state", assistant(), assistant().target(|target| target.architecture = Some("llama".into()))),
        ("mtp-architecture", separate(), separate().target(|target| target.architecture = Some("qwen35moe".into()))),
        ("mtp-layers", separate(), separate().target(|target| target.layers = 8)),
        ("assistant-attention", assistant(), assistant().draft(|draft| draft.key_length = Some(64))),
        ("mtp-trunk-unused", separate(), separate().draft(|draft| draft.kind = Kind::GenerativeWithMtp)),
        ("target-layers", eagle3(), eagle3().target(|target| target.architecture = Some("qwen2".into()))),
        ("layer-ids", eagle3(), eagle3().draft(|draft| draft.target_layers = vec![0, 2, 5])),
        (
            "last-layer",
            eagle3()
                .target(|target| target.architecture = Some("gpt-oss".into()))
                .draft(|draft| draft.target_layers = vec![0, 2, 4]),
            dflash().draft(|draft| draft.target_layers = vec![1, 4]),
        ),
        ("layer-count", dflash(), eagle3().draft(|draft| draft.target_layers = vec![0, 2])),
        ("target-width", eagle3(), eagle3().draft(|draft| draft.target_width = Some(128))),
        ("eagle3-shape", eagle3(), eagle3().draft(|draft| draft.block_count = Some(2))),
        ("borrowed-width", borrows(eagle3()), borrows(eagle3()).draft(|draft| draft.width = Some(32))),
        ("borrowed-head", borrows(eagle3()), borrows(eagle3()).draft(|draft| tokens(draft).size = 1001)),
        ("mask-token", dflash(), dflash().draft(|draft| draft.mask_token = None)),
        (
            "confidence-head",
            dspark().but(model_settings(|settings| settings.probability_min = 0.5)),
            dspark()
                .but(model_settings(|settings| settings.probability_min = 0.5))
                .draft(|draft| draft.confidence_head = false),
        ),
        (
            "draft-recurrent",
            plain().target(|target| target.architecture = Some("mamba".into())),
            plain().draft(|draft| draft.architecture = Some("mamba".into())),
        ),
        ("checkpoints", lookup("qwen35"), lookup("mamba")),
        (
            "snapshots",
            lookup("qwen35").conditions(|conditions| conditions.snapshots(Some(12))),
            lookup("qwen35").conditions(|conditions| conditions.snapshots(Some(11))),
        ),
        (
            "snapshot-room",
            lookup("qwen35").conditions(|conditions| conditions.micro_batch(14).snapshots(Some(12))),
            lookup("qwen35").conditions(|conditions| conditions.micro_batch(13).snapshots(Some(12))),
        ),
        (
            "window-room",
            lookup("gemma3")
                .target(|target| target.sliding_window = Some(32))
                .conditions(|conditions| conditions.micro_batch(1)),
            lookup("gemma3")
                .target(|target| target.sliding_window = Some(32))
                .conditions(|conditions| conditions.micro_batch(12).full_sliding_window(false)),
        ),
        (
            "shift-possible",
            plain().conditions(shift),
            plain().draft(|draft| draft.multi_axis_rope = true).conditions(shift),
        ),
        ("shift-eagle3", plain().conditions(shift), eagle3().conditions(shift)),
        (
            "draft-length",
            dspark().but(model_settings(|settings| settings.max = 8)),
            dflash().but(model_settings(|settings| settings.max = 8)),
        ),
        ("slot-count", plain(), plain().conditions(|conditions| conditions.slots(257))),
        (
            "batch-room",
            plain().but(|case| case.config.draft_max = 4).conditions(|conditions| conditions.slots(4).batch(20)),
            plain().but(|case| case.config.draft_max = 4).conditions(|conditions| conditions.slots(4).batch(19)),
        ),
        (
            "block-room",
            dflash()
                .but(model_settings(|settings| settings.max = 4))
                .conditions(|conditions| conditions.slots(4).micro_batch(20)),
            dflash()
                .but(model_settings(|settings| settings.max = 4))
                .conditions(|conditions| conditions.slots(4).draft_micro_batch(Some(19))),
        ),
        (
            "draft-context",
            plain().conditions(|conditions| conditions.draft_context(Some(4096))),
            plain().conditions(|conditions| conditions.draft_context(Some(4095))),
        ),
        ("draft-trained-context", plain(), plain().draft(|draft| draft.trained_context = Some(2048))),
        (
            "context-there",
            plain().conditions(|conditions| conditions.context(0)),
            plain().target(|target| target.trained_context = None).conditions(|conditions| conditions.context(0)),
        ),
        (
            "tensor-split-architecture",
            plain().conditions(split(SplitMode::Tensor)),
            lookup("mpt").conditions(split(SplitMode::Tensor)),
        ),
        (
            "tensor-split-device",
            lookup("llama").conditions(|conditions| conditions.split_mode(SplitMode::Tensor).gpu(Some(true))),
            lookup("llama").conditions(|conditions| conditions.split_mode(SplitMode::Tensor).gpu(Some(false))),
        ),
        (
            "tensor-split-flash",
            plain().conditions(split(SplitMode::Tensor)),
            plain()
                .conditions(|conditions| conditions.split_mode(SplitMode::Tensor).flash_attention(FlashAttention::Off)),
        ),
        ("split-shared", assistant(), assistant().conditions(split(SplitMode::Tensor))),
        (
            "split-hidden",
            plain().conditions(split(SplitMode::Tensor)),
            embedded("qwen35").conditions(split(SplitMode::Row)),
        ),
        (
            "shared-device",
            eagle3().conditions(|conditions| conditions.gpu(Some(true)).draft_gpu(Some(false))),
            borrows(eagle3())
                .conditions(|conditions| conditions.devices(vec!["CUDA0".into()]).draft_devices(vec!["CUDA1".into()])),
        ),
        (
            "draft-on-cpu",
            plain().conditions(|conditions| conditions.gpu(Some(false)).draft_gpu(Some(false))),
            plain().conditions(|conditions| conditions.gpu(Some(true)).draft_gpu(Some(false))),
        ),
        (
            "kv-flash",
            plain().conditions(quantized),
            plain().conditions(|conditions| {
                conditions.draft_kv_types(KvType::F16, KvType::Q4_0).flash_attention(FlashAttention::Off)
            }),
        ),
        (
            "kv-block",
            plain().conditions(quantized),
            plain().target(|target| target.key_length = Some(48)).conditions(quantized),
        ),
        (
            "kv-types-equal",
            lookup("deepseek2").target(|target| target.latent_attention = true),
            lookup("deepseek2")
                .target(|target| target.latent_attention = true)
                .conditions(|conditions| conditions.kv_types(KvType::Q8_0, KvType::F16)),
        ),
        ("embeddings-off", plain(), plain().conditions(|conditions| conditions.embeddings(Some(Pooling::Mean)))),
        ("images-eagle3", plain().conditions(images), eagle3().conditions(images)),
        (
            "images-positions",
            plain().conditions(images),
            plain().target(|target| target.multi_axis_rope = true).conditions(images),
        ),
        ("images-width", plain().conditions(images), plain().draft(|draft| draft.width = Some(32)).conditions(images)),
        (
            "adapters-on-target-only",
            lookup("llama").conditions(|conditions| conditions.adapters(true)),
            plain().conditions(|conditions| conditions.adapters(true)),
        ),
        (
            "target-rollback",
            lookup("llama").but(|case| case.observed.target_rollback = Some(Rollback::Checkpoint)),
            lookup("llama").but(|case| case.observed.target_rollback = Some(Rollback::None)),
        ),
        (
            "draft-rollback",
            plain().but(|case| {
                (case.observed.target_rollback, case.observed.draft_rollback) =
                    (Some(Rollback::Partial), Some(Rollback::Checkpoint));
            }),
            plain().but(|case| {
                (case.observed.target_rollback, case.observed.draft_rollback) =
                    (Some(Rollback::Partial), Some(Rollback::None));
            }),
        ),
        (
            "memory-fits",
            plain().but(|case| case.observed.fits = Some(true)),
            plain().but(|case| case.observed.fits = Some(false)),
        ),
        (
            "rounds-work",
            plain().but(|case| case.observed.rounds_work = Some(true)),
            plain().but(|case| case.observed.rounds_work = Some(false)),
        ),
        (
            "drafts-accepted",
            plain().but(|case| case.observed.drafts = Some(true)),
            plain().but(|case| case.observed.drafts = Some(false)),
        ),
    ]
}
