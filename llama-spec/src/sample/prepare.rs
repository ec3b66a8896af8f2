//! What the options become for one model: texts turned into tokens, and checked against the vocabulary.

use super::grammar::{Grammar, TemplateGrammar, Trigger, json_schema_to_grammar};
use super::options::SamplerOptions;
use super::parts::{ReasoningTags, Stage};
use super::pattern;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::token::Token;
use crate::vocab::Vocab;

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
    let user = |gbnf, lazy, triggers| PreparedGrammar { kind: GrammarKind::User, gbnf, lazy, triggers };
    let mut prepared = match grammar.clone() {
        Grammar::Gbnf(gbnf) => user(gbnf, false, Vec::new()),
        Grammar::JsonSchema(schema) => user(json_schema_to_grammar(&schema)?, false, Vec::new()),
        Grammar::Lazy { gbnf, triggers } => user(gbnf, true, triggers),
        Grammar::Template(TemplateGrammar { gbnf, lazy, triggers }) => {
            PreparedGrammar { kind: GrammarKind::Template, gbnf, lazy, triggers }
        }
    };
    for trigger in &mut prepared.triggers {
        match trigger {
            Trigger::Token(token) => check_token(vocab, "grammar.triggers", *token)?,
            Trigger::Word(_) => {}
            Trigger::Pattern(pattern) | Trigger::FullPattern(pattern) => {
                *pattern = pattern::bounded(pattern).unwrap_or_default();
            }
        }
    }
    Ok(prepared)
}

fn prepare_reasoning(vocab: Vocab<'_>, options: &SamplerOptions, tags: &ReasoningTags) -> Result<PreparedReasoning> {
    let start = tokens(vocab, &tags.start)?;
    let ends = tags.ends.iter().map(|end| tokens(vocab, end)).collect::<Result<Vec<_>>>()?;
    let first_end = tags.ends.first().map_or("", String::as_str);
    let forced = tokens(vocab, &format!("{}{first_end}", options.reasoning_message))?;
    // llama.cpp shows an end tag to the grammar as well, and aborts when the text ends where the grammar does not.
    let ends_text = |tag: &Vec<Token>| tag.iter().any(|token| vocab.is_end_of_generation(*token));
    let unusable = |tag: &Vec<Token>| tag.is_empty() || (options.grammar.is_some() && ends_text(tag));
    if ends.iter().chain([&start, &forced]).any(unusable) {
        let expected = "tags that this vocabulary has tokens for; with a grammar, none that ends the text";
        return refuse("reasoning_tags", format!("{tags:?}"), expected);
    }
    Ok(PreparedReasoning { budget: options.reasoning_budget, start, ends, forced })
}

fn tokens(vocab: Vocab<'_>, text: &str) -> Result<Vec<Token>> {
    vocab.tokenize_with(text.as_bytes(), false, true)
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
