//! All candidates, running: only one of them works at a time.

use super::candidate::{Candidate, Side};
use super::client::{Answer, Client};
use super::engine::Local;
use super::process::Server;
use super::workload::{Prompt, Workload};
use anyhow::{Context, Result, anyhow};
use llama_spec::{ContextOptions, Model};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What all candidates have in common.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Our server.
    pub ours: PathBuf,
    /// llama-server.
    pub theirs: PathBuf,
    /// The model.
    pub model: PathBuf,
    /// What drafts for it, if anything does.
    pub draft: Option<PathBuf>,
    /// Threads.
    pub threads: u32,
    /// Texts at once.
    pub slots: u32,
    /// Tokens for each of them.
    pub context: u32,
    /// How long an answer, or a server to be ready, may take.
    pub patience: Duration,
}

/// A candidate that runs.
#[derive(Debug)]
enum Running {
    Server(Server),
    Engine(Box<Local>),
}

/// The candidates, in their order.
#[derive(Debug)]
pub(super) struct Fleet {
    running: Vec<(Candidate, Running)>,
    client: Client,
}

/// Answers to several prompts that were asked for at once.
#[derive(Debug)]
pub(super) struct Answers {
    /// In the order of the prompts.
    pub(super) each: Vec<Answer>,
    /// From the first question to the end of the last answer.
    pub(super) time: Duration,
}

impl Setup {
    /// The words that start a candidate's server.
    fn words(&self, candidate: &Candidate) -> Result<Vec<OsString>> {
        let mut words: Vec<OsString> = vec!["--model".into(), self.model.clone().into()];
        let mut add = |pairs: &[(&str, String)]| {
            pairs.iter().for_each(|(name, value)| words.extend([OsString::from(name), value.into()]));
        };
        let (threads, slots) = (self.threads.to_string(), self.slots.to_string());
        if candidate.side == Side::Theirs {
            let whole = (self.context * self.slots).to_string();
            add(&[("--threads", threads.clone()), ("--threads-batch", threads), ("--parallel", slots)]);
            // Each text has its own room, as with ours, and what was asked before is not kept.
            add(&[("--ctx-size", whole), ("--cache-ram", "0".into()), ("-fit", "off".into())]);
            words.push("--no-kv-unified".into());
        } else {
            add(&[("--threads", threads), ("--slots", slots), ("--context", self.context.to_string())]);
            // The same is asked in every round, which must not be drafted from the answers of the one before.
            add(&[("--store-mib", "0".into())]);
        }
        words.extend(candidate.words()?.into_iter().map(OsString::from));
        let drafts = if candidate.side == Side::Theirs {
            candidate.setting.starts_with("draft-")
        } else {
            !candidate.is_plain() && !candidate.setting.starts_with("ngram-")
        };
        if let Some(draft) = self.draft.as_ref().filter(|_| drafts) {
            let name = if candidate.side == Side::Theirs { "--model-draft" } else { "--draft" };
            words.extend([name.into(), draft.clone().into()]);
        }
        Ok(words)
    }

    /// The options of our engine's context.
    fn options(&self) -> ContextOptions {
        ContextOptions::default().slots(self.slots).length_per_slot(self.context).threads(self.threads)
    }

    /// Starts all of them and waits until they are ready.
    ///
    /// # Errors
    /// When one is not ready in time, or ends.
    pub(super) fn start(&self, candidates: &[Candidate], model: &Model) -> Result<Fleet> {
        let client = Client::new(self.patience);
        let mut running = Vec::new();
        for candidate in candidates {
            let program = match candidate.side {
                Side::Ours => &self.ours,
                Side::Theirs => &self.theirs,
                Side::Engine => {
                    let local = Local::new(model, self.draft.as_deref(), self.options(), candidate.is_plain())?;
                    running.push((candidate.clone(), Running::Engine(Box::new(local))));
                    continue;
                }
            };
            let mut server = Server::start(&candidate.to_string(), program, &self.words(candidate)?)?;
            // One after the other: ours measures the machine while it starts.
            let ready = if candidate.side == Side::Ours { "/ready" } else { "/health" };
            server.wait(&client, ready, self.patience)?;
            running.push((candidate.clone(), Running::Server(server)));
        }
        Ok(Fleet { running, client })
    }
}

impl Fleet {
    /// Asks one candidate all of these at once.
    ///
    /// # Errors
    /// When one answer does not come, with the end of the server's log.
    pub(super) fn ask(&mut self, place: usize, workload: &Workload, prompts: &[Prompt]) -> Result<Answers> {
        let (candidate, running) = self.running.get_mut(place).context("there is no such candidate")?;
        let start = Instant::now();
        let (one, client) = (&*running, &self.client);
        let answers: Result<Vec<Answer>> = std::thread::scope(|scope| {
            let ask = |prompt| scope.spawn(move || one.ask(client, workload, prompt));
            let threads: Vec<_> = prompts.iter().map(ask).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a thread failed"))))
                .collect()
        });
        let time = start.elapsed();
        let told = || format!("{candidate}, workload `{}`", workload.name);
        match (answers, running) {
            (Ok(each), _) => Ok(Answers { each, time }),
            (Err(why), Running::Server(server)) => {
                // That it has ended says more than that it did not answer.
                server.check().with_context(told)?;
                let tail = server.tail();
                Err(why.context(told()).context(tail))
            }
            (Err(why), Running::Engine(_)) => Err(why).with_context(told),
        }
    }

    /// The most memory that a candidate has had, in bytes; nothing for an engine in our own process.
    pub(super) fn peak_memory(&self, place: usize) -> Option<u64> {
        match self.running.get(place) {
            Some((_, Running::Server(server))) => server.peak_memory(),
            _ => None,
        }
    }
}

impl Running {
    fn ask(&self, client: &Client, workload: &Workload, prompt: &Prompt) -> Result<Answer> {
        match self {
            Self::Engine(local) => local.ask(workload, prompt),
            Self::Server(server) => {
                let (path, body) = workload.request(prompt);
                client.ask(&format!("{}{path}", server.url()), &body)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        Setup {
            ours: "ours".into(),
            theirs: "theirs".into(),
            model: "m.gguf".into(),
            draft: Some("d.gguf".into()),
            threads: 2,
            slots: 4,
            context: 512,
            patience: Duration::from_secs(1),
        }
    }

    fn words(side: Side, setting: &str) -> String {
        let words = setup().words(&Candidate::new(side, setting)).unwrap();
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn both_get_the_same_threads_slots_and_room() {
        let ours = words(Side::Ours, "plain");
        assert_eq!(ours, "--model m.gguf --threads 2 --slots 4 --context 512 --store-mib 0 --spec none");
        let theirs = words(Side::Theirs, "plain");
        assert!(
            theirs.starts_with("--model m.gguf --threads 2 --threads-batch 2 --parallel 4 --ctx-size 2048 "),
            "{theirs}"
        );
    }

    #[test]
    fn only_those_who_draft_with_a_model_load_one() {
        assert!(words(Side::Ours, "auto").ends_with("--draft d.gguf"));
        assert!(words(Side::Theirs, "draft-simple:4").ends_with("--spec-draft-n-max 4 --model-draft d.gguf"));
        for (side, setting) in [(Side::Ours, "plain"), (Side::Ours, "ngram-mod"), (Side::Theirs, "ngram-mod:8")] {
            assert!(!words(side, setting).contains("d.gguf"), "{setting}");
        }
    }
}
