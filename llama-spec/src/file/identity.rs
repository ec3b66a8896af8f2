//! Telling whether a file is still the one it was.

use super::ModelFile;
use crate::checksum::{FIRST, checksum};
use crate::error::{Error, Result};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// So much behind the header of a file tells models apart that differ in their weights only.
const WEIGHTS: u64 = 64 << 10;

impl ModelFile {
    /// The sizes of its parts in bytes, and a sum over the beginning of each: its header and some of the weights.
    ///
    /// # Errors
    /// [`Error::File`] when a part cannot be read any more.
    pub(crate) fn content(&self) -> Result<(Vec<u64>, u64)> {
        let (parts, sum) = self.beginnings()?;
        Ok((parts.iter().map(Metadata::len).collect(), sum))
    }

    /// A sum over [`ModelFile::content`] and the times of its last change.
    ///
    /// # Errors
    /// As [`ModelFile::content`].
    pub(crate) fn identity(&self) -> Result<u64> {
        let (parts, sum) = self.beginnings()?;
        Ok(parts.iter().fold(sum, |sum, part| {
            let changed = part.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let changed = changed.map_or(0, |since| since.as_nanos());
            checksum(checksum(sum, &part.len().to_le_bytes()), &changed.to_le_bytes())
        }))
    }

    fn beginnings(&self) -> Result<(Vec<Metadata>, u64)> {
        let (mut parts, mut sum) = (Vec::new(), FIRST);
        for path in self.parts() {
            let read = beginning(path, self.header_bytes() + WEIGHTS);
            let (part, bytes) = read.map_err(|source| Error::File { path: path.clone(), source })?;
            parts.push(part);
            sum = checksum(sum, &bytes);
        }
        Ok((parts, sum))
    }
}

fn beginning(path: &Path, length: u64) -> io::Result<(Metadata, Vec<u8>)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok((metadata, bytes))
}
