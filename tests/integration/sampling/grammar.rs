//! Grammars, schemas, triggers: the text keeps to them, and what cannot be is an error and no abort.

use super::support::{Prompted, broad};
use llama_spec::sample::{Grammar, SamplerOptions, TemplateGrammar, Trigger, json_schema_to_grammar};
use llama_spec::{Error, Sampler, Token};
use llama_spec_tests::zoo::Llama;
use serde_json::{Value, json};

fn greedy(gbnf: &str) -> SamplerOptions {
    SamplerOptions::greedy().grammar(Grammar::gbnf(gbnf))
}

fn text(options: SamplerOptions, prompt: &str, n: usize) -> String {
    let mut prompted = Prompted::new(&Llama::target(1), prompt);
    let mut sampler = prompted.sampler(options);
    let tokens = prompted.generate(&mut sampler, n);
    prompted.text(&tokens)
}

/// What the making of a sampler says against these options.
fn refusal(options: &SamplerOptions) -> String {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    match Sampler::new(&prompted.model, options) {
        Err(Error::Sample { failure }) => failure.to_string(),
        other => panic!("{options:?} gave {other:?}"),
    }
}

#[test]
fn the_text_keeps_to_the_grammar() {
    assert_eq!(text(SamplerOptions::greedy(), "abc", 5), "defgh");
    assert_eq!(text(greedy(r#"root ::= "yes" | "no""#), "abc", 5), "yes");
    assert_eq!(text(greedy("root ::= [a-c] [0-9]{3}"), "9", 10).len(), 4);
    // What the model says and the grammar allows is not touched.
    assert_eq!(text(greedy("root ::= [d-g]{4} \"!\""), "abc", 6), "defg!");
    assert_eq!(text(greedy("root ::= [d-g]{4} \"!\"").grammar_first(true), "abc", 6), "defg!");
}

#[test]
fn every_candidate_fits_when_the_grammar_comes_first() {
    let prompted = Prompted::new(&broad(), "abc");
    let options = SamplerOptions::unfiltered().grammar(Grammar::gbnf("root ::= [x-z]+")).grammar_first(true);
    let left = prompted.candidates(options);
    assert_eq!(left.iter().map(|candidate| candidate.token).collect::<Vec<_>>(), prompted.tokens("xyz"));
}

#[test]
fn draws_under_a_grammar_have_the_distribution_of_what_it_allows() {
    let prompted = Prompted::new(&broad(), "abc");
    let weights: Vec<f64> =
        prompted.tokens("cde").iter().map(|token| f64::from(prompted.logits()[token.id() as usize]).exp()).collect();
    let expected = weights[1] / weights.iter().sum::<f64>();
    for first in [false, true] {
        let grammar = Grammar::gbnf("root ::= [c-e]+");
        let mut sampler = prompted.sampler(SamplerOptions::unfiltered().grammar(grammar).grammar_first(first).seed(2));
        let d = prompted.token(b'd');
        let share = prompted.draw(&mut sampler, 10_000).iter().filter(|token| **token == d).count() as f64 / 1e4;
        // Drawing once more where the first draw does not fit draws from what is left: the distribution is the same.
        assert!((share - expected).abs() < 4.0 * (expected * (1.0 - expected) / 1e4).sqrt(), "{share} of {expected}");
    }
}

#[test]
fn json_schemas_make_json_of_that_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 8 },
            "ready": { "type": "boolean" },
            "kind": { "enum": ["a", "b"] },
        },
        "required": ["name", "ready", "kind"],
        "additionalProperties": false,
    });
    // Bytes beyond ASCII, drawn one by one, make no valid UTF-8.
    let bytes: Vec<Token> = (128..256).map(Token::new).collect();
    for (seed, llama) in [(1, Llama::target(1)), (2, broad()), (3, broad().with_noise(1.0))] {
        let mut prompted = Prompted::new(&llama, "abc");
        let options =
            SamplerOptions::unfiltered().seed(seed).grammar(Grammar::JsonSchema(schema.clone())).banned(bytes.clone());
        let mut sampler = prompted.sampler(options);
        let tokens = prompted.generate(&mut sampler, 500);
        let text = prompted.text(&tokens);
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!((1..=8).contains(&value["name"].as_str().unwrap().chars().count()), "{text}");
        assert!(value["ready"].is_boolean(), "{text}");
        assert!(["a", "b"].contains(&value["kind"].as_str().unwrap()), "{text}");
        assert_eq!(value.as_object().unwrap().len(), 3, "{text}");
    }
}

#[test]
fn grammars_that_do_not_parse_are_refused() {
    let deep = format!("root ::= {}", "(".repeat(100_000));
    for (gbnf, says) in [
        ("root ::= (", "expecting ')'"),
        ("root = \"a\"", "expecting ::="),
        ("start ::= \"a\"", "root"),
        ("root ::= missing", "missing"),
        ("root ::= root \"a\"", "left"),
        ("root ::= \"a\"{99999999}", "repetitions"),
        ("root ::= [", "unexpected end"),
        ("root ::= <[999999999999]>", "token id"),
        ("%llguidance {}", "llguidance"),
        ("\u{0}root ::= \"a\"", "NUL"),
        (&deep, "nesting"),
    ] {
        let shown: String = gbnf.chars().take(30).collect();
        let said = refusal(&greedy(gbnf));
        assert!(said.contains(says), "{shown}: {said}");
    }
}

#[test]
fn schemas_that_are_none_are_refused() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..2000 {
        deep = json!({ "type": "array", "items": deep });
    }
    for schema in [
        json!({ "type": "nonsense" }),
        json!({ "$ref": "#/definitions/missing" }),
        json!({ "$ref": "https://example.com/schema.json" }),
        json!({ "type": "string", "pattern": "^(a$" }),
        deep,
    ] {
        let shown: String = schema.to_string().chars().take(60).collect();
        let error = json_schema_to_grammar(&schema).expect_err(&shown);
        assert!(matches!(error, Error::Sample { .. }), "{shown}: {error}");
        let options = SamplerOptions::greedy().grammar(Grammar::JsonSchema(schema));
        assert!(refusal(&options).len() > 10);
    }
}

#[test]
fn a_lazy_grammar_waits_for_its_trigger() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let triggers = [
        Trigger::Word("f".into()),
        Trigger::Word("ef".into()),
        Trigger::Token(prompted.token(b'f')),
        Trigger::Pattern("[a-e](f)".into()),
        Trigger::FullPattern("de(f)".into()),
    ];
    for trigger in triggers {
        // The grammar sees the text from the trigger on.
        let (gbnf, expected) = match &trigger {
            Trigger::Word(word) if word == "ef" => (r#"root ::= "efABC""#, "defABC"),
            _ => (r#"root ::= "fABC""#, "defABC"),
        };
        let lazy = Grammar::Lazy { gbnf: gbnf.into(), triggers: vec![trigger.clone()] };
        let options = SamplerOptions::greedy().grammar(lazy);
        assert_eq!(text(options.clone(), "abc", 20), expected, "{trigger:?}");
        assert_eq!(text(options, "g", 4), "hijk", "{trigger:?}");
    }
    let broken = Grammar::Lazy { gbnf: "root ::= \"f\"".into(), triggers: vec![Trigger::Pattern("(".into())] };
    assert!(refusal(&SamplerOptions::greedy().grammar(broken)).contains("pattern"));
}

/// `std::regex` recurses for each character under a repetition; without limits this ends the process.
#[test]
fn patterns_survive_long_texts() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let pattern = Trigger::Pattern(r"x[\s\S]*(ZZ)".into());
    let lazy = Grammar::Lazy { gbnf: "root ::= \"ZZ\"".into(), triggers: vec![pattern] };
    let mut sampler = prompted.sampler(SamplerOptions::greedy().grammar(lazy));
    for token in prompted.tokens(&format!("x{}", "a".repeat(12_000))) {
        sampler.accept(token).unwrap();
    }
}

#[test]
fn a_long_wait_for_a_word_is_no_danger() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let lazy = Grammar::Lazy { gbnf: "root ::= \"ZZ\"".into(), triggers: vec![Trigger::Word("ZZ".into())] };
    let mut sampler = prompted.sampler(SamplerOptions::greedy().grammar(lazy));
    for token in prompted.tokens(&"Z-".repeat(3000)) {
        sampler.accept(token).unwrap();
    }
    prompted.tokens("ZZ").into_iter().for_each(|token| sampler.accept(token).unwrap());
    assert!(sampler.accept(prompted.token(b'x')).is_err(), "the grammar is at work");
}

#[test]
fn the_grammar_of_a_template_begins_in_the_generation_prompt() {
    let template = |lazy| {
        Grammar::Template(TemplateGrammar {
            gbnf: r#"root ::= "<|im_start|>abc" [d-f]{3} "!""#.into(),
            lazy,
            triggers: vec![Trigger::Word("<|im_start|>".into())],
        })
    };
    let options = SamplerOptions::greedy().grammar(template(false));
    assert_eq!(text(options.clone().generation_prompt("<|im_start|>abc".into()), "abc", 4), "def!");
    assert!(refusal(&options.clone().generation_prompt("elsewhere".into())).contains("generation prompt"));
    assert!(refusal(&options.generation_prompt("<|im_start|>abc<|im_end|>".into())).contains("generation prompt"));
    assert_eq!(text(SamplerOptions::greedy().grammar(template(true)), "abc", 4), "defg");
}

#[test]
fn where_nothing_is_allowed_there_is_an_error() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let mut sampler = prompted.sampler(greedy(r#"root ::= "x" [0-9]"#).banned(vec![prompted.token(b'x')]));
    for _ in 0..2 {
        let error = sampler.sample(&prompted.context, prompted.entry).unwrap_err();
        assert!(matches!(error, Error::Sample { .. }), "{error}");
    }
    // It is as it was: the text can still be told to it.
    sampler.accept(prompted.token(b'x')).unwrap();
    sampler.sample(&prompted.context, prompted.entry).unwrap();

    // The grammar is at its end, and ending is ruled out.
    let mut sampler = prompted.sampler(greedy(r#"root ::= "d""#).ignore_eos(true));
    sampler.accept(prompted.token(b'd')).unwrap();
    assert!(sampler.sample(&prompted.context, prompted.entry).is_err());
}

#[test]
fn tokens_that_do_not_fit_are_not_accepted() {
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let mut sampler = prompted.sampler(greedy(r#"root ::= "xyz""#));
    let eos = prompted.model.vocab().eos().unwrap();
    for wrong in [prompted.token(b'q'), eos, prompted.model.vocab().eot().unwrap()] {
        assert!(matches!(sampler.accept(wrong), Err(Error::Sample { .. })), "{wrong:?}");
    }
    sampler.accept_prompt(prompted.token(b'q')).unwrap();
    for fitting in prompted.tokens("xyz") {
        sampler.accept(fitting).unwrap();
    }
    assert!(sampler.accept(prompted.token(b'x')).is_err());
    sampler.accept(eos).unwrap();
}
