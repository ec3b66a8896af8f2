//! Errors of the library in the words of the two protocols: for clients, and for the owner of the machine.

use crate::chat::ChatRequest;
use crate::error::{Error, Failure};
use crate::options::SplitMode;
use crate::supervise::task::{Problem, ProblemKind};
use crate::supervise::wire::{Refusal, RefusalKind};
use crate::text::shortened;

/// The longest message in bytes: errors can quote what a client has sent.
const LONGEST: usize = 1000;

/// How messages about grammars begin.
const GRAMMAR: &str = "the grammar ";
/// How llama.cpp's messages about schemas begin; something may be before it.
const SCHEMA: &str = "JSON schema ";

impl Problem {
    pub(super) fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { kind, message: shortened(message.into(), LONGEST), setting: None }
    }

    pub(super) fn about(setting: &str, message: impl Into<String>) -> Self {
        Self { setting: Some(setting.to_owned()), ..Self::new(ProblemKind::Invalid, message) }
    }

    pub(super) fn unavailable() -> Self {
        Self::new(ProblemKind::Unavailable, "no model is loaded at the moment; try again later")
    }

    /// What is wrong with a grammar is wrong with what it was made of.
    pub(super) fn of_grammar(self, source: &str) -> Self {
        match self.setting.as_deref() {
            Some("grammar") => Self { setting: Some(source.to_owned()), ..self },
            _ => self,
        }
    }

    /// Something that is no fault of the client's, of which the log tells more.
    pub(super) fn failed(what: &str) -> Self {
        Self::new(ProblemKind::Failed, what)
    }
}

/// Why a task was refused, or its text ended early. Names no path and quotes no log.
pub(super) fn problem(error: &Error) -> Problem {
    match error {
        Error::Setting { setting, .. } => Problem::about(setting, error.to_string()),
        Error::EmptyPrompt => Problem::about("prompt", error.to_string()),
        Error::Tokenize { failure } => Problem::about("prompt", with(failure, "the text cannot be turned into tokens")),
        Error::Sample { failure } if failure.message.starts_with(GRAMMAR) || failure.message.starts_with(SCHEMA) => {
            Problem::about("grammar", failure.message.replace('\n', " "))
        }
        Error::Sample { failure } => Problem::about("sampler", with(failure, "these settings cannot be sampled with")),
        Error::Chat { failure } => Problem::about("chat", with(failure, "the chat template cannot be used for this")),
        Error::Speculation { method, .. } | Error::UnknownMethod { name: method, .. } => {
            Problem::about("speculation", format!("this engine does not draft with {method}"))
        }
        Error::PromptTooLong { .. } => Problem::new(ProblemKind::TooLong, error.to_string()),
        Error::Busy { .. } => Problem::new(ProblemKind::Busy, error.to_string()),
        Error::ShuttingDown | Error::EngineFailed { .. } => Problem::unavailable(),
        Error::State { .. } => {
            let message = "the text was interrupted and cannot go on as it would have; ask again";
            Problem::new(ProblemKind::Interrupted, message)
        }
        Error::NotFinite { .. } => Problem::failed("the model gave logits that are no numbers"),
        _ => Problem::failed("the text could not be computed"),
    }
}

/// As [`problem`], of a conversation: what is wrong with a schema is not told of the template, and without what llama.cpp was
/// about to do with it.
pub(super) fn chat_problem(error: &Error, chat: &ChatRequest) -> Problem {
    let of_schema = match error {
        Error::Chat { failure } => failure.message.rfind(SCHEMA).map(|at| &failure.message[at..]),
        _ => None,
    };
    match of_schema {
        Some(what) => Problem::about(schema_of(chat), what.replace('\n', " ")),
        None => problem(error),
    }
}

/// What has the schemas of a conversation.
pub(super) fn schema_of(chat: &ChatRequest) -> &'static str {
    if chat.json_schema.is_some() { "json_schema" } else { "tools" }
}

/// llama.cpp's message alone, since what it logged can tell anything.
fn with(failure: &Failure, what: &str) -> String {
    if failure.message.is_empty() { what.to_owned() } else { format!("{what}: {}", failure.message) }
}

/// Why models were not loaded.
pub(super) fn refusal(error: &Error, split: SplitMode) -> Refusal {
    let kind = match error {
        Error::Incompatible(_) | Error::Speculation { .. } => RefusalKind::Pair,
        // The header was good: what is left is a file with broken weights, or devices that do not take it.
        Error::Load { failure, .. } if divides_tensors(split) || is_about_memory(failure) => RefusalKind::Trial,
        Error::File { .. }
        | Error::NotGguf { .. }
        | Error::BrokenFile { .. }
        | Error::NotLoadable { .. }
        | Error::Load { .. } => RefusalKind::File,
        Error::Setting { .. } | Error::Device { .. } | Error::UnknownMethod { .. } | Error::Chat { .. } => {
            RefusalKind::Setting
        }
        _ => RefusalKind::Trial,
    };
    Refusal { kind, message: error.to_string() }
}

/// What few models and devices can do.
fn divides_tensors(split: SplitMode) -> bool {
    matches!(split, SplitMode::Row | SplitMode::Tensor)
}

fn is_about_memory(failure: &Failure) -> bool {
    let texts = failure.log.iter().chain([&failure.message]);
    texts.map(|text| text.to_lowercase()).any(|text| text.contains("alloc") || text.contains("memory"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn clients_learn_what_is_theirs_and_nothing_of_the_machine() {
        let failure = Failure { message: "bad rule".into(), log: vec!["/secret/model.gguf".into()] };
        let path = PathBuf::from("/secret/model.gguf");
        let cases = [
            (Error::EmptyPrompt, ProblemKind::Invalid, Some("prompt")),
            (Error::Sample { failure: failure.clone() }, ProblemKind::Invalid, Some("sampler")),
            (Error::Chat { failure: failure.clone() }, ProblemKind::Invalid, Some("chat")),
            (Error::PromptTooLong { tokens: 2, context: 1 }, ProblemKind::TooLong, None),
            (Error::Busy { waiting: 3 }, ProblemKind::Busy, None),
            (Error::ShuttingDown, ProblemKind::Unavailable, None),
            (Error::State { reason: "/secret".into() }, ProblemKind::Interrupted, None),
            (Error::Load { path, failure: failure.clone() }, ProblemKind::Failed, None),
            (Error::Context { failure }, ProblemKind::Failed, None),
        ];
        for (error, kind, setting) in cases {
            let problem = problem(&error);
            assert_eq!((problem.kind, problem.setting.as_deref()), (kind, setting), "{error}");
            assert!(!problem.message.contains("secret"), "{problem}");
        }
        let setting = Error::Setting { setting: "top_p", value: "\u{e9}".repeat(5000), expected: "less".into() };
        let problem = problem(&setting);
        assert_eq!(problem.setting.as_deref(), Some("top_p"));
        assert!(problem.message.len() <= LONGEST + 4 && problem.message.ends_with(" ..."));
    }

    #[test]
    fn schemas_and_grammars_are_blamed_themselves() {
        let failure =
            Failure::new("Unable to do this. That failed: JSON schema conversion failed:\nInvalid pattern ^($");
        let error = Error::Chat { failure };
        let mut chat = ChatRequest::new(Vec::new());
        let problem = chat_problem(&error, &chat);
        assert_eq!(problem.setting.as_deref(), Some("tools"));
        assert_eq!(problem.message, "JSON schema conversion failed: Invalid pattern ^($");
        chat.json_schema = Some(serde_json::json!({}));
        assert_eq!(chat_problem(&error, &chat).setting.as_deref(), Some("json_schema"));
        let other = Error::Chat { failure: Failure::new("no such variable") };
        assert_eq!(chat_problem(&other, &chat).setting.as_deref(), Some("chat"));
        let grammar = Error::Sample { failure: Failure::new("the grammar cannot be parsed: no root") };
        let problem = super::problem(&grammar);
        assert_eq!(problem.setting.as_deref(), Some("grammar"));
        assert_eq!(problem.of_grammar("json_schema").setting.as_deref(), Some("json_schema"));
    }

    #[test]
    fn who_is_to_blame_for_what_was_not_loaded() {
        let load = |message: &str| Error::Load { path: "a".into(), failure: Failure::new(message) };
        let kind = |error: &Error, split| refusal(error, split).kind;
        assert_eq!(kind(&load("tensor is broken"), SplitMode::Layer), RefusalKind::File);
        assert_eq!(kind(&load("tensor is broken"), SplitMode::Tensor), RefusalKind::Trial);
        assert_eq!(kind(&load("unable to allocate CUDA0 buffer"), SplitMode::Layer), RefusalKind::Trial);
        let context = Error::Context { failure: Failure::default() };
        assert_eq!(kind(&context, SplitMode::Layer), RefusalKind::Trial);
        let speculation = Error::Speculation { method: "x".into(), reason: "y".into() };
        assert_eq!(kind(&speculation, SplitMode::Layer), RefusalKind::Pair);
    }
}
