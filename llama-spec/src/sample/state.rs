//! Saving a sampler in the middle of a text, and going on in another process.

use super::options::SamplerOptions;
use super::sampler::Sampler;
use crate::error::{Error, Result};
use crate::ffi::status::Failed;
use crate::model::Model;
use crate::token::Token;
use serde::{Deserialize, Serialize};

/// Where a sampler stands, in a few numbers: [`Sampler::restore`] makes the rest from the tokens of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SamplerState {
    /// The seed in use; `None` when nothing is drawn.
    pub seed: Option<u32>,
    /// Random numbers that tokens were drawn with.
    pub draws: u64,
    /// Steps that the random numbers of [`Sampler::verify_rejection`] have taken.
    pub rejection_steps: u64,
    /// Tokens of the prompt it was told of.
    pub prompt: u64,
    /// Tokens it was told were generated.
    pub generated: u64,
    /// After how many generated tokens [`Sampler::end_reasoning`] was called with success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning_ended: Vec<u64>,
}

/// What the C side counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) draws: u64,
    pub(crate) rejection_steps: u64,
    pub(crate) prompt: u64,
    pub(crate) generated: u64,
    /// No token of the prompt came behind a generated one.
    pub(crate) in_order: bool,
}

impl Sampler {
    /// Where it stands: with the same options and the tokens of the text, [`restore`](Self::restore) makes a sampler that goes
    /// on in the same way, in this process or another.
    ///
    /// # Errors
    /// [`Error::State`] with [`mirostat`](field@SamplerOptions::mirostat), [`adaptive_p`](field@SamplerOptions::adaptive_p) or
    /// [`xtc`](field@SamplerOptions::xtc), whose state llama.cpp keeps to itself; when it was told of a prompt token behind a
    /// generated one; and when a seed was drawn that cannot be set (one in four thousand million).
    pub fn save(&self) -> Result<SamplerState> {
        let counts = self.raw.counts().map_err(cannot("this sampler cannot be saved"))?;
        if !counts.in_order {
            return refuse(
                "a token of the prompt was accepted behind a generated one; only a prompt and its answer can be saved",
            );
        }
        Ok(SamplerState {
            seed: self.raw.seed(),
            draws: counts.draws,
            rejection_steps: counts.rejection_steps,
            prompt: counts.prompt,
            generated: counts.generated,
            reasoning_ended: self.reasoning_ended.clone(),
        })
    }

    /// The sampler that [`save`](Self::save) was called on: `prompt` and `generated` are the tokens it was told of. The options
    /// are those it had; if they had no seed, the new sampler's have the one that was drawn. It has no candidates yet.
    ///
    /// # Errors
    /// What [`new`](Self::new) refuses; [`Error::State`] when the tokens are not as many as were saved, do not fit the grammar, or
    /// the state is of a sampler with another seed or asks for more than 2^28 random numbers.
    pub fn restore(
        model: &Model,
        options: &SamplerOptions,
        state: &SamplerState,
        prompt: &[Token],
        generated: &[Token],
    ) -> Result<Self> {
        let counts = [("prompt", state.prompt, prompt.len()), ("generated", state.generated, generated.len())];
        for (which, saved, given) in counts {
            if usize::try_from(saved) != Ok(given) {
                return refuse(format!("{given} tokens given as {which}, {saved} were saved"));
            }
        }
        if options.seed.is_some() && state.seed.is_some() && options.seed != state.seed {
            return refuse(format!("the options have the seed {:?}, the state {:?}", options.seed, state.seed));
        }
        let seed = state.seed.or(options.seed);
        let mut sampler = Self::new(model, &SamplerOptions { seed, ..options.clone() })?;
        if sampler.seed() != state.seed {
            return refuse("the state is of a sampler with other options: only one of the two draws random numbers");
        }
        for token in prompt {
            sampler.raw.accept(*token, false).map_err(cannot("a token of the prompt"))?;
        }
        sampler.replay(state, generated)?;
        sampler.raw.skip(state.draws, state.rejection_steps).map_err(cannot("random numbers"))?;
        Ok(sampler)
    }

    /// The answer, and the calls that fell between its tokens.
    fn replay(&mut self, state: &SamplerState, generated: &[Token]) -> Result<()> {
        let mut ends = state.reasoning_ended.iter().peekable();
        for position in 0..=generated.len() {
            while ends.next_if(|end| usize::try_from(**end) == Ok(position)).is_some() {
                if !self.end_reasoning()? {
                    return refuse(format!(
                        "no reasoning is going on after {position} tokens that could have been ended"
                    ));
                }
            }
            if let Some(token) = generated.get(position) {
                self.raw.accept(*token, true).map_err(cannot("a generated token"))?;
            }
        }
        match ends.next() {
            None => Ok(()),
            Some(end) => refuse(format!("reasoning was ended after {end} tokens, out of order or beyond the text")),
        }
    }
}

fn cannot(what: &'static str) -> impl FnOnce(Failed) -> Error {
    move |failed| Error::State { reason: format!("{what}: {}", failed.failure) }
}

fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::State { reason: reason.into() })
}
