//! What the header says, as plain facts.

use super::{Kind, TokenizerSummary};
use serde::Serialize;
use std::path::PathBuf;

/// What a model file is and holds: facts from its header, with llama.cpp's defaults where the file is silent.
///
/// Where [`defects`](Self::defects) is not empty, the facts that depend on the defective entries are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// The file, or the first part of a split model.
    pub path: PathBuf,
    /// All parts in order; one for a file that is not split.
    pub parts: Vec<PathBuf>,
    /// What it is.
    pub kind: Kind,
    /// The architecture, such as `llama` or `qwen35`.
    pub architecture: Option<String>,
    /// The model's name in the file.
    pub name: Option<String>,
    /// How the weights are stored, such as `Q4_K - Medium` or `F16`, in llama.cpp's words.
    pub quantization: String,
    /// Bytes of all parts.
    pub file_bytes: u64,
    /// Bytes of all tensors, without padding.
    pub weight_bytes: u64,
    /// Elements of all tensors.
    pub parameters: u64,
    /// The context length it was trained for, in tokens.
    pub trained_context: Option<u32>,
    /// The width of the hidden state (`embedding_length`).
    pub width: Option<u32>,
    /// The width of the rows it gives out and, as a draft with MTP heads, takes from its target.
    pub output_width: Option<u32>,
    /// All blocks in the file's count, those of MTP heads included.
    pub block_count: Option<u32>,
    /// Blocks without those of MTP heads.
    pub layers: u32,
    /// Blocks of MTP heads that are declared.
    pub mtp_layers: u32,
    /// Whether the tensors of the declared MTP heads are in the file.
    pub mtp_heads: bool,
    /// Whether the layers below the MTP heads are in the file.
    pub trunk: bool,
    /// What each layer keeps in memory, without those of MTP heads.
    pub layer_kinds: Vec<LayerKind>,
    /// The length of the sliding window in tokens, if there is one.
    pub sliding_window: Option<u32>,
    /// Attention heads of each layer, without those of MTP heads.
    pub heads: Vec<u32>,
    /// Key and value heads of each layer, without those of MTP heads.
    pub kv_heads: Vec<u32>,
    /// Length of a key of one head.
    pub key_length: Option<u32>,
    /// Length of a value of one head.
    pub value_length: Option<u32>,
    /// Length of a key of one head in layers with a sliding window.
    pub key_length_swa: Option<u32>,
    /// Length of a value of one head in layers with a sliding window.
    pub value_length_swa: Option<u32>,
    /// The layers that read the keys and values of an earlier layer instead of their own, without those of MTP heads;
    /// empty when there are none.
    pub shared_layers: Vec<bool>,
    /// Whether keys hold the values too (multi-head latent attention): the cache has no values then.
    pub latent_attention: bool,
    /// Experts of a mixture.
    pub experts: Option<u32>,
    /// Experts used for a token; the most in any layer.
    pub experts_used: Option<u32>,
    /// The layers of the target whose inputs a dependent draft reads.
    pub target_layers: Vec<i64>,
    /// The width that the target of a dependent draft must have.
    pub target_width: Option<u32>,
    /// The block length that a block-diffusion draft was trained for.
    pub block_size: Option<u32>,
    /// Whether it has embeddings of its own; a dependent draft without borrows the target's.
    pub own_embeddings: bool,
    /// Whether it has an output matrix of its own. A language model without uses its embeddings; a dependent draft
    /// borrows the target's.
    pub own_head: bool,
    /// The map from the ids of a reduced draft vocabulary to the target's.
    pub draft_vocabulary: Option<DraftVocabulary>,
    /// Whether a DSpark draft has a head that estimates how sure it is.
    pub confidence_head: bool,
    /// Whether attention looks back only.
    pub causal: bool,
    /// The pooling that the file asks for, by llama.cpp's number: 0 none, 1 mean, 2 cls, 3 last, 4 rank.
    pub pooling: Option<u32>,
    /// Whether a position has several components (M-RoPE).
    pub multi_axis_rope: bool,
    /// The mask token of a block-diffusion draft or diffusion model.
    pub mask_token: Option<u32>,
    /// Whether there is a chat template.
    pub chat_template: bool,
    /// The tokenizer in short.
    pub tokenizer: Option<TokenizerSummary>,
    /// Numbers (of 4 bytes) that a layer with a recurrent state keeps for one sequence.
    pub state_elements: u64,
    /// What makes llama.cpp refuse the file or abort.
    pub defects: Vec<Defect>,
}

/// What a layer keeps in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// Keys and values of all tokens.
    Attention,
    /// Keys and values of the last tokens.
    SlidingWindow,
    /// One state that each token changes.
    Recurrent,
    /// Keys and values of all tokens, and a state.
    AttentionAndState,
    /// Nothing: it has no attention and no state.
    Nothing,
}

/// The tensor `d2t` of a draft with a reduced vocabulary: for each id of the draft the target's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DraftVocabulary {
    /// The type of the tensor; llama.cpp wants `i64`.
    pub kind: &'static str,
    /// The number of ids.
    pub size: u64,
    /// The largest id of the target; `None` when it could not be read.
    pub largest: Option<i64>,
    /// The smallest id of the target; `None` when it could not be read.
    pub smallest: Option<i64>,
}

/// Something in the header that makes llama.cpp refuse the file, or abort the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Defect {
    /// The metadata key or the tensor.
    pub place: String,
    /// What is wrong, and what is expected.
    pub why: String,
    /// What llama.cpp does about it.
    pub outcome: Outcome,
}

/// What llama.cpp does about a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It refuses the file with an error.
    Refused,
    /// It aborts the process, or worse.
    Aborts,
}
