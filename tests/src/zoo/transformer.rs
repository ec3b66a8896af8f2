//! Models of other architectures with the text of a [`Llama`].

use super::{
    described::Described,
    llama::{Llama, Shape},
    transformer_weights as weights,
};
use crate::gguf::{Gguf, TensorType};

/// An architecture other than `llama` whose layers are attention and feed-forward networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `qwen2`: biases of queries, keys and values. llama.cpp does not keep the inputs of its layers, so no draft that
    /// reads them fits.
    Qwen2,
    /// `qwen3`: norms of queries and keys.
    Qwen3,
    /// `qwen3moe`: the same with 4 experts, of which each token takes 2.
    Qwen3Moe,
    /// `gemma3`: every second layer, from the first on, sees the last 64 tokens only. Its layers cannot be read either.
    Gemma3,
    /// `gemma4`: the same, with shorter heads in these layers, and in the second half of the layers without keys and
    /// values of their own.
    Gemma4,
}

impl Family {
    /// The name of the architecture in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Qwen3Moe => "qwen3moe",
            Self::Gemma3 => "gemma3",
            Self::Gemma4 => "gemma4",
        }
    }

    /// Whether embeddings are scaled by the root of the width and what layers write goes through norms.
    pub(super) fn is_gemma(self) -> bool {
        matches!(self, Self::Gemma3 | Self::Gemma4)
    }
}

/// The description of a model of a [`Family`]. Embeddings and head are those of a [`Llama`], and so are its text and the
/// logits before noise; the layers are random, as the llama's are. Drafts for that llama therefore fit, as far as
/// the architecture lets them.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformer {
    label: String,
    text: Llama,
    family: Family,
}

impl Llama {
    /// A model of another architecture with the size and the text of this one, which must not recall.
    pub fn on(&self, family: Family) -> Transformer {
        assert!(self.recall().is_none(), "only a llama has the head that recalls");
        let layers = self.shape().layers;
        assert!(family != Family::Gemma4 || layers >= 4 && layers.is_multiple_of(2), "no gemma4 with {layers} layers");
        Transformer { label: family.name().to_owned(), text: self.clone(), family }
    }
}

impl Transformer {
    /// A target in F16 of about 0.7 MB, with the text of [`Llama::target`]. It is also of the llama's width, except for
    /// [`Family::Gemma4`], which has 4 layers of width 160.
    pub fn target(family: Family, seed: u64) -> Self {
        let text = Llama::target(seed).with_weights(TensorType::F16);
        let shape = match family {
            Family::Gemma4 => {
                Shape { layers: 4, width: 160, heads: 2, kv_heads: 1, feed_forward: 64, ..text.shape().clone() }
            }
            Family::Qwen3Moe => Shape { feed_forward: 96, ..text.shape().clone() },
            _ => Shape { feed_forward: 128, ..text.shape().clone() },
        };
        text.with_shape(shape).on(family)
    }

    /// Sets the width.
    pub fn with_width(mut self, width: u32) -> Self {
        let shape = Shape { width, ..self.text.shape().clone() };
        self.text = self.text.with_shape(shape);
        self
    }

    /// Sets the label, which begins the names of cached files.
    pub fn labelled(mut self, label: &str) -> Self {
        self.label = label.to_owned();
        self
    }

    /// The llama of which this model has the text.
    pub fn text(&self) -> &Llama {
        &self.text
    }

    /// The architecture.
    pub fn family(&self) -> Family {
        self.family
    }
}

impl Described for Transformer {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}
