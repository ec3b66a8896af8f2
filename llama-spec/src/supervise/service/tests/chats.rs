//! Conversations: rendered, kept to a form, and taken apart.

use super::support::{Told, Worker, load};
use crate::chat::{ChatRequest, Delta, Message, Tool, ToolChoice};
use crate::engine::Request;
use crate::generate::StopReason;
use crate::supervise::Load;
use crate::supervise::task::{ProblemKind, Question, Reply, Task};
use crate::supervise::wire::{FromWorker, ToWorker};
use llama_spec_tests::zoo::{self, TOOLS_TEMPLATE as TOOLS};
use serde_json::{Value, json};

fn worker() -> Worker {
    let mut load = load("target");
    load.chat_template = Some(TOOLS.into());
    load.context.length_per_slot = 1024;
    Worker::loaded(load)
}

fn request() -> Request {
    Request::prompt("").greedy().max_tokens(200)
}

fn ask() -> ChatRequest {
    ChatRequest::new(vec![Message::user("2 and 3?")])
}

fn add() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": { "a": { "type": "integer", "minimum": 0, "maximum": 99 }, "sure": { "type": "boolean" } },
        "required": ["a", "sure"],
    });
    Tool::new("add", "Adds numbers.", parameters)
}

/// What was told, and the content put together from its pieces.
fn answer(worker: &mut Worker, chat: ChatRequest, request: Request) -> (Told, String) {
    worker.start(1, Task::chat(chat, request));
    let told = worker.told(1, 0);
    let deltas = told.tokens.iter().flat_map(|token| &token.deltas).chain(&told.end().deltas);
    let content = deltas.filter_map(|delta| match delta {
        Delta::Content(text) => Some(text.as_str()),
        _ => None,
    });
    let content = content.collect();
    (told, content)
}

#[test]
fn a_schema_is_kept_to() {
    let mut worker = worker();
    let schema = json!({ "type": "object", "properties": { "a": { "enum": [1, 2] } }, "required": ["a"] });
    let (told, content) = answer(&mut worker, ask().json_schema(schema), request());
    let value: Value = serde_json::from_str(&content).unwrap();
    assert!(value["a"] == 1 || value["a"] == 2, "{content}");
    assert_eq!(told.end().message.as_ref().map(Message::text), Some(content));
}

#[test]
fn a_call_that_is_cut_off_loses_no_text() {
    let mut worker = worker();
    let chat = ask().tools(vec![add()]).tool_choice(ToolChoice::Required);
    for tokens in [1, 5, 15, 30, 45] {
        let (told, _) = answer(&mut worker, chat.clone(), request().max_tokens(tokens));
        assert_eq!(told.end().reason, StopReason::MaxTokens);
        assert!(told.end().message.is_some());
        assert_eq!(told.text().len(), tokens as usize, "{tokens}");
    }
}

#[test]
fn log_probabilities_come_with_bytes() {
    let mut worker = worker();
    let (told, _) = answer(&mut worker, ask(), request().max_tokens(6).logprobs(3));
    for token in &told.tokens {
        let Some(logprob) = &token.logprob else { panic!("{token:?}") };
        assert_eq!(logprob.top.len(), 3);
        // Greedy: the best one is what was taken.
        assert_eq!((logprob.top[0].0, &logprob.top[0].1), (token.token, &token.bytes));
        assert!(logprob.top.is_sorted_by(|a, b| a.2 >= b.2) && logprob.logprob <= 0.0);
    }
}

#[test]
fn a_conversation_is_rendered() {
    let mut worker = worker();
    worker.say(ToWorker::Ask { id: 3, question: Question::Render(Box::new(ask())) });
    let reply = worker.wait("a reply", |said| match said {
        FromWorker::Reply { id: 3, reply } => Some(reply.clone()),
        _ => None,
    });
    let expected = "<|im_start|>user\n2 and 3?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(reply, Ok(Reply::Text(expected.into())));
    worker.start(4, Task::chat(ChatRequest::new(vec![]), request()));
    assert_eq!(worker.problem(4).setting.as_deref(), Some("messages"));
}

#[test]
fn without_a_template_there_are_no_conversations() {
    let mut worker = Worker::loaded(load("target"));
    worker.start(1, Task::chat(ask(), request()));
    let problem = worker.problem(1);
    assert_eq!((problem.kind, problem.setting.as_deref()), (ProblemKind::Invalid, Some("chat")));
    assert!(problem.message.contains("no chat template"), "{problem}");
    let info = worker.load(Load { model: zoo::file("chat"), ..load("target") });
    assert!(info.chat_template.is_some_and(|template| template.contains("im_start")));
    worker.start(2, Task::chat(ask(), request()));
    let told = worker.told(2, 0);
    assert_eq!(told.end().message.as_ref().map(Message::text), Some(told.text()));
}
