//! A text that is being generated, saved with everything that is needed to go on: one unit with a version.

use super::request::Request;
use crate::checksum::{FIRST, checksum};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::runner::{Job, Restore};
use crate::sample::{Sampler, SamplerState};
use crate::spec::Stats;
use crate::token::Token;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What every saved state begins with.
const MAGIC: &[u8; 8] = b"llmspec\0";

/// The version of the form; another one is refused.
const VERSION: u32 = 1;

/// The state of a text: what the memories of target and draft hold, the drafter's and the sampler's state, and how far the text
/// has come.
///
/// [`SavedState::to_bytes`] and [`SavedState::from_bytes`] carry it to another process. It fits engines with the same target
/// file; with another draft, context or set of methods the text goes on as well, and what cannot be taken over is computed
/// again.
///
/// Accidents on the way are noticed, forgery is not: the memories are taken from the bytes by llama.cpp, which trusts them. Take
/// states only from where you would take programs.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedState {
    head: Head,
    memory: Restore,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    target: Fingerprint,
    request: Request,
    prompt: Vec<Token>,
    generated: Vec<Token>,
    /// What the context holds of both, and the last token, which differ after the context was shifted.
    tokens: Vec<Token>,
    sampler: SamplerState,
    stats: Stats,
    /// How many of the tokens the memory holds.
    held: usize,
    /// Bytes of the memory of the target, of the draft, and of the drafter's own state, which follow in this order.
    lengths: [usize; 3],
}

/// What tells two target files apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    description: String,
    parameters: u64,
    bytes: u64,
    vocabulary: u32,
}

impl Fingerprint {
    fn of(model: &Model) -> Self {
        Self {
            description: model.description(),
            parameters: model.parameters(),
            bytes: model.size_bytes(),
            vocabulary: model.vocab().len(),
        }
    }
}

impl SavedState {
    pub(super) fn new(model: &Model, job: &Job, memory: Restore) -> Result<Self> {
        let request = job.request.as_deref().cloned();
        let request = request.ok_or_else(|| state("this text was not asked of an engine"))?;
        let lengths = [memory.target.len(), memory.draft.len(), memory.drafter.len()];
        let head = Head {
            target: Fingerprint::of(model),
            request,
            prompt: job.prompt.clone(),
            generated: job.generated.clone(),
            tokens: job.tokens.clone(),
            sampler: job.sampler.save()?,
            stats: job.stats.clone(),
            held: memory.tokens,
            lengths,
        };
        Ok(Self { head, memory })
    }

    /// The prompt in tokens.
    pub fn prompt(&self) -> &[Token] {
        &self.head.prompt
    }

    /// The tokens generated so far.
    pub fn generated(&self) -> &[Token] {
        &self.head.generated
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.head.request
    }

    /// As bytes, to be kept or sent.
    ///
    /// # Errors
    /// [`Error::State`] when it is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let head = serde_json::to_vec(&self.head).map_err(|error| state(error.to_string()))?;
        let length = u32::try_from(head.len()).map_err(|_| state("the text is too long"))?;
        let Restore { target, draft, drafter, .. } = &self.memory;
        let mut bytes = Vec::with_capacity(24 + head.len() + target.len() + draft.len() + drafter.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        for part in [&head, target, draft, drafter] {
            bytes.extend_from_slice(part);
        }
        let sum = checksum(FIRST, &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// From what [`SavedState::to_bytes`] gave.
    ///
    /// # Errors
    /// [`Error::State`] when the bytes are damaged, of another version or something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| state("these bytes are no saved text"))?;
        let (version, rest) = number(rest)?;
        if version != VERSION {
            return Err(state(format!("saved in version {version} of the form, this is version {VERSION}")));
        }
        let (rest, sum) = rest.split_last_chunk::<8>().ok_or_else(cut_short)?;
        if checksum(FIRST, &bytes[..bytes.len() - 8]) != u64::from_le_bytes(*sum) {
            return Err(state("the bytes are damaged or cut short"));
        }
        let (length, rest) = number(rest)?;
        let (head, rest) = rest.split_at_checked(length as usize).ok_or_else(cut_short)?;
        let head: Head = serde_json::from_slice(head).map_err(|error| state(error.to_string()))?;
        let [target, draft, drafter] = head.lengths;
        let (target, rest) = rest.split_at_checked(target).ok_or_else(cut_short)?;
        let (draft, rest) = rest.split_at_checked(draft).ok_or_else(cut_short)?;
        if rest.len() != drafter || head.tokens.is_empty() || head.held >= head.tokens.len() {
            return Err(cut_short());
        }
        if !can_be_counted_on(&head.stats) {
            return Err(state("the numbers cannot have been counted"));
        }
        let memory =
            Restore { target: target.to_vec(), draft: draft.to_vec(), drafter: rest.to_vec(), tokens: head.held };
        Ok(Self { head, memory })
    }

    /// Whether it can go on with this model and this room.
    pub(super) fn check(&self, model: &Model, context: u32) -> Result<()> {
        let (saved, here) = (&self.head.target, Fingerprint::of(model));
        if *saved != here {
            let words = |one: &Fingerprint| format!("{} of {} bytes", one.description, one.bytes);
            return Err(state(format!("saved with {}, this engine has {}", words(saved), words(&here))));
        }
        if self.head.tokens.len() > context as usize {
            let tokens = self.head.tokens.len();
            return Err(state(format!("the text has {tokens} tokens, this engine has room for {context}")));
        }
        let vocab = model.vocab();
        self.head.tokens.iter().chain(&self.head.generated).try_for_each(|token| vocab.check(*token).map(drop))
    }

    pub(super) fn sampler(&self, model: &Model) -> Result<Sampler> {
        let Head { request, sampler, prompt, generated, .. } = &self.head;
        let options = crate::SamplerOptions {
            seed: sampler.seed.or(request.options.sampler.seed),
            ..request.options.sampler.clone()
        };
        Sampler::restore(model, &options, sampler, prompt, generated)
    }

    /// Puts what was saved into a new job.
    pub(super) fn fill(&self, job: &mut Job) {
        job.tokens.clone_from(&self.head.tokens);
        job.generated.clone_from(&self.head.generated);
        job.stats = self.head.stats.clone();
        let _ = job.answer.replay(job.sampler.model().vocab(), &self.head.generated);
        job.restore = Some(self.memory.clone());
    }
}

/// Whether these numbers are consistent, and small enough that whatever is added to them fits.
fn can_be_counted_on(stats: &Stats) -> bool {
    const COUNT: u64 = 1 << 48;
    const TIME: Duration = Duration::from_secs(1 << 40);
    let counts = [
        stats.prompt_tokens,
        stats.cached_tokens,
        stats.generated_tokens,
        stats.rounds,
        stats.drafts,
        stats.drafted,
        stats.accepted,
        stats.failures,
    ];
    let times = [stats.queue, stats.prefill, stats.draft, stats.verify, stats.sample, stats.rollback, stats.generation];
    let positions = stats.drafted_per_position.iter().chain(&stats.accepted_per_position);
    let of_sources = stats.per_source_and_position.iter().flat_map(|(_, counts)| counts);
    stats.drafted_per_position.len() == stats.accepted_per_position.len()
        && counts.iter().chain(positions).all(|count| *count < COUNT)
        && of_sources.flat_map(|(drafted, accepted)| [drafted, accepted]).all(|count| *count < COUNT)
        && times.iter().all(|time| *time < TIME)
}

fn state(reason: impl Into<String>) -> Error {
    Error::State { reason: reason.into() }
}

fn cut_short() -> Error {
    state("the bytes do not fit together")
}

fn number(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_short)?;
    Ok((u32::from_le_bytes(*number), rest))
}
