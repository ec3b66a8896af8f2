//! An engine that plays a script: what each task gives is written down beforehand or sent while it runs.

use crate::server::api::{Answers, Backend, Snapshot};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use llama_spec::engine::{EngineStats, SlotStats};
use llama_spec::spec::{Method, SpecConfig, Speculation, Stats};
use llama_spec::supervise::{Load, Problem, Question, Reply, Running, State, Task, Update};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// A step of an answer.
pub(super) type Step = (u32, Result<Update, Problem>);

/// What becomes of a task.
pub(super) enum Script {
    Refuse(Problem),
    Play(Vec<Step>),
    /// What is sent. The sender learns when nobody listens any more.
    Live(mpsc::Receiver<Step>),
}

pub(super) struct Fake(Mutex<Inner>);

struct Inner {
    status: Snapshot,
    scripts: VecDeque<Script>,
    replies: VecDeque<Result<Reply, Problem>>,
    tasks: Vec<Task>,
    questions: Vec<Question>,
    commands: Vec<String>,
    refusal: Option<Problem>,
}

impl Fake {
    /// An engine that is ready.
    pub(super) fn ready() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            status: snapshot(),
            scripts: VecDeque::new(),
            replies: VecDeque::new(),
            tasks: Vec::new(),
            questions: Vec::new(),
            commands: Vec::new(),
            refusal: None,
        })))
    }

    /// The next task gives this.
    pub(super) fn plays(&self, script: Script) {
        self.0.lock().unwrap().scripts.push_back(script);
    }

    /// The next question gets this.
    pub(super) fn replies(&self, reply: Result<Reply, Problem>) {
        self.0.lock().unwrap().replies.push_back(reply);
    }

    /// What was to come and what was asked for until now.
    pub(super) fn forget(&self) {
        let mut inner = self.0.lock().unwrap();
        (inner.scripts, inner.replies, inner.tasks) = Default::default();
    }

    /// Commands are refused.
    pub(super) fn refuses(&self, problem: Problem) {
        self.0.lock().unwrap().refusal = Some(problem);
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.0.lock().unwrap().status);
    }

    /// The last task that was taken.
    pub(super) fn task(&self) -> Task {
        self.0.lock().unwrap().tasks.last().expect("a task").clone()
    }

    pub(super) fn tasks(&self) -> usize {
        self.0.lock().unwrap().tasks.len()
    }

    pub(super) fn questions(&self) -> Vec<Question> {
        self.0.lock().unwrap().questions.clone()
    }

    pub(super) fn commands(&self) -> Vec<String> {
        self.0.lock().unwrap().commands.clone()
    }

    fn command(&self, command: String) -> BoxFuture<'static, Result<(), Problem>> {
        let mut inner = self.0.lock().unwrap();
        inner.commands.push(command);
        let result = inner.refusal.clone().map_or(Ok(()), Err);
        Box::pin(async move { result })
    }
}

impl Backend for Arc<Fake> {
    fn status(&self) -> Snapshot {
        self.0.lock().unwrap().status.clone()
    }

    fn submit(&self, task: Task) -> Result<Answers, Problem> {
        let mut inner = self.0.lock().unwrap();
        inner.tasks.push(task);
        match inner.scripts.pop_front().expect("a script for the task") {
            Script::Refuse(problem) => Err(problem),
            Script::Play(steps) => Ok(stream::iter(steps).boxed()),
            Script::Live(steps) => {
                Ok(stream::unfold(steps, |mut steps| async { steps.recv().await.map(|step| (step, steps)) }).boxed())
            }
        }
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, Problem>> {
        let mut inner = self.0.lock().unwrap();
        inner.questions.push(question);
        let reply = inner.replies.pop_front().expect("a reply to the question");
        Box::pin(async move { reply })
    }

    fn load(&self, load: Load, running: Running) -> BoxFuture<'static, Result<(), Problem>> {
        let slots = load.context.slots;
        self.command(format!("load {} {:?} {slots} {running:?}", load.model.display(), load.draft))
    }

    fn reload(&self, running: Running) -> BoxFuture<'static, Result<(), Problem>> {
        self.command(format!("reload {running:?}"))
    }

    fn unload(&self, running: Running) -> BoxFuture<'static, Result<(), Problem>> {
        self.command(format!("unload {running:?}"))
    }

    fn set_draft(
        &self,
        draft: Option<PathBuf>,
        speculation: Option<SpecConfig>,
        running: Running,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        let methods = speculation.map(|config| config.methods);
        self.command(format!("draft {draft:?} {methods:?} {running:?}"))
    }
}

fn snapshot() -> Snapshot {
    let speculation = Speculation {
        requested: vec![Method::DraftSimple, Method::NgramMod],
        effective: vec![Method::DraftSimple],
        own_drafters: 0,
        reason: None,
    };
    let mut load = Load::new("/srv/secret/models/big-model-00001-of-00002.gguf");
    load.draft = Some("/srv/secret/models/small.gguf".into());
    let mut stats = EngineStats::default();
    stats.total = numbers();
    stats.slots = vec![SlotStats::default(), SlotStats::default()];
    stats.slots[0].busy = true;
    stats.slots[0].tokens = 120;
    (stats.running, stats.finished) = (1, 10);
    stats.plain_token = Some(Duration::from_millis(10));
    let info = json!({
        "description": "llama 1B F32", "parameters": 1000, "bytes": 4000, "vocabulary": 512, "trained_context": 2048,
        "embedding": 64, "context": 1024, "slots": 2, "verify_rows": 8, "bos": [1, "<s>"], "eos": [2, "</s>"],
        "chat_template": "{{ messages }}", "probe": null, "speculation": speculation,
        "took": { "secs": 1, "nanos": 0 },
    });
    Snapshot {
        state: State::Ready,
        requested: Some(load.clone()),
        last_requested: Some(load.clone()),
        effective: Some(load),
        info: Some(serde_json::from_value(info).unwrap()),
        speculation,
        last_decode: Some((Duration::from_millis(12), true)),
        stats,
        restarts: 0,
        recoveries: Vec::new(),
    }
}

/// Numbers of an answer to a prompt of four tokens, two of which were in memory.
pub(super) fn numbers() -> Stats {
    let mut stats = Stats { prompt_tokens: 4, cached_tokens: 2, generated_tokens: 3, ..Stats::default() };
    (stats.rounds, stats.drafts, stats.drafted, stats.accepted) = (2, 1, 2, 1);
    (stats.drafted_per_position, stats.accepted_per_position) = (vec![1, 1], vec![1, 0]);
    (stats.prefill, stats.generation) = (Duration::from_millis(10), Duration::from_millis(30));
    stats
}

/// A problem of this kind, by its name.
pub(super) fn problem(kind: &str, message: &str, setting: Option<&str>) -> Problem {
    serde_json::from_value(json!({ "kind": kind, "message": message, "setting": setting })).unwrap()
}

/// The task was taken, with a prompt of four tokens.
pub(super) fn begun() -> Update {
    serde_json::from_value(json!({ "begun": { "prompt": [1, 5, 6, 7] } })).unwrap()
}

/// Tokens of one round. The first is the target's, the others are drafted.
pub(super) fn tokens(texts: &[&str]) -> Update {
    let tokens: Vec<_> = texts.iter().enumerate().map(|(index, text)| token(index, text, true)).collect();
    serde_json::from_value(json!({ "tokens": tokens })).unwrap()
}

/// A token with this text, which is content unless it is of no conversation.
pub(super) fn token(index: usize, text: &str, chat: bool) -> Value {
    let source = if index == 0 { json!("target") } else { json!({ "drafted": "draft-simple" }) };
    let deltas = if chat { json!([{ "content": text }]) } else { json!([]) };
    let id = 10 + index;
    json!({
        "token": id, "bytes": text.as_bytes(), "text": text, "source": source, "deltas": deltas,
        "logprob": { "logprob": -0.25, "top": [[id, text.as_bytes(), -0.25], [99, "other".as_bytes(), -2.5]] },
    })
}

/// The answer ended for this reason, with this message.
pub(super) fn finished(reason: &str, message: Value) -> Update {
    ended(json!({ "reason": reason, "message": message }))
}

/// The answer ended; `fields` take the place of the usual ones.
pub(super) fn ended(fields: Value) -> Update {
    let mut finish = json!({
        "reason": "end-of-text", "stop": null, "text": "", "deltas": [], "message": null, "malformed": null,
        "stats": numbers(), "speculation": snapshot().speculation,
    });
    finish.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(json!({ "finished": finish })).unwrap()
}

/// An answer of three tokens in two rounds.
pub(super) fn hello(answer: u32) -> Vec<Step> {
    let message = json!({ "role": "assistant", "content": "Hello there!" });
    [begun(), tokens(&["Hello", " there"]), tokens(&["!"]), finished("end-of-text", message)]
        .map(|update| (answer, Ok(update)))
        .into()
}
