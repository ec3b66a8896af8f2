//! The models that have a name, for programs and people: a target, its drafts, and shapes for benches.

use super::llama::{CHAT_TEMPLATE, Llama, Shape};
use crate::{
    gguf::TensorType,
    vocab::{Kind, Vocabulary},
};

/// A model of the zoo by name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name, which is also the stem of a file's name.
    pub name: &'static str,
    /// What the model is for, in one line.
    pub about: &'static str,
    /// The model.
    pub model: Llama,
}

/// All named models.
pub fn named() -> Vec<Named> {
    let target = Llama::target(1);
    let recall = target.clone().with_recall();
    let list = [
        ("target", "a target with a cycle of 80 characters as its text", target.clone()),
        ("target-f16", "the target in F16", target.clone().with_weights(TensorType::F16)),
        ("draft-0.5", "a draft for the target; half of its tokens are accepted", target.draft(0.5)),
        ("draft-0.8", "a draft for the target; 80 % of its tokens are accepted", target.draft(0.8)),
        ("draft-0.95", "a draft for the target; 95 % of its tokens are accepted", target.draft(0.95)),
        (
            "draft-other-vocabulary",
            "a draft that does not fit: other token texts",
            target.draft(1.0).other_vocabulary(),
        ),
        ("draft-other-tokenizer", "a draft that does not fit: another tokenizer", target.draft(1.0).other_tokenizer()),
        ("chat", "a target with a chat template that ends its answers", chat()),
        ("recall", "a target whose text depends on earlier tokens", recall.clone()),
        ("recall-draft-0.8", "a draft for `recall`; about 80 % of its tokens are accepted", recall.draft(0.8)),
        ("bench-target", "1.1 billion parameters in F16 (2.2 GB) for benches", bench_target()),
        ("bench-draft", "52 million parameters in F16 (106 MB); 80 % of its tokens are accepted", bench_draft(0.8)),
    ];
    list.map(|(name, about, model)| Named { name, about, model: model.labelled(name) }).into()
}

/// A target with a chat template, whose answers end.
fn chat() -> Llama {
    Llama::target(1).with_chat_template(CHAT_TEMPLATE).ending_after(b'.')
}

/// A target of the size and shape of a small real model, in F16: 1.1 billion parameters, 32,768 tokens.
pub fn bench_target() -> Llama {
    let shape = Shape { layers: 16, width: 2048, heads: 32, kv_heads: 8, feed_forward: 8192, context_length: 131_072 };
    bench(Llama::target(1).with_shape(shape)).labelled("bench-target")
}

/// A draft for [`bench_target`] with 52 million parameters.
pub fn bench_draft(acceptance: f64) -> Llama {
    let shape = Shape { layers: 6, width: 512, heads: 8, kv_heads: 4, feed_forward: 1536, context_length: 131_072 };
    bench(Llama::target(1).draft(acceptance).with_shape(shape)).labelled(&format!("bench-draft-{acceptance}"))
}

fn bench(model: Llama) -> Llama {
    let vocabulary = Vocabulary::new(Kind::ByteLevel);
    let filler = 32_768 - vocabulary.size();
    model.with_weights(TensorType::F16).with_vocabulary(vocabulary.with_filler(filler))
}
