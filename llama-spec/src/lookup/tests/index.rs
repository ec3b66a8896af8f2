//! What is found, compared with what a search through the whole text finds.

use super::super::Lookup;
use super::super::index::Index;
use super::tokens;
use crate::token::Token;
use proptest::prelude::*;

const LENGTHS: [usize; 3] = [1, 2, 5];

/// The latest earlier end of the last `length` tokens.
fn search(text: &[Token], length: usize) -> u32 {
    let Some(start) = text.len().checked_sub(length) else { return 0 };
    let ends = (length..text.len()).rev();
    ends.into_iter().find(|end| text[end - length..*end] == text[start..]).unwrap_or(0) as u32
}

fn common(text: &[Token], end: usize) -> usize {
    text[..end].iter().rev().zip(text.iter().rev()).take_while(|(one, other)| one == other).count()
}

/// Few different tokens, so that much is found.
fn text(length: usize) -> impl Strategy<Value = Vec<i32>> {
    (1..6).prop_flat_map(move |different| prop::collection::vec(0..different, 0..length))
}

proptest! {
    #[test]
    fn the_latest_place_is_found_for_each_length(text in text(300)) {
        let text = tokens(&text);
        let mut index = Index::new(LENGTHS);
        for end in 1..=text.len() {
            index.push(text[end - 1]);
            prop_assert_eq!(*index.found(), LENGTHS.map(|length| search(&text[..end], length)));
        }
    }

    #[test]
    fn a_text_that_was_cut_is_as_one_that_was_never_longer(text in text(200), cut in 0_usize..200, more in text(100)) {
        let mut index = Index::new(LENGTHS);
        tokens(&text).into_iter().for_each(|token| index.push(token));
        index.truncate(cut);
        let mut fresh = Index::new(LENGTHS);
        tokens(&text).into_iter().take(cut).for_each(|token| fresh.push(token));
        prop_assert_eq!(index.text(), fresh.text());
        for token in tokens(&more) {
            prop_assert_eq!(index.found(), fresh.found());
            index.push(token);
            fresh.push(token);
        }
    }

    #[test]
    fn the_end_of_another_text_is_found(text in text(200), other in text(20)) {
        let mut index = Index::new(LENGTHS);
        tokens(&text).into_iter().for_each(|token| index.push(token));
        let (text, other) = (tokens(&text), tokens(&other));
        let longest = LENGTHS.into_iter().rev().find_map(|length| {
            let tail = other.get(other.len().checked_sub(length)?..)?;
            let end = (length..=text.len()).rev().find(|end| text[end - length..*end] == *tail)?;
            Some((end as u32, length))
        });
        prop_assert_eq!(index.find(&other), longest);
    }

    /// Every place that is asked is one where the same tokens stood, as many as it says.
    #[test]
    fn every_place_is_one(prompt in text(100), output in text(100)) {
        let mut lookup = Lookup::new(None);
        lookup.begin(&tokens(&prompt));
        for token in tokens(&output) {
            lookup.extend(&[token], |_, _| {});
            let text = lookup.index.text();
            for place in lookup.panel().members() {
                prop_assert!((place.end as usize) < text.len());
                prop_assert!(place.length >= 1);
                prop_assert!(common(text, place.end as usize) >= place.length as usize, "{:?}", place);
            }
        }
    }

    #[test]
    fn a_text_that_goes_on_elsewhere_is_as_a_new_one(old in text(100), cut in 0_usize..100, new in text(60)) {
        let mut lookup = Lookup::new(None);
        lookup.begin(&tokens(&old));
        let mut text: Vec<i32> = old.into_iter().take(cut).collect();
        text.extend(new);
        lookup.begin(&tokens(&text));
        let mut fresh = Lookup::new(None);
        fresh.begin(&tokens(&text));
        prop_assert_eq!(lookup.index.found(), fresh.index.found());
        prop_assert_eq!(lookup.latest, fresh.latest);
        prop_assert_eq!(&lookup.links, &fresh.links);
    }

    /// What was said in between does not matter either.
    #[test]
    fn a_text_that_goes_on_is_as_a_new_one(old in text(100), more in text(60)) {
        let mut lookup = Lookup::new(None);
        lookup.begin(&tokens(&old));
        let text = [old, more].concat();
        lookup.begin(&tokens(&text));
        let mut fresh = Lookup::new(None);
        fresh.begin(&tokens(&text));
        for token in [0, 1, 2, 0, 1, 1, 2, 0] {
            let (mut drafts, mut expected) = (Vec::new(), Vec::new());
            lookup.propose(16, &mut drafts);
            fresh.propose(16, &mut expected);
            prop_assert_eq!(drafts, expected);
            lookup.extend(&tokens(&[token]), |_, _| {});
            fresh.extend(&tokens(&[token]), |_, _| {});
        }
    }

    /// A draft is what the target would be asked to check: never longer than the limit, and only tokens of the text.
    #[test]
    fn drafts_are_made_of_the_text(text in text(200), limit in 0_usize..40) {
        let mut lookup = Lookup::new(None);
        lookup.extend(&tokens(&text), |_, _| {});
        let mut draft = Vec::new();
        lookup.propose(limit, &mut draft);
        prop_assert!(draft.len() <= limit);
        prop_assert!(draft.iter().all(|one| text.contains(&one.token.id())));
    }
}

/// Growing happens many times on the way.
#[test]
fn long_texts_are_found_as_well() {
    let text = tokens(&super::texts::program(&mut super::texts::Random::new(5), 3000));
    let mut index = Index::new([1, 3, 8]);
    for end in 1..=text.len() {
        index.push(text[end - 1]);
        if end % 7 == 0 {
            assert_eq!(*index.found(), [1, 3, 8].map(|length| search(&text[..end], length)));
        }
    }
}
