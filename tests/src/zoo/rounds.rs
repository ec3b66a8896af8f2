//! What speculative decoding must do with a draft: rounds and counts, from the oracles of target and draft.

use super::llama::Llama;

/// One round of speculative decoding: a draft, and what the target made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Number of drafted tokens.
    pub drafted: usize,
    /// Number of those the target accepted. The round yields one token more: the target's own.
    pub accepted: usize,
}

/// Counts over rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// Drafted tokens.
    pub drafted: usize,
    /// Accepted tokens.
    pub accepted: usize,
    /// Accepted tokens and the first wrong one of each draft: those of which the target's opinion is known.
    pub tested: usize,
}

impl Acceptance {
    /// Counts `rounds`.
    pub fn of(rounds: &[Round]) -> Self {
        rounds.iter().fold(Self::default(), |sum, round| Self {
            drafted: sum.drafted + round.drafted,
            accepted: sum.accepted + round.accepted,
            tested: sum.tested + (round.accepted + 1).min(round.drafted),
        })
    }

    /// Accepted to tested tokens: the probability that a token is accepted, given that those before it were.
    pub fn rate(&self) -> f64 {
        self.accepted as f64 / self.tested as f64
    }
}

impl Llama {
    /// The share of the first `n` tokens of this target's continuation of `prompt` that `draft` predicts.
    pub fn agreement(&self, draft: &Self, prompt: &[u32], n: usize) -> f64 {
        let tokens = [prompt, &self.continuation(prompt, n)].concat();
        let steps = prompt.len()..tokens.len();
        let agreeing = steps.clone().filter(|&at| draft.next(&tokens[..at]) == tokens[at]).count();
        agreeing as f64 / steps.len() as f64
    }

    /// The rounds of greedy speculative decoding with `draft`, which shares the vocabulary, in drafts of always
    /// `draft_length` tokens, until `n` tokens or more are generated or generation ends. Before the first round the
    /// target has generated one token from the prompt, as llama.cpp's programs do.
    pub fn speculate(&self, draft: &Self, prompt: &[u32], n: usize, draft_length: usize) -> Vec<Round> {
        self.speculate_by(|context| draft.continuation(context, draft_length), prompt, n, draft_length)
    }

    /// The same with any drafter: `draft` gives at most `draft_length` tokens after those it is given.
    pub fn speculate_by(
        &self,
        draft: impl FnMut(&[u32]) -> Vec<u32>,
        prompt: &[u32],
        n: usize,
        draft_length: usize,
    ) -> Vec<Round> {
        let text = self.continuation(prompt, n + draft_length + 1);
        rounds(prompt, &text, n, draft, |token| self.is_end(token))
    }
}

/// The rounds in which `draft` speculates on `text`, which is longer than `n` by a draft or ends generation.
pub(super) fn rounds(
    prompt: &[u32],
    text: &[u32],
    n: usize,
    mut draft: impl FnMut(&[u32]) -> Vec<u32>,
    is_end: impl Fn(u32) -> bool,
) -> Vec<Round> {
    let tokens = [prompt, text].concat();
    let mut rounds = Vec::new();
    let mut at = prompt.len() + 1;
    while at < prompt.len() + n && at < tokens.len() && !is_end(tokens[at - 1]) {
        let drafted = draft(&tokens[..at]);
        let accepted = drafted.iter().zip(&tokens[at..]).take_while(|(drafted, right)| drafted == right).count();
        rounds.push(Round { drafted: drafted.len(), accepted });
        at += accepted + 1;
    }
    rounds
}
