//! Whatever the files say, the table answers.

use super::super::testing::{Case, model, tokens};
use super::super::{Conditions, Severity, method_for, refusal};
use crate::arch::Architecture;
use crate::file::{Description, Kind, LayerKind};
use crate::options::SplitMode;
use crate::spec::{Method, SpecConfig};
use proptest::prelude::*;

const KINDS: [Kind; 19] = [
    Kind::Generative,
    Kind::GenerativeWithMtp,
    Kind::MtpHead,
    Kind::Gemma4Assistant,
    Kind::Eagle3,
    Kind::Dflash,
    Kind::Dflash2,
    Kind::Dspark,
    Kind::Encoder,
    Kind::EncoderDecoder,
    Kind::Embedding,
    Kind::Reranker,
    Kind::LoraAdapter,
    Kind::ControlVector,
    Kind::Projector,
    Kind::VocabularyOnly,
    Kind::ImportanceMatrix,
    Kind::Diffusion,
    Kind::Unknown,
];

fn number() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(prop_oneof![Just(0), Just(1), Just(64), Just(u32::MAX), any::<u32>()])
}

prop_compose! {
    fn description()(
        kind in proptest::sample::select(&KINDS[..]),
        architecture in proptest::option::of(proptest::sample::select(Architecture::ALL)),
        numbers in proptest::collection::vec(number(), 10),
        layers in prop_oneof![Just(0), Just(4), any::<u32>()],
        mtp_layers in prop_oneof![Just(0), Just(1), any::<u32>()],
        flags in proptest::collection::vec(any::<bool>(), 7),
        target_layers in proptest::collection::vec(any::<i64>(), 0..5),
        kinds in proptest::collection::vec(proptest::sample::select(&[LayerKind::Attention, LayerKind::SlidingWindow, LayerKind::Recurrent][..]), 0..4),
        size in any::<u32>(),
    ) -> Description {
        let mut it = model("llama");
        it.kind = kind;
        it.architecture = architecture.map(|row| row.name.to_owned());
        (it.width, it.output_width, it.block_count, it.trained_context) = (numbers[0], numbers[1], numbers[2], numbers[3]);
        (it.key_length, it.value_length, it.sliding_window) = (numbers[4], numbers[5], numbers[6]);
        (it.block_size, it.target_width, it.mask_token) = (numbers[7], numbers[8], numbers[9]);
        (it.layers, it.mtp_layers, it.target_layers, it.layer_kinds) = (layers, mtp_layers, target_layers, kinds);
        (it.mtp_heads, it.own_embeddings, it.own_head, it.causal) = (flags[0], flags[1], flags[2], flags[3]);
        (it.multi_axis_rope, it.confidence_head) = (flags[4], flags[5]);
        tokens(&mut it).size = size;
        if flags[6] { it.tokenizer = None; }
        it
    }
}

prop_compose! {
    fn conditions()(
        numbers in proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(512), any::<u32>()], 6),
        flags in proptest::collection::vec(any::<bool>(), 6),
        mode in proptest::sample::select(&[SplitMode::None, SplitMode::Layer, SplitMode::Row, SplitMode::Tensor][..]),
    ) -> Conditions {
        Conditions::default()
            .context(numbers[0]).slots(numbers[1]).batch(numbers[2]).micro_batch(numbers[3])
            .draft_context(flags[0].then_some(numbers[4])).snapshots(flags[1].then_some(numbers[5]))
            .multimodal(flags[2]).context_shift(flags[3]).adapters(flags[4]).full_sliding_window(flags[5])
            .split_mode(mode)
    }
}

proptest! {
    /// Whatever the files say, the table answers, and what is chosen automatically for a draft that is one is never
    /// refused because of the method.
    #[test]
    fn any_facts_are_judged(
        target in description(),
        draft in proptest::option::of(description()),
        methods in proptest::collection::vec(proptest::sample::select(&Method::ALL[..]), 0..4),
        conditions in conditions(),
    ) {
        let mut case = Case::new(target, draft, &methods);
        case.conditions = conditions;
        let refused = refusal(&case.facts());
        let failed: Vec<_> = case.checks().into_iter().filter(|check| !check.passed).collect();
        let impossible = failed.iter().filter(|check| check.severity != Severity::Wasteful).count();
        prop_assert_eq!(refused.map_or(0, |why| why.checks.len()), impossible);
        if let Some(draft) = &case.draft {
            let method = method_for(&case.facts().target, &case.facts().draft.unwrap());
            let drafts = draft.kind.drafts();
            prop_assert_eq!(method.is_some(), drafts);
            case.config = SpecConfig::for_draft(method, draft.kind);
            prop_assert!(!case.failed().iter().any(|code| code == "method-file"));
            prop_assert_eq!(case.failed().iter().any(|code| code == "draft-kind"), !drafts);
        }
    }
}
