//! Recurrent models of the mamba architecture: description, and the oracle of what they answer.

use super::{
    chain::{Chain, DEFAULT_CYCLE},
    described::Described,
    latches::Latches,
    mamba_weights as weights,
};
use crate::{
    gguf::Gguf,
    vocab::{Kind, Vocabulary},
};

/// The description of a model of the mamba architecture whose greedy text is known and depends on its state.
///
/// A state that was not rolled back, or rolled back too far, shows in the text about 20 tokens later. The first layer holds
/// 20 latches, one for each group of four tokens of the cycle. A token writes to the latch of its own group and reads that of
/// the next one, which its successor will be of. What is written is the sign of the token three positions before, which
/// passes through the state of the convolution; what is read chooses between the two successors of the token. So both kinds
/// of state matter. New signs are an invertible function of old ones, so the text hardly ever comes back to where it was.
/// The second layer adds random numbers at a small scale.
///
/// 2 layers of width 128 with the byte-level vocabulary of [`Llama::target`](super::Llama::target), 1.3 MB.
#[derive(Clone, Debug, PartialEq)]
pub struct Mamba {
    label: String,
    seed: u64,
    latches: Latches,
    peak: f32,
    noise: f32,
}

impl Mamba {
    /// A target.
    pub fn target(seed: u64) -> Self {
        Self {
            label: "mamba".to_owned(),
            seed,
            latches: Latches::new(Vocabulary::new(Kind::ByteLevel), Chain::new(DEFAULT_CYCLE)),
            peak: 16.0,
            noise: 0.25,
        }
    }

    /// A draft for this target that differs on the share `1 - acceptance` of the tokens of the cycle, and is of the same
    /// size. Tokens are only about equally frequent, so the acceptance rate is about the share.
    pub fn draft(&self, acceptance: f64) -> Self {
        Self {
            label: format!("mamba-draft-{acceptance}"),
            seed: self.seed.wrapping_add(0x1_0000),
            latches: self.latches.draft(acceptance),
            ..self.clone()
        }
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

    /// The token that greedy decoding gives after `context`, which must hold a token.
    pub fn next(&self, context: &[u32]) -> u32 {
        self.latches.state(context).next(&self.latches)
    }

    /// The `n` tokens with which greedy decoding continues `prompt`, which must hold a token (special tokens included, as
    /// the model gets them).
    pub fn continuation(&self, prompt: &[u32], n: usize) -> Vec<u32> {
        self.latches.continuation(prompt, n)
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn peak(&self) -> f32 {
        self.peak
    }

    pub(super) fn noise(&self) -> f32 {
        self.noise
    }

    pub(super) fn latches(&self) -> &Latches {
        &self.latches
    }
}

impl Described for Mamba {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn text_is_long_and_depends_on_the_state() {
        let model = Mamba::target(1);
        let prompt = model.vocabulary().tokenize("The beginning of a text, with 28 tokens and more.");
        let text = model.continuation(&prompt, 2000);
        assert_eq!(text.windows(60).collect::<HashSet<_>>().len(), text.len() - 59, "the text repeats itself");
        // One of the last 20 tokens in the state is another one, or missing, or there twice.
        let (before, after) = text.split_at(100);
        let changes = |change: &dyn Fn(&mut Vec<u32>, usize)| {
            let changed = (80..99).filter(|&at| {
                let mut other = before.to_vec();
                change(&mut other, at);
                model.continuation(&other, 60) != after[..60]
            });
            changed.count()
        };
        let counts = [
            changes(&|state, at| state[at] = model.vocabulary().token(b'#')),
            changes(&|state, at| {
                state.remove(at);
            }),
            changes(&|state, at| state.insert(at, state[at])),
        ];
        assert!(counts.iter().all(|count| *count >= 12), "{counts:?} of 19");
    }

    #[test]
    fn drafts_agree_by_their_acceptance() {
        let target = Mamba::target(1);
        let prompt = target.vocabulary().tokenize("abc");
        for acceptance in [0.5, 0.8, 1.0] {
            let draft = target.draft(acceptance);
            let text = [prompt.clone(), target.continuation(&prompt, 1000)].concat();
            let agreeing =
                (prompt.len()..text.len()).filter(|&at| draft.next(&text[..at]) == text[at]).count() as f64 / 1000.0;
            assert!((agreeing - acceptance).abs() < 0.05, "{agreeing} for {acceptance}");
        }
    }
}
