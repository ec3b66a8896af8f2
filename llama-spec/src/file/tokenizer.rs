//! The tokenizer in a file.

use crate::checksum::{FIRST, checksum};
use crate::gguf::{Header, until_zero};
use serde::Serialize;
use std::sync::Arc;

/// The tokenizer: its type, its special tokens and the texts of all tokens, as llama.cpp would read them.
#[derive(Debug)]
pub struct Tokenizer {
    pub(super) summary: TokenizerSummary,
    pub(super) header: Arc<Header>,
    /// Where the texts begin in the header.
    pub(super) texts: Vec<u32>,
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

    /// The text of a token as it stands in the file, up to its first zero byte: where llama.cpp ends it. `None` for an
    /// id beyond the texts that the file has.
    pub fn text(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id as usize).map(|&at| until_zero(self.header.text(at)))
    }

    /// The texts of all tokens in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.texts.iter().map(|&at| until_zero(self.header.text(at)))
    }

    /// The first id from `from` on, below both sizes, whose text differs from that in `other`.
    pub fn first_difference(&self, other: &Self, from: u32) -> Option<u32> {
        let from = from as usize;
        let pairs = self.texts.iter().zip(&other.texts).skip(from);
        let differs = |(&own, &others): (&u32, &u32)| {
            let (own, others) = (self.header.text(own), other.header.text(others));
            own != others && until_zero(own) != until_zero(others)
        };
        pairs.map(differs).position(|differs| differs).map(|place| (place + from) as u32)
    }

    /// A sum over the texts of all tokens in their order, which tells vocabularies apart: the same in all versions and on all
    /// machines. [`lookup::Store::save`](crate::lookup::Store::save) is given it as bytes.
    pub fn fingerprint(&self) -> u64 {
        self.texts().fold(FIRST, |sum, text| checksum(checksum(sum, &(text.len() as u64).to_le_bytes()), text))
    }

    /// Two ids with the same text, if there are any: llama.cpp aborts at them.
    pub(super) fn double(&self) -> Option<(u32, u32)> {
        // The upper bits of a hash and the id in one number: equal texts are neighbours after sorting.
        const ID_BITS: u32 = 26;
        let mut marks: Vec<u64> = (0u64..)
            .zip(self.texts())
            .filter(|(_, text)| !text.is_empty())
            .map(|(id, text)| hash(text) >> ID_BITS << ID_BITS | id)
            .collect();
        marks.sort_unstable();
        let id = |mark: &u64| (mark & ((1 << ID_BITS) - 1)) as u32;
        let mut runs = marks.chunk_by(|one, other| one >> ID_BITS == other >> ID_BITS).filter(|run| run.len() > 1);
        runs.find_map(|run| {
            let mut ids: Vec<u32> = run.iter().map(id).collect();
            ids.sort_unstable_by_key(|&id| (self.text(id), id));
            let pair = ids.windows(2).find(|pair| self.text(pair[0]) == self.text(pair[1]))?;
            Some((pair[0], pair[1]))
        })
    }
}

/// A quick hash of a text. Its collisions cost time only, and not much: texts that collide are sorted.
fn hash(text: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = text.as_chunks::<8>();
    let hash = words.iter().fold(text.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash = mix(hash, u64::from_le_bytes(last));
    hash ^ hash >> 29
}
