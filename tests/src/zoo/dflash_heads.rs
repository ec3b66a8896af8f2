//! What DSpark and DFlash2 add to the body of a DFlash draft.

use super::{
    dflash::Dflash,
    dflash_weights::{WEIGHTS, width},
    rows::matrix,
};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

/// The logit of the Markov head's successor.
const MARKOV_PEAK: f32 = 6.0;
/// The rank of DFlash2's selector, and the entries that share a factor in its convolutions.
const SELECTOR_RANK: usize = 8;
const GROUP: usize = 32;

pub(super) fn describe_selector(gguf: &mut Gguf<'_>) {
    gguf.set("dflash.conv_kernel_size", 1u32)
        .set("dflash.conv_group_size", GROUP as u32)
        .set("dflash.selector_rank", SELECTOR_RANK as u32)
        .set("dflash.selector_top_k", 4u32);
}

/// The Markov head gives the successor; the body only speaks where no unit fires.
pub(super) fn add_markov<'a>(gguf: &mut Gguf<'a>, draft: &'a Dflash, tokens: Vec<u32>) {
    const RANK: usize = 64;
    let vocabulary = draft.target().vocabulary();
    let code = |token: u32, magnitude: f32, row: &mut [f32]| {
        Rng::new(0, "markov", token.into()).fill_signs(magnitude, row);
    };
    gguf.add(matrix("markov_w1.weight", WEIGHTS, RANK, vocabulary.size() as usize, move |token, row| {
        code(draft.token(draft.chain().next(vocabulary.byte(token as u32))), 1.0, row);
    }))
    .add(matrix("markov_w2.weight", WEIGHTS, RANK, tokens.len(), move |index, row| {
        code(tokens[index], MARKOV_PEAK / RANK as f32, row);
    }))
    .add(matrix("conf_proj.weight", WEIGHTS, width(draft) + RANK, 1, |_, _| {}))
    .add(Tensor::constant("conf_proj.bias", 1, 2.0));
}

/// Convolutions with a kernel of one factor, which is 1, and a selector to which all pairs of tokens are alike.
pub(super) fn add_selector<'a>(gguf: &mut Gguf<'a>, draft: &'a Dflash) {
    let (width, tokens) = (width(draft), draft.target().vocabulary().size() as usize);
    for layer in 0..2 {
        for part in ["attn", "ffn"] {
            let name = |tensor: &str| format!("blk.{layer}.{part}_{tensor}");
            let base = matrix(name("conv_base"), TensorType::F32, width, 2, |_, row| row.fill(1.0));
            gguf.add(base.with_shape(vec![width as u64, 1, 2]));
            gguf.add(matrix(name("conv_proj.weight"), TensorType::F32, width, 2 * (width / GROUP), |_, _| {}));
        }
    }
    for (name, row_length, rows) in [
        ("selector_predecessor", SELECTOR_RANK, tokens),
        ("selector_successor", SELECTOR_RANK, tokens),
        ("selector_hidden", width, SELECTOR_RANK),
    ] {
        gguf.add(matrix(format!("{name}.weight"), TensorType::F32, row_length, rows, |_, _| {}));
    }
}
