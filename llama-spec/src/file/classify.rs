//! Decides what a file is.

use super::Kind;
use super::facts::Facts;
use crate::arch::{Architecture, MtpGraph, Role};
use crate::gguf::{Value, until_zero};

/// What of a file decides its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    pub(super) architecture: Option<&'static Architecture>,
    pub(super) mtp_layers: u32,
    pub(super) mtp_heads: bool,
    pub(super) trunk: bool,
    pub(super) causal: bool,
    pub(super) pooling: Option<u32>,
}

/// The numbers of pooling types that make a model one for embeddings or scores.
const MEAN: u32 = 1;
const LAST: u32 = 3;
const RANK: u32 = 4;

/// The kinds that are no models, which their type or architecture names.
pub(super) fn no_model(facts: &Facts<'_>, architecture: Option<&str>) -> Option<Kind> {
    let kind = match facts.value("general.type") {
        Some(Value::Text(text)) => until_zero(text),
        _ => b"",
    };
    match (kind, architecture) {
        (b"adapter", _) => Some(Kind::LoraAdapter),
        (b"imatrix", _) => Some(Kind::ImportanceMatrix),
        (b"controlvector", _) | (_, Some("controlvector")) => Some(Kind::ControlVector),
        (b"mmproj", _) | (_, Some("clip")) => Some(Kind::Projector),
        _ => None,
    }
}

/// The kind of a file that is a model.
pub(super) fn model(facts: &Facts<'_>, signs: Signs) -> Kind {
    let Some(architecture) = signs.architecture else { return Kind::Unknown };
    if facts.tensors().next().is_none() {
        let tokens = facts.value("tokenizer.ggml.tokens").is_some();
        return if tokens { Kind::VocabularyOnly } else { Kind::Unknown };
    }
    match architecture.role {
        Role::Projector => return Kind::Projector,
        Role::Unsupported => return Kind::Unknown,
        Role::Diffusion => return Kind::Diffusion,
        Role::EncoderDecoder => return Kind::EncoderDecoder,
        Role::Encoder => {
            return match signs.pooling {
                Some(RANK) => Kind::Reranker,
                Some(MEAN..=LAST) => Kind::Embedding,
                _ => Kind::Encoder,
            };
        }
        Role::Generative | Role::Draft => {}
    }
    match (architecture.name, signs.pooling) {
        ("eagle3", _) => Kind::Eagle3,
        ("gemma4-assistant", _) => Kind::Gemma4Assistant,
        ("dflash", _) if facts.has("markov_w1.weight") => Kind::Dspark,
        ("dflash", _) if facts.has("selector_hidden.weight") => Kind::Dflash2,
        ("dflash", _) => Kind::Dflash,
        (_, Some(RANK)) => Kind::Reranker,
        (_, Some(MEAN..=LAST)) => Kind::Embedding,
        _ if !signs.causal => Kind::Embedding,
        _ if !matches!(architecture.mtp, MtpGraph::Single | MtpGraph::Chained) => Kind::Generative,
        _ if signs.mtp_layers == 0 || !signs.mtp_heads => Kind::Generative,
        _ if signs.trunk => Kind::GenerativeWithMtp,
        _ => Kind::MtpHead,
    }
}
