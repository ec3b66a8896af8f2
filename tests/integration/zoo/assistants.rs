//! Gemma 4 assistants, which draft in the target's memory: what llama.cpp's drafter really makes of them.

use llama_spec_tests::zoo::{Acceptance, Described as _, Family, Transformer};

use crate::pair::Pair;

#[test]
fn assistants_draft_as_defined() {
    let target = Transformer::target(Family::Gemma4, 1);
    let prompt = target.text().vocabulary().tokenize("The beginning");
    for draft in [target.assistant(1.0), target.assistant(0.8), target.clone().with_width(224).assistant(0.5)] {
        for length in [1, 3, 8] {
            let paths = [draft.target().cached().unwrap(), draft.cached().unwrap()];
            let mut pair = Pair::mtp(&paths[0], Some(&paths[1]), length);
            let (text, rounds, _) = pair.speculate(&prompt, 200);
            println!("{} {:?}", draft.label(), Acceptance::of(&rounds));
            assert_eq!(text[..200], draft.target().text().continuation(&prompt, 200), "{draft:?}");
            assert_eq!(rounds, draft.speculate(&prompt, 200, length as usize), "{draft:?}");
        }
    }
}

#[test]
fn an_assistant_that_gets_other_hidden_states_is_always_wrong() {
    let [target, other] = [1, 2].map(|seed| Transformer::target(Family::Gemma4, seed));
    let draft = other.assistant(1.0);
    let prompt = target.text().vocabulary().tokenize("The beginning");
    let mut pair = Pair::mtp(&target.cached().unwrap(), Some(&draft.cached().unwrap()), 3);
    let (text, rounds, _) = pair.speculate(&prompt, 100);
    assert_eq!(text[..100], target.text().continuation(&prompt, 100));
    assert!(rounds.iter().all(|round| round.accepted == 0), "{rounds:?}");
}
