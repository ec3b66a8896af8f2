//! Texts over requests: who sees them, what they weigh, and that they come back from a file.

use super::super::tests::{proposed, texts, tokens};
use super::super::{Lookup, Place};
use super::file::Kept;
use super::{Segment, Store, StoreError, StoreSettings};
use proptest::prelude::*;
use std::fs;
use std::sync::Arc;

fn store(bytes: usize) -> Store {
    Store::new(StoreSettings::default().bytes(bytes))
}

fn lookup(store: &Store, tenant: &str, text: &[i32]) -> Lookup {
    let mut lookup = Lookup::new(Some(store.shelf(tenant)));
    lookup.begin(&tokens(text));
    lookup
}

fn range(from: i32, to: i32) -> Vec<i32> {
    (from..to).collect()
}

#[test]
fn a_text_is_drafted_from_that_of_another_request() {
    let store = store(1 << 20);
    lookup(&store, "a", &range(0, 100)).keep();
    let mut other = lookup(&store, "a", &range(50, 60));
    let mut out = Vec::new();
    other.propose(4, &mut out);
    assert_eq!(out.iter().map(|one| one.token.id()).collect::<Vec<_>>(), [60, 61, 62, 63]);
    assert!(out.iter().all(|one| one.evidence.place == Place::Store));
    other.extend(&tokens(&[60, 61]), |_, right| assert!(right));
    assert_eq!(proposed(&mut other, 2), [62, 63]);
    assert!(store.stats().saved >= 2);
}

#[test]
fn a_draft_ends_with_the_text_it_is_from() {
    let store = store(1 << 20);
    let shelf = store.shelf("a");
    shelf.add(&tokens(&range(0, 40)));
    shelf.add(&tokens(&range(100, 140)));
    assert_eq!(store.stats().segments, 1);
    assert_eq!(proposed(&mut lookup(&store, "a", &range(30, 38)), 8), [38, 39]);
    assert_eq!(proposed(&mut lookup(&store, "a", &range(30, 40)), 8), [0; 0]);
}

#[test]
fn a_handle_that_is_older_sees_what_came_later() {
    let store = store(1 << 20);
    let mut early = lookup(&store, "a", &range(0, 10));
    assert_eq!(proposed(&mut early, 2), [0; 0]);
    store.shelf("a").add(&tokens(&range(0, 100)));
    assert_eq!(proposed(&mut early, 2), [10, 11]);
}

#[test]
fn what_is_there_is_not_kept_twice() {
    let store = store(1 << 20);
    let shelf = store.shelf("a");
    shelf.add(&tokens(&range(0, 1000)));
    let before = store.stats();
    shelf.add(&tokens(&range(0, 1000)));
    assert_eq!(store.stats(), before);
    // The next turn of a conversation: the text so far, and more.
    shelf.add(&tokens(&range(0, 1100)));
    let more = store.stats().tokens - before.tokens;
    assert!((100..200).contains(&more), "{more} tokens more");
    assert_eq!(proposed(&mut lookup(&store, "a", &range(1040, 1050)), 2), [1050, 1051]);
    assert_eq!(proposed(&mut lookup(&store, "a", &range(990, 1000)), 2), [1000, 1001]);
}

/// Nobody waits: what was known before is used as long as the list is being replaced.
#[test]
fn a_look_does_not_wait_for_a_writer() {
    let store = store(1 << 20);
    store.shelf("a").add(&tokens(&range(0, 100)));
    let mut lookup = lookup(&store, "a", &range(50, 60));
    let writer = store.writer();
    assert_eq!(proposed(&mut lookup, 2), [60, 61]);
    drop(writer);
}

#[test]
fn what_saved_most_stays_longest() {
    let store = store(60_000);
    let useful = store.shelf("useful");
    useful.add(&tokens(&range(0, 200)));
    for round in 0..40 {
        let mut reader = lookup(&store, "useful", &range(0, 20));
        for next in 20..150 {
            let _ = proposed(&mut reader, 1);
            reader.extend(&tokens(&[next]), |_, _| {});
        }
        store.shelf("other").add(&tokens(&range(1000 + 500 * round, 1400 + 500 * round)));
        assert_eq!(proposed(&mut lookup(&store, "useful", &range(50, 60)), 2), [60, 61], "round {round}");
    }
    assert!(store.stats().tokens < 10_000, "nothing was dropped");
}

#[test]
fn shelves_without_texts_are_not_kept() {
    let store = store(1 << 20);
    (0..1000).for_each(|tenant| _ = store.shelf(&tenant.to_string()));
    assert!(store.writer().all().count() < 200);
}

/// As in a slot, where one text follows another.
#[test]
fn what_was_followed_for_one_tenant_is_not_for_the_next() {
    let store = store(1 << 20);
    store.shelf("a").add(&tokens(&range(0, 100)));
    let mut slot = lookup(&store, "a", &range(0, 60));
    assert_eq!(proposed(&mut slot, 2), [60, 61]);
    slot.set_shelf(Some(store.shelf("b")));
    assert_eq!(proposed(&mut slot, 2), [0; 0]);
    // The same text, so that nothing has to be read anew.
    slot.begin(&tokens(&range(0, 60)));
    assert_eq!(proposed(&mut slot, 2), [0; 0]);
    let shelf = slot.set_shelf(None).expect("that of the second tenant");
    assert_eq!((shelf.tenant(), slot.shelf().is_none()), ("b", true));
    slot.set_shelf(Some(store.shelf("a")));
    assert_eq!(proposed(&mut slot, 2), [60, 61]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// One slot, whose texts begin alike. After that each tenant has tokens of its own, so whatever is left of another one would be
    /// seen.
    #[test]
    fn a_slot_that_changes_hands_tells_nothing(jobs in prop::collection::vec((0_i32..3, 0_u64..4, 0_usize..200), 1..12)) {
        let store = store(200_000);
        let mut slot = Lookup::new(None);
        for (tenant, seed, length) in jobs {
            let own = texts::prose(&mut texts::Random::new(seed), length).into_iter().map(|token| token % 50 * 3 + tenant);
            let text: Vec<i32> = range(1000, 1040).into_iter().chain(own).collect();
            slot.set_shelf(Some(store.shelf(&tenant.to_string())));
            for end in [40, text.len()] {
                slot.begin(&tokens(&text[..end]));
                for token in proposed(&mut slot, 16) {
                    prop_assert!(token >= 1000 || token % 3 == tenant, "{} for {}", token, tenant);
                }
            }
            slot.keep();
            slot.set_shelf(None);
        }
    }

    /// Each tenant has tokens of its own, so whatever comes from another one would be seen.
    #[test]
    fn nothing_of_one_tenant_is_seen_by_another(adds in prop::collection::vec((0_i32..4, 0_u64..8, 20_usize..300), 1..20)) {
        let store = store(200_000);
        for (tenant, seed, length) in adds {
            let own = |text: Vec<i32>| text.into_iter().map(|token| token % 50 * 4 + tenant).collect::<Vec<_>>();
            let text = own(texts::prose(&mut texts::Random::new(seed), length));
            lookup(&store, &tenant.to_string(), &text).keep();
            for reader in 0..4 {
                // The reader says what the writer said, and is told nothing but what it said itself.
                let start = &text[..text.len() / 2];
                let draft = proposed(&mut lookup(&store, &reader.to_string(), start), 16);
                if reader != tenant {
                    let mut alone = Lookup::new(None);
                    alone.begin(&tokens(start));
                    prop_assert_eq!(draft, proposed(&mut alone, 16));
                }
            }
        }
    }

    #[test]
    fn the_budget_is_never_exceeded(budget in 0_usize..120_000, adds in prop::collection::vec((0_u8..3, 0_u64..50, 0_usize..3000), 1..20)) {
        let store = store(budget);
        for (tenant, seed, length) in adds {
            let text = tokens(&texts::prose(&mut texts::Random::new(seed), length));
            store.shelf(&tenant.to_string()).add(&text);
            let stats = store.stats();
            prop_assert!(stats.bytes <= budget);
            let segments = store.writer().all().flat_map(|(_, segments)| segments.to_vec()).collect::<Vec<_>>();
            prop_assert_eq!(stats.bytes, segments.iter().map(|segment| segment.bytes()).sum::<usize>());
        }
    }

    #[test]
    fn a_file_gives_back_what_was_saved(adds in prop::collection::vec((0_u8..3, 0_u64..50, 0_usize..600), 0..8)) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let old = store(1 << 20);
        for (tenant, seed, length) in adds {
            old.shelf(&tenant.to_string()).add(&tokens(&texts::prose(&mut texts::Random::new(seed), length)));
        }
        old.save(&path, b"model").expect("a file");
        let new = Store::load(&path, b"model", StoreSettings::default().bytes(1 << 20)).expect("the file is whole");
        let texts = |store: &Store| -> Vec<Kept> {
            let parts = |segment: &Arc<Segment>| (segment.tokens().to_vec(), segment.saved());
            let shelves = store.writer();
            let full = shelves.all().filter(|(_, segments)| !segments.is_empty());
            full.map(|(tenant, segments)| Kept { tenant: tenant.to_owned(), segments: segments.iter().map(parts).collect() }).collect()
        };
        prop_assert_eq!(texts(&old), texts(&new));
        prop_assert_eq!(old.stats(), new.stats());
        prop_assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }
}

#[test]
fn every_damage_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let old = store(1 << 20);
    old.shelf("a").add(&tokens(&range(0, 60)));
    old.shelf("b").add(&tokens(&range(7, 90)));
    old.save(&path, b"model").expect("a file");
    let whole = fs::read(&path).expect("the file");
    let load = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("the file");
        Store::load(&path, b"model", StoreSettings::default())
    };
    assert!(load(&whole).is_ok());
    for place in 0..whole.len() {
        for bits in [1, 0x80, 0xff] {
            let mut broken = whole.clone();
            broken[place] ^= bits;
            assert!(load(&broken).is_err(), "byte {place}");
        }
        assert!(load(&whole[..place]).is_err(), "cut at {place}");
    }
    assert!(load(&[&whole[..], &[0]].concat()).is_err());
}

#[test]
fn the_error_says_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let settings = StoreSettings::default();
    assert!(matches!(Store::load(&path, b"model", settings), Err(StoreError::File { .. })));
    store(1 << 20).save(&path, b"model").expect("a file");
    assert!(matches!(Store::load(&path, b"other", settings), Err(StoreError::Fingerprint)));
    let mut bytes = fs::read(&path).expect("the file");
    bytes[8] = 9;
    fs::write(&path, &bytes).expect("the file");
    assert!(matches!(Store::load(&path, b"model", settings), Err(StoreError::Version { found: 9 })));
    fs::write(&path, "something else").expect("the file");
    assert!(matches!(Store::load(&path, b"model", settings), Err(StoreError::NotAStore)));
    fs::write(&path, "").expect("the file");
    assert!(matches!(Store::load(&path, b"model", settings), Err(StoreError::NotAStore)));
    let nowhere = folder.path().join("nowhere/store");
    assert!(matches!(store(1 << 20).save(nowhere, b"model"), Err(StoreError::File { .. })));
}

/// It holds what users wrote.
#[cfg(unix)]
#[test]
fn a_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    store(1 << 20).save(&path, b"model").expect("a file");
    assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
}

/// More than the budget allows now.
#[test]
fn a_file_that_is_too_large_is_taken_in_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let old = store(1 << 20);
    (0..30).for_each(|part| old.shelf(&part.to_string()).add(&tokens(&range(part * 1000, part * 1000 + 300))));
    old.save(&path, b"model").expect("a file");
    let new = Store::load(&path, b"model", StoreSettings::default().bytes(40_000)).expect("the file is whole");
    assert!((1..=40_000).contains(&new.stats().bytes));
}
