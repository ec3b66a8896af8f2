//! What can go wrong, as data: each variant says what was asked, what was found, and what to do next.

use std::fmt;
use std::path::PathBuf;

/// The result of most calls of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library cannot run on this machine or was linked against another llama.cpp.
    #[error("llama.cpp cannot be used here: {reason}")]
    Backend {
        /// What is missing, and the cure.
        reason: String,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not a GGUF file.
    #[error("{} is not a GGUF model: {found}", path.display())]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// What it holds instead.
        found: String,
    },
    /// The header of a GGUF file, or what it says about the rest of the file, is wrong.
    #[error("{} is broken: {place}: {why} (byte {offset})", path.display())]
    BrokenFile {
        /// The file, or the part of a split model.
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// What stands there, such as `metadata entry 12, key "llama.block_count"`.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file whose header is of no model that llama.cpp loads: it would refuse the file, or abort.
    #[error("cannot use {} as a model: it is {kind}{}", path.display(), places(defects))]
    NotLoadable {
        /// The file, or the first part of a split model.
        path: PathBuf,
        /// What it is.
        kind: crate::file::Kind,
        /// What is wrong with it.
        defects: Vec<crate::file::Defect>,
    },
    /// llama.cpp refused a model file.
    #[error("cannot load {}: {failure}", path.display())]
    Load {
        /// The file, or the first part of a split model.
        path: PathBuf,
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// Loading was cancelled by the progress callback.
    #[error("loading {} was cancelled", path.display())]
    LoadCancelled {
        /// The file.
        path: PathBuf,
    },
    /// A context could not be made.
    #[error("cannot make a context: {failure}")]
    Context {
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// A setting is outside its range, or does not go with another.
    #[error("{setting} = {value}: {expected}")]
    Setting {
        /// The setting's name in the API.
        setting: &'static str,
        /// What was asked for.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// A device was named that does not exist, or layers were to be offloaded where there is no device.
    #[error("no such device: {asked}; available: {}", list(available))]
    Device {
        /// What was asked for.
        asked: String,
        /// The devices there are.
        available: Vec<String>,
    },
    /// A text could not be turned into tokens.
    #[error("cannot tokenize: {failure}")]
    Tokenize {
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// A batch could not be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The prompt is empty.
    #[error("the prompt is empty: there is nothing to continue")]
    EmptyPrompt,
    /// The prompt leaves no room to generate.
    #[error(
        "the prompt has {tokens} tokens and the context holds {context}: shorten the prompt or ask for a longer context"
    )]
    PromptTooLong {
        /// Length of the prompt in tokens.
        tokens: usize,
        /// Room of one slot in tokens.
        context: usize,
    },
    /// Sampling failed, or a sampler could not be made.
    #[error("sampling: {failure}")]
    Sample {
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// A row of logits holds NaN or infinity, or nothing above minus infinity: the model's file is broken, or what computed it.
    #[error("the model gave logits that are no numbers: {failure}")]
    NotFinite {
        /// Which row it was.
        failure: Failure,
    },
    /// A chat template could not be used, or an answer does not have its form.
    #[error("chat template: {failure}")]
    Chat {
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// A speculative method is not known.
    #[error("unknown speculative method `{name}`; known: {}", list(known))]
    UnknownMethod {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Speculation was asked for and cannot be had with these models and settings.
    #[error("cannot speculate with {method}: {reason}")]
    Speculation {
        /// The methods asked for.
        method: String,
        /// Why not, and what to change.
        reason: String,
    },
    /// Files and settings do not go together: every rule that refused them.
    #[error(transparent)]
    Incompatible(#[from] crate::compat::Incompatible),
    /// An engine was tried before it served, and did not work.
    #[error("the trial of the engine {}{}", report.outcome, cures(refusal.as_ref()))]
    Probe {
        /// What was tried, and what was wrong.
        report: Box<crate::probe::ProbeReport>,
        /// The rules that do not hold; nothing for a target that decodes alone.
        refusal: Option<crate::compat::Incompatible>,
    },
    /// An engine has as many requests waiting as it takes.
    #[error("the engine is busy: {waiting} requests are waiting already; try again later")]
    Busy {
        /// Requests that wait.
        waiting: usize,
    },
    /// An engine is being shut down and takes no requests, or gave this one up for that.
    #[error("the engine is shutting down")]
    ShuttingDown,
    /// An engine broke down. All of its requests end with this; a new engine must be made.
    #[error("the engine has failed: {reason}; make a new one")]
    EngineFailed {
        /// What happened.
        reason: String,
    },
    /// A saved state could not be made or restored.
    #[error("state: {reason}")]
    State {
        /// Why not.
        reason: String,
    },
    /// The model or context does not give embeddings.
    #[error("no embeddings: {reason}")]
    Embeddings {
        /// Why not, and what to change.
        reason: String,
    },
    /// Memory could not be changed as asked.
    #[error("memory: {reason}")]
    Memory {
        /// Why not.
        reason: String,
    },
}

/// Why a batch was not decoded, and what the memory holds afterwards.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The memory has no room for the batch. It is as it was before the call.
    #[error(
        "no room in the context for a batch of {entries} tokens: remove tokens, use a smaller batch or a longer context"
    )]
    NoRoom {
        /// Entries of the batch.
        entries: usize,
    },
    /// The batch was refused. The memory is as it was before the call.
    #[error("the batch was refused: {failure}")]
    Refused {
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// The call was aborted. Part of the batch may be in the memory: clear it before the next decode.
    #[error("decoding was aborted; clear the memory before the next batch")]
    Aborted,
    /// A backend failed. Part of the batch may be in the memory: clear it before the next decode.
    #[error("decoding failed: {failure}; clear the memory before the next batch")]
    Fatal {
        /// llama.cpp's reason.
        failure: Failure,
    },
    /// An earlier call failed and the memory was not cleared since.
    #[error("an earlier decode failed and left the memory in an unknown state: clear it first")]
    Poisoned,
}

/// A refusal of llama.cpp: its own words, and what it logged during the call.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// The message of the exception or of the refused argument; may be empty.
    pub message: String,
    /// Warnings and errors that were logged by the calling thread during the call, oldest first.
    pub log: Vec<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), log: Vec::new() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The last lines name the cause most exactly; the first are often consequences of how loading is tried.
        let told = self.log.iter().rev().take(3).rev().map(String::as_str);
        let all: Vec<&str> =
            Some(self.message.as_str()).filter(|message| !message.is_empty()).into_iter().chain(told).collect();
        match all.is_empty() {
            true => f.write_str("llama.cpp gave no reason"),
            false => f.write_str(&all.join("; ")),
        }
    }
}

fn cures(refusal: Option<&crate::compat::Incompatible>) -> String {
    let checks = refusal.map(|refusal| refusal.checks.as_slice()).unwrap_or_default();
    checks
        .iter()
        .filter(|check| !check.cure.is_empty())
        .map(|check| format!("; {}: {}", check.code, check.cure))
        .collect()
}

fn places(defects: &[crate::file::Defect]) -> String {
    defects.iter().map(|defect| format!("; {}: {}", defect.place, defect.why)).collect()
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
