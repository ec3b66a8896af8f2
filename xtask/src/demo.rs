//! Shows what speculation brings: the same prompts with and without it, side by side, in one small table.

use crate::model;
use crate::programs::{self, Programs};
use crate::run::{Run, say, target, warn};
use crate::table::{self, Align};
use crate::tools::{self, Origin};
use anyhow::{Context, Result, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How often each prompt runs each way; the fastest counts, as everything that disturbs only ever slows down.
const ROUNDS: usize = 2;
/// The zoo's model that stands in for the default one where that cannot be fetched.
const STAND_IN: &str = "target";

const PROMPTS: [(&str, &str); 5] = [
    (
        "repetition",
        "The days go round: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, Monday, Tuesday, Wednesday, \
         Thursday, Friday, Saturday, Sunday, Monday, Tuesday, Wednesday, Thursday, Friday,",
    ),
    (
        "code editing",
        "```python\n\
         def area(width, height):\n    if width < 0 or height < 0:\n        raise ValueError(\"a side is negative\")\n\
         \x20   return width * height\n\n\
         def perimeter(width, height):\n    if width < 0 or height < 0:\n        raise ValueError(\"a side is negative\")\n\
         \x20   return 2 * (width + height)\n\
         ```\n\
         Here is the same code with a comment above each function:\n\
         ```python\n\
         # The area of a rectangle.\n\
         def area(width,",
    ),
    (
        "quoting",
        "The harbour was quiet that morning. Three boats lay at the quay, and a man in a blue coat was mending a net. \
         Gulls walked along the wall and waited for something to fall.\n\n\
         Once more, word for word:\n\n\
         The harbour was quiet that morning. Three boats",
    ),
    (
        "records",
        "{\"id\": 1, \"name\": \"apple\", \"colour\": \"red\", \"price\": 3}\n\
         {\"id\": 2, \"name\": \"pear\", \"colour\": \"green\", \"price\": 4}\n\
         {\"id\": 3, \"name\": \"plum\", \"colour\": \"blue\", \"price\": 2}\n\
         {\"id\": 4, \"name\":",
    ),
    ("free prose", "The lighthouse keeper had not spoken to anyone for a month when the letter came. It said"),
];

/// What `cargo xtask demo` takes.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A GGUF model of yours, instead of the default one
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// A smaller GGUF model with the same vocabulary, to draft with
    #[arg(long, value_name = "FILE", requires = "model")]
    draft: Option<PathBuf>,
    /// How to speculate: names of methods, separated by commas [default: lookup, or draft-simple with --draft]
    #[arg(long, value_name = "METHODS")]
    spec: Option<String>,
    /// How many tokens to generate for each prompt
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
}

/// One answer of `generate --json`.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    tokens: Vec<i64>,
    /// Tokens per second; none if the text ended at once.
    speed: Option<f64>,
    /// The share of drafted tokens that were accepted; none if nothing was drafted.
    acceptance: Option<f64>,
    effective: String,
    reason: Option<String>,
}

/// The two ways of answering one prompt.
struct Pair {
    name: &'static str,
    plain: Answer,
    speculative: Answer,
}

pub(crate) fn demo(options: &Options, origin: Origin) -> Result<()> {
    // Relative names are relative to where the user is, whereas the programs run in the root of the repository.
    let given = |file: &Option<PathBuf>| file.as_deref().map(existing).transpose();
    let (model, draft) = (given(&options.model)?, given(&options.draft)?);
    let variables = tools::native(origin)?;
    say("building the programs in release mode: the first time about five minutes on two cores, most of it llama.cpp");
    let programs = programs::build(&variables, &["--workspace"])?;
    let model = match model {
        Some(file) => file,
        None => match model::smollm2() {
            Ok(file) => file,
            Err(why) => stand_in(&why, &programs)?,
        },
    };
    let methods = options.spec.as_deref().unwrap_or(if draft.is_some() { "draft-simple" } else { "lookup" });
    let demo = Demo { generate: programs.named("generate")?, model, draft, tokens: options.tokens };
    let pairs = demo.pairs(methods)?;
    show(&demo.model, methods, &pairs);
    Ok(())
}

fn existing(file: &Path) -> Result<PathBuf> {
    ensure!(file.exists(), "there is no model {}", file.display());
    std::path::absolute(file).with_context(|| format!("cannot tell where {} is", file.display()))
}

/// A model of the zoo, for a machine without network.
fn stand_in(why: &anyhow::Error, programs: &Programs) -> Result<PathBuf> {
    warn(format!("{why:#}"));
    warn(
        "using a tiny model of the test zoo instead: its text means nothing, and its speed-up is not that of a real model",
    );
    programs.zoo(&target("models").join("zoo"), STAND_IN)
}

struct Demo {
    generate: PathBuf,
    model: PathBuf,
    draft: Option<PathBuf>,
    tokens: u32,
}

impl Demo {
    /// Runs every prompt both ways, alternating, so that whatever else the machine does falls on both.
    fn pairs(&self, methods: &str) -> Result<Vec<Pair>> {
        let style = ProgressStyle::with_template("    {msg:30} {bar:30} {pos}/{len} runs").context("progress bar")?;
        let runs = PROMPTS.len() * ROUNDS * 2;
        say(format!(
            "generating {} tokens {runs} times; other work on this machine would spoil the figures",
            self.tokens
        ));
        let bar = ProgressBar::new(runs as u64).with_style(style);
        let mut pairs = Vec::new();
        for (name, prompt) in PROMPTS {
            let run = |methods: &str| {
                bar.set_message(format!("{name} ({methods})"));
                let answer = self.answer(prompt, methods);
                bar.inc(1);
                answer.with_context(|| format!("the prompt `{name}` with `--spec {methods}`"))
            };
            let (mut plain, mut speculative) = (run("none")?, run(methods)?);
            for _ in 1..ROUNDS {
                speculative = fastest(speculative, run(methods)?);
                plain = fastest(plain, run("none")?);
            }
            pairs.push(Pair { name, plain, speculative });
        }
        bar.finish_and_clear();
        Ok(pairs)
    }

    fn answer(&self, prompt: &str, methods: &str) -> Result<Answer> {
        let mut run = Run::new(&self.generate).arg("--model").arg(&self.model);
        if let Some(draft) = self.draft.as_ref().filter(|_| methods != "none") {
            run = run.arg("--draft").arg(draft);
        }
        let tokens = self.tokens.to_string();
        let output = run.args(["--spec", methods, "-n", &tokens, "--temp", "0", "--json", "-p", prompt]).read()?;
        Answer::read(&output)
    }
}

impl Answer {
    fn read(json: &str) -> Result<Self> {
        let answer: Value = serde_json::from_str(json).context("generate printed something else than JSON")?;
        let (stats, speculation) = (&answer["stats"], &answer["speculation"]);
        let missing = |key: &str| format!("the answer of generate has no `{key}`");
        let tokens = answer["tokens"].as_array().with_context(|| missing("tokens"))?;
        // Null where there is nothing to divide by, but always there.
        let number = |key: &str| -> Result<Option<f64>> { Ok(stats.get(key).with_context(|| missing(key))?.as_f64()) };
        Ok(Self {
            tokens: tokens.iter().filter_map(Value::as_i64).collect(),
            speed: number("tokens_per_second")?,
            acceptance: number("acceptance_rate")?,
            effective: named(&speculation["effective"]).with_context(|| missing("speculation.effective"))?,
            reason: speculation["reason"].as_str().filter(|reason| !reason.is_empty()).map(str::to_owned),
        })
    }
}

/// A method's name, or the names of several.
fn named(value: &Value) -> Option<String> {
    match value {
        Value::Array(names) if names.is_empty() => Some("none".to_owned()),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
        other => other.as_str().map(str::to_owned),
    }
}

fn fastest(one: Answer, other: Answer) -> Answer {
    if other.speed > one.speed { other } else { one }
}

fn show(model: &Path, methods: &str, pairs: &[Pair]) {
    let model = model.file_name().unwrap_or_default().to_string_lossy();
    println!("\n{model}: plain decoding against speculation with {methods}\n");
    let columns = [
        ("prompt", Align::Left),
        ("tokens", Align::Right),
        ("plain", Align::Right),
        ("speculative", Align::Right),
        ("acceptance", Align::Right),
        ("speed-up", Align::Right),
        ("same text", Align::Left),
    ];
    let rows: Vec<_> = pairs.iter().map(Pair::row).collect();
    table::print(&columns, &rows);
    println!(
        "\nSpeculation guesses some tokens ahead and lets the model check all of them in one step, so the text stays the same\n\
         and only the wait gets shorter. Acceptance is the share of guesses the model agreed with: high where a text repeats\n\
         itself or quotes, low in free prose, where few guesses are made and little is lost. Speeds are in tokens per second."
    );
    for pair in pairs.iter().filter(|pair| pair.plain.tokens != pair.speculative.tokens) {
        let at = pair.plain.tokens.iter().zip(&pair.speculative.tokens).take_while(|(a, b)| a == b).count();
        println!(
            "`{}` differs from token {at} on: a quantized model rounds differently when it checks several tokens at once, and two \
             tokens were about equally likely there.",
            pair.name
        );
    }
    for (pair, reason) in pairs.iter().filter_map(|pair| Some((pair, pair.speculative.reason.as_ref()?))) {
        println!("`{}` ran with `{}` in place of `{methods}`: {reason}", pair.name, pair.speculative.effective);
    }
}

impl Pair {
    fn row(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let speed = |speed: Option<f64>| speed.map_or_else(none, |speed| format!("{speed:.1}"));
        let speed_up = self.plain.speed.zip(self.speculative.speed).map(|(plain, speculative)| speculative / plain);
        vec![
            self.name.to_owned(),
            self.speculative.tokens.len().to_string(),
            speed(self.plain.speed),
            speed(self.speculative.speed),
            self.speculative
                .acceptance
                .map_or_else(|| "no guesses".to_owned(), |share| format!("{:.0} %", share * 100.0)),
            speed_up.map_or_else(none, |ratio| format!("{ratio:.2}x")),
            if self.plain.tokens == self.speculative.tokens { "yes" } else { "no" }.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(stats: Value) -> Value {
        json!({
            "text": "x", "tokens": [1, 2], "stop_reason": "length", "stats": stats,
            "speculation": { "requested": "ngram-mod", "effective": ["ngram-mod"], "reason": null },
        })
    }

    #[test]
    fn an_answer_is_read() {
        let stats = json!({ "tokens_per_second": 12.5, "acceptance_rate": 0.75 });
        let read = Answer::read(&answer(stats).to_string()).unwrap();
        assert_eq!((read.tokens.as_slice(), read.speed, read.acceptance), (&[1, 2][..], Some(12.5), Some(0.75)));
        assert_eq!((read.effective.as_str(), read.reason), ("ngram-mod", None));
    }

    #[test]
    fn nothing_to_divide_by_is_no_error() {
        let stats = json!({ "tokens_per_second": null, "acceptance_rate": null });
        let read = Answer::read(&answer(stats).to_string()).unwrap();
        assert_eq!((read.speed, read.acceptance), (None, None));
    }

    #[test]
    fn a_missing_figure_is_named() {
        let error = Answer::read(&answer(json!({ "acceptance_rate": null })).to_string()).unwrap_err().to_string();
        assert_eq!(error, "the answer of generate has no `tokens_per_second`");
        assert!(Answer::read("no json").is_err());
    }

    #[test]
    fn a_row_compares_the_two() {
        let plain =
            Answer { tokens: vec![1], speed: Some(10.0), acceptance: None, effective: "none".into(), reason: None };
        let speculative = Answer { speed: Some(25.0), acceptance: Some(0.9), ..plain.clone() };
        let row = Pair { name: "a", plain: plain.clone(), speculative: speculative.clone() }.row();
        assert_eq!(row, ["a", "1", "10.0", "25.0", "90 %", "2.50x", "yes"]);
        let other = Answer { tokens: vec![2], speed: None, acceptance: None, ..speculative };
        let row = Pair { name: "a", plain, speculative: other }.row();
        assert_eq!(row, ["a", "1", "10.0", "-", "no guesses", "-", "no"]);
    }
}
