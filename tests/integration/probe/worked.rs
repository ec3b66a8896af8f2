//! What works is found to work, and what is measured can be true.

use crate::pairs::{Loaded, PAIRS, Pair};
use llama_spec::engine::EngineBuilder;
use llama_spec::probe::Outcome;
use llama_spec::{ContextOptions, Engine};
use std::time::Duration;

fn context(slots: u32) -> ContextOptions {
    ContextOptions::default().length_per_slot(256).slots(slots).batch(128).micro_batch(64).threads(1)
}

fn builder(pair: Pair, slots: u32, length: u32) -> EngineBuilder {
    let loaded = Loaded::new(pair);
    let builder = Engine::builder(loaded.target()).context(context(slots)).speculation(loaded.config(length));
    // Time is no question here.
    let builder = builder.probe_budget(Duration::from_secs(60));
    loaded.draft().into_iter().fold(builder, |builder, draft| builder.draft(draft))
}

#[test]
fn every_pair_works() {
    for pair in PAIRS {
        for slots in [1, 3] {
            let engine = builder(*pair, slots, 4).build().unwrap_or_else(|error| panic!("{pair:?}: {error}"));
            let report = engine.probe().unwrap();
            println!("{pair:?}, {slots} slots\n{report}");
            assert_eq!(report.outcome, Outcome::Worked, "{pair:?}");
            assert_eq!(report.skipped, Vec::<String>::new(), "{pair:?}");
            assert!(report.rejected > 0 && report.prompt > 64, "{pair:?}: {report}");
            assert!(report.compared >= 16 * 3 * u64::from(slots), "{pair:?}: {report}");
            assert!(report.exact_rows.is_some_and(|rows| rows >= 4), "{pair:?}: {report}");
        }
    }
}
