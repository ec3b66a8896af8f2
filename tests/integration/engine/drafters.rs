//! Drafters of the user's own: right, wrong, mixed and hostile ones.

use crate::scripted::{RIGHT, Random, Script, Scripted, WRONG, counts};
use crate::support::{Plain, alone, assert_same, context, ids, model, together, varied};
use crate::table::{PROMPTS, TARGETS, greedy};
use llama_spec::engine::Drafters;
use llama_spec::spec::{Draft, Drafter, Source, SpecConfig};
use llama_spec::{Engine, Request, Token};
use std::sync::Arc;

/// As long as the longest draft.
const MAX: u32 = 16;
const TOKENS: u32 = 26;
const SCRIPTS: [Script; 5] = [RIGHT, WRONG, &[2, 0, 5, 1], &[1, 16, 0, 0, 3], &[7]];

#[test]
fn right_wrong_and_random_drafts_on_every_target() {
    for target in TARGETS {
        let model = model(target);
        let plain = Plain::new(&model);
        let requests: Vec<_> = PROMPTS.iter().map(|prompt| greedy(prompt, TOKENS)).collect();
        let expected: Vec<_> = requests.iter().map(|request| plain.run(request)).collect();
        let whole = |(prompt, output): (&&str, &llama_spec::engine::Output)| {
            [model.vocab().tokenize(prompt).unwrap(), output.tokens.clone()].concat()
        };
        // A text that ends has no more tokens to draft than it has, and is counted elsewhere.
        let texts = Arc::new(PROMPTS.iter().zip(&expected).map(whole).collect::<Vec<_>>());
        let tokens = model.vocab().len() as usize;
        for slots in [1, 4] {
            let mut builder = Engine::builder(&model).context(context(slots));
            for script in SCRIPTS {
                let texts = Arc::clone(&texts);
                builder = builder.drafter(move || Scripted::new(&texts, script));
            }
            let builder = builder.drafter(move || Random::new(3, tokens));
            let engine = builder.speculation(SpecConfig::off().draft_max(MAX).fixed_length(MAX)).build().unwrap();
            for length in [1, 3, 8, 16] {
                // All drafters side by side, and the prompts in turn.
                let of = |number: usize| {
                    let request = requests[(number + length as usize) % requests.len()].clone();
                    request.draft_max(length).drafters(Drafters::Own(number as u8))
                };
                let outputs = together(&engine, (0..=SCRIPTS.len()).map(of).collect());
                for (number, got) in outputs.iter().enumerate() {
                    let about = (target, slots, length, number);
                    let expected = &expected[(number + length as usize) % requests.len()];
                    assert_same(got, expected, &about);
                    let own =
                        |source: &Source| matches!(source, Source::Target) || *source == Source::Own(number as u8);
                    assert!(got.sources.iter().all(own), "{about:?}");
                    if let Some(script) = SCRIPTS.get(number).filter(|_| expected.tokens.len() == TOKENS as usize) {
                        let stats = &got.stats;
                        let found = (stats.rounds, stats.drafted, stats.accepted);
                        assert_eq!(found, counts(script, length as usize, TOKENS as usize), "{about:?}");
                    }
                }
            }
        }
    }
}

/// What a hostile drafter does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Evil {
    Empty,
    OverLong,
    Negative,
    Beyond,
    Control,
    End,
    PanicsInBegin,
    PanicsInExtend,
    PanicsInPropose,
    PanicsInOutcome,
    PanicsInDrop,
    PanicsWhenMade,
    Lies,
    LiesALittle,
    NotANumber,
}

const EVIL: [Evil; 15] = [
    Evil::Empty,
    Evil::OverLong,
    Evil::Negative,
    Evil::Beyond,
    Evil::Control,
    Evil::End,
    Evil::PanicsInBegin,
    Evil::PanicsInExtend,
    Evil::PanicsInPropose,
    Evil::PanicsInOutcome,
    Evil::PanicsInDrop,
    Evil::PanicsWhenMade,
    Evil::Lies,
    Evil::LiesALittle,
    Evil::NotANumber,
];

struct Hostile {
    evil: Evil,
    inner: Scripted,
    end: Token,
    vocabulary: i32,
    calls: usize,
}

impl Hostile {
    fn new(evil: Evil, inner: Scripted, model: &llama_spec::Model) -> Self {
        assert!(evil != Evil::PanicsWhenMade, "as it should");
        Self { evil, inner, end: model.vocab().eot().unwrap(), vocabulary: model.vocab().len() as i32, calls: 0 }
    }

    /// Panics at the third call of one kind, when there is something to lose.
    fn maybe_panic(&mut self, evil: Evil, after: usize) {
        if self.evil == evil {
            self.calls += 1;
            assert!(self.calls <= after, "as it should");
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        assert!(self.evil != Evil::PanicsInDrop, "as it should");
    }
}

impl Drafter for Hostile {
    fn begin(&mut self, text: &[Token]) {
        self.maybe_panic(Evil::PanicsInBegin, 0);
        self.inner.begin(text);
    }

    fn extend(&mut self, tokens: &[Token]) {
        self.maybe_panic(Evil::PanicsInExtend, 2);
        self.inner.extend(tokens);
    }

    fn propose(&mut self, limit: usize, draft: &mut Draft) {
        self.maybe_panic(Evil::PanicsInPropose, 2);
        let mut right = Draft::default();
        self.inner.propose(limit, &mut right);
        let right: Vec<Token> = right.tokens().to_vec();
        let third = |token: Token| right.iter().take(2).copied().chain([token]).chain(right.iter().skip(3).copied());
        match self.evil {
            Evil::Empty => {}
            Evil::OverLong => right.iter().cycle().take(10_000).for_each(|token| draft.push(*token)),
            Evil::Negative => third(Token::new(-1)).for_each(|token| draft.push(token)),
            Evil::Beyond => {
                third(Token::new(self.vocabulary)).chain([Token::new(i32::MAX)]).for_each(|token| draft.push(token))
            }
            Evil::Control => third(Token::new(0)).for_each(|token| draft.push(token)),
            Evil::End => third(self.end).for_each(|token| draft.push(token)),
            Evil::Lies => right.iter().for_each(|token| draft.push_drawn(*token, &[(*token, 1e-9), (self.end, 1.0)])),
            Evil::LiesALittle => {
                right.iter().for_each(|token| draft.push_drawn(*token, &[(Token::new(-7), 0.5), (*token, 0.5)]))
            }
            Evil::NotANumber => right.iter().for_each(|token| draft.push_drawn(*token, &[(*token, f32::NAN)])),
            _ => right.iter().for_each(|token| draft.push(*token)),
        }
    }

    fn outcome(&mut self, drafted: usize, accepted: usize) {
        self.maybe_panic(Evil::PanicsInOutcome, 2);
        self.inner.outcome(drafted, accepted);
    }
}

/// Sampled, too: with drafters that are not trusted, distributions change nothing.
#[test]
fn hostile_drafters_change_nothing() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.to_string().contains("as it should") {
            quiet(info);
        }
    }));
    for target in ["target", "recall", "mamba", "qwen35"] {
        let model = model(target);
        let plain = Plain::new(&model);
        // Sampling may turn on the last digit, in which some targets differ with the size of a batch.
        let llama = matches!(target, "target" | "recall");
        let sampled = if llama { varied(5) } else { llama_spec::SamplerOptions::greedy() };
        let requests: Vec<Request> = PROMPTS[..3]
            .iter()
            .flat_map(|prompt| [greedy(prompt, 30), Request::prompt(*prompt).sampler(sampled.clone()).max_tokens(30)])
            .collect();
        let expected: Vec<_> = requests.iter().map(|request| plain.run(request)).collect();
        let whole = |output: &llama_spec::engine::Output, request: &Request| match &request.prompt {
            llama_spec::engine::Prompt::Text(text) => {
                [model.vocab().tokenize(text).unwrap(), output.tokens.clone()].concat()
            }
            _ => unreachable!(),
        };
        let texts = Arc::new(expected.iter().zip(&requests).map(|(output, request)| whole(output, request)).collect());
        let mut builder = Engine::builder(&model).context(context(4));
        for evil in EVIL {
            let (texts, model) = (Arc::clone(&texts), model.clone());
            builder = builder.drafter(move || Hostile::new(evil, Scripted::new(&texts, &[4, 1]), &model));
        }
        let engine = builder.speculation(SpecConfig::off().fixed_length(12)).build().unwrap();
        let all: Vec<_> =
            (0..EVIL.len()).flat_map(|evil| requests.iter().map(move |request| (evil, request.clone()))).collect();
        let outputs = together(
            &engine,
            all.iter().map(|(evil, request)| request.clone().drafters(Drafters::Own(*evil as u8))).collect(),
        );
        for (index, got) in outputs.iter().enumerate() {
            let (evil, request) = (EVIL[index / requests.len()], index % requests.len());
            assert_same(got, &expected[request], &(target, evil, &requests[request]));
            let (drafted, most) = (got.stats.drafted, got.stats.rounds * 12);
            assert!(drafted <= most, "{target}, {evil:?}: {drafted}");
            let silent = matches!(evil, Evil::Empty | Evil::PanicsInBegin | Evil::PanicsWhenMade);
            assert_eq!(drafted == 0, silent, "{target}, {evil:?}");
        }
        // And all of them at once: those who say nothing are passed over.
        let got = alone(&engine, greedy(PROMPTS[0], 30));
        assert_eq!(ids(&got), ids(&expected[0]));
        assert!(got.stats.accepted > 0);
    }
}
