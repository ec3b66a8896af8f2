//! A drafter that failed rests, the reason can be read meanwhile, and then it drafts again.

use super::support::{CHAIN, EAGLE3, Injected, Kind, MTP, RECURRENT, SIMPLE, Table, When};
use crate::engine::health::LONGEST_PAUSE;
use crate::runner::{Call, Fault};
use crate::spec::Source;

fn drafted_by_model(table: &Table, number: usize) -> u64 {
    let stats = table.asked[number].stats().unwrap();
    let by_model = |source: &Source| matches!(source, Source::Drafted(method) if !method.is_lookup());
    stats.per_source().filter(|(source, _, _)| by_model(source)).map(|(_, drafted, _)| drafted).sum()
}

fn rests_and_comes_back(kind: Kind, slots: u32, call: Call) {
    let what = format!("{}, {slots} slots: {call:?}", kind.name);
    let injected = Injected::new(call, Fault::Fails, When::Always);
    let mut table = Table::new(kind, slots, &injected.faults);
    let prompt = kind.tokens("The quick brown fox");
    table.ask(&prompt, 60);
    table.run();
    let model = *kind.methods.iter().find(|method| !method.is_lookup()).unwrap();
    let off = table.runner.speculation();
    assert_eq!(off.requested, kind.methods, "{what}");
    assert!(!off.effective.contains(&model), "{what}: {off:?}");
    assert!(off.reason.as_ref().is_some_and(|reason| reason.contains(model.name())), "{what}: {off:?}");

    // It is not asked while it is off, even if it could be.
    injected.stop();
    table.ask(&prompt, 60);
    table.run();
    assert_eq!(drafted_by_model(&table, 1), 0, "{what}");

    table.clock.put_forward(LONGEST_PAUSE);
    table.ask(&prompt, 60);
    table.ask(&kind.tokens("Another text"), 60);
    table.run();
    assert!(drafted_by_model(&table, 2) > 0, "{what}: it is not asked again");
    let on = table.runner.speculation();
    assert_eq!((on.effective.as_slice(), &on.reason), (kind.methods, &None), "{what}");
    assert!(table.asked.iter().all(super::support::Asked::is_whole), "{what}");
}

#[test]
fn a_failing_drafter_rests_and_is_tried_again() {
    for kind in [SIMPLE, MTP, EAGLE3, CHAIN, RECURRENT] {
        for slots in [1, 3] {
            for call in [Call::Follow, Call::Followed, Call::Draft, Call::Drafted] {
                rests_and_comes_back(kind, slots, call);
            }
        }
    }
}

/// A failure in the middle of a text: it goes on without drafts, and with them when the pause is over.
#[test]
fn a_drafter_comes_back_in_the_middle_of_a_text() {
    for kind in [SIMPLE, MTP, EAGLE3, RECURRENT] {
        let injected = Injected::new(Call::Draft, Fault::Fails, When::FromThird);
        let mut table = Table::new(kind, 2, &injected.faults);
        table.ask(&kind.tokens("The quick brown fox"), 150);
        table.ask(&kind.tokens("abc"), 150);
        while table.runner.speculation().reason.is_none() {
            assert!(table.step(), "{}: it was never off", kind.name);
        }
        (0..5).for_each(|_| assert!(table.step()));
        let before = table.runner.total().drafted;
        injected.stop();
        table.clock.put_forward(LONGEST_PAUSE);
        table.run();
        assert!(table.runner.total().drafted > before, "{}: it did not come back", kind.name);
        assert!(table.asked.iter().all(super::support::Asked::is_whole), "{}", kind.name);
    }
}
