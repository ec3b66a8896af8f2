//! Every call fails in every way: once, now and then, and from some time on. Texts are right nevertheless, or end with the error
//! that belongs to the fault.

use super::support::{
    ASSISTANT, CHAIN, CHAINED, DFLASH, DSPARK, EAGLE3, HYBRID, Injected, Kind, MIXED, MIXED_EAGLE3, MIXED_RECURRENT,
    MTP, PLAIN, RECURRENT, SIMPLE, Table, When,
};
use crate::error::{DecodeError, Error};
use crate::generate::StopReason;
use crate::runner::{Call, Fault};

const TOKENS: usize = 24;

/// Texts that share beginnings, several answers to one prompt, and one that is saved and goes on elsewhere.
fn run(kind: Kind, slots: u32, injected: &Injected) -> Table {
    let mut table = Table::new(kind, slots, &injected.faults);
    let begin = kind.tokens("The quick brown fox jumps over the lazy dog, ");
    let mut long = begin.clone();
    long.extend(kind.oracle(&begin, 40));
    table.ask(&long, TOKENS);
    table.ask_many(&kind.tokens("The quick brown fox jumps over the lazy cat"), TOKENS, 2);
    table.ask(&kind.tokens("abc"), TOKENS);
    let mut resumed = false;
    while table.step() {
        if !resumed && table.asked[0].tokens.len() >= 4 {
            resumed = true;
            match table.save_and_resume(0, TOKENS) {
                Ok(_) => {}
                Err(error) => assert!(matches!(error, Error::State { .. }), "{error}"),
            }
        }
    }
    table
}

/// The error that a text may end with when this call fails so.
fn belongs(call: Call, fault: Fault, error: &Error) -> bool {
    matches!(
        (call, fault, error),
        (Call::Verify, _, Error::Sample { .. })
            | (Call::Decode, Fault::Fails, Error::Decode(DecodeError::Refused { .. }))
            | (Call::Decode | Call::Replay, Fault::Aborted, Error::Decode(DecodeError::Aborted))
    )
}

/// How often the call failed.
fn check(kind: Kind, slots: u32, call: Call, fault: Fault, when: When) -> usize {
    let what = format!("{}, {slots} slots: {call:?} {fault:?} {when:?}", kind.name);
    let injected = Injected::new(call, fault, when);
    let table = run(kind, slots, &injected);
    let hits = injected.hits();
    let breaks = match fault {
        Fault::Fatal => call.decodes(),
        _ => matches!(call, Call::ClearSlot | Call::ClearAll),
    };
    assert_eq!(table.broken.is_some(), breaks && hits > 0, "{what}: {:?}", table.broken);
    let mut failed = 0;
    for (number, asked) in table.asked.iter().enumerate() {
        assert!(asked.is_right(), "{what}: text {number} is {:?}, not {:?}", asked.tokens, asked.expected);
        match &asked.end {
            None => assert!(table.broken.is_some(), "{what}: text {number} has no end"),
            Some(Err(error)) => {
                failed += 1;
                assert!(hits > 0 && belongs(call, fault, error), "{what}: text {number}: {error}");
            }
            Some(Ok((StopReason::ContextFull, _))) => {
                assert_eq!((call, fault), (Call::Decode, Fault::NoRoom), "{what}")
            }
            Some(Ok(_)) => assert!(asked.is_whole(), "{what}: text {number} ended early"),
        }
        let Some(stats) = asked.stats() else { continue };
        assert!(stats.accepted <= stats.drafted, "{what}: {stats:?}");
        assert_eq!(stats.generated_tokens as usize, asked.tokens.len(), "{what}");
    }
    if when == When::Once && call == Call::Verify {
        assert_eq!(failed, hits, "{what}: one row was bad, and one text ends with it");
    }
    let total = table.runner.total();
    assert!(total.accepted <= total.drafted, "{what}: {total:?}");
    let by_drafter = matches!(
        call,
        Call::Follow | Call::Followed | Call::Begin | Call::Extend | Call::Draft | Call::Drafted | Call::Accept
    );
    match by_drafter && !kind.methods.is_empty() {
        true => assert_eq!(total.failures as usize, hits, "{what}: failures that are not counted"),
        false if hits == 0 => assert_eq!(total.failures, 0, "{what}: {:?}", table.runner.speculation()),
        false if call == Call::Verify || call.decodes() => assert_eq!(total.failures, 0, "{what}: {total:?}"),
        false => {}
    }
    let off = table.runner.speculation();
    assert_eq!(off.effective.len() < kind.methods.len(), off.reason.is_some(), "{what}: {off:?}");
    if by_drafter && when == When::Always && hits > 0 {
        assert!(off.reason.is_some_and(|reason| reason.contains("made to fail by a test")), "{what}: no reason");
    }
    hits
}

fn check_all(kind: Kind, slots: &[u32], whens: &[When]) {
    for slots in slots {
        for call in Call::ALL {
            let faults: &[Fault] = match call.decodes() {
                true => &[Fault::Fails, Fault::NoRoom, Fault::Aborted, Fault::Fatal],
                false => &[Fault::Fails],
            };
            for fault in faults {
                for when in whens {
                    if check(kind, *slots, call, *fault, *when) == 0 {
                        // This call is not made with these drafters, or not so often.
                        break;
                    }
                }
            }
        }
    }
}

macro_rules! every_call {
    ($slots:expr, $whens:expr; $($name:ident: $kind:expr),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                check_all($kind, &$slots, &$whens);
            }
        )*
    };
}

every_call! {
    [1, 3], [When::Always, When::EveryThird, When::Once, When::FromThird];
    plain: PLAIN,
    draft_simple: SIMPLE,
    mtp: MTP,
    eagle3: EAGLE3,
    chain: CHAIN,
}

every_call! {
    [3], [When::Always, When::EveryThird];
    mtp_chained: CHAINED,
    dflash: DFLASH,
    dspark: DSPARK,
    assistant: ASSISTANT,
    recurrent: RECURRENT,
    hybrid: HYBRID,
    mixed: MIXED,
    mixed_eagle3: MIXED_EAGLE3,
    mixed_recurrent: MIXED_RECURRENT,
}
