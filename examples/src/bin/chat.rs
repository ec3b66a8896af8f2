//! Talks with a model in the terminal: `cargo run --release --bin chat -- --help`.

use clap::Parser;
use llama_spec::Model;
use llama_spec::chat::ChatTemplate;
use llama_spec_examples::args::{ModelArgs, SamplingArgs, ShowArgs, SpecArgs, temperature};
use llama_spec_examples::chat::{Command, HELP, Input, Session, Settings};
use llama_spec_examples::load::Models;
use llama_spec_examples::output::{Answer, aside};
use llama_spec_examples::progress::Progress;
use llama_spec_examples::prompt::utf8;
use llama_spec_examples::{Failure, interrupt, logging, start};
use std::fs;
use std::process::ExitCode;

/// Talk with a language model, made faster by speculative decoding
///
/// Uses the chat template of the model. Tokens are drafted by something cheap and checked by the model, several in one
/// step, so its answers are the ones it would give anyway; drafted tokens that it accepted are shown in green. Messages can
/// also come from a pipe, one a line: then standard output is the answers and nothing else.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_help = after_help())]
struct Cli {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    spec: SpecArgs,

    /// Instructions for the model before the conversation
    #[arg(long, value_name = "TEXT", help_heading = "Conversation", allow_hyphen_values = true)]
    system: Option<String>,
    /// Another chat template than the model's own: a file, or `chatml`
    #[arg(long, value_name = "FILE", help_heading = "Conversation")]
    chat_template: Option<String>,
    /// Do not let the model think before it answers, if its template has that choice
    #[arg(long, help_heading = "Conversation")]
    no_think: bool,

    /// The most tokens of one answer
    #[arg(short = 'n', long = "tokens", value_name = "N", default_value_t = 1024, help_heading = "Sampling", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
    /// How freely to choose: 0 takes the most probable token each time, 1 follows the model's probabilities
    #[arg(long, value_name = "T", default_value = "0.7", help_heading = "Sampling", allow_negative_numbers = true, value_parser = temperature)]
    temp: f32,
    #[command(flatten)]
    sampling: SamplingArgs,

    #[command(flatten)]
    show: ShowArgs,
}

fn after_help() -> String {
    format!(
        "In the conversation:\n{}\n\nExamples:\n  chat -m model.gguf --system \"Answer in one sentence.\"\n  \
         printf 'Who are you?\\n' | chat -m large.gguf -d small.gguf --temp 0\n\n\
         Exit status: 0 done, 1 failed or a message from a pipe was not answered, 2 wrong usage, 3 files and settings that do not go together,\n\
         4 a file that is no model, 130 ended by Ctrl-C.",
        HELP.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    )
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: Cli) -> Result<(), Failure> {
    cli.show.color.apply();
    let logging = logging::start(cli.show.verbose)?;
    let source = cli.chat_template.as_deref().map(template_source).transpose()?;
    interrupt::install()?;
    let progress = Progress::new(logging);

    let models = Models::load(&cli.model, &cli.spec, progress)?;
    let template = template(models.target(), source.as_deref())?;
    let settings =
        Settings { sampling: cli.sampling, temperature: cli.temp, tokens: cli.tokens, think: !cli.no_think, progress };
    let mut session = Session::new(models, template, cli.spec, cli.system, settings)?;
    let mut input = Input::new()?;
    if input.is_interactive() {
        aside(&session.description());
        aside("/help lists the commands, Ctrl-C stops an answer");
    }
    converse(&mut session, &mut input)
}

/// `chatml`, or the text of a file.
fn template_source(name: &str) -> Result<String, Failure> {
    if name == "chatml" {
        return Ok(name.to_owned());
    }
    let bytes = fs::read(name).map_err(|source| Failure::Input { from: name.to_owned(), source })?;
    utf8(bytes, name.to_owned())
}

fn template(model: &Model, source: Option<&str>) -> Result<ChatTemplate, Failure> {
    match source {
        Some("chatml") => Ok(ChatTemplate::chatml(model)?),
        Some(source) => Ok(ChatTemplate::from_source(model, source)?),
        None => ChatTemplate::from_model(model)
            .map_err(|error| Failure::Other(format!("{error} (--chat-template FILE, or --chat-template chatml)"))),
    }
}

fn converse(session: &mut Session, input: &mut Input) -> Result<(), Failure> {
    let mut out = Answer::new();
    let mut unanswered = false;
    loop {
        let done = match input.read() {
            Ok(None) => break,
            Ok(Some(line)) => match Command::parse(&line) {
                Command::Quit => break,
                command => obey(command, session, &mut out),
            },
            Err(failure) => Err(failure),
        };
        match done {
            Ok(()) => {}
            Err(failure) if failure.ends_program() => return Err(failure),
            Err(failure) => {
                out.end_line()?;
                failure.tell();
                unanswered = true;
            }
        }
    }
    // A person has seen it; a script sees the status.
    if unanswered && !input.is_interactive() { Err(Failure::Told) } else { Ok(()) }
}

fn obey(command: Command, session: &mut Session, out: &mut Answer) -> Result<(), Failure> {
    match command {
        Command::Nothing | Command::Quit => {}
        Command::Say(text) => aside(&session.say(text, out)?),
        Command::Retry => aside(&session.retry(out)?.unwrap_or_else(|| "there is no message to answer".into())),
        Command::Help => aside(HELP),
        Command::Clear => {
            session.clear();
            aside("a new conversation");
        }
        Command::ShowSystem => aside(session.system().unwrap_or("no system message is set")),
        Command::System(text) => {
            session.set_system(text);
            aside("from the next message on");
        }
        Command::Undo => aside(if session.undo() { "taken back" } else { "there is nothing to take back" }),
        Command::Stats => aside(&session.stats()),
        Command::ShowSpec => aside(&session.methods()),
        Command::Spec(methods) => {
            session.set_methods(methods)?;
            aside(&session.methods());
        }
        Command::Wrong(why) => return Err(Failure::Other(why)),
    }
    Ok(())
}
