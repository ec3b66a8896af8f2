//! The least length of a text: the end is ruled out before it, exactly, wherever the border falls.

use super::support::{Prompted, assert_distributed, broad, softmax};
use llama_spec::sample::{Candidate, Grammar, Mirostat, ReasoningTags, SamplerOptions};
use llama_spec::{Sampler, Token};
use llama_spec_tests::zoo::Llama;

/// The end is by far the most probable token of every row.
fn eager(options: SamplerOptions, prompted: &Prompted) -> SamplerOptions {
    options.logit_bias(prompted.model.vocab().eot().unwrap(), 60.0)
}

fn ends(prompted: &Prompted, tokens: &[Token]) -> Vec<bool> {
    tokens.iter().map(|token| prompted.model.vocab().is_end_of_generation(*token)).collect()
}

fn all_kinds() -> Vec<SamplerOptions> {
    let letters = || Grammar::gbnf("root ::= [a-zA-Z]*");
    vec![
        SamplerOptions::greedy(),
        SamplerOptions::default().seed(1),
        SamplerOptions::unfiltered().seed(2),
        SamplerOptions::default().typical_p(0.7).temperature(2.0).seed(2),
        SamplerOptions::default().mirostat(Mirostat::V1 { tau: 3.0, eta: 0.1 }).seed(3),
        SamplerOptions::default().mirostat(Mirostat::V2 { tau: 3.0, eta: 0.1 }).seed(3),
        SamplerOptions::unfiltered().grammar(letters()).seed(4),
        SamplerOptions::unfiltered().grammar(letters()).grammar_first(true).seed(4),
        SamplerOptions::greedy().grammar(letters()),
    ]
}

#[test]
fn a_text_that_wants_to_end_is_exactly_that_long() {
    for options in all_kinds() {
        for least in [0, 1, 2, 5] {
            let mut prompted = Prompted::new(&broad(), "abc");
            let options = eager(options.clone(), &prompted).min_tokens(least);
            let mut sampler = prompted.sampler(options.clone());
            // What is in the prompt does not count.
            prompted.tokens("abcabc").iter().for_each(|token| sampler.accept_prompt(*token).unwrap());
            let text = prompted.generate(&mut sampler, 20);
            assert_eq!(text.len(), least as usize + 1, "{options:?}");
            assert!(ends(&prompted, &text)[least as usize], "{options:?}");
        }
    }
}

/// Up to the border the text is that of a sampler that never ends, and the same random numbers are drawn.
#[test]
fn before_the_border_it_is_as_if_the_end_were_ruled_out() {
    let options = SamplerOptions::unfiltered().temperature(1.5).seed(8);
    let text = |options: SamplerOptions| {
        let mut prompted = Prompted::new(&broad().ending_after(b'e'), "abc");
        prompted.generate(&mut { prompted.sampler(options) }, 12)
    };
    let (never, late) = (text(options.clone().ignore_eos(true)), text(options.min_tokens(12)));
    assert_eq!(late, never);
}

#[test]
fn an_unwilling_text_is_left_alone() {
    let mut prompted = Prompted::new(&Llama::target(1).ending_after(b'h'), "abc");
    let mut sampler = prompted.sampler(SamplerOptions::greedy().min_tokens(3));
    let text = prompted.generate(&mut sampler, 20);
    assert_eq!(prompted.text(&text), "defgh");
    assert_eq!(text.len(), 6);
}

/// The border crossed at every place of a draft gives what is there without a draft.
#[test]
fn a_verified_text_is_the_text_without_a_draft() {
    for options in all_kinds() {
        for least in 0..=5 {
            let mut plain = Prompted::new(&broad(), "abc");
            let options = eager(options.clone(), &plain).min_tokens(least);
            let mut sampler = plain.sampler(options.clone());
            let text = plain.generate(&mut sampler, 20);

            for wrong in 0..4 {
                let mut prompted = Prompted::new(&broad(), "ab");
                let mut draft = text.clone();
                draft.resize(4, prompted.token(b'~'));
                // An end where it may not be yet, or something else in its place.
                draft[wrong] = if wrong < least as usize { text[least as usize] } else { prompted.token(b'~') };
                let entries = prompted.decode_all(&[prompted.tokens("c"), draft.clone()].concat());
                let mut accepted = Vec::new();
                let mut sampler = prompted.sampler(options.clone());
                sampler.verify(&prompted.context, &entries, &draft, &mut accepted).unwrap();
                assert_eq!(accepted, text[..accepted.len()], "least {least}, wrong {wrong}, {options:?}");
                assert_eq!(accepted.len(), (wrong + 1).min(text.len()), "least {least}, wrong {wrong}, {options:?}");
            }
        }
    }
}

#[test]
fn rejection_keeps_the_distribution_on_both_sides_of_the_border() {
    let mut prompted = Prompted::new(&broad(), "ab");
    let eot = prompted.model.vocab().eot().unwrap();
    let d = prompted.token(b'd');
    let draft = [d, eot];
    let entries = prompted.decode_all(&[prompted.token(b'c'), draft[0], draft[1]]);
    // About as probable as the successor.
    let options = SamplerOptions::unfiltered().logit_bias(eot, 4.0).min_tokens(1);
    let row = |entry: usize, may_end: bool| {
        let mut logits = prompted.context.logits(entries[entry]).unwrap().to_vec();
        logits[eot.id() as usize] += 4.0;
        let allowed = |id: usize| may_end || !prompted.model.vocab().is_end_of_generation(Token::new(id as i32));
        let masked = logits.iter().enumerate().map(|(id, logit)| if allowed(id) { *logit } else { f32::NEG_INFINITY });
        softmax(&masked.collect::<Vec<_>>(), 1.0)
    };
    let candidate = |token, probability| Candidate { token, logit: 0.0, probability };
    for q in [vec![candidate(d, 0.4), candidate(eot, 0.6)], vec![]] {
        let (mut firsts, mut seconds, mut accepted) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..12_000 {
            let mut sampler = prompted.sampler(options.clone().seed(seed));
            // The draft of the first place is drawn from q as well: now the end, now the successor.
            let first = if !q.is_empty() && seed % 5 < 3 { [eot, eot] } else { draft };
            sampler.verify_rejection(&prompted.context, &entries, &first, &[&q, &[]], &mut accepted).unwrap();
            firsts.push(accepted[0]);
            if accepted[0] == d && first == draft {
                seconds.push(accepted[1]);
            }
        }
        assert_distributed(&firsts, &row(0, false));
        assert!(seconds.len() > 1000, "{}", seconds.len());
        assert_distributed(&seconds, &row(1, true));
    }
}

#[test]
fn where_only_the_end_is_left_it_comes() {
    for first in [false, true] {
        for options in [SamplerOptions::greedy(), SamplerOptions::unfiltered().seed(1)] {
            let mut prompted = Prompted::new(&Llama::target(1), "abc");
            let grammar = Grammar::gbnf(r#"root ::= "dx""#);
            let mut sampler = prompted.sampler(options.grammar(grammar).grammar_first(first).min_tokens(10));
            let text = prompted.generate(&mut sampler, 20);
            assert_eq!(prompted.text(&text), "dx");
            assert_eq!(ends(&prompted, &text), [false, false, true]);
        }
    }

    // A ban is no way out, and neither is the end of a budget.
    let prompted = Prompted::new(&Llama::target(1), "abc");
    let all = (0..prompted.model.vocab().len() as i32).map(Token::new);
    let others: Vec<Token> = all.filter(|token| !prompted.model.vocab().is_end_of_generation(*token)).collect();
    let mut sampler = prompted.sampler(SamplerOptions::greedy().banned(others).min_tokens(3));
    assert_eq!(ends(&prompted, &prompted.draw(&mut sampler, 1)), [true]);
    let tags = ReasoningTags { start: "c".into(), ends: vec!["<|im_end|>".into()] };
    let forced = SamplerOptions::greedy().reasoning_tags(tags).generation_prompt("c".into()).reasoning_budget(0);
    let mut sampler = prompted.sampler(forced.min_tokens(3));
    assert_eq!(ends(&prompted, &prompted.draw(&mut sampler, 1)), [true]);
}

#[test]
fn copies_count_on_and_a_reset_counts_anew() {
    let prompted = Prompted::new(&broad(), "abc");
    let length = |sampler: &mut Sampler| {
        let step = || {
            let token = sampler.sample(&prompted.context, prompted.entry).unwrap();
            sampler.accept(token).unwrap();
            !prompted.model.vocab().is_end_of_generation(token)
        };
        std::iter::repeat_with(step).take_while(|goes_on| *goes_on).count()
    };
    for options in all_kinds() {
        let mut sampler = prompted.sampler(eager(options, &prompted).min_tokens(4));
        sampler.accept(prompted.token(b'a')).unwrap();
        let mut copy = sampler.try_clone().unwrap();
        assert_eq!(length(&mut sampler), 3);
        assert_eq!(length(&mut copy), 3);
        sampler.reset().unwrap();
        assert_eq!(length(&mut sampler), 4);
        assert!(sampler.describe().unwrap().contains("-> min-tokens"));
    }
}
