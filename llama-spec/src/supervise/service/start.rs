//! From a task to texts that are being generated: rendering, tokens, grammars, and where the texts go on.

use super::answer::Answer;
use super::message::MessageReader;
use super::problem::{chat_problem, problem, schema_of};
use super::stage::Loaded;
use super::text::TextTracker;
use crate::chat::{Rendered, ToolChoice};
use crate::engine::{Canceller, Prompt, Request, Response};
use crate::error::{Error, Result};
use crate::sample::Grammar;
use crate::supervise::task::{Problem, ProblemKind, Task};
use crate::supervise::wire::{Standing, TaskId};
use std::sync::Arc;

/// Answers that are being generated, and what cancels each.
#[derive(Default)]
pub(super) struct Started {
    pub(super) answers: Vec<Answer>,
    pub(super) cancellers: Vec<Canceller>,
    /// Those that cannot go on, and why.
    pub(super) broken: Vec<(u32, Problem)>,
}

/// The answers of a task that have not ended.
pub(super) fn open_answers(task: &Task, standing: &[Standing]) -> Result<Vec<u32>, Problem> {
    task.check_answers()?;
    let ended = |answer: u32| matches!(standing.get(answer as usize), Some(Standing::Ended));
    Ok((0..task.answers).filter(|answer| !ended(*answer)).collect())
}

/// Gives a task to the engine.
pub(super) fn start(loaded: &Arc<Loaded>, id: TaskId, task: Task, standing: Vec<Standing>) -> Result<Started, Problem> {
    let engine = &loaded.engine;
    let rendered = render(loaded, &task)?;
    let source = source_of_grammar(&task);
    let request = match &rendered {
        Some(rendered) => conversation(task.request, rendered, loaded).map_err(|error| problem(&error))?,
        None => task.request,
    };
    let problem = |error: &Error| problem(error).of_grammar(source);
    let request = request.checkpoints(true);
    let mut origins: Vec<Standing> = standing;
    origins.resize_with(task.answers as usize, || Standing::Fresh);
    let mut started = Started::default();
    if origins.iter().all(|origin| *origin == Standing::Fresh) {
        let responses = engine.generate_many(request.clone(), task.answers).map_err(|error| problem(&error))?;
        for (answer, response) in (0..).zip(responses) {
            let watched = watched(loaded, &request, rendered.as_ref(), (id, answer), response, None)?;
            started.cancellers.push(watched.canceller());
            started.answers.push(watched.begun());
        }
        return Ok(started);
    }
    for (answer, origin) in (0..).zip(origins) {
        let midway = match origin {
            Standing::Ended => continue,
            Standing::Fresh => None,
            Standing::Begun(midway) => Some(midway),
        };
        // The seeds of the answers follow each other.
        let mut own = request.clone();
        own.options.sampler = request.options.sampler.for_answer(answer);
        let response = match &midway {
            Some(midway) => engine.resume_from(&own, midway),
            None => engine.generate(own),
        };
        match response {
            Ok(response) => {
                let replayed = midway.as_deref().map(|midway| midway.generated.as_slice());
                let watched = watched(loaded, &request, rendered.as_ref(), (id, answer), response, replayed)?;
                started.cancellers.push(watched.canceller());
                started.answers.push(if midway.is_some() { watched } else { watched.begun() });
            }
            Err(error) => {
                let mut problem = problem(&error);
                if midway.is_some() && problem.kind == ProblemKind::Invalid {
                    // It was good enough when it began.
                    problem.kind = ProblemKind::Interrupted;
                }
                started.broken.push((answer, problem));
            }
        }
    }
    Ok(started)
}

/// Where the grammar of a task comes from, in the words of its client.
fn source_of_grammar(task: &Task) -> &'static str {
    match (&task.chat, &task.request.options.sampler.grammar) {
        (Some(chat), _) if chat.grammar.is_none() => schema_of(chat),
        (None, Some(Grammar::JsonSchema(_))) => "json_schema",
        _ => "grammar",
    }
}

fn render(loaded: &Loaded, task: &Task) -> Result<Option<Rendered>, Problem> {
    let Some(chat) = &task.chat else { return Ok(None) };
    let template = loaded.template.as_ref().map_err(|why| Problem::about("chat", why.clone()))?;
    let rendered = template.render(chat).map_err(|error| chat_problem(&error, chat))?;
    if chat.tool_choice == ToolChoice::Required && !chat.tools.is_empty() && !rendered.requires_calls() {
        let message = "the chat template of this model has no form for calls of tools, so that none can be required";
        return Err(Problem::about("tool_choice", message));
    }
    Ok(Some(rendered))
}

/// The request with what its conversation adds.
fn conversation(mut request: Request, rendered: &Rendered, loaded: &Loaded) -> Result<Request> {
    let chat = Request::chat(rendered, loaded.engine.model().vocab())?;
    request.prompt = Prompt::Text(rendered.prompt().to_owned());
    request.options.sampler = rendered.apply(request.options.sampler);
    request.options.stop.extend(chat.options.stop);
    request.options.visible.extend(chat.options.visible);
    Ok(request)
}

/// The answer whose events come from here, with what it had said already.
fn watched(
    loaded: &Arc<Loaded>,
    request: &Request,
    rendered: Option<&Rendered>,
    name: (TaskId, u32),
    response: Response,
    replayed: Option<&[crate::Token]>,
) -> Result<Answer, Problem> {
    let model = loaded.engine.model().clone();
    let mut text = TextTracker::new(&request.options.visible, &request.options.stop);
    let parser = rendered.map(Rendered::answer_parser).transpose().map_err(|error| problem(&error))?;
    let mut message = parser.map(MessageReader::new);
    if let Some(tokens) = replayed {
        let texts = text.replay(model.vocab(), tokens);
        message.iter_mut().for_each(|message| message.replay(&texts));
    }
    Ok(Answer::new(name, response, (Arc::downgrade(loaded), model), text, message))
}
