//! The tokenizer in a file.

use serde::Serialize;

/// The tokenizer: its type, its special tokens and the texts of all tokens, as llama.cpp would read them.
#[derive(Debug)]
pub struct Tokenizer {
    pub(super) summary: TokenizerSummary,
}

/// A tokenizer without its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenizerSummary {
    /// `tokenizer.ggml.model`, such as `gpt2` or `llama`.
    pub model: String,
    /// The type of vocabulary that llama.cpp makes of it.
    pub vocabulary: VocabularyType,
    /// `tokenizer.ggml.pre`.
    pub pre: Option<String>,
    /// The number of tokens.
    pub size: u32,
    /// The first token of a text.
    pub bos: Option<u32>,
    /// The last token of a text.
    pub eos: Option<u32>,
    /// The end of a turn.
    pub eot: Option<u32>,
    /// The unknown token.
    pub unk: Option<u32>,
    /// The separator.
    pub sep: Option<u32>,
    /// Padding.
    pub pad: Option<u32>,
    /// The mask token.
    pub mask: Option<u32>,
    /// Whether `bos` is put before a text.
    pub add_bos: bool,
    /// Whether `eos` is put after a text.
    pub add_eos: bool,
    /// Whether `sep` is put after a text.
    pub add_sep: bool,
}

/// llama.cpp's types of vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the tokenizers")]
#[non_exhaustive]
pub enum VocabularyType {
    None,
    Spm,
    Bpe,
    Wpm,
    Ugm,
    Rwkv,
    Plamo2,
    Plamo3,
    Test,
}

impl Tokenizer {
    /// Type, size and special tokens.
    pub fn summary(&self) -> &TokenizerSummary {
        &self.summary
    }

    /// The number of tokens.
    pub fn size(&self) -> u32 {
        self.summary.size
    }

    /// The text of a token as it stands in the file; `None` for an id beyond the vocabulary.
    pub fn text(&self, _id: u32) -> Option<&[u8]> {
        todo!()
    }

    /// The texts of all tokens in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.size()).map(|id| self.text(id).unwrap_or_default())
    }

    /// The first id from `from` on, below both sizes, whose text differs from that in `other`.
    pub fn first_difference(&self, _other: &Self, _from: u32) -> Option<u32> {
        todo!()
    }
}
