//! Assistants of Gemma 4: description, and what they draft.

use super::{
    assistant_weights as weights,
    chain::{Chain, Next},
    described::Described,
    llama::Llama,
    rounds::Round,
    transformer::{Family, Transformer},
};
use crate::{gguf::Gguf, vocab::Special};

/// The description of an assistant for a Gemma 4 target, whose drafts are known.
///
/// As an [`Eagle3`](super::Eagle3) draft it needs the token that came and what the target's last state said of it: where the
/// target expected another token, or the state is missing or off by a position, it gives [`Assistant::wrong`]. Its layers
/// attend to the keys and values in the target's memory, which adds noise and changes no token.
///
/// Two layers in F16, one of each kind; 0.4 MB.
#[derive(Clone, Debug, PartialEq)]
pub struct Assistant {
    label: String,
    target: Transformer,
    chain: Chain,
}

impl Transformer {
    /// An assistant for this target, a [`Family::Gemma4`], which agrees with the target on the share `acceptance` of the
    /// cycle, as [`Llama::draft`] does.
    pub fn assistant(&self, acceptance: f64) -> Assistant {
        assert_eq!(self.family(), Family::Gemma4, "only Gemma 4 has assistants");
        let chain = self.text().chain().draft(acceptance);
        Assistant { label: format!("gemma4-assistant-{acceptance}"), target: self.clone(), chain }
    }
}

impl Assistant {
    /// Sets the label, which begins the names of cached files.
    pub fn labelled(mut self, label: &str) -> Self {
        self.label = label.to_owned();
        self
    }

    /// The target.
    pub fn target(&self) -> &Transformer {
        &self.target
    }

    /// The share of the cycle on which this draft agrees with the target.
    pub fn acceptance(&self) -> f64 {
        self.chain.acceptance()
    }

    /// What the draft gives after `token`, where the target expected `token`.
    pub fn successor(&self, token: u32) -> u32 {
        match self.chain.next(self.text().vocabulary().byte(token)) {
            Next::Byte(byte) => self.text().vocabulary().token(byte),
            Next::End => self.end(),
        }
    }

    /// What the draft gives where the target expected another token: one that the target never gives.
    pub fn wrong(&self) -> u32 {
        self.text().vocabulary().token(b'\n')
    }

    /// The rounds of greedy speculative decoding with this draft, as those of [`Llama::speculate`].
    pub fn speculate(&self, prompt: &[u32], n: usize, draft_length: usize) -> Vec<Round> {
        let draft = |context: &[u32]| {
            let last = context[context.len() - 1];
            std::iter::successors(Some(last), |token| Some(self.successor(*token))).skip(1).take(draft_length).collect()
        };
        self.text().speculate_by(draft, prompt, n, draft_length)
    }

    pub(super) fn text(&self) -> &Llama {
        self.target.text()
    }

    pub(super) fn end(&self) -> u32 {
        self.text().vocabulary().special(Special::MessageEnd)
    }
}

impl Described for Assistant {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}
