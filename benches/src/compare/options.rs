//! The options of the comparison: `cargo xtask compare` takes them and hands them on to the program `compare`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// What is compared, and how.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Options {
    /// The llama-server to compare with
    #[arg(long, value_name = "FILE")]
    pub llama_server: PathBuf,
    /// The model [default: SmolLM2-135M-Instruct, which is fetched]
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// A model that drafts for it, for both
    #[arg(long, value_name = "FILE")]
    pub draft: Option<PathBuf>,
    /// Workloads, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// How many texts are generated at once; each number is a comparison of its own
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,4", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub concurrency: Vec<u32>,
    /// Slots of each server [default: as many as texts at once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub slots: Option<u32>,
    /// Threads of each server [default: one for each processor, at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub threads: Option<u32>,
    /// Room for prompt and answer of each text, in tokens
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(256..))]
    pub context: u32,
    /// How often each prompt is answered by each
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Take only the first prompts of each workload
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub prompts: Option<u32>,
    /// Make answers no longer than this, in tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..))]
    pub tokens: Option<u32>,
    /// Settings of llama-server's speculation, separated by commas: METHOD, METHOD:DRAFT or METHOD:DRAFT:MATCH, such as ngram-mod:16:8 for drafts of
    /// 16 tokens looked up by 8; `none` for no grid [default: four kinds of lookup at three lengths, and ngram-cache]
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',')]
    pub settings: Vec<String>,
    /// How ours speculates, separated by commas: `auto`, or a method as its --spec takes it (several joined by `+`)
    #[arg(long, value_name = "METHODS", value_delimiter = ',', default_value = "auto")]
    pub ours: Vec<String>,
    /// Leave the engine in our own process out
    #[arg(long)]
    pub no_engine: bool,
    /// Seconds that an answer, or a server to be ready, may take
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Write everything that was measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the results into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// A first look in some minutes: one round, two prompts of each workload, short answers, few settings of llama-server
    #[arg(long)]
    pub quick: bool,
}

impl Options {
    /// The words that give these options to another program.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        let mut add = |name: &str, value: OsString| words.extend([OsString::from(name), value]);
        let files = [
            ("--llama-server", Some(&self.llama_server)),
            ("--model", self.model.as_ref()),
            ("--draft", self.draft.as_ref()),
            ("--json", self.json.as_ref()),
            ("--svg", self.svg.as_ref()),
        ];
        files
            .into_iter()
            .filter_map(|(name, file)| Some((name, file?)))
            .for_each(|(name, file)| add(name, file.into()));
        let numbers = [
            ("--slots", self.slots.map(u64::from)),
            ("--threads", self.threads.map(u64::from)),
            ("--context", Some(self.context.into())),
            ("--rounds", Some(self.rounds.into())),
            ("--prompts", self.prompts.map(u64::from)),
            ("--tokens", self.tokens.map(u64::from)),
            ("--timeout", Some(self.timeout)),
        ];
        for (name, number) in numbers {
            number.into_iter().for_each(|number| add(name, number.to_string().into()));
        }
        let concurrency: Vec<String> = self.concurrency.iter().map(u32::to_string).collect();
        let lists = [
            ("--workloads", &self.workloads),
            ("--concurrency", &concurrency),
            ("--settings", &self.settings),
            ("--ours", &self.ours),
        ];
        lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .for_each(|(name, list)| add(name, list.join(",").into()));
        let flags = [("--no-engine", self.no_engine), ("--quick", self.quick)];
        words.extend(flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.into()));
        words
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    pub(in super::super) fn parse(words: impl IntoIterator<Item = impl Into<OsString>>) -> Options {
        let words = words.into_iter().map(Into::into);
        Cli::try_parse_from([OsString::from("compare")].into_iter().chain(words)).expect("good words").options
    }

    #[test]
    fn options_survive_being_handed_on() {
        for words in [
            "--llama-server a",
            "--llama-server a --model b --draft c --workloads prose,code --concurrency 1,2,8 --slots 8 --threads 2 --quick \
             --context 512 --rounds 3 --prompts 2 --tokens 40 --settings ngram-mod:8,ngram-cache --ours auto,ngram-mod \
             --no-engine --timeout 9 --json d --svg e",
        ] {
            let options = parse(words.split_whitespace());
            assert_eq!(parse(options.words()), options);
        }
    }
}
