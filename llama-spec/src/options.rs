//! The choices for loading a model and making a context: plain values, turned into C structs only for the call.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How many layers of a model are kept on GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuLayers {
    /// All of them if there is a GPU, none otherwise.
    #[default]
    Auto,
    /// All of them. An error where there is no GPU.
    All,
    /// This many, the last ones first; 0 keeps the model on the CPU. More than 0 is an error where there is no GPU.
    Count(u32),
}

/// How a model is divided among several GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitMode {
    /// Everything on one GPU.
    None,
    /// Whole layers, with their part of the KV cache.
    #[default]
    Layer,
    /// Rows of the weight matrices.
    Row,
    /// Tensor parallelism.
    Tensor,
}

/// How the weights get from the file into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadMode {
    /// What suits the devices.
    #[default]
    Auto,
    /// Read into buffers.
    Read,
    /// Map the file: fast to start, shared between processes.
    Mmap,
    /// Read and lock into RAM, so that it is never swapped out.
    Mlock,
    /// Map and lock.
    MmapMlock,
    /// Read past the page cache where the system can.
    DirectIo,
}

/// When attention is computed by the fused kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlashAttention {
    /// Where the devices support it.
    #[default]
    Auto,
    /// Never. A quantized V cache then cannot be used.
    Off,
    /// Always.
    On,
}

/// The type in which the KV cache is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the types of ggml")]
pub enum KvType {
    F32,
    #[default]
    F16,
    Bf16,
    Q8_0,
    Q5_1,
    Q5_0,
    Q4_1,
    Q4_0,
    Iq4Nl,
}

impl KvType {
    /// Whether values are stored in blocks of several; as the type of V this needs flash attention.
    pub const fn is_quantized(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

/// How positions beyond the trained context are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RopeScaling {
    /// As the model says.
    #[default]
    FromModel,
    /// Not at all.
    None,
    /// All positions by one factor.
    Linear,
    /// YaRN (Peng et al. 2023, arXiv 2309.00071).
    Yarn,
    /// LongRoPE (Ding et al. 2024, arXiv 2402.13753).
    LongRope,
}

/// How the embeddings of a sequence become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// As the model says.
    #[default]
    FromModel,
    /// One embedding for each token.
    None,
    /// The mean over the tokens.
    Mean,
    /// That of the first token.
    Cls,
    /// That of the last token.
    Last,
    /// The scores of a reranker's head.
    Rank,
}

/// A value that takes the place of one in the file's metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MetadataValue {
    /// A truth value.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A floating-point number of any width.
    Float(f64),
    /// Text of at most 127 bytes.
    Text(String),
}

impl fmt::Display for MetadataValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}
