//! Tests of descriptions, on files made by hand and on the zoo's.

mod defects;
mod kinds;
mod layers;
mod made;
mod on_disk;
mod tokenizers;

use super::*;
use crate::gguf::made::Made;

/// Opens a file that is not on disk.
fn open(made: &Made) -> Result<ModelFile> {
    let (bytes, len) = made.header();
    ModelFile::from_header("made.gguf", &bytes, len)
}

fn describe(made: &Made) -> Description {
    open(made).unwrap().description().clone()
}

/// The defects of a file in short: place and outcome.
fn defects(made: &Made) -> Vec<(String, Outcome)> {
    describe(made).defects.into_iter().map(|defect| (defect.place, defect.outcome)).collect()
}
