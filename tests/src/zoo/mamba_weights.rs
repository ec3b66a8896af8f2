//! The tensors of a [`Mamba`]: a layer of latches, and a random one.

use super::{described::Described as _, latches::KERNEL, mamba::Mamba, rows};
use crate::{
    gguf::{Gguf, Tensor, TensorType},
    rng::Rng,
};

/// How many latches the state holds.
const LATCHES: usize = 20;
const WIDTH: usize = 128;
/// The width inside of a layer; llama.cpp takes no other.
const INNER: usize = 2 * WIDTH;
/// The numbers a channel holds.
const STATE: usize = 16;

/// Entries of the embedding, counted from the end, that random weights never write to.
const RESERVED: usize = 3 + LATCHES;
const CONSTANT: usize = WIDTH - 3;
const SIGN: usize = WIDTH - 2;
const READ: usize = WIDTH - 1;
/// One entry for each latch: 1 where the token writes it.
const LATCH: usize = WIDTH - RESERVED;
/// Each class of successors has a half of the entries that are left.
const FREE: usize = WIDTH - RESERVED;

/// Channels of the layer of latches: the latches themselves, which of them is written, and the sign that is written.
const WRITTEN: usize = LATCHES;
const PLUS: usize = 2 * LATCHES;
const MINUS: usize = PLUS + 1;

/// The activation passes numbers of this size as they are, and their negatives as nothing.
const LARGE: f32 = 8.0;
/// The time step of a latch that is written; of the others it is next to nothing.
const STEP: f32 = 20.0;

/// Describes the whole file of `model`.
pub(super) fn gguf(model: &Mamba) -> Gguf<'_> {
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", "mamba")
        .set("general.type", "model")
        .set("general.name", format!("zoo {}", model.label()))
        .set("general.file_type", TensorType::F32.file_type())
        .set("mamba.block_count", 2u32)
        .set("mamba.context_length", 4096u32)
        .set("mamba.embedding_length", WIDTH as u32)
        .set("mamba.feed_forward_length", 0u32)
        .set("mamba.attention.head_count", 0u32)
        .set("mamba.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("mamba.ssm.conv_kernel", KERNEL as u32)
        .set("mamba.ssm.inner_size", INNER as u32)
        .set("mamba.ssm.state_size", STATE as u32)
        .set("mamba.ssm.time_step_rank", LATCHES as u32)
        .set("mamba.vocab_size", model.vocabulary().size());
    model.vocabulary().describe(&mut gguf);

    let tokens = model.vocabulary().size();
    gguf.add(matrix("token_embd.weight", WIDTH, tokens as usize, |token, row| embedding(model, token as u32, row)));
    add_latches(&mut gguf);
    add_noise(&mut gguf, model);
    gguf.add(Tensor::constant("output_norm.weight", WIDTH as u64, 1.0));
    gguf.add(matrix("output.weight", WIDTH, tokens as usize, |token, row| head(model, token as u32, row)));
    gguf
}

fn matrix<'a>(
    name: impl Into<String>,
    row_length: usize,
    rows: usize,
    make_row: impl Fn(usize, &mut [f32]) + Send + Sync + 'a,
) -> Tensor<'a> {
    rows::matrix(name, TensorType::F32, row_length, rows, make_row)
}

/// The direction that stands for a token as a successor.
fn direction(model: &Mamba, token: u32) -> [f32; FREE] {
    let mut signs = [0.0; FREE];
    Rng::new(model.seed(), "direction", token.into()).fill_signs(1.0, &mut signs);
    signs
}

fn embedding(model: &Mamba, token: u32, row: &mut [f32]) {
    let [plus, minus] = model.latches().possible_next(token).map(|next| direction(model, next));
    row[..FREE / 2].copy_from_slice(&plus[..FREE / 2]);
    row[FREE / 2..FREE].copy_from_slice(&minus[FREE / 2..]);
    row[LATCH + model.latches().latch(token)] = 1.0;
    row[CONSTANT] = 1.0;
    row[SIGN] = model.latches().sign(token) as f32;
    // What a latch holds adds 2, 0 or -2.
    row[READ] = 1.0;
}

/// The norm of every embedding: all entries are 1 or -1, and of the latches' one is.
fn embedding_norm() -> f32 {
    ((FREE + 3 + 1) as f32 / WIDTH as f32).sqrt()
}

fn head(model: &Mamba, token: u32, row: &mut [f32]) {
    let class = model.latches().class(token);
    let scale = model.peak() / FREE as f32;
    row[..FREE].copy_from_slice(&direction(model, token));
    if class == 0 {
        row.iter_mut().for_each(|x| *x *= scale);
    } else {
        row.iter_mut().for_each(|x| *x *= 2.0 * scale);
        row[if class > 0 { FREE / 2..FREE } else { 0..FREE / 2 }].fill(0.0);
        row[READ] = class as f32 * model.peak() / 2.0;
    }
}

fn add_latches(gguf: &mut Gguf<'_>) {
    let name = |tensor: &str| format!("blk.0.{tensor}");
    gguf.add(Tensor::constant(name("attn_norm.weight"), WIDTH as u64, embedding_norm()))
        .add(matrix(name("ssm_in.weight"), WIDTH, 2 * INNER, |index, row| match index {
            ..WRITTEN => row[CONSTANT] = LARGE,
            WRITTEN..PLUS => row[LATCH + index - WRITTEN] = LARGE,
            PLUS => row[SIGN] = LARGE,
            MINUS => row[SIGN] = -LARGE,
            // The second half opens the way out: of the latch after the token's own.
            INNER.. if index < INNER + LATCHES => row[LATCH + (index - INNER + LATCHES - 1) % LATCHES] = LARGE,
            _ => {}
        }))
        .add(matrix(name("ssm_conv1d.weight"), KERNEL, INNER, |index, row| match index {
            ..PLUS => row[KERNEL - 1] = 1.0,
            PLUS | MINUS => row[0] = 1.0,
            _ => {}
        }))
        .add(Tensor::constant(name("ssm_conv1d.bias"), INNER as u64, 0.0))
        // The rows: time steps of the latches, what is written (B), how it is read (C)
        .add(matrix(name("ssm_x.weight"), INNER, LATCHES + 2 * STATE, |index, row| {
            if index < LATCHES {
                row[WRITTEN + index] = 1.0 / LARGE;
            } else if index == LATCHES {
                row[PLUS] = 1.0 / LARGE;
                row[MINUS] = -1.0 / LARGE;
            } else if index == LATCHES + STATE {
                row[0] = 1.0 / LARGE;
            }
        }))
        .add(matrix(name("ssm_dt.weight"), LATCHES, INNER, |index, row| {
            if index < LATCHES {
                row[index] = 2.0 * STEP;
            }
        }))
        .add(Tensor::constant(name("ssm_dt.bias"), INNER as u64, -STEP))
        .add(matrix(name("ssm_a"), STATE, INNER, |_, row| row.fill(-1.0)))
        .add(Tensor::constant(name("ssm_d"), INNER as u64, 0.0))
        .add(matrix(name("ssm_out.weight"), INNER, WIDTH, |index, row| {
            if index == READ {
                // A latch holds STEP * LARGE, and the way out multiplies by LARGE.
                row[..LATCHES].fill(2.0 / (STEP * LARGE * LARGE));
            }
        }));
}

fn add_noise<'a>(gguf: &mut Gguf<'a>, model: &'a Mamba) {
    let name = |tensor: &str| format!("blk.1.{tensor}");
    let random = |tensor: &str, row_length: usize, rows: usize, deviation: f32| {
        let name = name(tensor);
        let purpose = name.clone();
        matrix(name, row_length, rows, move |index, row| {
            Rng::new(model.seed(), &purpose, index as u64).fill_uniform(deviation, row);
        })
    };
    let keep = 1.0 / (WIDTH as f32).sqrt();
    let inside = 1.0 / (INNER as f32).sqrt();
    // The way out has a deviation of 0.3 where all that comes in has one of 1.
    let out = model.noise() * inside / 0.3;
    gguf.add(Tensor::constant(name("attn_norm.weight"), WIDTH as u64, 1.0))
        .add(random("ssm_in.weight", WIDTH, 2 * INNER, keep))
        .add(random("ssm_conv1d.weight", KERNEL, INNER, 0.5))
        .add(Tensor::constant(name("ssm_conv1d.bias"), INNER as u64, 0.0))
        .add(random("ssm_x.weight", INNER, LATCHES + 2 * STATE, inside))
        .add(random("ssm_dt.weight", LATCHES, INNER, 0.3))
        .add(Tensor::constant(name("ssm_dt.bias"), INNER as u64, -2.0))
        .add(matrix(name("ssm_a"), STATE, INNER, |_, row| {
            row.iter_mut().enumerate().for_each(|(n, x)| *x = -(n as f32 + 1.0));
        }))
        .add(Tensor::constant(name("ssm_d"), INNER as u64, 1.0))
        .add(matrix(name("ssm_out.weight"), INNER, WIDTH, move |index, row| {
            if index < FREE {
                Rng::new(model.seed(), "blk.1.ssm_out", index as u64).fill_uniform(out, row);
            }
        }));
}
