//! What each architecture of the pinned llama.cpp can do for speculative decoding.
//!
//! A file names its architecture, and everything else about it follows from code: whether the graph keeps the hidden state
//! that a head needs, whether rejected tokens can be taken back, whether weights may be divided by rows. llama.cpp has no
//! function that says so before a model is loaded, and answers most wrong guesses with an abort. The table here was read
//! from its source; the test `architectures` of this repository reads the same facts from the pinned source and fails when
//! one of them moves.

mod table;

use serde::Serialize;

/// What one architecture can do. See [`Architecture::find`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Architecture {
    /// Its name in the file, the key `general.architecture`.
    pub name: &'static str,
    /// What models of this architecture are for.
    pub role: Role,
    /// The heads that predict several tokens, and how they are run.
    pub mtp: MtpGraph,
    /// Tensors of a block of heads without which llama.cpp aborts, besides those that all of them have.
    pub more_head_tensors: &'static [&'static str],
    /// Whether the graph keeps the hidden state of every token (`t_h_nextn`), from which MTP heads draft.
    pub publishes_hidden: bool,
    /// Whether the graph keeps the inputs of its layers (`t_layer_inp`), from which EAGLE-3, DFlash and DSpark draft.
    pub publishes_layers: bool,
    /// Whether the graph keeps the output of its last layer among them, as the layer whose number is the count of layers.
    pub taps_last_layer: bool,
    /// What its context remembers.
    pub memory: MemoryKind,
    /// Whether recurrent states are kept for some tokens back, so that a rejected draft can be undone without a copy.
    pub snapshots: bool,
    /// Whether its weights can be divided by rows (split mode `tensor`).
    pub tensor_split: bool,
    /// Whether one batch may hold both tokens and embeddings.
    pub mixed_batches: bool,
    /// Whether a token has several positions (M-RoPE).
    pub multi_axis: MultiAxis,
    /// How wide the hidden state is that it hands out.
    pub output_width: OutputWidth,
}

/// What the models of an architecture are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Generating text token by token.
    Generative,
    /// Drafting for another model only.
    Draft,
    /// Embeddings, scores or other outputs that are no text.
    Encoder,
    /// An encoder and a decoder, as T5.
    EncoderDecoder,
    /// Generating all tokens of a text at once, in several steps.
    Diffusion,
    /// Images or sound for another model.
    Projector,
    /// Known by name, without an implementation.
    Unsupported,
}

/// How the heads for multi-token prediction of an architecture are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MtpGraph {
    /// It has no such heads.
    None,
    /// Heads in a file are read and not used: there is no graph for them.
    Skipped,
    /// One head, run again for each token of a draft.
    Single,
    /// One head for each token of a draft.
    Chained,
    /// A model of its own that reads the memory of its target.
    SharedMemory,
}

/// What a context of an architecture remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// Nothing: it cannot generate token by token.
    None,
    /// Keys and values of each token. Any of them can be taken out again.
    Attention,
    /// One state for the whole text.
    Recurrent,
    /// Both, in different layers.
    Hybrid,
}

/// Whether a token has several positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MultiAxis {
    /// No.
    Never,
    /// If the file has the key `rope.dimension_sections`.
    WithSections,
    /// Yes.
    Always,
}

/// How wide the hidden state is that a model hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputWidth {
    /// The key `embedding_length_out`, or `embedding_length` without it.
    FromKey,
    /// `embedding_length`, whatever the other key says.
    Embedding,
    /// `embedding_length` times `hyper_connection.count`.
    HyperConnections,
    /// One number.
    One,
}

impl Architecture {
    /// All architectures of the pinned llama.cpp, in its order.
    pub const ALL: &'static [Self] = table::ROWS;

    /// The architecture of this name, if llama.cpp knows it.
    ///
    /// ```
    /// use llama_spec::arch::{Architecture, MtpGraph};
    /// assert_eq!(Architecture::find("qwen35").unwrap().mtp, MtpGraph::Single);
    /// assert!(Architecture::find("qwen99").is_none());
    /// ```
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|row| row.name == name)
    }

    /// Whether heads for multi-token prediction of this architecture can be used.
    pub const fn has_mtp(&self) -> bool {
        matches!(self.mtp, MtpGraph::Single | MtpGraph::Chained | MtpGraph::SharedMemory)
    }

    /// The tensors that each block of heads must have, without `blk.N.` and `.weight`.
    pub fn head_tensors(&self) -> impl Iterator<Item = &'static str> {
        /// Those that all architectures ask for.
        const COMMON: &[&str] = &["nextn.eh_proj", "nextn.enorm", "nextn.hnorm"];
        let own = matches!(self.mtp, MtpGraph::Single | MtpGraph::Chained);
        COMMON.iter().chain(self.more_head_tensors).copied().filter(move |_| own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for row in Architecture::ALL {
            assert_eq!(Architecture::find(row.name), Some(row), "{}", row.name);
        }
    }

    #[test]
    fn facts_fit_together() {
        for row in Architecture::ALL {
            let name = row.name;
            assert!(!row.taps_last_layer || row.publishes_layers, "{name}");
            assert!(!row.snapshots || row.memory == MemoryKind::Hybrid, "{name}");
            assert!(!row.has_mtp() || row.publishes_hidden, "{name}: a head needs the hidden state of its own trunk");
            assert!(row.memory != MemoryKind::None || row.role != Role::Generative, "{name}");
        }
    }
}
