//! Going on with a text of which only the tokens are left: the process that generated it is gone.

use super::response::Response;
use super::{Engine, Origin};
use crate::error::{Error, Result};
use crate::generate::{ContextFull, StopReason};
use crate::runner::Job;
use crate::sample::{Sampler, SamplerState};
use crate::token::Token;
use crate::{Request, SamplerOptions};
use serde::{Deserialize, Serialize};

/// How far a text had come: what a program that reads [`Event`](crate::Event)s knows of it. The memories are computed again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Midway {
    /// The prompt in tokens ([`Response::prompt`]).
    pub prompt: Vec<Token>,
    /// The tokens that were generated.
    pub generated: Vec<Token>,
    /// Tokens that were dropped from the context, all [`Event::Shifted`](crate::Event::Shifted) together.
    pub dropped: usize,
    /// Where the sampler stood after the last of these tokens ([`Event::Checkpoint`](crate::Event::Checkpoint)). Without it a new
    /// one is made, which has seen the tokens: a greedy text goes on all the same, one that is drawn with other random numbers.
    pub sampler: Option<SamplerState>,
}

impl Engine {
    /// Goes on with a text from its tokens alone: the events are those of the tokens that were still to come. With the same
    /// target and where computing several tokens at once rounds as computing them one by one, the text is the one it would have
    /// been; kernels for quantized weights do not always round so, and a near-tie can then turn around.
    ///
    /// The options of the request hold for the whole text: a limit of 100 tokens of which 60 are there leaves 40. If it had several
    /// answers, it must have the seed of this one.
    ///
    /// ```
    /// # use llama_spec::engine::Midway;
    /// # use llama_spec::{Engine, Event, ModelFile, Request};
    /// # let target = ModelFile::open(llama_spec_tests::zoo::file("target"))?;
    /// # let engine = Engine::builder(target).context_per_slot(512).build()?;
    /// let request = Request::prompt("Hello").greedy().max_tokens(30).checkpoints(true);
    /// let mut midway = Midway::default();
    /// let mut response = engine.generate(request.clone())?;
    /// midway.prompt = response.prompt().to_vec();
    /// for event in response.by_ref() {
    ///     match event? {
    ///         Event::Token { token, .. } => midway.generated.push(token),
    ///         // Of all tokens so far.
    ///         Event::Checkpoint(state) => {
    ///             midway.sampler = state.map(|state| *state);
    ///             break;
    ///         }
    ///         _ => {}
    ///     }
    /// }
    /// drop(response);
    /// let rest = engine.resume_from(&request, &midway)?.output()?;
    /// assert_eq!(midway.generated.len() + rest.tokens.len(), 30);
    /// # Ok::<_, llama_spec::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::State`] when the tokens do not fit the context, or the sampler's state is of other tokens; else as
    /// [`Engine::generate`].
    pub fn resume_from(&self, request: &Request, midway: &Midway) -> Result<Response> {
        let (mut job, response) = self.prepare(request, midway.prompt.clone(), Origin::Midway(midway))?;
        job.tokens = midway.context(request.context_full, self.context_length() as usize);
        job.generated.clone_from(&midway.generated);
        let stopped = job.answer.replay(self.model().vocab(), &midway.generated);
        // It had ended, and only the news of that was lost.
        let ended = match () {
            () if stopped => Some(StopReason::StopString),
            () if job.answer.budget() == 0 => Some(StopReason::MaxTokens),
            () => None,
        };
        match ended {
            Some(reason) => {
                let Job { answer, stats, .. } = job;
                answer.finish(reason, stats);
            }
            None => self.shared.submit(job, request.priority)?,
        }
        Ok(response)
    }
}

impl Midway {
    /// What the context held of prompt and answer.
    fn context(&self, policy: ContextFull, length: usize) -> Vec<Token> {
        let mut tokens = [self.prompt.as_slice(), &self.generated].concat();
        if let ContextFull::Shift { keep } = policy {
            // What is dropped is always behind what is kept.
            let keep = (keep as usize).min(length / 2).min(tokens.len());
            tokens.drain(keep..tokens.len().min(keep + self.dropped));
        }
        tokens
    }

    /// Whether it can go on with this engine.
    pub(super) fn check(&self, engine: &Engine, policy: ContextFull) -> Result<()> {
        let (tokens, room) = (self.context(policy, engine.context_length() as usize).len(), engine.context_length());
        if tokens > room as usize {
            let reason = format!("the text has {tokens} tokens, this engine has room for {room}");
            return Err(Error::State { reason });
        }
        let vocab = engine.model().vocab();
        self.generated.iter().try_for_each(|token| vocab.check(*token).map(drop))
    }

    pub(super) fn sampler(&self, engine: &Engine, options: &SamplerOptions) -> Result<Sampler> {
        if let Some(state) = &self.sampler {
            let options = SamplerOptions { seed: state.seed.or(options.seed), ..options.clone() };
            return Sampler::restore(engine.model(), &options, state, &self.prompt, &self.generated);
        }
        let mut sampler = Sampler::new(engine.model(), options)?;
        self.prompt.iter().try_for_each(|token| sampler.accept_prompt(*token))?;
        self.generated.iter().try_for_each(|token| sampler.accept(*token))?;
        Ok(sampler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_is_what_the_shifts_left() {
        let tokens = |range: std::ops::Range<i32>| range.map(Token::new).collect::<Vec<_>>();
        let midway = Midway { prompt: tokens(0..4), generated: tokens(4..20), dropped: 7, sampler: None };
        let left = midway.context(ContextFull::Shift { keep: 3 }, 16);
        assert_eq!(left, [tokens(0..3), tokens(10..20)].concat());
        assert_eq!(midway.context(ContextFull::Shift { keep: 100 }, 16), [tokens(0..8), tokens(15..20)].concat());
        assert_eq!(midway.context(ContextFull::Stop, 16), tokens(0..20));
        let absurd = Midway { dropped: usize::MAX / 2, ..midway };
        assert_eq!(absurd.context(ContextFull::Shift { keep: 3 }, 16), tokens(0..3));
    }
}
