//! Our engine in our own process, asked as servers are.

use super::client::Answer;
use super::workload::{Prompt, Workload};
use anyhow::{Context, Result};
use llama_spec::chat::{ChatRequest, ChatTemplate, Message};
use llama_spec::spec::SpecConfig;
use llama_spec::{ContextOptions, Engine, Event, Model, ModelFile, Request, SamplerOptions, Token};
use std::path::Path;
use std::time::Instant;

/// A text that a model wrote: the tokens of the prompt, and of the answer.
pub type Written = (Vec<Token>, Vec<Token>);

/// What a model answers to the prompts of a workload, without speculation.
///
/// # Errors
/// When the engine cannot be had, or fails.
pub fn written(model: &Model, workload: &Workload) -> Result<Vec<Written>> {
    let local = Local::new(model, None, ContextOptions::default().length_per_slot(1024), true)?;
    let answer = |prompt| {
        let response = local.engine.generate(local.request(workload, prompt)?)?;
        let prompt = response.prompt().to_vec();
        Ok((prompt, response.output()?.tokens))
    };
    workload.prompts.iter().map(answer).collect()
}

/// An engine with the chat template of its model.
#[derive(Debug)]
pub(super) struct Local {
    engine: Engine,
    template: Option<ChatTemplate>,
}

impl Local {
    /// Loads the models and makes the engine; without speculation if it is to be `plain`.
    ///
    /// # Errors
    /// When a model or the engine cannot be had.
    pub(super) fn new(model: &Model, draft: Option<&Path>, context: ContextOptions, plain: bool) -> Result<Self> {
        let mut builder = Engine::builder(model).context(context);
        if plain {
            builder = builder.speculation(SpecConfig::off());
        } else if let Some(draft) = draft {
            builder = builder.draft(ModelFile::open(draft)?);
        }
        Ok(Self { engine: builder.build().context("the engine")?, template: ChatTemplate::from_model(model).ok() })
    }

    /// Generates an answer, and measures as the client of servers does.
    ///
    /// # Errors
    /// When the prompt is refused or the engine fails.
    pub(super) fn ask(&self, workload: &Workload, prompt: &Prompt) -> Result<Answer> {
        let start = Instant::now();
        let request = self.request(workload, prompt)?;
        let mut answer = Answer::default();
        for event in self.engine.generate(request)? {
            let event = event?;
            if !event.text().is_empty() {
                answer.last = start.elapsed();
                if answer.text.is_empty() {
                    answer.first = answer.last;
                }
                answer.text += event.text();
            }
            if let Event::Finished { stats, .. } = event {
                answer.tokens = stats.generated_tokens;
                answer.cached = stats.cached_tokens;
                answer.own_speed = stats.tokens_per_second();
                answer.drafted = (stats.drafted, stats.accepted);
            }
        }
        Ok(answer)
    }

    fn request(&self, workload: &Workload, prompt: &Prompt) -> Result<Request> {
        let request = match prompt {
            Prompt::Text { text } => Request::prompt(text.as_str()),
            Prompt::Chat { messages } => {
                let message = |(role, content): &(String, String)| match role.as_str() {
                    "system" => Message::system(content.as_str()),
                    "assistant" => Message::assistant(content.as_str()),
                    _ => Message::user(content.as_str()),
                };
                let chat = ChatRequest::new(messages.iter().map(message).collect());
                let template = self.template.as_ref().context("the model has no chat template")?;
                Request::chat(&template.render(&chat)?, self.engine.model().vocab())?
            }
        };
        let sampling = workload.sampling;
        let sampler = if workload.is_greedy() {
            SamplerOptions::greedy()
        } else {
            let sampler = SamplerOptions::default().temperature(sampling.temperature).seed(sampling.seed);
            sampler.top_k(sampling.top_k).top_p(sampling.top_p).min_p(sampling.min_p)
        };
        Ok(request.sampler(sampler).max_tokens(workload.max_tokens))
    }
}
