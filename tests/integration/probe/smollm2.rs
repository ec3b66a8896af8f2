//! A real quantized model: the number of rows from which on its logits are others is found.

use llama_spec::spec::{Method, NgramModSettings, SpecConfig};
use llama_spec::{ContextOptions, Engine, Model};
use std::path::PathBuf;
use std::time::Duration;

fn path() -> PathBuf {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = std::env::var_os("LLAMA_SPEC_SMOLLM2").map_or_else(|| PathBuf::from(fetched), PathBuf::from);
    assert!(path.is_file(), "{} is missing: run `cargo xtask test`, which fetches it", path.display());
    path
}

fn engine(model: &Model, slots: u32, longest: u16, budget: u64) -> Engine {
    let context = ContextOptions::default().length_per_slot(768).slots(slots).threads(1);
    let table = NgramModSettings { max: longest, ..Default::default() };
    let config = SpecConfig::new([Method::NgramMod]).ngram_mod(table).draft_max(longest.into());
    let builder = Engine::builder(model).context(context).speculation(config);
    builder.probe_budget(Duration::from_secs(budget)).build().unwrap()
}

#[test]
fn rows_are_exact_up_to_a_step() {
    let model = Model::load(path()).unwrap();
    // Enough for a busy machine. One slot has as many rows as four would otherwise.
    let engine = engine(&model, 1, 63, 30);
    let report = engine.probe().unwrap();
    println!("{report}");
    assert!(report.worked(), "{report}");
    let exact = report.exact_rows.unwrap();
    assert!((8..=64).contains(&exact), "{report}");
    assert_eq!(engine.verify_rows(), exact);
    assert!(report.time_of(8).unwrap() < report.times.plain_token.unwrap() * 8, "{report}");
}

#[test]
fn a_budget_is_kept() {
    let model = Model::load(path()).unwrap();
    for slots in [1, 4] {
        let engine = engine(&model, slots, 12, 2);
        let report = engine.probe().unwrap();
        println!("{report}");
        assert!(report.failure().is_none(), "{report}");
        // One step may end later.
        assert!(report.took < Duration::from_secs(8), "{report}");
    }
}
