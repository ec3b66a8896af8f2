//! The conversation and the model that answers it.

use super::stream::AnswerStream;
use crate::args::{Methods, SamplingArgs, SpecArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::load::{Engine, Models, names};
use crate::output::Answer;
use crate::progress::Progress;
use crate::report::{Ending, line};
use llama_spec::chat::{ChatRequest, ChatTemplate, Message, Rendered};
use llama_spec::spec::Stats;
use llama_spec::{Error, Event, GenerateOptions, Token};

/// How answers are generated.
#[derive(Debug)]
pub struct Settings {
    /// How tokens are chosen.
    pub sampling: SamplingArgs,
    /// Their temperature.
    pub temperature: f32,
    /// The most tokens of an answer.
    pub tokens: u32,
    /// Whether a model that can think before it answers does so.
    pub think: bool,
    /// The bars for prompts.
    pub progress: Progress,
}

/// A conversation.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    spec: SpecArgs,
    models: Models,
    engine: Engine,
    template: ChatTemplate,
    system: Option<String>,
    /// Without the system message; messages of the user and of the model take turns.
    messages: Vec<Message>,
    /// Answers begun, for seeds.
    answers: u32,
    total: Stats,
}

impl Session {
    /// An empty conversation.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn new(
        mut models: Models,
        template: ChatTemplate,
        spec: SpecArgs,
        system: Option<String>,
        settings: Settings,
    ) -> Result<Self, Failure> {
        let engine = models.engine(&spec)?;
        let (messages, total) = (Vec::new(), Stats::default());
        Ok(Self { settings, spec, models, engine, template, system, messages, answers: 0, total })
    }

    /// Says something, shows the answer and returns a line about it. After a failure the conversation is as before.
    ///
    /// # Errors
    /// What the library refuses, and when the answer cannot be written.
    pub fn say(&mut self, text: String, out: &mut Answer) -> Result<String, Failure> {
        self.messages.push(Message::user(text));
        self.answer(out).inspect_err(|_| drop(self.messages.pop()))
    }

    /// Answers the last message again; nothing if there is none.
    ///
    /// # Errors
    /// As [`Session::say`].
    pub fn retry(&mut self, out: &mut Answer) -> Result<Option<String>, Failure> {
        let Some(before) = self.messages.pop() else { return Ok(None) };
        self.answer(out).map(Some).inspect_err(|_| self.messages.push(before))
    }

    /// Takes back the last message and its answer. False if there is none.
    pub fn undo(&mut self) -> bool {
        self.messages.pop();
        self.messages.pop().is_some()
    }

    /// Forgets the conversation.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    /// The system message.
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// Sets the system message.
    pub fn set_system(&mut self, text: Option<String>) {
        self.system = text;
    }

    /// Speculates in another way. After a failure it goes on as before.
    ///
    /// # Errors
    /// What the library refuses.
    pub fn set_methods(&mut self, methods: Methods) -> Result<(), Failure> {
        let spec = SpecArgs { spec: Some(methods), ..self.spec.clone() };
        interrupt::running();
        self.engine = self.models.engine_with(&spec).map_err(|failure| match failure {
            Failure::Library(Error::LoadCancelled { .. }) => Failure::Other("cancelled, nothing has changed".into()),
            failure => failure,
        })?;
        self.spec = spec;
        Ok(())
    }

    /// How it speculates, in a line.
    pub fn methods(&self) -> String {
        let speculation = self.engine.speculation();
        let reason = self.engine.reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("speculation: {}{reason}", names(&speculation.effective))
    }

    /// What answers, in a line.
    pub fn description(&self) -> String {
        let length = self.engine.generator.context_length();
        format!("{}; context of {length} tokens; {}", self.models.target().description(), self.methods())
    }

    /// The numbers of all answers, in lines.
    pub fn stats(&self) -> String {
        let (total, seconds) = (&self.total, |time: std::time::Duration| time.as_secs_f64());
        let mut lines = format!("{} answers: {total}", self.answers);
        for (source, drafted, accepted) in total.per_source() {
            lines += &format!("\n{source}: {accepted} of {drafted} drafted tokens accepted");
        }
        lines += &format!(
            "\nprompts: {} tokens, {} of them still known from before; {:.1} s to read the others",
            total.prompt_tokens,
            total.cached_tokens,
            seconds(total.prefill)
        );
        lines += &format!(
            "\ntime to generate: {:.1} s, of it draft {:.1} s, verify {:.1} s, sample {:.1} s, roll back {:.1} s",
            seconds(total.generation),
            seconds(total.draft),
            seconds(total.verify),
            seconds(total.sample),
            seconds(total.rollback)
        );
        lines
    }

    /// Answers the last message, which is the user's.
    fn answer(&mut self, out: &mut Answer) -> Result<String, Failure> {
        interrupt::running();
        let rendered = self.template.render(&self.request())?;
        let options = self.options(&rendered);
        self.answers += 1;
        let generation = self.engine.generator.generate(rendered.prompt(), options);
        let mut generation = generation.map_err(in_conversation)?;
        let reading =
            self.settings.progress.prefill(generation.stats().cached_tokens as usize, generation.prompt().len());
        let mut stream = AnswerStream::new(rendered.answer_parser()?, out);
        let mut ending = Ending::INTERRUPTED;
        while !interrupt::requested() {
            let Some(event) = generation.next().transpose()? else { break };
            if let Event::Prefill { done, .. } = event {
                reading.set_position(done as u64);
                continue;
            }
            if !reading.is_finished() {
                reading.finish_and_clear();
            }
            stream.push(event.text(), matches!(event, Event::Token { source, .. } if source.is_draft()))?;
            if let Event::Finished { reason, .. } = event {
                ending = Ending::Stopped(reason);
                break;
            }
        }
        reading.finish_and_clear();
        let message = stream.finish(ending != Ending::INTERRUPTED)?;
        self.messages.push(message);
        let stats = generation.stats().clone();
        drop(generation);
        self.total.add(&stats);
        let mut line = line(&stats, self.engine.speculation(), ending);
        if ending == Ending::Stopped(llama_spec::StopReason::ContextFull) {
            line += "; /clear begins a new conversation";
        }
        Ok(line)
    }

    fn request(&self) -> ChatRequest {
        let system = self.system.iter().map(|text| Message::system(text.as_str()));
        ChatRequest::new(system.chain(self.messages.iter().cloned()).collect()).enable_thinking(self.settings.think)
    }

    fn options(&self, rendered: &Rendered) -> GenerateOptions {
        let mut sampler = self.settings.sampling.options(self.settings.temperature);
        // One seed for the whole conversation, but another answer when one is asked for again.
        sampler.seed = sampler
            .seed
            .map(|seed| (u64::from(seed) + u64::from(self.answers)) % u64::from(u32::MAX))
            .map(|seed| seed as u32);
        GenerateOptions::sampled(rendered.apply(sampler))
            .max_tokens(self.settings.tokens)
            .stop(rendered.stops().iter().chain(&self.settings.sampling.stop))
            .visible(self.marks(rendered))
    }

    /// The control tokens that the parser must see.
    fn marks(&self, rendered: &Rendered) -> Vec<Token> {
        let vocab = self.models.target().vocab();
        let tokens = rendered.preserved_tokens().iter().filter_map(|text| {
            let tokens = vocab.tokenize_with(text.as_bytes(), false, true).ok()?;
            <[Token; 1]>::try_from(tokens).ok()
        });
        tokens.flatten().collect()
    }
}

/// What to do about a conversation that is too long.
fn in_conversation(error: Error) -> Failure {
    match error {
        Error::PromptTooLong { tokens, context } => Failure::Other(format!(
            "the conversation has {tokens} tokens and the context holds {context}: /clear begins a new one, /undo takes back \
             the last exchange, and --context N at the start makes more room"
        )),
        error => error.into(),
    }
}
