//! Dense models with several MTP heads in a chain: description, and the oracle of what they answer.

use super::{
    chain::{Chain, DEFAULT_CYCLE, Next},
    chained_weights as weights,
    described::Described,
    rounds::{Round, rounds},
};
use crate::{
    gguf::Gguf,
    vocab::{Kind, Special, Vocabulary},
};

/// The places of the cycle are marked in turn with one of so many marks: 80 is a multiple of it.
pub(super) const MARKS: usize = 16;

/// The architecture of a model with a chain of heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainedKind {
    /// `mimo2`, whose second layer attends to a sliding window.
    Mimo2,
    /// `hy_v3`. Where a head is given more than one token, its graph in the pinned llama.cpp hands on the state of the first
    /// one and not of the last. So the heads from the third on get the state of a wrong position, and are wrong.
    HyV3,
}

/// The description of a dense model whose greedy text is known, and of MTP heads for it.
///
/// The text is the cycle of [`Llama::target`](super::Llama::target). Each head drafts one token: the first is given the
/// hidden state of the model, and each of the others that of the head before it; only a single head is asked again, with its
/// own state. A head gives [`wrong`](Self::wrong) where
/// its state is not of its predecessor, or not of the position before its token.
///
/// Two layers of width 128 and one for each head, with the byte-level vocabulary: 0.3 MB, and 0.2 MB for each head.
#[derive(Clone, Debug, PartialEq)]
pub struct Chained {
    label: String,
    kind: ChainedKind,
    seed: u64,
    vocabulary: Vocabulary,
    chain: Chain,
    heads: Vec<Chain>,
    heads_only: bool,
    peak: f32,
    noise: f32,
}

impl Chained {
    /// A target without heads. The seed changes the weights and not the text.
    pub fn target(kind: ChainedKind, seed: u64) -> Self {
        Self {
            label: "chained".to_owned(),
            kind,
            seed,
            vocabulary: Vocabulary::new(Kind::ByteLevel),
            chain: Chain::new(DEFAULT_CYCLE),
            heads: Vec::new(),
            heads_only: false,
            peak: 16.0,
            noise: 0.25,
        }
    }

    /// Adds heads, each of which agrees with the model on its share of the tokens of the cycle.
    pub fn with_mtp(mut self, acceptances: &[f64]) -> Self {
        self.heads = acceptances.iter().map(|acceptance| self.chain.draft(*acceptance)).collect();
        self
    }

    /// Leaves out the layers of the model: a file with the heads alone, for a target of the same seed.
    pub fn heads_only(mut self) -> Self {
        self.heads_only = true;
        self
    }

    /// Sets the label, which begins the names of cached files.
    pub fn labelled(mut self, label: &str) -> Self {
        self.label = label.to_owned();
        self
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The exact shares of the cycle on which the heads agree with the model.
    pub fn acceptances(&self) -> Vec<f64> {
        self.heads.iter().map(Chain::acceptance).collect()
    }

    /// The token that greedy decoding gives after `token`.
    pub fn next(&self, token: u32) -> u32 {
        self.follows(&self.chain, token)
    }

    /// The `n` tokens with which greedy decoding continues `prompt`, which must hold a token.
    pub fn continuation(&self, prompt: &[u32], n: usize) -> Vec<u32> {
        std::iter::successors(prompt.last().copied(), |token| Some(self.next(*token))).skip(1).take(n).collect()
    }

    /// The `n` tokens that the heads draft after `context`, whose last token the target has not decoded yet: at most as many
    /// as there are heads, if these are more than one.
    ///
    /// # Panics
    /// If there is no token.
    pub fn draft(&self, context: &[u32], n: usize) -> Vec<u32> {
        let (last, decoded) = context.split_last().expect("a draft continues a token");
        let mut before = decoded.last().map(|token| self.mark(*token));
        let mut token = *last;
        let mut drafted = Vec::with_capacity(n);
        // A single head is asked again and again, each time with its own state and one token.
        let again = self.heads.len() == 1;
        for head in self.heads.iter().cycle().take(if again { n } else { n.min(self.heads.len()) }) {
            let mark = self.mark(token);
            let expected = before.is_some_and(|before| mark == (before + 1) % MARKS);
            token = if expected { self.follows(head, token) } else { self.wrong() };
            if self.kind == ChainedKind::Mimo2 || again || drafted.is_empty() {
                before = Some(mark);
            }
            drafted.push(token);
        }
        drafted
    }

    /// The rounds of greedy speculative decoding with the heads, as those of [`Llama::speculate`](super::Llama::speculate).
    pub fn speculate(&self, prompt: &[u32], n: usize, draft_length: usize) -> Vec<Round> {
        let text = self.continuation(prompt, n + draft_length + 1);
        rounds(prompt, &text, n, |context| self.draft(context, draft_length), |_| false)
    }

    /// What a head gives where its state is not the right one: a token that the model never gives.
    pub fn wrong(&self) -> u32 {
        self.vocabulary.token(b'\n')
    }
}

impl Described for Chained {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}

/// What the writers of weights need to know.
impl Chained {
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn kind(&self) -> ChainedKind {
        self.kind
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn heads(&self) -> &[Chain] {
        &self.heads
    }

    pub(super) fn has_trunk(&self) -> bool {
        !self.heads_only
    }

    pub(super) fn peak(&self) -> f32 {
        self.peak
    }

    pub(super) fn noise(&self) -> f32 {
        self.noise
    }

    /// The token that follows by `chain`.
    pub(super) fn follows(&self, chain: &Chain, token: u32) -> u32 {
        match chain.next(self.vocabulary.byte(token)) {
            Next::Byte(byte) => self.vocabulary.token(byte),
            Next::End => self.vocabulary.special(Special::MessageEnd),
        }
    }

    /// The mark of a token, which its successor's follows.
    pub(super) fn mark(&self, token: u32) -> usize {
        let byte = self.vocabulary.byte(token);
        self.chain.place(byte).unwrap_or_else(|| self.chain.entry(byte) + MARKS - 1) % MARKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_head_agrees_by_its_acceptance() {
        for head in 0..3 {
            let mut acceptances = [1.0; 3];
            acceptances[head] = 0.8;
            let model = Chained::target(ChainedKind::Mimo2, 1).with_mtp(&acceptances);
            assert_eq!(model.acceptances(), acceptances);
            let text = [vec![u32::from(b'a')], model.continuation(&[u32::from(b'a')], 100)].concat();
            let right = (2..82).filter(|&at| model.draft(&text[..at], 3)[head] == text[at + head]);
            assert_eq!(right.count(), 64, "{head}");
        }
    }

    #[test]
    fn a_draft_after_another_state_is_wrong() {
        let model = Chained::target(ChainedKind::Mimo2, 1).with_mtp(&[1.0; 3]);
        let prompt = model.vocabulary().tokenize("The beginning");
        let text = model.continuation(&prompt, 10);
        assert_eq!(model.draft(&[&prompt, &text[..1]].concat(), 8), text[1..4]);
        assert_eq!(model.draft(&[&prompt, &text[1..2]].concat(), 1), [model.wrong()]);
        let model = Chained::target(ChainedKind::HyV3, 1).with_mtp(&[1.0; 3]);
        assert_eq!(model.draft(&[&prompt, &text[..1]].concat(), 8), [text[1], text[2], model.wrong()]);
    }
}
