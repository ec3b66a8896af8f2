//! Going on behind a draft, compared with a text that really went on so.

use super::super::index::Index;
use super::super::{Lookup, Place, Proposed, Store, StoreSettings};
use super::{begun, proposed, texts, tokens};
use crate::token::Token;
use proptest::prelude::*;

fn after(lookup: &mut Lookup, draft: &[Token], limit: usize) -> Vec<Proposed> {
    let mut out = Vec::new();
    lookup.propose_after(draft, limit, &mut out);
    out
}

/// What is proposed once the draft is in the text, and in the index, without anything having been learned from it.
fn oracle(prompt: &[Token], output: &[Token], draft: &[Token], limit: usize) -> Vec<Proposed> {
    let mut lookup = fed(prompt, output);
    draft.iter().for_each(|token| lookup.append(*token));
    lookup.guess = lookup.look();
    let mut out = Vec::new();
    lookup.propose(limit, &mut out);
    out
}

fn fed(prompt: &[Token], output: &[Token]) -> Lookup {
    let mut lookup = Lookup::new(None);
    lookup.begin(prompt);
    lookup.extend(output, |_, _| {});
    lookup
}

/// Few different tokens, so that much is found.
fn text(length: usize) -> impl Strategy<Value = Vec<i32>> {
    (1..7).prop_flat_map(move |different| prop::collection::vec(0..different, 0..length))
}

proptest! {
    #[test]
    fn it_is_as_if_the_text_had_gone_on(prompt in text(80), output in text(80), draft in text(24), limit in 0_usize..20) {
        let (prompt, output, draft) = (tokens(&prompt), tokens(&output), tokens(&draft));
        let got = after(&mut fed(&prompt, &output), &draft, limit);
        prop_assert_eq!(got, oracle(&prompt, &output, &draft, limit));
    }

    /// The same with texts of the kinds that are copied, with edits, and drafts that are right up to some token.
    #[test]
    fn also_in_texts_that_copy(seed in 0_u64..1000, cut in 10_usize..500, right in 0_usize..20, wrong in 0_usize..4) {
        let made = [texts::copy, texts::list, texts::agent][seed as usize % 3](seed, 600);
        let (prompt, output) = (tokens(&made.prompt), tokens(&made.output));
        let cut = cut.min(output.len());
        let rest = &output[cut..];
        let alien = tokens(&[70_000, 70_001, 70_002]);
        let draft = [rest.get(..right).unwrap_or(rest), &alien[..wrong.min(3)]].concat();
        let got = after(&mut fed(&prompt, &output[..cut]), &draft, 16);
        prop_assert_eq!(got, oracle(&prompt, &output[..cut], &draft, 16));
    }

    /// Nothing that comes later depends on whether it was asked.
    #[test]
    fn nothing_is_left_of_it(prompt in text(60), output in text(60), drafts in prop::collection::vec(text(12), 60)) {
        let (mut asked, mut other) = (Lookup::new(None), Lookup::new(None));
        asked.begin(&tokens(&prompt));
        other.begin(&tokens(&prompt));
        for (token, draft) in tokens(&output).into_iter().zip(&drafts) {
            after(&mut asked, &tokens(draft), 8);
            prop_assert_eq!(asked.text(), other.text());
            prop_assert_eq!(asked.index.found(), other.index.found());
            prop_assert_eq!(&asked.links, &other.links);
            let (mut one, mut two) = (Vec::new(), Vec::new());
            asked.propose(8, &mut one);
            other.propose(8, &mut two);
            prop_assert_eq!(one, two);
            let (mut one, mut two) = (Vec::new(), Vec::new());
            asked.extend(&[token], |evidence, right| one.push((evidence, right)));
            other.extend(&[token], |evidence, right| two.push((evidence, right)));
            prop_assert_eq!(one, two);
        }
    }

    /// Against a search through text and draft.
    #[test]
    fn the_latest_place_of_the_longest_length_is_found(text in text(120), draft in text(30)) {
        const LENGTHS: [usize; 3] = [1, 2, 5];
        let mut index = Index::new(LENGTHS);
        tokens(&text).into_iter().for_each(|token| index.push(token));
        for token in tokens(&draft) {
            let found = index.assume(token, text.len());
            let all = index.text();
            let naive = LENGTHS.into_iter().rev().find_map(|length| {
                let start = all.len().checked_sub(length)?;
                let end = (length..all.len()).rev().find(|end| all[end - length..*end] == all[start..])?;
                Some((end as u32, length))
            });
            prop_assert_eq!(found, naive);
        }
        index.forget(text.len());
        prop_assert_eq!(index.text(), tokens(&text));
    }
}

#[test]
fn a_draft_leads_to_a_place_that_the_text_itself_does_not() {
    let mut lookup = begun(&[1, 2, 3, 4, 5, 6, 7, 8, 90]);
    assert_eq!(proposed(&mut lookup, 3), [0; 0]);
    let got = after(&mut lookup, &tokens(&[2, 3, 4, 5]), 3);
    assert_eq!(got.iter().map(|one| one.token.id()).collect::<Vec<_>>(), [6, 7, 8]);
    // Four tokens are the same before the first of them, and all of these four were drafted.
    assert!(got.iter().all(|one| one.evidence.place == Place::Prompt && one.evidence.length == 2), "{got:?}");
}

#[test]
fn the_match_is_counted_over_text_and_draft() {
    let mut lookup = begun(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 90, 1, 2, 3, 4, 5]);
    let got = after(&mut lookup, &tokens(&[6, 7, 8]), 1);
    assert_eq!((got[0].token.id(), got[0].evidence.length), (9, 3), "eight are the same");
}

#[test]
fn a_draft_that_says_something_twice_is_found_in_itself() {
    let mut lookup = begun(&[90]);
    let got = after(&mut lookup, &tokens(&[1, 2, 3, 1]), 4);
    assert_eq!(got.iter().map(|one| one.token.id()).collect::<Vec<_>>(), [2, 3, 1, 2]);
    assert_eq!(got[0].evidence.place, Place::Output);
}

#[test]
fn a_draft_leads_to_another_text() {
    let store = Store::new(StoreSettings::default());
    store.shelf("a").add(&tokens(&(0..40).collect::<Vec<_>>()));
    let mut lookup = Lookup::new(Some(store.shelf("a")));
    lookup.begin(&tokens(&[90, 91]));
    let got = after(&mut lookup, &tokens(&[10, 11, 12, 13, 14]), 3);
    assert_eq!(got.iter().map(|one| one.token.id()).collect::<Vec<_>>(), [15, 16, 17]);
    assert!(got.iter().all(|one| one.evidence.place == Place::Store), "{got:?}");
    assert_eq!(proposed(&mut lookup, 3), [0; 0]);
}
