//! Continues a text, plain or speculatively: `cargo run --release --bin generate -- --help`.

use clap::Parser;
use indicatif::ProgressBar;
use llama_spec::{Event, GenerateOptions, Generation, Token};
use llama_spec_examples::args::{ModelArgs, SamplingArgs, ShowArgs, SpecArgs, temperature};
use llama_spec_examples::colour::Piece;
use llama_spec_examples::load::Models;
use llama_spec_examples::output::{Answer, aside, note};
use llama_spec_examples::progress::Progress;
use llama_spec_examples::prompt::PromptArgs;
use llama_spec_examples::report::{Ending, Numbers, Report, line};
use llama_spec_examples::{Failure, interrupt, logging, start};
use std::process::ExitCode;
use std::time::Instant;

/// Continue a text with a language model, made faster by speculative decoding
///
/// Tokens are drafted by something cheap and checked by the model, several in one step, so the text is the one that the
/// model alone would give. Standard output is the text; a line of numbers follows on standard error.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    spec: SpecArgs,

    /// The most tokens to generate
    #[arg(short = 'n', long = "tokens", value_name = "N", default_value_t = 256, help_heading = "Sampling", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
    /// How freely to choose: 0 takes the most probable token each time, 1 follows the model's probabilities
    #[arg(long, value_name = "T", default_value = "0", help_heading = "Sampling", allow_negative_numbers = true, value_parser = temperature)]
    temp: f32,
    #[command(flatten)]
    sampling: SamplingArgs,

    /// Write one JSON object in place of the text: text, tokens, stop_reason, stats and speculation
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    show: ShowArgs,
}

const EXAMPLES: &str = "\
Examples:
  generate -m model.gguf -p \"The sea is\" -n 64
  generate -m large.gguf -d small.gguf -f notes.txt --temp 0.8 --seed 1
  generate -m model.gguf --spec none --json < notes.txt

Exit status: 0 done, 1 failed, 2 wrong usage, 3 files and settings that do not go together,
4 a file that is no model, 130 ended by Ctrl-C (what was generated until then is written).";

fn main() -> ExitCode {
    start(run)
}

fn run(cli: Cli) -> Result<(), Failure> {
    cli.show.color.apply();
    let logging = logging::start(cli.show.verbose)?;
    // What can be wrong without a model is found before one is loaded, which may take minutes.
    let prompt = cli.prompt.read()?;
    interrupt::install()?;
    let progress = Progress::new(logging);

    let start = Instant::now();
    let mut models = Models::load(&cli.model, &cli.spec, progress)?;
    let mut engine = models.engine(&cli.spec)?;
    let load = start.elapsed();
    if let Some(reason) = engine.reason() {
        note(&reason);
    }
    let could_speculate = engine.speculation().is_active();

    let options = GenerateOptions::sampled(cli.sampling.options(cli.temp)).max_tokens(cli.tokens);
    let mut generation = engine.generator.generate(&prompt, options.stop(&cli.sampling.stop))?;
    let mut text = Text { json: cli.json, out: Answer::new(), text: String::new(), tokens: Vec::new() };
    let ending = text.follow(&mut generation, progress, cli.tokens);
    let stats = generation.stats().clone();
    drop(generation);
    // After a failure, too, the line with what came until then ends.
    text.out.end_line_on_terminal()?;
    let ending = ending?;

    let speculation = engine.speculation();
    if cli.json {
        let stats = Numbers::new(&stats, load);
        Report { text: &text.text, tokens: &text.tokens, stop_reason: ending, stats, speculation }.write()?;
    } else {
        aside(&line(&stats, speculation, ending));
    }
    if could_speculate && let Some(reason) = engine.reason() {
        note(&format!("from some token on {reason}"));
    }
    if ending == Ending::INTERRUPTED { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The text as it comes: shown at once, or collected for the JSON object.
struct Text {
    json: bool,
    out: Answer,
    text: String,
    tokens: Vec<Token>,
}

impl Text {
    fn follow(&mut self, generation: &mut Generation<'_>, progress: Progress, most: u32) -> Result<Ending, Failure> {
        let reading = progress.prefill(generation.stats().cached_tokens as usize, generation.prompt().len());
        let mut writing = None;
        while !interrupt::requested() {
            let Some(event) = generation.next().transpose()? else { break };
            if let Event::Prefill { done, .. } = event {
                reading.set_position(done as u64);
                continue;
            }
            if !reading.is_finished() {
                reading.finish_and_clear();
                writing = self.json.then(|| progress.answer(most));
            }
            let drafted = matches!(event, Event::Token { source, .. } if source.is_draft());
            match self.json {
                true => self.text.push_str(event.text()),
                false => self.out.write(event.text(), Piece { drafted, reasoning: false })?,
            }
            match event {
                Event::Token { token, .. } => self.tokens.push(token),
                Event::Finished { reason, .. } => return Ok(Ending::Stopped(reason)),
                _ => {}
            }
            writing.iter().for_each(|bar: &ProgressBar| bar.set_position(self.tokens.len() as u64));
        }
        Ok(Ending::INTERRUPTED)
    }
}
