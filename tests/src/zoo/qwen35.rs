//! Hybrid models of the qwen35 architecture with or without an MTP head: description, and the oracle of what they answer.

use super::{
    chain::{Chain, DEFAULT_CYCLE},
    described::Described,
    latches::Latches,
    qwen35_weights as weights,
    rounds::{Round, rounds},
};
use crate::{
    gguf::Gguf,
    vocab::{Kind, Vocabulary},
};

/// The length of the cycle, which is shorter than other models' so that the state is small.
const CYCLE: usize = 64;

/// The description of a model of the qwen35 architecture whose greedy text is known and depends on its recurrent state.
///
/// The text is of the kind of [`Mamba`](super::Mamba)'s, with 16 latches: a state that was not rolled back, or rolled back
/// too far, shows about 16 tokens later. A layer of linear attention holds the latches, one of full attention adds random
/// numbers at a small scale.
///
/// The MTP head is given a token and the hidden state of the position before. The state holds all latches, in the order in
/// which the next tokens read them, and the head hands them on; so with the right state it predicts what the target says,
/// up to 15 tokens ahead, on the share of the cycle that was asked for. Where the state is not that of the token before, or
/// there is none, it gives [`wrong`](Self::wrong).
///
/// Two layers of width 160 and the head's, with the byte-level vocabulary of [`Llama::target`](super::Llama::target): 0.8 MB,
/// and 1.1 MB with the head.
#[derive(Clone, Debug, PartialEq)]
pub struct Qwen35 {
    label: String,
    seed: u64,
    width: u32,
    latches: Latches,
    head: Option<Latches>,
    content: Content,
    peak: f32,
    noise: f32,
}

/// Which tensors a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// All that are described.
    Whole,
    /// The head, and what no file goes without.
    HeadOnly,
    /// All but the head, which is still declared.
    TrunkOnly,
}

impl Qwen35 {
    /// A target without MTP head. The seed changes the weights and not the text.
    pub fn target(seed: u64) -> Self {
        let chain = Chain::new(&DEFAULT_CYCLE[..CYCLE]);
        Self {
            label: "qwen35".to_owned(),
            seed,
            width: 160,
            latches: Latches::new(Vocabulary::new(Kind::ByteLevel), chain),
            head: None,
            content: Content::Whole,
            peak: 16.0,
            noise: 0.25,
        }
    }

    /// Adds an MTP head that agrees with the model on the share `acceptance` of the tokens of the cycle. Tokens are only
    /// about equally frequent, so the acceptance rate is about the share; [`draft`](Self::draft) is exact.
    pub fn with_mtp(mut self, acceptance: f64) -> Self {
        self.head = Some(self.latches.draft(acceptance));
        self
    }

    /// Leaves out the layers of the model: a file with the head alone, for a target of the same description.
    pub fn head_only(mut self) -> Self {
        self.content = Content::HeadOnly;
        self
    }

    /// Leaves out the tensors of the head, and still declares it.
    pub fn without_head_tensors(mut self) -> Self {
        self.content = Content::TrunkOnly;
        self
    }

    /// Sets the width: 112 or more.
    pub fn with_width(mut self, width: u32) -> Self {
        assert!(width >= 112, "no room for the text in a width of {width}");
        self.width = width;
        self
    }

    /// Sets the label, which begins the names of cached files.
    pub fn labelled(mut self, label: &str) -> Self {
        self.label = label.to_owned();
        self
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        self.latches.vocabulary()
    }

    /// The exact share of the cycle on which the head agrees with the model; `None` without a head.
    pub fn acceptance(&self) -> Option<f64> {
        self.head.as_ref().map(Latches::acceptance)
    }

    /// The token that greedy decoding gives after `context`, which must hold a token.
    pub fn next(&self, context: &[u32]) -> u32 {
        self.latches.state(context).next(&self.latches)
    }

    /// The `n` tokens with which greedy decoding continues `prompt`, which must hold a token (special tokens included, as
    /// the model gets them).
    pub fn continuation(&self, prompt: &[u32], n: usize) -> Vec<u32> {
        self.latches.continuation(prompt, n)
    }

    /// The `n` tokens that the head drafts after `context`, whose last token the target has not decoded yet.
    ///
    /// # Panics
    /// If there is no head, or no token.
    pub fn draft(&self, context: &[u32], n: usize) -> Vec<u32> {
        let head = self.head.as_ref().expect("a model without a head drafts nothing");
        let (last, decoded) = context.split_last().expect("a draft continues a token");
        let state = self.latches.state(decoded);
        let mut before = decoded.last().map(|token| head.latch(*token));
        let mut token = *last;
        let mut drafted = Vec::with_capacity(n);
        for step in 0..n {
            let latch = head.latch(token);
            let expected = before.is_some_and(|before| latch == (before + 1) % head.count());
            // The latches are those of the state at the beginning: after the last of them nothing is known.
            let read = match decoded.last() {
                Some(start) if step + 1 < head.count() => state.held(head, head.latch(*start) + 2 + step),
                _ => 0,
            };
            token = if expected { head.follows(token, read) } else { self.wrong() };
            before = Some(latch);
            drafted.push(token);
        }
        drafted
    }

    /// The rounds of greedy speculative decoding with the head, as those of [`Llama::speculate`](super::Llama::speculate).
    pub fn speculate(&self, prompt: &[u32], n: usize, draft_length: usize) -> Vec<Round> {
        let text = self.continuation(prompt, n + draft_length + 1);
        rounds(prompt, &text, n, |context| self.draft(context, draft_length), |_| false)
    }

    /// What the head gives where the state it gets is not that of the token before: a token that the model never gives.
    pub fn wrong(&self) -> u32 {
        self.vocabulary().token(b'\n')
    }
}

impl Described for Qwen35 {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}

/// What the writers of weights need to know.
impl Qwen35 {
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    pub(super) fn latches(&self) -> &Latches {
        &self.latches
    }

    pub(super) fn head(&self) -> Option<&Latches> {
        self.head.as_ref()
    }

    pub(super) fn content(&self) -> Content {
        self.content
    }

    pub(super) fn peak(&self) -> f32 {
        self.peak
    }

    pub(super) fn noise(&self) -> f32 {
        self.noise
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn text_is_long() {
        let model = Qwen35::target(1);
        let prompt = model.vocabulary().tokenize("The beginning of a text, with 28 tokens and more.");
        let text = model.continuation(&prompt, 2000);
        assert_eq!(text.windows(60).collect::<HashSet<_>>().len(), text.len() - 59, "the text repeats itself");
    }

    #[test]
    fn the_head_knows_15_tokens_of_the_text() {
        let model = Qwen35::target(1).with_mtp(1.0);
        let prompt = model.vocabulary().tokenize("The beginning");
        let text = model.continuation(&prompt, 300);
        for at in 1..250 {
            let context = [&prompt, &text[..at]].concat();
            assert_eq!(model.draft(&context, 15), text[at..at + 15], "{at}");
        }
        let context = [&prompt[..], &[model.vocabulary().token(b'a')]].concat();
        assert_eq!(model.draft(&context, 1), [model.wrong()]);
    }

    #[test]
    fn the_head_agrees_by_its_acceptance() {
        for acceptance in [0.5, 0.8] {
            let model = Qwen35::target(1).with_mtp(acceptance);
            let prompt = model.vocabulary().tokenize("The beginning");
            let text = [prompt.clone(), model.continuation(&prompt, 1000)].concat();
            let agreeing =
                (prompt.len() + 1..text.len()).filter(|&at| model.draft(&text[..at], 1)[0] == text[at]).count();
            assert!((agreeing as f64 / 999.0 - acceptance).abs() < 0.06, "{agreeing} for {acceptance}");
        }
    }
}
