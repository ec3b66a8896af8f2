//! The reasoning budget. The zoo's text runs through the alphabet, so letters serve as tags.

use super::support::Prompted;
use llama_spec::sample::{Grammar, ReasoningTags, SamplerOptions, Trigger};
use llama_spec_tests::zoo::Llama;

fn tags(start: &str, end: &str) -> ReasoningTags {
    ReasoningTags { start: start.into(), ends: vec![end.into()] }
}

fn text(options: SamplerOptions, prompt: &str, n: usize) -> String {
    let mut prompted = Prompted::new(&Llama::target(1), prompt);
    let mut sampler = prompted.sampler(options);
    let tokens = prompted.generate(&mut sampler, n);
    prompted.text(&tokens)
}

#[test]
fn a_spent_budget_ends_the_reasoning() {
    let options = SamplerOptions::greedy().reasoning_tags(tags("D", "#0")).reasoning_budget(3);
    assert_eq!(text(options.clone(), "ABC", 9), "DEFG#0123");
    assert_eq!(text(options.clone().reasoning_message("xy".into()), "ABC", 9), "DEFGxy#01");
    assert_eq!(text(options.reasoning_budget(0), "ABC", 6), "D#0123");
}

#[test]
fn an_end_within_the_budget_is_left_alone() {
    let options = SamplerOptions::greedy().reasoning_tags(tags("D", "FG")).reasoning_budget(5);
    assert_eq!(text(options, "ABC", 8), "DEFGHIJK");
}

#[test]
fn reasoning_may_begin_in_the_generation_prompt() {
    let options = SamplerOptions::greedy().reasoning_tags(tags("C", "#0")).reasoning_budget(2);
    assert_eq!(text(options.clone(), "ABC", 6), "DEFGHI");
    assert_eq!(text(options.generation_prompt("C".into()), "ABC", 6), "DE#012");
}

#[test]
fn it_can_be_ended_by_hand() {
    let mut prompted = Prompted::new(&Llama::target(1), "ABC");
    let mut sampler = prompted.sampler(SamplerOptions::greedy().reasoning_tags(tags("D", "#0")));
    assert!(!sampler.end_reasoning().unwrap(), "it has not begun");
    let mut tokens = prompted.generate(&mut sampler, 4);
    assert!(sampler.end_reasoning().unwrap());
    tokens.extend(prompted.generate(&mut sampler, 4));
    assert_eq!(prompted.text(&tokens), "DEFG#012");
    assert!(!sampler.end_reasoning().unwrap(), "it has ended");
    assert!(!prompted.sampler(SamplerOptions::greedy()).end_reasoning().unwrap());
}

#[test]
fn a_lazy_grammar_leaves_reasoning_alone() {
    let lazy = Grammar::Lazy { gbnf: r#"root ::= "E" "xx""#.into(), triggers: vec![Trigger::Word("E".into())] };
    let options = SamplerOptions::greedy().grammar(lazy);
    assert_eq!(text(options.clone(), "ABC", 8), "DExx");
    assert_eq!(text(options.reasoning_tags(tags("D", "#0")).reasoning_budget(2), "ABC", 8), "DEF#0123");
}

#[test]
fn reset_and_clone_keep_it() {
    let mut prompted = Prompted::new(&Llama::target(1), "ABC");
    let options = SamplerOptions::greedy().reasoning_tags(tags("D", "#0")).reasoning_budget(3);
    let mut sampler = prompted.sampler(options);
    let first = prompted.generate(&mut sampler, 2);
    let mut clone = sampler.try_clone().unwrap();
    let rest = prompted.generate(&mut sampler, 6);
    assert_eq!(prompted.text(&[first.clone(), rest.clone()].concat()), "DEFG#012");

    prompted.forget_from(3 + 2 - 1);
    prompted.decode(&first[1..]);
    assert_eq!(prompted.generate(&mut clone, 6), rest);

    sampler.reset().unwrap();
    prompted.forget_from(2);
    let c = prompted.tokens("C");
    prompted.decode(&c);
    assert_eq!(prompted.generate(&mut sampler, 8), [first, rest].concat());
}
