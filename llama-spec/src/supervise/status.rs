//! What is known of a worker at any time, without asking it.

use super::load::Load;
use crate::engine::EngineStats;
use crate::probe::ProbeReport;
use crate::spec::Speculation;
use crate::token::Token;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What state the engine is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum State {
    /// It is being loaded and tried for the first time, or because somebody asked for it.
    Starting {
        /// How much of the target is loaded, 0 to 1.
        target: f32,
        /// How much of the draft is loaded, 0 to 1; nothing before its turn.
        draft: Option<f32>,
    },
    /// It has generated, and does.
    Ready,
    /// It generates, though not as it was asked to.
    Degraded {
        /// Why.
        reason: String,
    },
    /// It broke down and is being started again; texts wait for it.
    Recovering {
        /// What happened.
        reason: String,
    },
    /// It broke down too often, or cannot be loaded.
    Failed {
        /// What happened, and what to do.
        reason: String,
    },
    /// Nothing is loaded.
    Unloaded,
    /// It is being shut down.
    Stopping,
}

impl State {
    /// Whether a request would be answered now.
    pub fn is_serving(&self) -> bool {
        matches!(self, Self::Ready | Self::Degraded { .. })
    }

    /// Its name: `starting`, `ready`, `degraded`, `recovering`, `failed`, `unloaded` or `stopping`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting { .. } => "starting",
            Self::Ready => "ready",
            Self::Degraded { .. } => "degraded",
            Self::Recovering { .. } => "recovering",
            Self::Failed { .. } => "failed",
            Self::Unloaded => "unloaded",
            Self::Stopping => "stopping",
        }
    }

    /// Why it is not simply ready.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Degraded { reason } | Self::Recovering { reason } | Self::Failed { reason } => Some(reason),
            _ => None,
        }
    }
}

/// Everything that is known of an engine and its worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// What it can do now.
    pub state: State,
    /// What it was asked to load, as the user asked for it.
    pub requested: Option<Load>,
    /// The same, also after it was unloaded: what [`Supervisor::reload`](super::Supervisor::reload) loads.
    pub last_requested: Option<Load>,
    /// What is loaded, if something is: after a crash it can be less than what was asked for.
    pub effective: Option<Load>,
    /// What is known of the loaded models.
    pub info: Option<Info>,
    /// What speculation came to: as the user asked for it, as it is, and why they differ.
    pub speculation: Speculation,
    /// The last time the engine decoded something.
    pub last_decode: Option<LastDecode>,
    /// The numbers of the engine, those of earlier workers included.
    pub stats: EngineStats,
    /// Workers that were started in place of others that died.
    pub restarts: u64,
    /// What was done about failures, oldest first.
    pub recoveries: Vec<Recovery>,
    /// The last lines that workers wrote to their standard error, oldest first. They can name paths: not for strangers.
    pub log: Vec<String>,
    /// The worker's process, if it has one of its own.
    pub process: Option<u32>,
}

/// The last real decode.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LastDecode {
    /// How long ago it was.
    pub age: Duration,
    /// Whether it gave what it should.
    pub ok: bool,
}

/// Something that was done about a failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recovery {
    /// How long ago it was.
    pub age: Duration,
    /// What happened and what was done, in one sentence.
    pub what: String,
}

/// What a worker tells about the models it has loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Info {
    /// A sum over the target's files: sizes, times of change and headers. Another one is another model.
    #[serde(default)]
    pub identity: u64,
    /// What llama.cpp calls the model, such as `llama 1B Q4_0`.
    pub description: String,
    /// Its parameters.
    pub parameters: u64,
    /// Bytes of its weights.
    pub bytes: u64,
    /// Tokens of its vocabulary.
    pub vocabulary: u32,
    /// The context it was trained for, in tokens.
    pub trained_context: u32,
    /// Width of its embeddings.
    pub embedding: u32,
    /// Room of each slot in tokens.
    pub context: u32,
    /// Texts that are generated at once.
    pub slots: u32,
    /// Tokens that are verified in one batch.
    pub verify_rows: u32,
    /// The token that begins a text, with its text.
    pub bos: Option<(Token, String)>,
    /// The token that ends a text, with its text.
    pub eos: Option<(Token, String)>,
    /// The chat template, in Jinja.
    pub chat_template: Option<String>,
    /// What was found when the engine was tried.
    pub probe: Option<ProbeReport>,
    /// What speculation came to when it was loaded.
    pub speculation: Speculation,
    /// How long loading and trying took.
    pub took: Duration,
}
