//! Files of the named models, for examples and tests.

use super::named;
use std::path::PathBuf;

/// The named file (see [`named`]), written if it is not there yet.
///
/// # Panics
/// If there is no such name, or the file cannot be written: a test cannot go on without it.
pub fn file(name: &str) -> PathBuf {
    let known = named().into_iter().find(|model| model.name == name);
    let model = known.unwrap_or_else(|| panic!("the zoo has no model named {name}"));
    model.model().cached().unwrap_or_else(|why| panic!("cannot write the zoo model {name}: {why}"))
}
