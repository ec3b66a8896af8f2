//! What is done, event by event.

use super::*;
use crate::options::KvType;
use crate::supervise::State;
use crate::supervise::policy::{Policy, Recovery};
use Method::{DraftMtp, DraftSimple, NgramMod};
use std::time::{Duration, Instant};

/// When, in seconds from the start; what happens; what is done, in short.
type Step = (u64, Event, &'static [&'static str]);

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Runs through all steps. How it is in the end, and what was recorded.
fn run(name: &str, steps: Vec<Step>) -> (Recovery, Instant, Vec<String>) {
    let mut recovery = Recovery::new(Policy::default());
    let (start, mut now, mut records) = (Instant::now(), Instant::now(), Vec::new());
    for (index, (seconds, event, expected)) in steps.into_iter().enumerate() {
        now = start + Duration::from_secs(seconds);
        let told = format!("{event:?}");
        let actions = recovery.handle(event, now);
        assert_eq!(done(&actions), expected, "{name}, step {index} at {seconds} s: {told}");
        records.extend(actions.into_iter().filter_map(|action| match action {
            Action::Record(what) => Some(what),
            _ => None,
        }));
    }
    (recovery, now, records)
}

fn set_draft(draft: Option<&str>) -> Event {
    Event::SetDraft { draft: draft.map(Into::into), speculation: None }
}

#[test]
fn the_table() {
    let auto = load(None);
    let simple = load(Some(&[DraftSimple]));
    let chain = load(Some(&[NgramMod, DraftSimple]));
    let lookup = load(Some(&[NgramMod]));
    let plain = load(Some(&[]));
    let heads = Load { draft: None, ..load(None) };
    let mut quantized = chain.clone();
    quantized.context.kv_type_v = KvType::Q8_0;
    let both = [NgramMod, DraftSimple];

    let table: Vec<(&str, Vec<Step>)> = vec![
        (
            "what cannot be loaded gives way to what served, in the worker that refused it",
            vec![
                (0, asked(&lookup), &["start 1: ngram-mod"]),
                (1, loaded(1, &[NgramMod]), &["serve 1"]),
                (9, asked(&plain), &["end 1"]),
                (10, gone(1), &["start 2: plain"]),
                (11, refused(2, RefusalKind::File), &["reject Some(File)", "load 2: ngram-mod"]),
                (12, loaded(2, &[NgramMod]), &["serve 2"]),
            ],
        ),
        (
            "also when several were asked for meanwhile, and with less tried first where that could help",
            vec![
                (0, asked(&lookup), &["start 1: ngram-mod"]),
                (1, loaded(1, &[NgramMod]), &["serve 1"]),
                (9, asked(&auto), &["end 1"]),
                (10, gone(1), &["start 2: auto +draft"]),
                (11, asked(&plain), &["kill 2"]),
                (12, gone(2), &["start 3: plain"]),
                (13, refused(3, RefusalKind::Trial), &["end 3"]),
                (14, gone(3), &["start 4: no-flash plain"]),
                (15, gone(4), &["reject None", "start 5: ngram-mod"]),
                (16, loaded(5, &[NgramMod]), &["serve 5"]),
            ],
        ),
        (
            "what was unloaded can be loaded again",
            vec![
                (0, asked(&lookup), &["start 1: ngram-mod"]),
                (1, loaded(1, &[NgramMod]), &["serve 1"]),
                (2, Event::Unload, &["end 1"]),
                (3, gone(1), &[]),
                (4, Event::Reload, &["start 2: ngram-mod"]),
                (5, refused(2, RefusalKind::File), &["end 2", "give up Some(File)"]),
            ],
        ),
        (
            "a chain keeps what needs no model",
            vec![
                (0, asked(&chain), &["start 1: ngram-mod,draft-simple +draft"]),
                (1, loaded(1, &both), &["serve 1"]),
                (9, gone(1), &["start 2: ngram-mod"]),
                (10, loaded(2, &[NgramMod]), &["serve 2"]),
            ],
        ),
        (
            "a draft that was chosen for its file is taken away like any other",
            vec![
                (0, asked(&auto), &["start 1: auto +draft"]),
                (1, loaded(1, &[DraftMtp]), &["serve 1"]),
                (9, gone(1), &["start 2: plain"]),
            ],
        ),
        (
            "so are heads of the target that nobody asked for",
            vec![
                (0, asked(&heads), &["start 1: auto"]),
                (1, loaded(1, &[DraftMtp]), &["serve 1"]),
                (9, gone(1), &["start 2: plain"]),
            ],
        ),
        (
            "a model that was asked for and is not active is not to blame",
            vec![
                (0, asked(&chain), &["start 1: ngram-mod,draft-simple +draft"]),
                (1, loaded(1, &[NgramMod]), &["serve 1"]),
                (9, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
            ],
        ),
        (
            "lookup is not to blame either",
            vec![
                (0, asked(&lookup), &["start 1: ngram-mod"]),
                (1, loaded(1, &[NgramMod]), &["serve 1"]),
                (9, gone(1), &["start 2: ngram-mod"]),
            ],
        ),
        (
            "pauses grow until it is given up, and the user can begin anew",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, loaded(1, &[]), &["serve 1"]),
                (10, gone(1), &["start 2: plain"]),
                (10, loaded(2, &[]), &["serve 2"]),
                (20, gone(2), &[]),
                (20, busy(), &[]),
                (21, busy(), &["start 3: plain"]),
                (21, loaded(3, &[]), &["serve 3"]),
                (30, gone(3), &[]),
                (31, busy(), &[]),
                (32, busy(), &["start 4: plain"]),
                (32, loaded(4, &[]), &["serve 4"]),
                (40, gone(4), &[]),
                (44, busy(), &["start 5: plain"]),
                (44, gone(5), &[]),
                (51, busy(), &[]),
                (52, busy(), &["start 6: plain"]),
                (52, loaded(6, &[]), &["serve 6"]),
                (60, gone(6), &["give up None"]),
                (HOUR, tick(), &[]),
                (HOUR, Event::Reload, &["start 7: plain"]),
                (HOUR, loaded(7, &[]), &["serve 7"]),
                (HOUR + 1, gone(7), &["start 8: plain"]),
            ],
        ),
        (
            "breakdowns of long ago do not count",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, loaded(1, &[]), &["serve 1"]),
                (10, gone(1), &["start 2: plain"]),
                (10, loaded(2, &[]), &["serve 2"]),
                (10 + 10 * MINUTE, gone(2), &["start 3: plain"]),
            ],
        ),
        (
            "a worker that is stuck is killed, and the next waits for its end",
            vec![
                (0, asked(&simple), &["start 1: draft-simple +draft"]),
                (1, loaded(1, &[DraftSimple]), &["serve 1"]),
                (40, broken(1), &["kill 1"]),
                (41, tick(), &[]),
                (42, gone(1), &["start 2: plain"]),
            ],
        ),
        (
            "but not for ever",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (1, loaded(1, &[]), &["serve 1"]),
                (40, broken(1), &["kill 1"]),
                (49, tick(), &[]),
                (50, tick(), &["start 2: plain"]),
                (51, gone(1), &[]),
                (52, loaded(2, &[]), &["serve 2"]),
            ],
        ),
        (
            "less and less is tried at the start",
            vec![
                (0, asked(&tensor(chain.clone())), &["start 1: tensor ngram-mod,draft-simple +draft"]),
                (1, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
                (2, refused(2, RefusalKind::Trial), &["end 2"]),
                (3, gone(2), &["start 3: no-flash ngram-mod,draft-simple +draft"]),
                (4, broken(3), &["kill 3"]),
                (5, gone(3), &["start 4: no-flash ngram-mod"]),
                (6, refused(4, RefusalKind::Pair), &["end 4"]),
                (7, gone(4), &["start 5: no-flash plain"]),
                (8, refused(5, RefusalKind::Trial), &["end 5", "give up Some(Trial)"]),
                (9, gone(5), &[]),
            ],
        ),
        (
            "the first that works is used",
            vec![
                (0, asked(&tensor(chain.clone())), &["start 1: tensor ngram-mod,draft-simple +draft"]),
                (1, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
                (2, loaded(2, &both), &["serve 2"]),
            ],
        ),
        (
            "a quantized V cache keeps its kernels",
            vec![
                (0, asked(&quantized), &["start 1: ngram-mod,draft-simple +draft"]),
                (1, gone(1), &["start 2: ngram-mod"]),
            ],
        ),
        (
            "what does not go together is not tried with less",
            vec![
                (0, asked(&tensor(chain.clone())), &["start 1: tensor ngram-mod,draft-simple +draft"]),
                (1, refused(1, RefusalKind::Pair), &["end 1", "give up Some(Pair)"]),
                (1, asked(&chain), &[]),
                (2, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
                (3, refused(2, RefusalKind::File), &["end 2", "give up Some(File)"]),
                (3, gone(2), &[]),
                (4, Event::Reload, &["start 3: ngram-mod,draft-simple +draft"]),
                (5, refused(3, RefusalKind::Setting), &["end 3", "give up Some(Setting)"]),
            ],
        ),
        (
            "nor is anything when there is no worker to load it",
            vec![
                (0, asked(&chain), &["start 1: ngram-mod,draft-simple +draft"]),
                (1, Event::NotStarted { worker: 1, what: "no memory".into() }, &["give up None"]),
            ],
        ),
        (
            "what has served before is not made less of when it does not load at once",
            vec![
                (0, asked(&lookup), &["start 1: ngram-mod"]),
                (1, loaded(1, &[NgramMod]), &["serve 1"]),
                (2, gone(1), &["start 2: ngram-mod"]),
                (3, refused(2, RefusalKind::Trial), &["end 2"]),
                (3, gone(2), &[]),
                (4, tick(), &["start 3: ngram-mod"]),
                (5, Event::NotStarted { worker: 3, what: "no memory".into() }, &[]),
                (7, tick(), &["start 4: ngram-mod"]),
            ],
        ),
        (
            "what has not is",
            vec![
                (0, asked(&chain), &["start 1: ngram-mod,draft-simple +draft"]),
                (1, loaded(1, &both), &["serve 1"]),
                (2, gone(1), &["start 2: ngram-mod"]),
                (3, gone(2), &[]),
                (4, tick(), &["start 3: no-flash ngram-mod"]),
                (5, gone(3), &[]),
                (7, tick(), &["start 4: no-flash plain"]),
            ],
        ),
        (
            "what was asked for is tried again after a period, in the same worker, once there is nothing to do",
            vec![
                (0, asked(&simple), &["start 1: draft-simple +draft"]),
                (0, loaded(1, &[DraftSimple]), &["serve 1"]),
                (10, gone(1), &["start 2: plain"]),
                (20, loaded(2, &[]), &["serve 2"]),
                (19 + 10 * MINUTE, tick(), &[]),
                (20 + 10 * MINUTE, busy(), &[]),
                (25 + 10 * MINUTE, tick(), &["load 2: draft-simple +draft"]),
                (26 + 10 * MINUTE, loaded(2, &[DraftSimple]), &["serve 2"]),
                (HOUR, tick(), &[]),
            ],
        ),
        (
            "after twice the time in any case, and then less often",
            vec![
                (0, asked(&simple), &["start 1: draft-simple +draft"]),
                (0, loaded(1, &[DraftSimple]), &["serve 1"]),
                (0, gone(1), &["start 2: plain"]),
                (0, loaded(2, &[]), &["serve 2"]),
                (20 * MINUTE - 1, busy(), &[]),
                (20 * MINUTE, busy(), &["load 2: draft-simple +draft"]),
                (20 * MINUTE, loaded(2, &[DraftSimple]), &["serve 2"]),
                (21 * MINUTE, gone(2), &["start 3: plain"]),
                (21 * MINUTE, loaded(3, &[]), &["serve 3"]),
                (40 * MINUTE, tick(), &[]),
                (41 * MINUTE, tick(), &["load 3: draft-simple +draft"]),
                (41 * MINUTE, gone(3), &["start 4: plain"]),
                (42 * MINUTE, loaded(4, &[]), &["serve 4"]),
                (81 * MINUTE, tick(), &[]),
                (82 * MINUTE, tick(), &["load 4: draft-simple +draft"]),
                (82 * MINUTE, loaded(4, &[DraftSimple]), &["serve 4"]),
                // It lasts, so that the next breakdown is a first one.
                (122 * MINUTE, tick(), &[]),
                (3 * HOUR, gone(4), &["start 5: plain"]),
                (3 * HOUR, loaded(5, &[]), &["serve 5"]),
                (3 * HOUR + 10 * MINUTE, tick(), &["load 5: draft-simple +draft"]),
            ],
        ),
        (
            "a trial that does not load goes back to what had served, whoever refuses it",
            vec![
                (0, asked(&tensor(simple.clone())), &["start 1: tensor draft-simple +draft"]),
                (0, gone(1), &["start 2: draft-simple +draft"]),
                (0, loaded(2, &[DraftSimple]), &["serve 2"]),
                (10 * MINUTE, tick(), &["load 2: tensor draft-simple +draft"]),
                (10 * MINUTE, refused(2, RefusalKind::File), &["end 2"]),
                (10 * MINUTE, gone(2), &["start 3: draft-simple +draft"]),
            ],
        ),
        (
            "a trial that breaks down with the draft goes back to what had served, without the draft",
            vec![
                (0, asked(&tensor(chain.clone())), &["start 1: tensor ngram-mod,draft-simple +draft"]),
                (0, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
                (0, loaded(2, &both), &["serve 2"]),
                (10 * MINUTE, tick(), &["load 2: tensor ngram-mod,draft-simple +draft"]),
                (10 * MINUTE, loaded(2, &both), &["serve 2"]),
                (11 * MINUTE, gone(2), &["start 3: ngram-mod"]),
            ],
        ),
        (
            "what has lasted is not doubted any more",
            vec![
                (0, asked(&tensor(chain.clone())), &["start 1: tensor ngram-mod,draft-simple +draft"]),
                (0, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
                (0, loaded(2, &both), &["serve 2"]),
                (10 * MINUTE, tick(), &["load 2: tensor ngram-mod,draft-simple +draft"]),
                (10 * MINUTE, loaded(2, &both), &["serve 2"]),
                (20 * MINUTE, gone(2), &["start 3: tensor ngram-mod"]),
                (20 * MINUTE, loaded(3, &[NgramMod]), &["serve 3"]),
                (30 * MINUTE, tick(), &["load 3: tensor ngram-mod,draft-simple +draft"]),
            ],
        ),
        (
            "the user's word also makes periods short again",
            vec![
                (0, asked(&simple), &["start 1: draft-simple +draft"]),
                (0, loaded(1, &[DraftSimple]), &["serve 1"]),
                (0, gone(1), &["start 2: plain"]),
                (0, loaded(2, &[]), &["serve 2"]),
                (10 * MINUTE, tick(), &["load 2: draft-simple +draft"]),
                (10 * MINUTE, gone(2), &["start 3: plain"]),
                (10 * MINUTE, Event::Reload, &["kill 3"]),
                (10 * MINUTE, gone(3), &["start 4: draft-simple +draft"]),
                (10 * MINUTE, loaded(4, &[DraftSimple]), &["serve 4"]),
                (11 * MINUTE, gone(4), &["start 5: plain"]),
                (11 * MINUTE, loaded(5, &[]), &["serve 5"]),
                (21 * MINUTE, tick(), &["load 5: draft-simple +draft"]),
            ],
        ),
        (
            "a load of the user takes the place of a pause, of a load, and of what serves",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, asked(&chain), &["kill 1"]),
                (0, loaded(1, &[]), &[]),
                (1, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
                (2, loaded(2, &both), &["serve 2"]),
                (3, gone(2), &["start 3: ngram-mod"]),
                (4, loaded(3, &[NgramMod]), &["serve 3"]),
                (5, gone(3), &[]),
                (5, asked(&lookup), &["start 4: ngram-mod"]),
                (6, loaded(4, &[NgramMod]), &["serve 4"]),
                (7, asked(&simple), &["end 4"]),
                (7, asked(&plain), &[]),
                (8, gone(4), &["start 5: plain"]),
            ],
        ),
        (
            "an unload ends a recovery",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, loaded(1, &[]), &["serve 1"]),
                (1, gone(1), &["start 2: plain"]),
                (2, Event::Unload, &["kill 2"]),
                (3, loaded(2, &[]), &[]),
                (4, gone(2), &[]),
                (HOUR, tick(), &[]),
                (HOUR, set_draft(None), &[]),
            ],
        ),
        (
            "a planned end is no breakdown",
            vec![
                (0, asked(&simple), &["start 1: draft-simple +draft"]),
                (0, loaded(1, &[DraftSimple]), &["serve 1"]),
                (1, Event::Reload, &["end 1"]),
                (1, broken(1), &[]),
                (2, gone(1), &["start 2: draft-simple +draft"]),
                (3, loaded(2, &[DraftSimple]), &["serve 2"]),
                (4, Event::Unload, &["end 2"]),
                (13, tick(), &[]),
                (14, tick(), &["kill 2"]),
                (15, asked(&simple), &[]),
                (16, gone(2), &["start 3: draft-simple +draft"]),
            ],
        ),
        (
            "after the stop nothing begins",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, loaded(1, &[]), &["serve 1"]),
                (1, Event::Stop, &["end 1"]),
                (2, asked(&plain), &[]),
                (3, gone(1), &[]),
                (HOUR, tick(), &[]),
                (HOUR, Event::Reload, &[]),
            ],
        ),
        (
            "a draft comes and goes in the same worker",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, set_draft(Some("draft.gguf")), &["kill 1"]),
                (0, gone(1), &["start 2: auto +draft"]),
                (0, loaded(2, &[DraftSimple]), &["serve 2"]),
                (1, set_draft(None), &["load 2: auto"]),
                (2, loaded(2, &[NgramMod]), &["serve 2"]),
                (3, set_draft(Some("draft.gguf")), &["load 2: auto +draft"]),
                (4, refused(2, RefusalKind::Pair), &["reject Some(Pair)", "load 2: auto"]),
                (5, loaded(2, &[NgramMod]), &["serve 2"]),
                (6, set_draft(Some("draft.gguf")), &["load 2: auto +draft"]),
                (7, gone(2), &["reject None", "start 3: auto"]),
                (8, loaded(3, &[NgramMod]), &["serve 3"]),
                (9, Event::Reload, &["end 3"]),
                (9, gone(3), &["start 4: auto"]),
            ],
        ),
        (
            "what comes from workers of old does not matter",
            vec![
                (0, asked(&plain), &["start 1: plain"]),
                (0, loaded(1, &[]), &["serve 1"]),
                (1, gone(1), &["start 2: plain"]),
                (1, gone(1), &[]),
                (1, broken(1), &[]),
                (1, refused(1, RefusalKind::Trial), &[]),
                (1, loaded(1, &[DraftSimple]), &[]),
                (1, loaded(7, &[]), &[]),
                (2, loaded(2, &[]), &["serve 2"]),
                (2, loaded(2, &[DraftSimple]), &[]),
                (2, refused(2, RefusalKind::Trial), &[]),
                (3, gone(7), &[]),
            ],
        ),
    ];
    for (name, steps) in table {
        run(name, steps);
    }
}

#[test]
fn what_happened_is_told() {
    let chain = load(Some(&[NgramMod, DraftSimple]));
    let (recovery, _, records) = run(
        "told",
        vec![
            (0, asked(&tensor(chain.clone())), &["start 1: tensor ngram-mod,draft-simple +draft"]),
            (1, gone(1), &["start 2: ngram-mod,draft-simple +draft"]),
            (2, loaded(2, &[NgramMod, DraftSimple]), &["serve 2"]),
            (3, gone(2), &["start 3: ngram-mod"]),
        ],
    );
    let recovering = "the worker died (signal 6: abort) while draft-simple was active";
    assert_eq!(
        records,
        [
            "the worker died (signal 6: abort) while the models were loaded; \
             it is tried with whole layers on each GPU instead of tensor parallelism",
            "the worker died (signal 6: abort) while draft-simple was active; another is started \
             with whole layers on each GPU instead of tensor parallelism, without the methods that draft with a model",
        ]
    );
    assert_eq!(recovery.state(), State::Recovering { reason: recovering.into() });
    assert_eq!((recovery.restarts(), recovery.generation(), recovery.worker()), (2, 1, Some(3)));
    assert_eq!(recovery.requested(), Some(&tensor(chain)));
    assert_eq!(recovery.effective().map(short).as_deref(), Some("ngram-mod"));
    let reported = Speculation { requested: vec![NgramMod], effective: vec![NgramMod], ..Speculation::default() };
    assert_eq!(
        recovery.speculation(reported),
        Speculation {
            requested: vec![NgramMod, DraftSimple],
            effective: vec![NgramMod],
            own_drafters: 0,
            reason: Some(format!("runtime_error: {recovering}")),
        }
    );
}

#[test]
fn what_was_chosen_for_the_files_counts_as_asked_for() {
    let (mut recovery, now, _) = run(
        "auto",
        vec![
            (0, asked(&load(None)), &["start 1: auto +draft"]),
            (1, loaded(1, &[DraftMtp]), &["serve 1"]),
            (2, gone(1), &["start 2: plain"]),
            (3, loaded(2, &[]), &["serve 2"]),
        ],
    );
    let told = recovery.speculation(Speculation::default());
    assert_eq!((told.requested.as_slice(), told.is_active()), ([DraftMtp].as_slice(), false));
    assert_eq!(
        recovery.state(),
        State::Degraded {
            reason: "without the methods that draft with a model; \
                     runtime_error: the worker died (signal 6: abort) while draft-mtp was active"
                .into()
        }
    );
    // A draft that is rejected leaves all of that as it was.
    recovery.handle(set_draft(Some("other.gguf")), now);
    recovery.handle(refused(2, RefusalKind::Trial), now);
    recovery.handle(loaded(2, &[]), now);
    assert_eq!(recovery.speculation(Speculation::default()), told);
    assert_eq!(recovery.requested(), Some(&load(None)));
}

#[test]
fn who_gives_up_says_why() {
    let policy = Policy { crashes: 0, ..Policy::default() };
    let (mut recovery, now) = (Recovery::new(policy), Instant::now());
    recovery.handle(asked(&load(Some(&[]))), now);
    recovery.handle(loaded(1, &[]), now);
    let actions = recovery.handle(gone(1), now);
    let Some(Action::GiveUp(why)) = actions.last() else { panic!("{actions:?}") };
    assert_eq!(why.reason, "the worker died (signal 6: abort)");
    assert_eq!(why.log, ["its last line"]);
    assert_eq!(recovery.state(), State::Failed { reason: why.reason.clone() });
    assert_eq!(recovery.effective(), None);

    recovery.handle(Event::Reload, now);
    let actions = recovery.handle(refused(2, RefusalKind::Pair), now);
    let Some(Action::GiveUp(why)) = actions.last() else { panic!("{actions:?}") };
    assert_eq!(why.reason, "the models were not loaded: files and settings do not go together");
    assert_eq!(why.message.as_deref(), Some("/a/path: Pair"));
}

#[test]
fn it_says_when_it_is_due() {
    let lookup = load(Some(&[NgramMod]));
    let (mut recovery, now, _) = run(
        "due",
        vec![
            (0, asked(&lookup), &["start 1: ngram-mod"]),
            (0, loaded(1, &[NgramMod]), &["serve 1"]),
            (0, gone(1), &["start 2: ngram-mod"]),
            (0, loaded(2, &[NgramMod]), &["serve 2"]),
        ],
    );
    let seconds = |seconds| now + Duration::from_secs(seconds);
    assert_eq!(recovery.wake_at(now), None, "everything is as it was asked for");
    recovery.handle(broken(2), now);
    assert_eq!(recovery.wake_at(now), Some(seconds(10)), "the worker is to end");
    recovery.handle(gone(2), now);
    assert_eq!(recovery.wake_at(now), Some(seconds(1)), "the pause");
    recovery.handle(asked(&load(None)), now);
    recovery.handle(loaded(3, &[DraftSimple]), now);
    recovery.handle(gone(3), now);
    recovery.handle(loaded(4, &[]), now);
    assert_eq!(recovery.wake_at(now), Some(seconds(600)), "a period");
    assert_eq!(recovery.wake_at(seconds(600)), Some(seconds(1200)), "a second one, if it never rests");
    recovery.handle(Event::Stop, now);
    assert_eq!(recovery.wake_at(now), None);
}
