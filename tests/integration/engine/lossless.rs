//! The text is that of plain decoding: every target, every drafter, one slot and several, every draft length.

use crate::pairs::{Loaded, Pair};
use crate::support::{assert_same, together};
use crate::table::{PROMPTS, all, greedy};
use llama_spec::engine::Drafters;
use llama_spec::{Engine, Request};

const LENGTHS: [u32; 4] = [1, 3, 8, 16];
const TOKENS: u32 = 24;

/// More requests than slots, of all lengths; in some of them nobody drafts, or one of several methods.
fn requests(pair: Pair, lengths: &[u32]) -> Vec<Request> {
    let request = |(index, length): (usize, &u32)| {
        let request = greedy(PROMPTS[index % PROMPTS.len()], TOKENS - index as u32 % 3).draft_max(*length);
        match index {
            2 => request.drafters(Drafters::Off),
            4 => request.drafters(Drafters::Methods(vec![pair.methods[0]])),
            _ => request,
        }
    };
    lengths.iter().cycle().take(7).enumerate().map(request).collect()
}

fn check(pair: Pair, engine: &Engine, requests: Vec<Request>, expected: &[llama_spec::engine::Output]) {
    let slots = engine.slots();
    let outputs = together(engine, requests.clone());
    for ((request, got), expected) in requests.iter().zip(&outputs).zip(expected) {
        assert_same(got, expected, &(pair, slots, request));
        let longest = request.drafting.draft_max.unwrap_or(u32::MAX) as usize;
        assert!(got.stats.drafted_per_position.len() <= longest, "{pair:?}, {request:?}: {:?}", got.stats);
        assert!(request.drafting.drafters != Drafters::Off || got.stats.drafted == 0, "{pair:?}, {request:?}");
    }
    let sum =
        |count: fn(&llama_spec::spec::Stats) -> u64| outputs.iter().map(|output| count(&output.stats)).sum::<u64>();
    let (drafted, accepted) = (sum(|stats| stats.drafted), sum(|stats| stats.accepted));
    assert!(drafted > 0, "{pair:?}, {slots} slots: nobody drafted");
    let short = requests.iter().all(|request| request.drafting.draft_max.is_none_or(|most| most <= 3));
    assert!(!short || accepted * 100 >= drafted * pair.accepted, "{pair:?}, {slots} slots: {accepted} of {drafted}");
    assert_eq!(engine.speculation().reason, None, "{pair:?}, {slots} slots: speculation broke down on the way");
    let stats = engine.stats();
    assert_eq!(stats.total.accepted, accepted, "{pair:?}, {slots} slots");
}

/// Each with what plain decoding gives, computed once.
fn every(pairs: impl Iterator<Item = Pair>) {
    for pair in pairs {
        let loaded = Loaded::new(pair);
        let plain = loaded.reference();
        let mixed = requests(pair, &LENGTHS);
        let expected: Vec<_> = mixed.iter().map(|request| plain.run(request)).collect();
        for slots in [1, 4] {
            check(pair, &loaded.engine(slots, 16), mixed.clone(), &expected);
        }
        // What is cut to three tokens is not what was made for three.
        let short = requests(pair, &[3]);
        check(pair, &loaded.engine(4, 3), short, &expected);
    }
}

macro_rules! suite {
    ($($name:ident: $part:expr,)*) => {$(
        #[test]
        fn $name() {
            every(all().skip($part * 14).take(14));
        }
    )*};
}

suite! {
    first_quarter: 0,
    second_quarter: 1,
    third_quarter: 2,
    fourth_quarter: 3,
}

#[test]
fn the_quarters_are_the_whole() {
    assert!(all().count() <= 4 * 14, "{} pairs", all().count());
}
