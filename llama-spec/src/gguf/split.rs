//! The names of the files of a split model.

use std::path::{Path, PathBuf};

/// The paths of all parts, given the path of part `number` (from 0) of `count`; `None` when its name has not the form
/// `NAME-00001-of-00003.gguf`.
pub(crate) fn siblings(path: &Path, number: u16, count: u16) -> Option<Vec<PathBuf>> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(&ending(number, count)).filter(|stem| !stem.is_empty())?;
    Some((0..count).map(|number| path.with_file_name(format!("{stem}{}", ending(number, count)))).collect())
}

fn ending(number: u16, count: u16) -> String {
    format!("-{:05}-of-{count:05}.gguf", u32::from(number) + 1)
}
