//! The workloads: what is asked, in files of their own (`benches/workloads`).

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

/// One kind of work.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// A short name for `--workloads` and tables.
    pub name: String,
    /// What it is and why it is here, in a sentence.
    pub about: String,
    /// The longest answer in tokens.
    pub max_tokens: u32,
    /// How tokens are chosen. Default: always the most probable one.
    #[serde(default)]
    pub sampling: Sampling,
    /// What is asked; no two are alike.
    pub prompts: Vec<Prompt>,
}

/// How tokens are chosen, alike on both sides. With temperature 0 nothing else counts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// 0 takes the most probable token.
    pub temperature: f32,
    /// 0 for no such filter.
    pub top_k: u32,
    /// 1 for no such filter.
    pub top_p: f32,
    /// 0 for no such filter.
    pub min_p: f32,
    /// Where random numbers start.
    pub seed: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 1 }
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Prompt {
    /// A text to continue.
    Text {
        /// The text.
        text: String,
    },
    /// A conversation to answer.
    Chat {
        /// Pairs of role and content.
        messages: Vec<(String, String)>,
    },
}

/// The files, by name.
const FILES: [(&str, &str); 7] = [
    ("prose", include_str!("../../workloads/prose.toml")),
    ("code", include_str!("../../workloads/code.toml")),
    ("structure", include_str!("../../workloads/structure.toml")),
    ("passage", include_str!("../../workloads/passage.toml")),
    ("agent", include_str!("../../workloads/agent.toml")),
    ("chat", include_str!("../../workloads/chat.toml")),
    ("random", include_str!("../../workloads/random.toml")),
];

impl Workload {
    /// All of them, in the order in which they are shown.
    ///
    /// # Errors
    /// For a file that is no workload.
    pub fn all() -> Result<Vec<Self>> {
        FILES.iter().map(|(name, text)| Self::read(name, text)).collect()
    }

    /// Those with these names; all if there are none.
    ///
    /// # Errors
    /// For a name that is none, with those there are.
    pub fn named(names: &[String]) -> Result<Vec<Self>> {
        let all = Self::all()?;
        if let Some(unknown) = names.iter().find(|name| all.iter().all(|workload| workload.name != **name)) {
            let known: Vec<&str> = all.iter().map(|workload| workload.name.as_str()).collect();
            bail!("there is no workload `{unknown}`; there are {}", known.join(", "));
        }
        Ok(all.into_iter().filter(|workload| names.is_empty() || names.contains(&workload.name)).collect())
    }

    fn read(name: &str, text: &str) -> Result<Self> {
        let workload: Self = toml::from_str(text).with_context(|| format!("the workload `{name}`"))?;
        ensure!(workload.name == name, "the workload `{name}` calls itself `{}`", workload.name);
        ensure!(!workload.prompts.is_empty(), "the workload `{name}` has no prompts");
        Ok(workload)
    }

    /// Whether the same text comes each time, whoever computes it (as far as they round alike).
    pub fn is_greedy(&self) -> bool {
        self.sampling.temperature == 0.0
    }

    /// Where this prompt is sent, and what.
    pub fn request(&self, prompt: &Prompt) -> (&'static str, Value) {
        let Sampling { temperature, top_k, top_p, min_p, seed } = self.sampling;
        let mut body = json!({
            "stream": true, "max_tokens": self.max_tokens, "temperature": temperature, "cache_prompt": false,
        });
        // With temperature 0 both know what to leave out, and filters that are switched off would cost llama-server time.
        if !self.is_greedy() {
            let fields =
                [("top_k", json!(top_k)), ("top_p", json!(top_p)), ("min_p", json!(min_p)), ("seed", json!(seed))];
            fields.into_iter().for_each(|(name, value)| body[name] = value);
        }
        match prompt {
            Prompt::Text { text } => {
                body["prompt"] = text.as_str().into();
                body["n_predict"] = self.max_tokens.into();
                ("/completion", body)
            }
            Prompt::Chat { messages } => {
                let message = |(role, content): &(String, String)| json!({ "role": role, "content": content });
                body["messages"] = messages.iter().map(message).collect();
                ("/v1/chat/completions", body)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_seven_kinds_with_enough_prompts_for_eight_at_once() {
        let all = Workload::all().unwrap();
        assert_eq!(all.len(), 7);
        for workload in &all {
            assert!(workload.prompts.len() >= 8, "{}", workload.name);
            assert!((64..=512).contains(&workload.max_tokens), "{}", workload.name);
            assert!(!workload.about.is_empty(), "{}", workload.name);
        }
        assert!(all.iter().any(|workload| matches!(workload.prompts[0], Prompt::Chat { .. })));
        let sampled: Vec<&str> = all.iter().filter(|w| !w.is_greedy()).map(|w| w.name.as_str()).collect();
        assert_eq!(sampled, ["random"], "what cannot be predicted is sampled, everything else is not");
    }

    #[test]
    fn no_prompt_is_there_twice() {
        let all = Workload::all().unwrap();
        let prompts: Vec<String> = all.iter().flat_map(|w| &w.prompts).map(|prompt| format!("{prompt:?}")).collect();
        assert_eq!(prompts.iter().collect::<BTreeSet<_>>().len(), prompts.len());
    }

    #[test]
    fn prompts_and_answers_fit_the_usual_context() {
        for workload in Workload::all().unwrap() {
            for prompt in &workload.prompts {
                let length = match prompt {
                    Prompt::Text { text } => text.len(),
                    Prompt::Chat { messages } => messages.iter().map(|(_, content)| content.len() + 32).sum(),
                };
                // No tokenizer needs more than one token for two bytes of such text.
                let most = length / 2 + workload.max_tokens as usize;
                assert!(most < 1024, "{}: about {most} tokens", workload.name);
            }
        }
    }

    #[test]
    fn conversations_end_with_the_user() {
        for workload in Workload::all().unwrap() {
            for prompt in &workload.prompts {
                if let Prompt::Chat { messages } = prompt {
                    assert_eq!(messages.last().map(|(role, _)| role.as_str()), Some("user"), "{}", workload.name);
                    assert!(messages.iter().all(|(role, _)| ["system", "user", "assistant"].contains(&&**role)));
                }
            }
        }
    }

    #[test]
    fn names_choose_and_unknown_ones_are_refused() {
        let some = Workload::named(&["code".to_owned(), "prose".to_owned()]).unwrap();
        assert_eq!(some.iter().map(|w| w.name.as_str()).collect::<Vec<_>>(), ["prose", "code"]);
        let error = Workload::named(&["poetry".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("there is no workload `poetry`; there are prose, code,"), "{error}");
    }

    #[test]
    fn a_file_with_a_field_too_many_is_refused() {
        let text = "name = 'x'\nabout = 'y'\nmax_tokens = 9\nprompts = [{ text = 'z' }]\n";
        assert!(Workload::read("x", text).is_ok());
        assert!(Workload::read("x", &format!("{text}colour = 1\n")).is_err());
        assert!(Workload::read("y", text).unwrap_err().to_string().contains("calls itself"));
    }

    #[test]
    fn requests_are_what_both_servers_understand() {
        let workload = Workload::read(
            "x",
            "name = 'x'\nabout = 'y'\nmax_tokens = 9\nprompts = [{ text = 'z' }, { messages = [['user', 'Hello']] }]\n",
        )
        .unwrap();
        let (path, body) = workload.request(&workload.prompts[0]);
        assert_eq!((path, &body["prompt"], &body["n_predict"]), ("/completion", &json!("z"), &json!(9)));
        let (path, body) = workload.request(&workload.prompts[1]);
        assert_eq!(path, "/v1/chat/completions");
        assert_eq!(body["messages"], json!([{ "role": "user", "content": "Hello" }]));
        assert_eq!((&body["temperature"], &body["cache_prompt"]), (&json!(0.0), &json!(false)));
        assert_eq!(body.get("top_k"), None);
        let sampled = Workload { sampling: Sampling { temperature: 2.0, seed: 3, ..Sampling::default() }, ..workload };
        let (_, body) = sampled.request(&sampled.prompts[0]);
        assert_eq!((&body["seed"], &body["top_k"], &body["top_p"]), (&json!(3), &json!(0), &json!(1.0)));
    }
}
