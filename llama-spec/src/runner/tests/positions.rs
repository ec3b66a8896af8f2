//! Memories of target and draft that end at different positions without anybody having said so.

use super::support::{
    ASSISTANT, CHAIN, CHAINED, DFLASH, DSPARK, EAGLE3, HYBRID, Injected, Kind, MTP, RECURRENT, SIMPLE, Table, When,
};
use crate::runner::{Call, Fault, Faults};
use std::time::Instant;

const ALL: [Kind; 10] = [SIMPLE, MTP, CHAINED, EAGLE3, DFLASH, DSPARK, ASSISTANT, CHAIN, RECURRENT, HYBRID];

/// Where a draft's memory ends is known for every kind of drafter, so nothing that works is taken for a failure.
#[test]
fn what_is_in_step_is_not_complained_of() {
    for kind in ALL {
        let mut table = Table::new(kind, 3, &Faults::default());
        for text in ["The quick brown fox", "abc", "The quick brown fox jumps over the lazy dog", "x"] {
            table.ask(&kind.tokens(text), 50);
        }
        table.run();
        assert!(table.asked.iter().all(super::support::Asked::is_whole), "{}", kind.name);
        let total = table.runner.total();
        assert_eq!(total.failures, 0, "{}: {:?}", kind.name, table.runner.speculation());
        assert!(total.drafted > 0, "{}", kind.name);
    }
}

/// A draft that keeps rejected tokens would guess from another text, or not at all, and never say so.
#[test]
fn tokens_that_stay_in_the_drafts_memory_are_noticed() {
    // An EAGLE-3 draft takes the rejected ones out by itself.
    let kinds = [SIMPLE, DFLASH, MTP, CHAINED].map(|kind| (kind, Call::LeaveRejected));
    let drafted = [SIMPLE, EAGLE3, MTP, RECURRENT].map(|kind| (kind, Call::LeaveDrafted));
    for (kind, call) in kinds.into_iter().chain(drafted) {
        for slots in [1, 3] {
            let injected = Injected::new(call, Fault::Fails, When::Once);
            let mut table = Table::new(kind, slots, &injected.faults);
            for text in ["The quick brown fox", "abc", "Another text"] {
                table.ask(&kind.tokens(text), 80);
            }
            table.run();
            let total = table.runner.total();
            assert_eq!(injected.hits(), 1, "{}: {call:?} {total:?}", kind.name);
            assert!(table.asked.iter().all(super::support::Asked::is_whole), "{}", kind.name);
            assert!(total.failures > 0, "{}, {slots} slots: {call:?} was not noticed", kind.name);
            assert!(table.runner.speculation().reason.is_none(), "{}: once is no reason to rest", kind.name);
        }
    }
}

#[test]
fn the_reason_names_the_positions() {
    let injected = Injected::new(Call::LeaveRejected, Fault::Fails, When::Always);
    let mut table = Table::new(SIMPLE, 1, &injected.faults);
    table.ask(&SIMPLE.tokens("The quick brown fox"), 200);
    table.run();
    assert!(table.asked[0].is_whole());
    let reason = table.runner.speculation().reason.unwrap_or_default();
    assert!(reason.contains("draft-simple failed at keeping in step: its memory ends before position"), "{reason}");
}

/// What the comparison costs, to be looked at.
#[test]
#[ignore = "measures"]
fn cost_of_the_comparison() {
    for kind in ALL {
        let mut table = Table::new(kind, 3, &Faults::default());
        table.ask(&kind.tokens("The quick brown fox"), 200);
        while table.asked[0].tokens.len() < 100 {
            table.step();
        }
        let start = Instant::now();
        for _ in 0..10_000 {
            table.runner.compare_positions();
        }
        println!("{}: {:?} for each slot and round", kind.name, start.elapsed() / 10_000);
    }
}
