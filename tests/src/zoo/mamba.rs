//! Recurrent models of the mamba architecture: description, and the oracle of what they answer.

use std::collections::HashMap;

use super::{
    chain::{Chain, DEFAULT_CYCLE},
    described::Described,
    mamba_weights as weights,
};
use crate::{
    gguf::Gguf,
    rng::Rng,
    vocab::{Kind, Vocabulary},
};

/// How many tokens of its input a layer's convolution sees, the last one included.
pub(super) const KERNEL: usize = 4;
/// How many latches the state holds: as many as there are groups of tokens.
pub(super) const LATCHES: usize = 20;

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
    vocabulary: Vocabulary,
    /// The cycle's order does not matter here, only its bytes and where a draft differs.
    chain: Chain,
    peak: f32,
    noise: f32,
}

impl Mamba {
    /// A target.
    pub fn target(seed: u64) -> Self {
        Self {
            label: "mamba".to_owned(),
            seed,
            vocabulary: Vocabulary::new(Kind::ByteLevel),
            chain: Chain::new(DEFAULT_CYCLE),
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
            chain: self.chain.draft(acceptance),
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
        &self.vocabulary
    }

    /// The token that greedy decoding gives after `context`, which must hold a token.
    pub fn next(&self, context: &[u32]) -> u32 {
        let mut state = State::default();
        context.iter().for_each(|token| state.read(self, *token));
        state.next(self)
    }

    /// The `n` tokens with which greedy decoding continues `prompt`, which must hold a token (special tokens included, as
    /// the model gets them).
    pub fn continuation(&self, prompt: &[u32], n: usize) -> Vec<u32> {
        let mut state = State::default();
        prompt.iter().for_each(|token| state.read(self, *token));
        let mut text = Vec::with_capacity(n);
        for _ in 0..n {
            let next = state.next(self);
            text.push(next);
            state.read(self, next);
        }
        text
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

    /// The tokens that may follow `token`: for a latch at 1 and at -1.
    pub(super) fn possible_next(&self, token: u32) -> [u32; 2] {
        let byte = self.vocabulary.byte(token);
        let place = self.place(token);
        let (group, member) = (place % LATCHES, place / LATCHES);
        // Two of the four members lead to one pair of successors, two to the other.
        let mut pairs = [0, 0, 1, 1];
        Rng::new(0, "pairs", group as u64).shuffle(&mut pairs);
        let differs = self.chain.place(byte).is_some_and(|place| self.chain.differs_at(place));
        let pair = if differs { 1 - pairs[member] } else { pairs[member] };
        [0, 1].map(|class| {
            let next = (group + 1) % LATCHES + (2 * pair + class) * LATCHES;
            self.vocabulary.token(self.chain.cycle()[next])
        })
    }

    /// The latch that `token` writes; it reads the next one.
    pub(super) fn latch(&self, token: u32) -> usize {
        self.place(token) % LATCHES
    }

    /// 1 for tokens that follow on a latch at 1, and -1 for the others; 0 for those outside of the cycle.
    pub(super) fn class(&self, token: u32) -> i32 {
        let place = self.chain.place(self.vocabulary.byte(token));
        place.map_or(0, |place| if (place / LATCHES).is_multiple_of(2) { 1 } else { -1 })
    }

    /// What `token` leaves for a latch to hold.
    pub(super) fn sign(&self, token: u32) -> i32 {
        // Both members of a pair keep or both turn the sign that chose them.
        if matches!(self.place(token) / LATCHES, 0 | 3) { 1 } else { -1 }
    }

    /// The place of a token in the cycle; one outside of it stands for one of it.
    fn place(&self, token: u32) -> usize {
        let byte = self.vocabulary.byte(token);
        self.chain.place(byte).unwrap_or_else(|| self.chain.entry(byte))
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

/// What a model remembers of its context.
#[derive(Clone, Debug, Default)]
struct State {
    latches: HashMap<usize, i32>,
    /// The last tokens, the newest first.
    last: Vec<u32>,
}

impl State {
    fn read(&mut self, model: &Mamba, token: u32) {
        self.last.insert(0, token);
        self.last.truncate(KERNEL);
        let written = self.last.get(KERNEL - 1).map_or(0, |token| model.sign(*token));
        self.latches.insert(model.latch(token), written);
    }

    /// A latch to which nothing was written yet counts as 1.
    fn next(&self, model: &Mamba) -> u32 {
        let last = *self.last.first().expect("a model needs a token to continue from");
        let read = self.latches.get(&((model.latch(last) + 1) % LATCHES)).copied().unwrap_or(0);
        model.possible_next(last)[usize::from(read < 0)]
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
