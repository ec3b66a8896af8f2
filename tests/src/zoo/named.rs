//! The files that have a name, for programs and people: a target, its drafts, shapes for benches, and one of every other
//! kind of file that a loader meets.

use super::{
    additions,
    chained::{Chained, ChainedKind},
    described::Described,
    dflash::Layout,
    encoders, huge,
    llama::{CHAT_TEMPLATE, Llama, Shape},
    mamba::Mamba,
    qwen35::Qwen35,
};
use crate::{
    gguf::TensorType,
    vocab::{Kind, Vocabulary},
};

/// A file of the zoo by name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name, which is also the stem of a file's name.
    pub name: &'static str,
    /// What the file is for, in one line.
    pub about: &'static str,
    make: Make,
}

#[derive(Clone, Copy, Debug)]
enum Make {
    Llama(fn() -> Llama),
    Other(fn() -> Box<dyn Described>),
}

impl Named {
    const fn llama_of(name: &'static str, about: &'static str, make: fn() -> Llama) -> Self {
        Self { name, about, make: Make::Llama(make) }
    }

    /// Any file; the label of its description is its name.
    pub(super) const fn new(name: &'static str, about: &'static str, make: fn() -> Box<dyn Described>) -> Self {
        Self { name, about, make: Make::Other(make) }
    }

    /// The description of the file.
    pub fn model(&self) -> Box<dyn Described> {
        match self.make {
            Make::Llama(make) => Box::new(make().labelled(self.name)),
            Make::Other(make) => make(),
        }
    }

    /// The description of a [`Llama`], which knows its text; `None` for the others.
    pub fn llama(&self) -> Option<Llama> {
        match self.make {
            Make::Llama(make) => Some(make().labelled(self.name)),
            Make::Other(_) => None,
        }
    }
}

/// All named files.
pub fn named() -> Vec<Named> {
    [LLAMAS, RECURRENT, EAGLE3, DFLASH, MTP, encoders::FILES, additions::FILES, huge::FILES].concat()
}

/// The models of the llama architecture.
const LLAMAS: &[Named] = &[
    Named::llama_of("target", "a target with a cycle of 80 characters as its text", target),
    Named::llama_of("target-f16", "the target in F16", || target().with_weights(TensorType::F16)),
    Named::llama_of("draft-0.5", "a draft for the target; half of its tokens are accepted", || target().draft(0.5)),
    Named::llama_of("draft-0.8", "a draft for the target; 80 % of its tokens are accepted", || target().draft(0.8)),
    Named::llama_of("draft-0.95", "a draft for the target; 95 % of its tokens are accepted", || target().draft(0.95)),
    Named::llama_of("draft-other-vocabulary", "a draft that does not fit: other token texts", || {
        target().draft(1.0).other_vocabulary()
    }),
    Named::llama_of("draft-other-tokenizer", "a draft that does not fit: another tokenizer", || {
        target().draft(1.0).other_tokenizer()
    }),
    Named::llama_of("chat", "a target with a chat template that ends its answers", chat),
    Named::llama_of("recall", "a target whose text depends on earlier tokens", recall),
    Named::llama_of("recall-draft-0.8", "a draft for `recall`; about 80 % of its tokens are accepted", || {
        recall().draft(0.8)
    }),
    Named::llama_of("bench-target", "1.1 billion parameters in F16 (2.2 GB) for benches", bench_target),
    Named::llama_of("bench-draft", "52 million parameters in F16 (106 MB); 80 % of its tokens are accepted", || {
        bench_draft(0.8)
    }),
];

/// Recurrent models.
const RECURRENT: &[Named] = &[
    Named::new("mamba", "a recurrent target whose text depends on its state", || Box::new(Mamba::target(1))),
    Named::new("mamba-draft-0.8", "a draft for `mamba`; about 80 % of its tokens are accepted", || {
        Box::new(Mamba::target(1).draft(0.8))
    }),
];

/// EAGLE-3 drafts for `target`.
const EAGLE3: &[Named] = &[
    Named::new("eagle3", "an EAGLE-3 draft for the target; 80 % of its tokens are accepted", || {
        Box::new(target().eagle3(0.8).labelled("eagle3"))
    }),
    Named::new("eagle3-borrowing", "the same without embeddings and head, which are the target's", || {
        Box::new(target().eagle3(0.8).without_embeddings().without_head().labelled("eagle3-borrowing"))
    }),
    Named::new("eagle3-reduced", "the same with a reduced vocabulary and a table of its ids", || {
        Box::new(target().eagle3(0.8).with_reduced_vocabulary().labelled("eagle3-reduced"))
    }),
    Named::new("eagle3-narrow", "the same with half the target's width", || {
        Box::new(target().eagle3(0.8).with_width(64).labelled("eagle3-narrow"))
    }),
    Named::new("eagle3-recall", "an EAGLE-3 draft for `recall`; about half of its tokens are accepted", || {
        Box::new(recall().eagle3(1.0).labelled("eagle3-recall"))
    }),
    Named::new("eagle3-other-width", "an EAGLE-3 draft that does not fit: for a target of width 192", || {
        Box::new(target().eagle3(0.8).for_target_width(192).labelled("eagle3-other-width"))
    }),
    Named::new("eagle3-layer-beyond", "an EAGLE-3 draft that does not fit: reads a layer that no target has", || {
        Box::new(target().eagle3(0.8).with_target_layers([0, 1, 7]).labelled("eagle3-layer-beyond"))
    }),
];

/// DFlash and DSpark drafts for `target`.
const DFLASH: &[Named] = &[
    Named::new("dflash", "a DFlash draft for the target; 80 % of its tokens are accepted", || {
        Box::new(target().dflash(0.8).labelled("dflash"))
    }),
    Named::new("dflash-borrowing", "the same without embeddings and head, which are the target's", || {
        Box::new(target().dflash(0.8).without_embeddings().without_head().labelled("dflash-borrowing"))
    }),
    Named::new("dflash-reduced", "the same with a reduced vocabulary and a table of its ids", || {
        Box::new(target().dflash(0.8).with_reduced_vocabulary().labelled("dflash-reduced"))
    }),
    Named::new("dflash2", "a DFlash2 draft for the target; 80 % of its tokens are accepted", || {
        Box::new(target().dflash2(0.8).labelled("dflash2"))
    }),
    Named::new("dflash-no-mask", "a DFlash draft that does not work: no mask token", || {
        Box::new(target().dflash(0.8).without_mask_token().labelled("dflash-no-mask"))
    }),
    Named::new("dflash-other-width", "a DFlash draft that does not fit: for a target of width 192", || {
        Box::new(wide_target().dflash(0.8).labelled("dflash-other-width"))
    }),
    Named::new("dflash-layer-beyond", "a DFlash draft that does not fit: reads a layer that no target has", || {
        Box::new(target().dflash(0.8).with_target_layers([0, 1, 7]).labelled("dflash-layer-beyond"))
    }),
    Named::new("dspark", "a DSpark draft for the target; 80 % of its tokens are accepted", || {
        Box::new(target().dspark(0.8).labelled("dspark"))
    }),
    Named::new("dspark-in-place", "the same in the layout of DFlash, with the target's embeddings and head", || {
        let draft = target().dspark(0.8).with_layout(Layout::SparkInPlace).without_embeddings().without_head();
        Box::new(draft.labelled("dspark-in-place"))
    }),
    Named::new("dspark-no-mask", "a DSpark draft that does not work: no mask token", || {
        Box::new(target().dspark(0.8).without_mask_token().labelled("dspark-no-mask"))
    }),
    Named::new("dspark-no-block-size", "a DSpark draft that does not work: no size of blocks", || {
        Box::new(target().dspark(0.8).without_block_size().labelled("dspark-no-block-size"))
    }),
    Named::new("dspark-other-width", "a DSpark draft that does not fit: for a target of width 192", || {
        Box::new(wide_target().dspark(0.8).labelled("dspark-other-width"))
    }),
];

/// Models with MTP heads.
const MTP: &[Named] = &[
    Named::new("qwen35", "a hybrid target whose text depends on its state, without MTP head", || {
        Box::new(Qwen35::target(1))
    }),
    Named::new("qwen35-mtp", "the same with an MTP head; about 80 % of its tokens are accepted", || {
        Box::new(Qwen35::target(1).with_mtp(0.8).labelled("qwen35-mtp"))
    }),
    Named::new("qwen35-mtp-head", "this MTP head in a file of its own", || {
        Box::new(Qwen35::target(1).with_mtp(0.8).head_only().labelled("qwen35-mtp-head"))
    }),
    Named::new("qwen35-declared", "`qwen35` in a file that declares an MTP head and has none", || {
        Box::new(Qwen35::target(1).with_mtp(0.8).without_head_tensors().labelled("qwen35-declared"))
    }),
    Named::new(
        "qwen35-narrow-mtp",
        "`qwen35-mtp` with another width, so that its head does not fit the others",
        || Box::new(Qwen35::target(1).with_mtp(0.8).with_width(128).labelled("qwen35-narrow-mtp")),
    ),
    Named::new("chained", "a dense target, without MTP heads", || Box::new(Chained::target(ChainedKind::Mimo2, 1))),
    Named::new(
        "chained-mtp",
        "the same with three MTP heads, of which 90 %, 80 % and 70 % of the tokens are right",
        || Box::new(chained(ChainedKind::Mimo2).labelled("chained-mtp")),
    ),
    Named::new("chained-mtp-heads", "these MTP heads in a file of their own", || {
        Box::new(chained(ChainedKind::Mimo2).heads_only().labelled("chained-mtp-heads"))
    }),
    Named::new(
        "hy-v3-mtp",
        "another architecture with three MTP heads, of which the third is wrong in llama.cpp",
        || Box::new(chained(ChainedKind::HyV3).labelled("hy-v3-mtp")),
    ),
];

fn chained(kind: ChainedKind) -> Chained {
    Chained::target(kind, 1).with_mtp(&[0.9, 0.8, 0.7])
}

fn wide_target() -> Llama {
    target().with_shape(Shape { width: 192, ..target().shape().clone() })
}

fn target() -> Llama {
    Llama::target(1)
}

fn recall() -> Llama {
    target().with_recall()
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
