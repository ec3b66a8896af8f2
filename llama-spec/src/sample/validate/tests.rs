//! The ranges from both sides, and the way through JSON.

use super::*;
use crate::sample::parts::{AdaptiveP, LogitBias, Penalties, ReasoningTags, Xtc};
use crate::sample::{TemplateGrammar, Trigger};
use crate::token::Token;
use proptest::prelude::*;

fn refused(options: SamplerOptions) -> &'static str {
    match options.validate() {
        Err(Error::Setting { setting, value, expected }) => {
            assert!(!value.is_empty() && !expected.is_empty());
            setting
        }
        other => panic!("{options:?} gave {other:?}"),
    }
}

#[test]
fn defaults_and_presets_are_valid() {
    for options in [SamplerOptions::default(), SamplerOptions::greedy(), SamplerOptions::unfiltered()] {
        options.validate().unwrap();
    }
    assert!(SamplerOptions::greedy().is_greedy());
    assert!(SamplerOptions::default().temperature(0.0).is_greedy());
    assert!(!SamplerOptions::greedy().adaptive_p(AdaptiveP::default()).is_greedy());
    assert!(!SamplerOptions::default().is_greedy());
    assert!(SamplerOptions::default().stages(vec![Stage::TopK]).top_k(1).is_greedy());
}

#[test]
fn a_least_length_needs_stages_that_do_not_end_the_text() {
    let infill = |least| SamplerOptions::default().stages(vec![Stage::TopK, Stage::Infill]).min_tokens(least);
    assert_eq!(refused(infill(1)), "min_tokens");
    infill(0).validate().unwrap();
    infill(1).stages(vec![Stage::TopK]).min_tokens(u32::MAX).validate().unwrap();
}

#[test]
fn answers_have_seeds_that_follow_each_other() {
    let seeds = |seed: u32| [0, 1, 2, 5].map(|index| SamplerOptions::default().seed(seed).for_answer(index).seed);
    assert_eq!(seeds(7), [Some(7), Some(8), Some(9), Some(12)]);
    assert_eq!(seeds(u32::MAX - 1), [Some(u32::MAX - 1), Some(0), Some(1), Some(4)]);
    let greatest = SamplerOptions::default().seed(u32::MAX - 1).for_answer(u32::MAX);
    assert_eq!(greatest.seed, Some(u32::MAX - 1));
    let unseeded = SamplerOptions::greedy().min_tokens(3);
    assert_eq!(unseeded.for_answer(3), unseeded);
    // What is refused stays refused.
    assert_eq!(refused(SamplerOptions::default().seed(u32::MAX).for_answer(1)), "seed");
}

/// Every number has a test just outside each end of its range, and NaN.
#[test]
fn each_number_out_of_range_is_named() {
    type Set = fn(f32) -> SamplerOptions;
    let cases: [(&str, Set, &[f32]); 20] = [
        ("temperature", |v| SamplerOptions::default().temperature(v), &[-0.1, 0.00001, 1000.5]),
        ("top_p", |v| SamplerOptions::default().top_p(v), &[-0.01, 1.01]),
        ("min_p", |v| SamplerOptions::default().min_p(v), &[-0.01, 1.01]),
        ("typical_p", |v| SamplerOptions::default().typical_p(v), &[-0.01, 1.01]),
        ("top_n_sigma", |v| SamplerOptions::default().top_n_sigma(v), &[0.0, -1.0, 101.0]),
        (
            "dynamic_temperature.range",
            |range| SamplerOptions::default().dynamic_temperature(DynamicTemperature { range, exponent: 1.0 }),
            &[0.0, -0.5, 0.8, 2.0],
        ),
        (
            "dynamic_temperature.exponent",
            |exponent| SamplerOptions::default().dynamic_temperature(DynamicTemperature { range: 0.3, exponent }),
            &[-1.0, 101.0],
        ),
        (
            "xtc.probability",
            |probability| SamplerOptions::default().xtc(Xtc { probability, threshold: 0.1 }),
            &[-0.1, 1.1],
        ),
        ("xtc.threshold", |threshold| SamplerOptions::default().xtc(Xtc { probability: 0.1, threshold }), &[-0.1, 0.6]),
        (
            "adaptive_p.target",
            |target| SamplerOptions::default().adaptive_p(AdaptiveP { target, decay: 0.9 }),
            &[-0.1, 1.1],
        ),
        (
            "adaptive_p.decay",
            |decay| SamplerOptions::default().adaptive_p(AdaptiveP { target: 0.5, decay }),
            &[-0.1, 0.995],
        ),
        ("mirostat.tau", |tau| SamplerOptions::default().mirostat(Mirostat::V1 { tau, eta: 0.1 }), &[0.0, -1.0, 101.0]),
        ("mirostat.eta", |eta| SamplerOptions::default().mirostat(Mirostat::V2 { tau: 5.0, eta }), &[-0.1, 10.5]),
        (
            "penalties.repeat",
            |repeat| SamplerOptions::default().penalties(Penalties { repeat, ..Penalties::default() }),
            &[0.0, -1.0, 101.0],
        ),
        (
            "penalties.frequency",
            |frequency| SamplerOptions::default().penalties(Penalties { frequency, ..Penalties::default() }),
            &[-1001.0, 1001.0],
        ),
        (
            "penalties.presence",
            |presence| SamplerOptions::default().penalties(Penalties { presence, ..Penalties::default() }),
            &[-1001.0, 1001.0],
        ),
        (
            "dry.multiplier",
            |multiplier| SamplerOptions::default().dry(Dry { multiplier, ..Dry::default() }),
            &[-0.1, 1001.0],
        ),
        ("dry.base", |base| SamplerOptions::default().dry(Dry { base, ..Dry::default() }), &[0.99, 101.0]),
        ("logit_bias", |bias| SamplerOptions::default().logit_bias(Token::new(0), bias), &[-2e6, 2e6]),
        ("temperature", |v| SamplerOptions::greedy().temperature(v), &[-1.0]),
    ];
    for (setting, set, outside) in cases {
        for value in outside.iter().copied().chain([f32::NAN, f32::INFINITY, f32::NEG_INFINITY]) {
            assert_eq!(refused(set(value)), setting, "{value}");
        }
    }
}

#[test]
fn counts_and_texts_out_of_range_are_named() {
    let options = SamplerOptions::default;
    let tags = |start: &str, ends: &[&str]| ReasoningTags {
        start: start.into(),
        ends: ends.iter().map(|end| (*end).to_owned()).collect(),
    };
    let dry = |dry: Dry| options().dry(dry);
    assert_eq!(refused(options().seed(u32::MAX)), "seed");
    assert_eq!(refused(options().top_k(u32::MAX)), "top_k");
    assert_eq!(refused(options().min_keep(1 << 31)), "min_keep");
    assert_eq!(
        refused(options().penalties(Penalties { last_n: u32::MAX, ..Penalties::default() })),
        "penalties.last_n"
    );
    assert_eq!(refused(dry(Dry { last_n: 0, ..Dry::default() })), "dry.last_n");
    assert_eq!(refused(dry(Dry { last_n: u32::MAX, ..Dry::default() })), "dry.last_n");
    assert_eq!(refused(dry(Dry { allowed_length: u32::MAX, ..Dry::default() })), "dry.allowed_length");
    for breaker in ["", "a\0b", &"x".repeat(41)] {
        assert_eq!(refused(dry(Dry { breakers: vec![breaker.into()], ..Dry::default() })), "dry.breakers");
    }
    assert_eq!(refused(dry(Dry { breakers: vec!["x".into(); 65], ..Dry::default() })), "dry.breakers");
    assert_eq!(refused(options().grammar(Grammar::gbnf("  "))), "grammar");
    let lazy = Grammar::Lazy { gbnf: "root ::= \"a\"".into(), triggers: vec![] };
    assert_eq!(refused(options().grammar(lazy)), "grammar.triggers");
    let template = |gbnf: &str| TemplateGrammar { gbnf: gbnf.into(), lazy: true, triggers: vec![] };
    assert_eq!(refused(options().grammar(Grammar::Template(template("root ::= \"a\"")))), "grammar.triggers");
    assert_eq!(refused(options().grammar(Grammar::Template(template("")))), "grammar");
    let patterns = [r"[\s\S]*?(a)[\s\S]*(b)*", "(a|b)+", "a{3}", ""].map(|pattern| Trigger::Pattern(pattern.into()));
    let words = ["", "a\0"].map(|word| Trigger::Word(word.into()));
    for trigger in words.into_iter().chain(patterns) {
        let lazy = Grammar::Lazy { gbnf: "root ::= \"a\"".into(), triggers: vec![trigger] };
        assert_eq!(refused(options().grammar(lazy)), "grammar.triggers");
    }
    assert_eq!(refused(options().reasoning_budget(5)), "reasoning_budget");
    assert_eq!(refused(options().reasoning_message("enough".into())), "reasoning_message");
    assert_eq!(
        refused(options().reasoning_budget(u32::MAX).reasoning_tags(tags("<a>", &["</a>"]))),
        "reasoning_budget"
    );
    for tags in [tags("", &["</a>"]), tags("<a>", &[]), tags("<a>", &["</a>", ""])] {
        assert_eq!(refused(options().reasoning_tags(tags)), "reasoning_tags");
    }
    let mut twice = options();
    twice.logit_bias = vec![LogitBias { token: Token::new(1), bias: 1.0 }; 2];
    assert_eq!(refused(twice), "logit_bias");
}

#[test]
fn a_setting_that_would_be_ignored_is_named() {
    let v2 = Mirostat::V2 { tau: 5.0, eta: 0.1 };
    assert!(SamplerOptions::default().mirostat(v2).validate().is_ok());
    assert_eq!(refused(SamplerOptions::default().mirostat(v2).dry(Dry::default())), "mirostat");
    assert_eq!(refused(SamplerOptions::default().mirostat(v2).adaptive_p(AdaptiveP::default())), "mirostat");
    assert_eq!(refused(SamplerOptions::greedy().xtc(Xtc::default())), "stages");
    assert_eq!(refused(SamplerOptions::default().stages(vec![Stage::TopK, Stage::TopK])), "stages");
    let repeat = Penalties { repeat: 1.1, ..Penalties::default() };
    assert_eq!(refused(SamplerOptions::default().stages(vec![]).penalties(repeat)), "stages");
    assert!(SamplerOptions::greedy().penalties(repeat).validate().is_ok());
}

#[test]
fn unknown_fields_are_refused() {
    assert!(serde_json::from_str::<SamplerOptions>(r#"{ "temprature": 0.5 }"#).is_err());
    assert_eq!(serde_json::from_str::<SamplerOptions>("{}").unwrap(), SamplerOptions::default());
}

fn grammar() -> impl Strategy<Value = Option<Grammar>> {
    let trigger = prop_oneof![
        (0..300i32).prop_map(|id| Trigger::Token(Token::new(id))),
        "[^\0]+".prop_map(Trigger::Word),
        "[a-z ]+[*]?".prop_map(Trigger::Pattern),
        "[a-z ]+[*]?".prop_map(Trigger::FullPattern),
    ];
    let lazy = ("root ::= \\PC*", proptest::collection::vec(trigger, 1..4));
    proptest::option::of(prop_oneof![
        "root ::= \\PC*".prop_map(Grammar::Gbnf),
        "\\PC*".prop_map(|title| Grammar::JsonSchema(serde_json::json!({ "title": title }))),
        lazy.clone().prop_map(|(gbnf, triggers)| Grammar::Lazy { gbnf, triggers }),
        (lazy, any::<bool>())
            .prop_map(|((gbnf, triggers), lazy)| { Grammar::Template(TemplateGrammar { gbnf, lazy, triggers }) }),
    ])
}

prop_compose! {
    /// Options of which every value is inside its range.
    fn valid()(
        seed in proptest::option::of(0..u32::MAX),
        temperature in prop_oneof![Just(0.0f32), 0.01f32..=1000.0],
        top in (0..=i32::MAX as u32, 0.0f32..=1.0, 0.0f32..=1.0, 0.0f32..=1.0),
        top_n_sigma in proptest::option::of(0.01f32..=100.0),
        xtc in proptest::option::of((0.0f32..=1.0, 0.0f32..=0.5)),
        adaptive in proptest::option::of((0.0f32..=1.0, 0.0f32..=0.99)),
        penalties in (0u32..=MAX_LAST_N, 0.01f32..=100.0, -1000.0f32..=1000.0, -1000.0f32..=1000.0),
        dry in proptest::option::of((0.0f32..=1000.0, 1.0f32..=100.0, 0u32..1000, 1u32..=MAX_LAST_N)),
        bias in proptest::collection::btree_map(0..300i32, -1e6f32..=1e6, 0..5),
        banned in proptest::collection::vec(0..300i32, 0..5),
        flags in any::<[bool; 2]>(),
        min_tokens in any::<u32>(),
        grammar in grammar(),
        generation_prompt in ".*",
        stages in Just(Stage::DEFAULT_ORDER.to_vec()).prop_shuffle(),
    ) -> SamplerOptions {
        let (top_k, top_p, min_p, typical_p) = top;
        let (last_n, repeat, frequency, presence) = penalties;
        let mut options = SamplerOptions::default().temperature(temperature);
        options.seed = seed;
        (options.top_k, options.top_p, options.min_p, options.typical_p) = (top_k, top_p, min_p, typical_p);
        options.top_n_sigma = top_n_sigma;
        options.xtc = xtc.map(|(probability, threshold)| Xtc { probability, threshold });
        options.adaptive_p = adaptive.map(|(target, decay)| AdaptiveP { target, decay });
        options.penalties = Penalties { last_n, repeat, frequency, presence };
        options.dry = dry.map(|(multiplier, base, allowed_length, last_n)| {
            Dry { multiplier, base, allowed_length, last_n, breakers: vec!["\n".into()] }
        });
        options.logit_bias = bias.into_iter().map(|(id, bias)| LogitBias { token: Token::new(id), bias }).collect();
        options.banned = banned.into_iter().map(Token::new).collect();
        [options.ignore_eos, options.grammar_first] = flags;
        options.min_tokens = min_tokens;
        (options.grammar, options.stages, options.generation_prompt) = (grammar, stages, generation_prompt);
        options
    }
}

proptest! {
    #[test]
    fn what_is_in_range_is_valid_and_survives_json(options in valid()) {
        prop_assert!(options.validate().is_ok(), "{:?}", options.validate());
        let json = serde_json::to_string(&options).unwrap();
        prop_assert_eq!(serde_json::from_str::<SamplerOptions>(&json).unwrap(), options);
    }

    #[test]
    fn what_is_refused_says_what_is_allowed(value in any::<f32>()) {
        let options = SamplerOptions::default().top_p(value);
        match options.validate() {
            Ok(()) => prop_assert!((0.0..=1.0).contains(&value)),
            Err(error) => {
                prop_assert!(!(0.0..=1.0).contains(&value));
                prop_assert!(error.to_string().contains("from 0 to 1"));
            }
        }
    }
}
