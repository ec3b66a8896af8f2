//! Models whose logits are no numbers.

use super::support::{Kind, PLAIN, SIMPLE, Table};
use crate::error::Error;
use crate::model::Model;
use crate::runner::Faults;
use llama_spec_tests::zoo::Llama;

/// The same model with weights that are no numbers.
fn broken(model: &Llama, label: &str) -> Model {
    Model::load(model.clone().with_peak(f32::NAN).labelled(label).cached().unwrap()).unwrap()
}

fn ask_all(table: &mut Table, kind: Kind) {
    for text in ["The quick brown fox", "abc", "Another text"] {
        table.ask(&kind.tokens(text), 40);
    }
    table.run();
}

#[test]
fn a_draft_of_no_numbers_costs_nothing_but_its_drafts() {
    let draft = broken(&Llama::target(1).with_recall().draft(0.8), "nan-draft");
    for slots in [1, 3] {
        for probabilistic in [false, true] {
            let mut table = Table::with(SIMPLE, slots, &Faults::default(), |setup| {
                setup.draft = Some(draft.clone());
                let mut config = SIMPLE.config();
                config.draft_model.probabilistic = probabilistic;
                setup.config = Some(config);
            });
            ask_all(&mut table, SIMPLE);
            assert!(table.asked.iter().all(super::support::Asked::is_whole), "{slots} slots");
            assert_eq!(table.runner.total().accepted, 0);
        }
    }
}

#[test]
fn a_target_of_no_numbers_is_an_error_of_the_request_only() {
    let target = broken(&Llama::target(1).with_recall(), "nan-target");
    for slots in [1, 3] {
        let mut table = Table::with(SIMPLE, slots, &Faults::default(), |setup| setup.target = target.clone());
        ask_all(&mut table, SIMPLE);
        assert!(table.broken.is_none());
        for asked in &table.asked {
            assert!(matches!(asked.error(), Some(Error::NotFinite { .. })), "{:?}", asked.end);
            assert!(asked.tokens.is_empty());
        }
        // Other models are none the worse for it.
        let mut good = Table::new(PLAIN, slots, &Faults::default());
        ask_all(&mut good, PLAIN);
        assert!(good.asked.iter().all(super::support::Asked::is_whole));
    }
}
