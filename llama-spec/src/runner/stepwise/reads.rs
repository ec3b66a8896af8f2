//! What a draft reads of its target, and how it is paired with tokens.
//!
//! | method | reads | pairs the hidden state of the token at `p` with |
//! |---|---|---|
//! | `draft-simple` | nothing | - |
//! | `draft-mtp` | the state before the last norm | the token at `p + 1`, at position `p + 1` |
//! | `draft-eagle3` | the inputs of three layers, which its encoder makes one row of | the token at `p + 1`, at position `p` |
//!
//! MTP: DeepSeek-AI 2024, arXiv 2412.19437, section 2.2. EAGLE-3: Li et al. 2025, arXiv 2503.01840, section 3.1.

use super::Sides;
use crate::context::Context;
use crate::error::{DecodeError, Failure};
use crate::ffi::status::Failed;
use crate::spec::Method;

/// What a draft reads of its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    Nothing,
    /// The state before the last norm.
    Hidden,
    /// These layers' inputs, the last of which may be what is behind all of them.
    Layers(Vec<u32>),
}

impl Reads {
    /// What a draft of this method reads; the target gives it from the next batch on.
    pub(super) fn switch_on(method: Method, target: &mut Context, draft: &mut Context) -> Result<Self, Failed> {
        match method {
            Method::DraftMtp => {
                target.give_hidden(false)?;
                draft.give_hidden(true)?;
                Ok(Self::Hidden)
            }
            Method::DraftEagle3 => {
                let layers = draft.model().raw().target_layers()?;
                let layers: Vec<u32> = layers.into_iter().filter_map(|layer| u32::try_from(layer).ok()).collect();
                for layer in &layers {
                    match *layer < target.model().layers() {
                        true => target.give_layer_input(*layer)?,
                        false => target.give_hidden(false)?,
                    }
                }
                draft.give_hidden(true)?;
                Ok(Self::Layers(layers))
            }
            _ => Ok(Self::Nothing),
        }
    }

    /// How many positions before its token a pair stands.
    pub(super) fn shift(&self) -> u32 {
        u32::from(matches!(self, Self::Layers(_)))
    }

    /// The values of a row that is read beside a token.
    pub(super) fn width(&self, draft: &Context) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Hidden => draft.model().output_width() as usize,
            Self::Layers(_) => draft.model().width() as usize,
        }
    }

    /// Appends what is read of these entries of the target's last batch.
    pub(super) fn read(
        &self,
        target: &Context,
        entries: std::ops::Range<usize>,
        into: &mut Vec<f32>,
    ) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::Hidden => {
                for entry in entries {
                    into.extend_from_slice(target.hidden(entry)?);
                }
                Ok(())
            }
            Self::Layers(layers) => {
                let width = target.model().width() as usize;
                let inner = |layer: u32| layer < target.model().layers();
                let inputs = layers.iter().map(|layer| match inner(*layer) {
                    true => target.layer_input(*layer).map(Some),
                    false => Ok(None),
                });
                let inputs: Vec<Option<&[f32]>> = inputs.collect::<Result<_, Failure>>()?;
                for entry in entries {
                    for input in &inputs {
                        let row = match input {
                            Some(rows) => rows.get(entry * width..(entry + 1) * width),
                            None => Some(target.hidden(entry)?),
                        };
                        into.extend_from_slice(
                            row.ok_or_else(|| Failure::new("the target gave too few hidden states"))?,
                        );
                    }
                }
                Ok(())
            }
        }
    }

    /// Makes rows that are read beside tokens of the inputs of layers.
    pub(super) fn encode(&self, sides: &mut Sides<'_>, read: &[f32]) -> Result<Vec<f32>, DecodeError> {
        let Self::Layers(layers) = self else { return Ok(read.to_vec()) };
        let mut made = Vec::new();
        let width = layers.len() * sides.target.model().width() as usize;
        let most = sides.draft.micro_batch_size().min(sides.draft.batch_size()) as usize;
        for piece in read.chunks((most * width).max(1)) {
            sides.draft.encode_features(piece, width)?;
            for entry in 0..piece.len() / width.max(1) {
                let row = sides.draft.hidden(entry).map_err(|failure| DecodeError::Refused { failure })?;
                made.extend_from_slice(row);
            }
        }
        Ok(made)
    }
}
