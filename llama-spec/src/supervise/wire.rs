//! The messages between a supervisor and its worker.
//!
//! Each is MessagePack in a frame of [`isolate`](crate::isolate), which survives whatever else is written to the same stream.
//! The first message of a worker names its version; no other is understood.

use super::load::Load;
use super::status::Info;
use super::task::{Problem, Question, Reply, Task, Update};
use crate::engine::{EngineStats, Loading};
use crate::sample::SamplerState;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

pub(crate) use crate::engine::Midway;

/// How deep a message may be nested. Values of JSON come from clients; each level takes some of the stack of who reads it.
const DEEPEST: usize = 256;

/// The version of these messages.
pub(crate) const VERSION: u32 = 1;

/// Which task a message is about.
pub(crate) type TaskId = u64;

/// A message as MessagePack.
///
/// # Errors
/// None of these messages has something that cannot be written.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    rmp_serde::to_vec_named(message).map_err(io::Error::other)
}

/// The message that [`encode`] wrote.
///
/// # Errors
/// If it is none, or nested too deep.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    let mut from = rmp_serde::Deserializer::from_read_ref(bytes);
    from.set_max_depth(DEEPEST);
    T::deserialize(&mut from).map_err(io::Error::other)
}

/// What a supervisor says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Load this. What was loaded before is dropped, except models that are in both: a draft can come and go without the target
    /// being loaded again. Answered by [`FromWorker::Loaded`] or [`FromWorker::NotLoaded`].
    Load {
        load: Box<Load>,
        /// How many workers there were before this one.
        restarts: u64,
    },
    /// Generate. For a task that an earlier worker began, where each answer stands; else empty.
    Start { id: TaskId, task: Box<Task>, standing: Vec<Standing> },
    /// Nobody wants this task any more.
    Cancel { id: TaskId },
    /// Answer this.
    Ask { id: TaskId, question: Question },
    /// Generate a little, to see whether that works. Answered by [`FromWorker::Checked`].
    Check,
    /// End.
    Stop,
}

/// Where an answer stands that an earlier worker began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// It has not begun.
    Fresh,
    /// It has ended, and its updates were delivered.
    Ended,
    /// It was under way.
    Begun(Box<Midway>),
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// It is one. Comes first.
    Hello { version: u32, library: String },
    /// How far loading is.
    Progress(Loading),
    /// It can generate: it was tried, unless that was not wanted.
    Loaded(Box<Info>),
    /// It could not be loaded. The worker waits for another load.
    NotLoaded(Refusal),
    /// A step of an answer. `sampler` comes with the last tokens of each round.
    Update { id: TaskId, answer: u32, update: Update, sampler: Option<SamplerState> },
    /// An answer broke off, or the whole task was refused (then for each of its answers).
    Broken { id: TaskId, answer: u32, problem: Problem },
    /// The answer to a question.
    Reply { id: TaskId, reply: Result<Reply, Problem> },
    /// How it is, several times a second.
    Pulse(Box<Pulse>),
    /// How the check went.
    Checked(Result<(), String>),
    /// The engine broke down for this reason; the worker is of no more use.
    Poisoned(String),
    /// Something for the log of whoever has the worker, which has none of its own. It can name paths.
    Warning(String),
}

/// How a worker is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pulse {
    /// Its numbers.
    pub(crate) stats: EngineStats,
    /// How long ago the last decode ended, and whether it gave finite numbers; nothing before the first.
    pub(crate) last_decode: Option<(Duration, bool)>,
}

/// Why something was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    /// For the owner of the machine: it can name paths.
    pub(crate) message: String,
}

/// Who is to blame when something was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// Files and settings do not go together: no other attempt helps.
    Pair,
    /// A file is missing, broken or no model.
    File,
    /// A setting is wrong.
    Setting,
    /// The engine did not work when it was tried, or a context could not be made: with less it may.
    Trial,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ChatRequest, Continuation, Delta, Message, Role, Tool};
    use crate::engine::Request;
    use crate::generate::StopReason;
    use crate::sample::{Grammar, SamplerOptions};
    use crate::spec::{Method, Source, Speculation, Stats};
    use crate::supervise::task::{Finish, TokenLogprob, TokenUpdate};
    use crate::token::Token;
    use serde_json::{Value, json};
    use std::fmt::Debug;

    fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: T) {
        let bytes = encode(&message).unwrap();
        assert_eq!(decode::<T>(&bytes).unwrap(), message);
        for cut in 0..bytes.len() {
            assert!(decode::<T>(&bytes[..cut]).is_err(), "{cut} of {bytes:?}");
        }
    }

    #[test]
    fn what_a_supervisor_says_is_read_back() {
        let schema = json!({ "type": "object", "properties": { "a": { "enum": [1, -2.5, null, true, "x"] } } });
        let mut said = Message::user("Hi");
        said.role = Role::Other("narrator".into());
        let chat = ChatRequest::new(vec![said, Message::assistant("Well")])
            .tools(vec![Tool::new("now", "", schema.clone())])
            .continue_final_message(Continuation::Auto)
            .template_argument("level", 3);
        let sampler = SamplerOptions::default().seed(7).grammar(Grammar::JsonSchema(schema));
        let request =
            Request::prompt("").sampler(sampler).deadline(Duration::from_millis(1500)).logprobs(2).tenant("anna");
        let state = SamplerState {
            seed: Some(7),
            draws: u64::MAX,
            rejection_steps: 0,
            prompt: 1,
            generated: 2,
            reasoning_ended: vec![],
        };
        let midway = Midway {
            prompt: vec![Token::new(1)],
            generated: vec![Token::new(2), Token::new(-3)],
            dropped: 0,
            sampler: Some(state),
        };
        let standing = vec![Standing::Fresh, Standing::Ended, Standing::Begun(Box::new(midway))];
        survives(ToWorker::Start { id: u64::MAX, task: Box::new(Task::chat(chat, request)), standing });
        survives(ToWorker::Load { load: Box::new(Load::new("/a/model.gguf")), restarts: 2 });
        survives(ToWorker::Stop);
    }

    #[test]
    fn what_a_worker_says_is_read_back() {
        let token = TokenUpdate {
            token: Token::new(5),
            bytes: vec![0xf0, 0x9f],
            text: String::new(),
            source: Source::Drafted(Method::DraftMtp),
            // JSON could not tell this.
            logprob: Some(TokenLogprob { logprob: f32::NEG_INFINITY, top: vec![(Token::new(6), vec![0xff], -0.25)] }),
            deltas: vec![Delta::ToolCall { index: 0, id: None, name: Some("now".into()), arguments: "{".into() }],
        };
        survives(FromWorker::Update { id: 1, answer: 2, update: Update::Tokens(vec![token]), sampler: None });
        let finish = Finish {
            reason: StopReason::StopString,
            stop: Some("\n".into()),
            text: "\u{fffd}".into(),
            deltas: vec![],
            message: Some(Message::assistant("Hi")),
            malformed: None,
            stats: Box::new(Stats { queue: Duration::from_nanos(3), ..Stats::default() }),
            speculation: Speculation { requested: vec![Method::NgramMod], ..Speculation::default() },
        };
        survives(FromWorker::Update { id: 1, answer: 2, update: Update::Finished(Box::new(finish)), sampler: None });
        survives(FromWorker::Reply { id: 3, reply: Ok(Reply::Tokens(vec![(Token::new(1), vec![b'a'])])) });
        survives(FromWorker::Progress(Loading::Draft(0.5)));
        survives(FromWorker::Warning("the file /a/store".into()));
    }

    #[test]
    fn depth_is_bounded() {
        let mut value = Value::Null;
        for _ in 0..2 * DEEPEST {
            value = Value::Array(vec![value]);
        }
        let bytes = encode(&value).unwrap();
        assert!(decode::<Value>(&bytes).is_err());
        let fits = (0..120).fold(Value::Null, |value, _| json!({ "a": value }));
        survives(fits);
    }
}
