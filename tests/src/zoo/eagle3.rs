//! EAGLE-3 drafts: description, and what they draft.

use super::{
    chain::{Chain, Next},
    described::Described,
    eagle3_weights as weights,
    llama::Llama,
    recall,
    rounds::Round,
};
use crate::{gguf::Gguf, vocab::Special};

/// The description of an EAGLE-3 draft for a [`Llama`] target, whose drafts are known.
///
/// The draft is given a token and what the target's layers held one position earlier, and it needs both. The target's
/// state says which token it expects; only where the token that came is that one, the draft gives its successor. Hidden
/// states that are missing, stale or off by a position therefore lower the acceptance to nothing: the draft is then
/// [`Eagle3::wrong`] each time. Where the target [recalls](Llama::with_recall) its state does not say what comes next, and
/// the draft goes by the token alone.
///
/// One layer in F16 with a feed-forward unit for each token of the target's cycle, 0.5 MB at the target's width.
#[derive(Clone, Debug, PartialEq)]
pub struct Eagle3 {
    label: String,
    target: Llama,
    chain: Chain,
    width: u32,
    own_embeddings: bool,
    own_head: bool,
    reduced: bool,
    target_layers: Vec<i32>,
    target_width: u32,
}

impl Llama {
    /// An EAGLE-3 draft for this target with embeddings and head of its own, which agrees with the target on the share
    /// `acceptance` of the cycle, as [`Llama::draft`] does. Where the target recalls, it is about half of that.
    pub fn eagle3(&self, acceptance: f64) -> Eagle3 {
        let layers = self.shape().layers as i32;
        Eagle3 {
            label: format!("eagle3-{acceptance}"),
            target: self.clone(),
            chain: self.chain().draft(acceptance),
            width: self.shape().width,
            own_embeddings: true,
            own_head: true,
            reduced: false,
            target_layers: vec![0, layers / 2, layers - 1],
            target_width: self.shape().width,
        }
    }
}

impl Eagle3 {
    /// Leaves the embeddings out of the file: the target's are used, so the width must be the target's.
    pub fn without_embeddings(mut self) -> Self {
        self.own_embeddings = false;
        self
    }

    /// Leaves the head out of the file: the target's is used, so width and vocabulary must be the target's.
    pub fn without_head(mut self) -> Self {
        assert!(!self.reduced, "a reduced vocabulary needs a head of its own");
        self.own_head = false;
        self
    }

    /// Gives logits only for the tokens of the cycle, [`Eagle3::wrong`] and the end, and a table `d2t` of their ids, in an
    /// order of its own.
    pub fn with_reduced_vocabulary(mut self) -> Self {
        assert!(self.own_head, "a reduced vocabulary needs a head of its own");
        self.reduced = true;
        self
    }

    /// Sets the width, which is the target's by default; even, and at most the target's twice.
    pub fn with_width(mut self, width: u32) -> Self {
        assert!(width.is_multiple_of(2) && width / 2 + 3 <= self.target.shape().width, "no draft of width {width}");
        self.width = width;
        self
    }

    /// Sets the width of the target that the file is for. Another than the target's makes a draft that does not fit.
    pub fn for_target_width(mut self, width: u32) -> Self {
        self.target_width = width;
        self
    }

    /// Sets the target's layers that are read: three, of which llama.cpp reads the inputs. Numbers beyond the target's make
    /// a draft that does not fit.
    pub fn with_target_layers(mut self, layers: impl Into<Vec<i32>>) -> Self {
        self.target_layers = layers.into();
        self
    }

    /// Sets the label, which begins the names of cached files.
    pub fn labelled(mut self, label: &str) -> Self {
        self.label = label.to_owned();
        self
    }

    /// The target.
    pub fn target(&self) -> &Llama {
        &self.target
    }

    /// The share of the cycle on which this draft agrees with a target without recall.
    pub fn acceptance(&self) -> f64 {
        self.chain.acceptance()
    }

    /// What the draft gives after `token`, where the target expected `token`.
    pub fn successor(&self, token: u32) -> u32 {
        let byte = self.target.vocabulary().byte(token);
        match self.target.recall() {
            None => self.token(self.chain.next(byte)),
            Some(_) => self.token(recall::successors(&self.chain, byte)[0]),
        }
    }

    /// The rounds of greedy speculative decoding with this draft, as those of [`Llama::speculate`].
    pub fn speculate(&self, prompt: &[u32], n: usize, draft_length: usize) -> Vec<Round> {
        let draft = |context: &[u32]| {
            let last = context[context.len() - 1];
            std::iter::successors(Some(last), |token| Some(self.successor(*token))).skip(1).take(draft_length).collect()
        };
        self.target.speculate_by(draft, prompt, n, draft_length)
    }

    /// What the draft gives where the target expected another token: one that the target never gives.
    pub fn wrong(&self) -> u32 {
        self.target.vocabulary().token(b'\n')
    }

    fn token(&self, next: Next) -> u32 {
        match next {
            Next::Byte(byte) => self.target.vocabulary().token(byte),
            Next::End => self.end(),
        }
    }

    pub(super) fn end(&self) -> u32 {
        self.target.vocabulary().special(Special::MessageEnd)
    }

    pub(super) fn width(&self) -> usize {
        self.width as usize
    }

    pub(super) fn own_embeddings(&self) -> bool {
        self.own_embeddings
    }

    pub(super) fn own_head(&self) -> bool {
        self.own_head
    }

    pub(super) fn reduced(&self) -> bool {
        self.reduced
    }

    pub(super) fn target_layers(&self) -> &[i32] {
        &self.target_layers
    }

    pub(super) fn target_width(&self) -> usize {
        self.target_width as usize
    }
}

impl Described for Eagle3 {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}
