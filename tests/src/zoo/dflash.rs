//! DFlash and DSpark drafts: description, and what they draft.

use super::{
    chain::{Chain, Next},
    described::Described,
    dflash_weights as weights,
    llama::Llama,
    places::CYCLE,
    rounds::Round,
};
use crate::{gguf::Gguf, vocab::Special};

/// The description of a DFlash or DSpark draft for a [`Llama`] target, whose drafts are known.
///
/// The draft is given the last token and as many mask tokens as it shall fill, and draws on what the target's layers held
/// for all tokens before. It needs both: only where the target's state at the token before says that it expected the last
/// token, the masks become what follows that; else each becomes [`Dflash::wrong`]. So missing, stale and shifted hidden
/// states show, and so do positions that are off.
///
/// Two layers in F16 of the target's width, 0.6 MB. The target must have the default cycle. Where it
/// [recalls](Llama::with_recall), a draft of the same target without recall loads, and is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Dflash {
    label: String,
    target: Llama,
    chain: Chain,
    layout: Layout,
    own_embeddings: bool,
    own_head: bool,
    reduced: bool,
    mask: bool,
    block_size: Option<u32>,
    target_layers: Vec<i32>,
}

/// What the positions of a block stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// DFlash: the last token is given, each mask becomes the token at its own place.
    Block,
    /// DFlash2: the same, with convolutions that change nothing and a selector that takes the most probable tokens.
    Selected,
    /// DSpark: each position gives the token after it, the last token's too; a Markov head chains them.
    SparkFromAnchor,
    /// DSpark in the layout of DFlash.
    SparkInPlace,
}

impl Llama {
    /// A DFlash draft for this target with embeddings and head of its own, in blocks of 8, which agrees with the target on
    /// the share `acceptance` of the cycle, as [`Llama::draft`] does.
    pub fn dflash(&self, acceptance: f64) -> Dflash {
        self.block_draft(format!("dflash-{acceptance}"), acceptance, Layout::Block)
    }

    /// A DSpark draft, as [`Llama::dflash`], whose confidence is 0.88 at each position.
    pub fn dspark(&self, acceptance: f64) -> Dflash {
        self.block_draft(format!("dspark-{acceptance}"), acceptance, Layout::SparkFromAnchor)
    }

    /// A DFlash2 draft, as [`Llama::dflash`].
    pub fn dflash2(&self, acceptance: f64) -> Dflash {
        self.block_draft(format!("dflash2-{acceptance}"), acceptance, Layout::Selected)
    }

    fn block_draft(&self, label: String, acceptance: f64, layout: Layout) -> Dflash {
        assert!(self.cycle().len() == CYCLE && self.recall().is_none(), "no DFlash draft for this target");
        let layers = self.shape().layers as i32;
        Dflash {
            label,
            target: self.clone(),
            chain: self.chain().draft(acceptance),
            layout,
            own_embeddings: true,
            own_head: true,
            reduced: false,
            mask: true,
            block_size: Some(weights::BLOCK as u32),
            target_layers: vec![0, layers / 2, layers - 1],
        }
    }
}

impl Dflash {
    /// Leaves the embeddings out of the file: the target's are used. The token that the masks then look like, the last of
    /// the cycle, drafts only wrong tokens. Not for [`Layout::SparkFromAnchor`].
    pub fn without_embeddings(mut self) -> Self {
        assert!(self.layout != Layout::SparkFromAnchor, "positions of this layout need embeddings of their own");
        self.own_embeddings = false;
        self
    }

    /// Leaves the head out of the file: the target's is used.
    pub fn without_head(mut self) -> Self {
        assert!(!self.reduced, "a reduced vocabulary needs a head of its own");
        self.own_head = false;
        self
    }

    /// Gives logits only for the tokens of the cycle, [`Dflash::wrong`] and the end, and a table `d2t` of their ids, in an
    /// order of its own.
    pub fn with_reduced_vocabulary(mut self) -> Self {
        assert!(self.own_head, "a reduced vocabulary needs a head of its own");
        self.reduced = true;
        self
    }

    /// Leaves the id of the mask token out of the file: llama.cpp ends the process at the first draft.
    pub fn without_mask_token(mut self) -> Self {
        self.mask = false;
        self
    }

    /// Leaves the size of the blocks out of the file: llama.cpp then takes 16 for DFlash; with DSpark it ends the process when
    /// a context is made.
    pub fn without_block_size(mut self) -> Self {
        self.block_size = None;
        self
    }

    /// Sets the layout.
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the target's layers that are read, of which llama.cpp reads the inputs; the first must be the target's first.
    /// Numbers beyond the target's make a draft that does not fit.
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

    /// The share of the cycle on which this draft agrees with the target.
    pub fn acceptance(&self) -> f64 {
        self.chain.acceptance()
    }

    /// The most tokens of one draft.
    pub fn longest(&self) -> usize {
        if self.layout == Layout::SparkFromAnchor { weights::BLOCK } else { weights::BLOCK - 1 }
    }

    /// What the draft gives after `last`, where the target expected `last`: `n` tokens, or the most it can.
    pub fn drafted(&self, last: u32, n: usize) -> Vec<u32> {
        let n = n.min(self.longest());
        if !self.own_embeddings && self.place(last) == CYCLE - 1 {
            return vec![self.wrong(); n];
        }
        match self.layout {
            // Each mask counts its place from the last token, whatever the masks before it became.
            Layout::Block | Layout::Selected => {
                (0..n).map(|before| self.predicted(self.place(last) + before)).collect()
            }
            _ => {
                let next = |token: &u32| self.token(self.chain.next(self.target.vocabulary().byte(*token)));
                std::iter::successors(Some(next(&last)), |token| Some(next(token))).take(n).collect()
            }
        }
    }

    /// The rounds of greedy speculative decoding with this draft, as those of [`Llama::speculate`].
    pub fn speculate(&self, prompt: &[u32], n: usize, draft_length: usize) -> Vec<Round> {
        let draft = |context: &[u32]| self.drafted(context[context.len() - 1], draft_length);
        self.target.speculate_by(draft, prompt, n, draft_length)
    }

    /// What the draft gives where the target expected another token: one that the target never gives.
    pub fn wrong(&self) -> u32 {
        self.target.vocabulary().token(b'\n')
    }

    /// What the draft gives after the token at `place` of the cycle, which may be counted on beyond its end.
    pub(super) fn predicted(&self, place: usize) -> u32 {
        self.token(self.chain.next(Some(self.target.cycle()[place % CYCLE])))
    }

    /// The place of a token in the cycle; for one outside of it, that of the token with the same successor.
    pub(super) fn place(&self, token: u32) -> usize {
        let chain = self.target.chain();
        let byte = self.target.vocabulary().byte(token);
        chain.place(byte).unwrap_or_else(|| (chain.entry(byte) + CYCLE - 1) % CYCLE)
    }

    pub(super) fn token(&self, next: Next) -> u32 {
        match next {
            Next::Byte(byte) => self.target.vocabulary().token(byte),
            Next::End => self.end(),
        }
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn end(&self) -> u32 {
        self.target.vocabulary().special(Special::MessageEnd)
    }

    /// The token that stands for a mask.
    pub(super) fn mask(&self) -> u32 {
        self.target.vocabulary().special(Special::Pad)
    }

    pub(super) fn states_mask(&self) -> bool {
        self.mask
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    pub(super) fn is_spark(&self) -> bool {
        matches!(self.layout, Layout::SparkFromAnchor | Layout::SparkInPlace)
    }

    pub(super) fn block_size(&self) -> Option<u32> {
        self.block_size
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
}

impl Described for Dflash {
    fn label(&self) -> &str {
        &self.label
    }

    fn gguf(&self) -> Gguf<'_> {
        weights::gguf(self)
    }
}
