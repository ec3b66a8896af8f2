//! What a worker is asked for, and what it answers.

use crate::chat::{ChatRequest, Delta, Message};
use crate::engine::{MOST_ANSWERS, Request};
use crate::generate::StopReason;
use crate::spec::{Source, Speculation, Stats};
use crate::token::Token;
use serde::{Deserialize, Serialize};

/// A text to continue or a conversation to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// A conversation. It is rendered by the worker and then takes the place of [`Request::prompt`]; grammar and stop strings
    /// of its template are added to those of the request.
    pub chat: Option<ChatRequest>,
    /// What to continue, and how.
    pub request: Request,
    /// How many answers. The prompt is computed once for all of them.
    pub answers: u32,
}

impl Task {
    /// One continuation of a text.
    pub fn text(request: Request) -> Self {
        Self { chat: None, request, answers: 1 }
    }

    /// One answer in a conversation; the prompt of the request does not matter.
    pub fn chat(chat: ChatRequest, request: Request) -> Self {
        Self { chat: Some(chat), request, answers: 1 }
    }

    /// So many answers, 1 to 1024.
    pub fn answers(mut self, answers: u32) -> Self {
        self.answers = answers;
        self
    }

    /// Whether an engine gives so many answers.
    pub(crate) fn check_answers(&self) -> Result<(), Problem> {
        if (1..=MOST_ANSWERS).contains(&self.answers) {
            return Ok(());
        }
        let message = format!("answers = {}: 1 to {MOST_ANSWERS}", self.answers);
        Err(Problem { kind: ProblemKind::Invalid, message, setting: Some("answers".into()) })
    }
}

/// A step of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Update {
    /// The task was taken: the prompt in tokens.
    Begun {
        /// The prompt.
        prompt: Vec<Token>,
    },
    /// Part of the prompt was computed: this many of its tokens, of that many.
    Prefill {
        /// Tokens done.
        done: usize,
        /// Tokens to do.
        total: usize,
    },
    /// Tokens were generated: those of one round.
    Tokens(Vec<TokenUpdate>),
    /// The context was full and its older part was dropped.
    Shifted {
        /// Tokens dropped.
        dropped: usize,
    },
    /// The worker is gone. The text goes on with the next one.
    Paused {
        /// What happened.
        reason: String,
    },
    /// It goes on.
    Resumed,
    /// It ended.
    Finished(Box<Finish>),
}

/// A generated token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenUpdate {
    /// The token.
    pub token: Token,
    /// Its own bytes: all of a character, part of one, or several.
    pub bytes: Vec<u8>,
    /// The text of the answer that is complete by now and was not before.
    pub text: String,
    /// Where it came from.
    pub source: Source,
    /// How probable the target found it, if that was asked for.
    pub logprob: Option<TokenLogprob>,
    /// In a conversation: what the text added to the message.
    pub deltas: Vec<Delta>,
}

/// The log-probability of a token, and of the most probable ones, to base e.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// Of the token.
    pub logprob: f32,
    /// The most probable tokens, in falling order: token, its bytes, its log-probability.
    pub top: Vec<(Token, Vec<u8>, f32)>,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finish {
    /// Why.
    pub reason: StopReason,
    /// The stop string that ended it.
    pub stop: Option<String>,
    /// Text that was held back until now.
    pub text: String,
    /// In a conversation: what that added to the message.
    pub deltas: Vec<Delta>,
    /// In a conversation: the whole message.
    pub message: Option<Message>,
    /// Why the answer does not have the form its template asks for; the message then holds what could be read.
    pub malformed: Option<String>,
    /// Its numbers; those of all workers that had a part in it, added up.
    pub stats: Box<Stats>,
    /// What speculation came to by then.
    pub speculation: Speculation,
}

impl Finish {
    /// The end of an answer of which nothing came, for this reason.
    pub(crate) fn of_nothing(reason: StopReason, speculation: Speculation) -> Self {
        Self {
            reason,
            stop: None,
            text: String::new(),
            deltas: Vec::new(),
            message: None,
            malformed: None,
            stats: Box::default(),
            speculation,
        }
    }
}

/// Why a task was refused or an answer broke off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What is wrong, and what to do; without paths or log lines of the machine.
    pub message: String,
    /// The setting it is about, by its name in this library.
    pub setting: Option<String>,
}

/// What kind of problem there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// What was asked for makes no sense, or cannot be had with this engine. Asking again does not help.
    Invalid,
    /// Prompt and answer do not fit into the context.
    TooLong,
    /// As many requests wait as are taken. Ask again later.
    Busy,
    /// There is no engine now: it is being loaded, restarted, unloaded. Ask again later.
    Unavailable,
    /// The worker died, and this answer cannot go on as it would have. Ask again.
    Interrupted,
    /// Something failed that should not have.
    Failed,
}

/// What is asked without generating.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Question {
    /// A text in tokens.
    Tokenize {
        /// The text.
        text: String,
        /// Add the tokens that begin and end a text of this model.
        add_special: bool,
        /// Take texts of control tokens for the tokens.
        parse_special: bool,
    },
    /// The text of tokens.
    Detokenize {
        /// The tokens.
        tokens: Vec<Token>,
    },
    /// A conversation as a prompt.
    Render(Box<ChatRequest>),
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reply {
    /// Tokens, each with its bytes.
    Tokens(Vec<(Token, Vec<u8>)>),
    /// Text; characters that are incomplete are replaced.
    Text(String),
}
