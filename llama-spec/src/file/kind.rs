//! What a file is.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a GGUF file is, as far as its header tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A language model.
    Generative,
    /// A language model with heads for multi-token prediction in the same file.
    GenerativeWithMtp,
    /// Heads for multi-token prediction without the model they belong to.
    MtpHead,
    /// A draft for Gemma 4 that works in the target's memory.
    Gemma4Assistant,
    /// An EAGLE-3 draft (Li et al. 2025, arXiv 2503.01840).
    Eagle3,
    /// A block-diffusion draft.
    Dflash,
    /// A block-diffusion draft that selects among candidates.
    Dflash2,
    /// A block-diffusion draft with a Markov head.
    Dspark,
    /// An encoder: it has no memory to decode into.
    Encoder,
    /// An encoder and a decoder.
    EncoderDecoder,
    /// A model for embeddings.
    Embedding,
    /// A model that scores pairs of texts.
    Reranker,
    /// A LoRA adapter.
    LoraAdapter,
    /// Control vectors.
    ControlVector,
    /// The projector of images or sound into a language model.
    Projector,
    /// A vocabulary without weights.
    VocabularyOnly,
    /// An importance matrix for quantization.
    ImportanceMatrix,
    /// A language model that generates by diffusion.
    Diffusion,
    /// Anything else: the architecture is missing, or llama.cpp does not know it.
    #[default]
    Unknown,
}

impl Kind {
    /// Whether it can be the target of speculative decoding: a model that generates text token by token.
    pub fn is_generative(self) -> bool {
        matches!(self, Self::Generative | Self::GenerativeWithMtp)
    }

    /// Whether it is a model at all, of whatever use: llama.cpp loads none of the others as one.
    pub fn is_model(self) -> bool {
        !matches!(
            self,
            Self::LoraAdapter
                | Self::ControlVector
                | Self::Projector
                | Self::VocabularyOnly
                | Self::ImportanceMatrix
                | Self::Unknown
        )
    }

    /// Whether it is a draft that needs the target it was made for: it reads the target's hidden states.
    pub fn is_dependent_draft(self) -> bool {
        matches!(
            self,
            Self::MtpHead | Self::Gemma4Assistant | Self::Eagle3 | Self::Dflash | Self::Dflash2 | Self::Dspark
        )
    }
}

impl Kind {
    /// Whether it can draft for another model.
    pub fn drafts(self) -> bool {
        self.is_generative() || self.is_dependent_draft()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Generative => "a language model",
            Self::GenerativeWithMtp => "a language model with MTP heads",
            Self::MtpHead => "an MTP head without its model",
            Self::Gemma4Assistant => "a Gemma 4 assistant",
            Self::Eagle3 => "an EAGLE-3 draft",
            Self::Dflash => "a DFlash draft",
            Self::Dflash2 => "a DFlash2 draft",
            Self::Dspark => "a DSpark draft",
            Self::Encoder => "an encoder",
            Self::EncoderDecoder => "an encoder-decoder model",
            Self::Embedding => "an embedding model",
            Self::Reranker => "a reranker",
            Self::LoraAdapter => "a LoRA adapter",
            Self::ControlVector => "a control vector",
            Self::Projector => "a multimodal projector",
            Self::VocabularyOnly => "a vocabulary without weights",
            Self::ImportanceMatrix => "an importance matrix",
            Self::Diffusion => "a diffusion language model",
            Self::Unknown => "a file of an unknown kind",
        })
    }
}
