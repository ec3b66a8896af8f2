//! What the options become for one model: texts turned into tokens, and checked against the vocabulary.

use super::grammar::{Grammar, Trigger, json_schema_to_grammar};
use super::options::SamplerOptions;
use super::parts::{ReasoningTags, Stage};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::token::Token;
use crate::vocab::{Vocab, VocabKind};

/// Whose grammar it is, which decides where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrammarKind {
    /// It begins with the answer.
    User,
    /// It begins with what the template has put before the answer.
    Template,
}

#[derive(Debug)]
pub(crate) struct PreparedGrammar {
    pub(crate) kind: GrammarKind,
    pub(crate) gbnf: String,
    pub(crate) lazy: bool,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) preserved_tokens: Vec<String>,
    pub(crate) generation_prompt: String,
}

#[derive(Debug)]
pub(crate) struct PreparedReasoning {
    pub(crate) budget: Option<u32>,
    pub(crate) start: Vec<Token>,
    pub(crate) ends: Vec<Vec<Token>>,
    /// What is written when the budget is spent: the message and the first end tag.
    pub(crate) forced: Vec<Token>,
}

#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) grammar: Option<PreparedGrammar>,
    pub(crate) reasoning: Option<PreparedReasoning>,
}

impl Prepared {
    pub(crate) fn new(model: &Model, options: &SamplerOptions) -> Result<Self> {
        options.validate()?;
        let vocab = model.vocab();
        let biased = options.logit_bias.iter().map(|entry| ("logit_bias", entry.token));
        let banned = options.banned.iter().map(|token| ("banned", *token));
        biased.chain(banned).try_for_each(|(setting, token)| check_token(vocab, setting, token))?;
        let needs_text = options.grammar.is_some() || options.reasoning_tags.is_some() || options.dry.is_some();
        if needs_text && vocab.kind() == VocabKind::None {
            return refuse("grammar, reasoning_tags or dry", "set".into(), "a model that has a vocabulary");
        }
        if options.stages.contains(&Stage::Infill) && vocab.eos().or(vocab.eot()).is_none() {
            return refuse("stages", "Infill".into(), "a vocabulary with an end-of-sequence token");
        }
        let grammar = options.grammar.as_ref().map(|grammar| prepare_grammar(vocab, grammar)).transpose()?;
        let tags = options.reasoning_tags.as_ref();
        let reasoning = tags.map(|tags| prepare_reasoning(vocab, options, tags)).transpose()?;
        Ok(Self { grammar, reasoning })
    }
}

fn prepare_grammar(vocab: Vocab<'_>, grammar: &Grammar) -> Result<PreparedGrammar> {
    let user = |gbnf: String, lazy, triggers: &[Trigger]| PreparedGrammar {
        kind: GrammarKind::User,
        gbnf,
        lazy,
        triggers: triggers.to_vec(),
        // A word that is one token is watched for as a token, which llama.cpp wants to be listed here.
        preserved_tokens: triggers.iter().filter_map(word).collect(),
        generation_prompt: String::new(),
    };
    let prepared = match grammar {
        Grammar::Gbnf(gbnf) => user(gbnf.clone(), false, &[]),
        Grammar::JsonSchema(schema) => user(json_schema_to_grammar(schema)?, false, &[]),
        Grammar::Lazy { gbnf, triggers } => user(gbnf.clone(), true, triggers),
        Grammar::Template(template) => PreparedGrammar {
            kind: GrammarKind::Template,
            gbnf: template.gbnf.clone(),
            lazy: template.lazy,
            triggers: template.triggers.clone(),
            preserved_tokens: template.preserved_tokens.clone(),
            generation_prompt: template.generation_prompt.clone(),
        },
    };
    for trigger in &prepared.triggers {
        if let Trigger::Token(token) = trigger {
            check_token(vocab, "grammar.triggers", *token)?;
        }
    }
    // The grammar is led through these tokens, and llama.cpp aborts when the text ends where the grammar does not.
    if !prepared.gbnf.is_empty() && !prepared.lazy && contains_end(vocab, &tokens(vocab, &prepared.generation_prompt)?)
    {
        return refuse(
            "grammar.generation_prompt",
            prepared.generation_prompt,
            "a text without an end-of-generation token",
        );
    }
    Ok(prepared)
}

fn prepare_reasoning(vocab: Vocab<'_>, options: &SamplerOptions, tags: &ReasoningTags) -> Result<PreparedReasoning> {
    let start = tokens(vocab, &tags.start)?;
    let ends = tags.ends.iter().map(|end| tokens(vocab, end)).collect::<Result<Vec<_>>>()?;
    let first_end = tags.ends.first().map_or("", String::as_str);
    let forced = tokens(vocab, &format!("{}{first_end}", options.reasoning_message))?;
    // An end tag is shown to the grammar as well; see above.
    let usable = |tag: &Vec<Token>| !tag.is_empty() && !contains_end(vocab, tag);
    if !ends.iter().chain([&start, &forced]).all(usable) {
        let expected = "tags that this vocabulary has tokens for, none of which ends generation";
        return refuse("reasoning_tags", format!("{tags:?}"), expected);
    }
    Ok(PreparedReasoning { budget: options.reasoning_budget, start, ends, forced })
}

fn word(trigger: &Trigger) -> Option<String> {
    match trigger {
        Trigger::Word(word) => Some(word.clone()),
        Trigger::Token(_) | Trigger::Pattern(_) | Trigger::FullPattern(_) => None,
    }
}

fn tokens(vocab: Vocab<'_>, text: &str) -> Result<Vec<Token>> {
    vocab.tokenize_with(text.as_bytes(), false, true)
}

fn contains_end(vocab: Vocab<'_>, tokens: &[Token]) -> bool {
    tokens.iter().any(|token| vocab.is_end_of_generation(*token))
}

fn check_token(vocab: Vocab<'_>, setting: &'static str, token: Token) -> Result<()> {
    match vocab.contains(token) {
        true => Ok(()),
        false => {
            let expected = format!("a token of the vocabulary, 0 to {}", vocab.len().saturating_sub(1));
            refuse(setting, token.id().to_string(), &expected)
        }
    }
}

fn refuse<T>(setting: &'static str, value: String, expected: &str) -> Result<T> {
    Err(Error::Setting { setting, value, expected: expected.to_owned() })
}
