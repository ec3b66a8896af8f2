//! What works is found to work, and what is measured can be true.

use crate::pairs::PAIRS;
use crate::support::builder;
use llama_spec::probe::Outcome;

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
