//! Samplers that are saved in the middle of a text and made again elsewhere.

use super::support::{Prompted, broad};
use llama_spec::sample::{
    AdaptiveP, Candidate, Dry, Grammar, Mirostat, Penalties, ReasoningTags, SamplerOptions, SamplerState, Trigger, Xtc,
};
use llama_spec::{Error, Sampler, Token};
use serde_json::json;

fn penalized() -> SamplerOptions {
    let penalties = Penalties { repeat: 1.3, presence: 1.0, ..Penalties::default() };
    SamplerOptions::default().temperature(1.5).penalties(penalties).dry(Dry::default())
}

fn reasoning() -> SamplerOptions {
    let tags = ReasoningTags { start: "c".into(), ends: vec!["#0".into()] };
    SamplerOptions::unfiltered().reasoning_tags(tags).generation_prompt("c".into()).seed(6)
}

fn cases() -> Vec<SamplerOptions> {
    let grammar = || Grammar::gbnf(r#"root ::= ("ab" | "cd" | [e-z0-9]){20,}"#);
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "ok": { "type": "boolean" } },
        "required": ["n", "ok"], "additionalProperties": false });
    let lazy = Grammar::Lazy { gbnf: r#"root ::= "d" [x-z]{9,}"#.into(), triggers: vec![Trigger::Word("d".into())] };
    vec![
        SamplerOptions::greedy().penalties(Penalties { presence: 3.0, ..Penalties::default() }),
        SamplerOptions::unfiltered().seed(5),
        SamplerOptions::default(),
        penalized().seed(5),
        SamplerOptions::unfiltered().grammar(grammar()).seed(5),
        SamplerOptions::unfiltered().grammar(grammar()).grammar_first(true).seed(5),
        SamplerOptions::unfiltered().grammar(Grammar::JsonSchema(schema)).seed(5),
        SamplerOptions::unfiltered().grammar(lazy).seed(5),
        SamplerOptions::unfiltered().min_tokens(12).seed(5),
        reasoning().reasoning_budget(8),
    ]
}

/// Samples and accepts up to `n` tokens from one row, and ends behind an end.
fn go_on(prompted: &Prompted, sampler: &mut Sampler, n: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    while tokens.len() < n && !tokens.last().is_some_and(|last| prompted.model.vocab().is_end_of_generation(*last)) {
        let token = sampler.sample(&prompted.context, prompted.entry).unwrap();
        sampler.accept(token).unwrap();
        tokens.push(token);
    }
    tokens
}

/// Through the text that would lie in a file.
fn restore(sampler: &Sampler, options: &SamplerOptions, prompt: &[Token], generated: &[Token]) -> Sampler {
    let json = serde_json::to_string(&sampler.save().unwrap()).unwrap();
    assert!(json.len() < 200, "it is small: {json}");
    let state: SamplerState = serde_json::from_str(&json).unwrap();
    let restored = Sampler::restore(sampler.model(), options, &state, prompt, generated).unwrap();
    assert_eq!(restored.save().unwrap(), state, "saved again, it is the same");
    restored
}

#[test]
fn from_every_position_the_text_goes_on_as_it_would() {
    let prompted = Prompted::new(&broad(), "abc");
    let prompt = prompted.tokens("xyzxyzxy");
    for options in cases() {
        let mut sampler = prompted.sampler(options.clone());
        prompt.iter().for_each(|token| sampler.accept_prompt(*token).unwrap());
        let mut text = Vec::new();
        for position in 0..30 {
            let mut restored = restore(&sampler, &options, &prompt, &text);
            let expected = go_on(&prompted, &mut sampler.try_clone().unwrap(), 12);
            assert_eq!(go_on(&prompted, &mut restored, 12), expected, "from {position} on, {options:?}");
            // Some random numbers are used up without a token.
            if position % 4 == 3 && options.grammar.is_none() {
                sampler.sample(&prompted.context, prompted.entry).unwrap();
            }
            let next = go_on(&prompted, &mut sampler, 1);
            text.extend(&next);
            if prompted.model.vocab().is_end_of_generation(next[0]) {
                break;
            }
        }
        assert!(text.len() > 5, "{options:?}");
    }
}

#[test]
fn rejections_go_on_as_they_would() {
    let mut prompted = Prompted::new(&broad(), "ab");
    let draft = prompted.tokens("de");
    let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
    let q = |token, probability| vec![Candidate { token, logit: 0.0, probability }];
    // The first is now kept, now rejected; the second is certain.
    let distributions = [&q(draft[0], 0.3)[..], &[]];
    let letters = Grammar::gbnf("root ::= [a-z]+");
    for options in [SamplerOptions::unfiltered().seed(1), penalized(), SamplerOptions::unfiltered().grammar(letters)] {
        let mut sampler = prompted.sampler(options.clone());
        let step = |sampler: &mut Sampler| {
            let mut accepted = Vec::new();
            sampler.verify_rejection(&prompted.context, &entries, &draft, &distributions, &mut accepted).unwrap();
            accepted
        };
        let (mut text, mut kept) = (Vec::new(), 0);
        for _ in 0..30 {
            let mut restored = restore(&sampler, &options, &[], &text);
            let mut copy = sampler.try_clone().unwrap();
            for _ in 0..5 {
                assert_eq!(step(&mut restored), step(&mut copy), "{options:?}");
            }
            let accepted = step(&mut sampler);
            kept += usize::from(accepted.len() > 1);
            text.extend(accepted);
            if text.last().is_some_and(|last| prompted.model.vocab().is_end_of_generation(*last)) {
                break;
            }
        }
        assert!(kept > 0 && sampler.save().unwrap().rejection_steps > 0, "{options:?}");
    }
}

#[test]
fn reasoning_ended_by_hand_stays_ended() {
    let prompted = Prompted::new(&broad(), "abc");
    for before in [0, 1, 5] {
        let mut sampler = prompted.sampler(reasoning());
        let mut text = go_on(&prompted, &mut sampler, before);
        assert!(sampler.end_reasoning().unwrap());
        for _ in 0..4 {
            let mut restored = restore(&sampler, &reasoning(), &[], &text);
            let expected = go_on(&prompted, &mut sampler.try_clone().unwrap(), 6);
            assert_eq!(go_on(&prompted, &mut restored, 6), expected, "{before} tokens before");
            text.extend(go_on(&prompted, &mut sampler, 1));
        }
        assert_eq!(prompted.text(&text[before..before + 2]), "#0");
        sampler.reset().unwrap();
        assert!(sampler.save().unwrap().reasoning_ended.is_empty());
    }
}

/// The reason of a state's refusal.
fn reason<T: std::fmt::Debug>(result: llama_spec::Result<T>) -> String {
    match result {
        Err(Error::State { reason }) => reason,
        other => panic!("not refused as a state: {other:?}"),
    }
}

#[test]
fn what_cannot_be_saved_is_refused() {
    let prompted = Prompted::new(&broad(), "abc");
    let save = |options| prompted.sampler(options).save();
    let options = SamplerOptions::default;
    assert!(reason(save(options().xtc(Xtc::default()))).contains("xtc"));
    assert!(reason(save(options().adaptive_p(AdaptiveP::default()))).contains("adaptive-p"));
    for mirostat in [Mirostat::V1 { tau: 3.0, eta: 0.1 }, Mirostat::V2 { tau: 3.0, eta: 0.1 }] {
        assert!(reason(save(options().mirostat(mirostat))).contains("mirostat"));
    }
    save(options().xtc(Xtc { probability: 0.0, ..Xtc::default() })).unwrap();

    let mut sampler = prompted.sampler(options());
    sampler.accept(prompted.token(b'a')).unwrap();
    sampler.accept_prompt(prompted.token(b'a')).unwrap();
    assert!(reason(sampler.save()).contains("prompt"));
    sampler.reset().unwrap();
    sampler.save().unwrap();
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let prompted = Prompted::new(&broad(), "abc");
    let options = SamplerOptions::unfiltered().seed(3).grammar(Grammar::gbnf("root ::= [a-f]+"));
    let mut sampler = prompted.sampler(options.clone());
    let prompt = prompted.tokens("abc");
    prompt.iter().for_each(|token| sampler.accept_prompt(*token).unwrap());
    let text = prompted.tokens("abcdef");
    text.iter().for_each(|token| sampler.accept(*token).unwrap());
    let state = sampler.save().unwrap();
    let restore = |options: &SamplerOptions, state: &SamplerState, prompt: &[Token], text: &[Token]| {
        Sampler::restore(&prompted.model, options, state, prompt, text)
    };
    restore(&options, &state, &prompt, &text).unwrap();

    assert!(reason(restore(&options, &state, &prompt[1..], &text)).contains("2 tokens given as prompt, 3 were saved"));
    assert!(reason(restore(&options, &state, &prompt, &[])).contains("0 tokens given as generated"));
    let unfit = [&text[..5], &prompted.tokens("x")].concat();
    assert!(reason(restore(&options, &state, &prompt, &unfit)).contains("grammar"));
    let outside = [&prompt[..2], &[Token::new(-1)]].concat();
    assert!(reason(restore(&options, &state, &outside, &text)).contains("vocabulary"));
    assert!(reason(restore(&options.clone().seed(4), &state, &prompt, &text)).contains("seed"));
    assert!(reason(restore(&SamplerOptions::greedy(), &state, &prompt, &text)).contains("other options"));

    let changed = |change: &dyn Fn(&mut SamplerState)| {
        let mut state = state.clone();
        change(&mut state);
        reason(restore(&options, &state, &prompt, &text))
    };
    assert!(changed(&|state| state.seed = None).contains("other options"));
    assert!(changed(&|state| state.draws = u64::MAX).contains("random numbers"));
    assert!(changed(&|state| state.rejection_steps = u64::MAX).contains("random numbers"));
    assert!(changed(&|state| state.prompt = u64::MAX).contains("were saved"));
    assert!(changed(&|state| state.reasoning_ended = vec![2]).contains("no reasoning"));
    assert!(changed(&|state| state.reasoning_ended = vec![u64::MAX]).contains("beyond the text"));
}
