//! What every description of a file has in common, whatever the file is.

use std::{fmt, io, path::Path, path::PathBuf};

use super::cache::cached;
use crate::gguf::Gguf;

/// The description of one GGUF file: equal descriptions give equal files, byte for byte.
///
/// `Debug` must tell any two descriptions apart: it is the key of the [cache](super::directory).
pub trait Described: fmt::Debug {
    /// A word that begins the names of cached files.
    fn label(&self) -> &str;

    /// The file, ready to be written.
    fn gguf(&self) -> Gguf<'_>;

    /// Writes the file to `path`.
    fn write(&self, path: &Path) -> io::Result<()> {
        self.gguf().write(path)
    }

    /// The path of the file in the [cache](super::directory), written if it is not there.
    fn cached(&self) -> io::Result<PathBuf> {
        cached(self.label(), &format!("{self:?}"), ".gguf", |path| self.write(path))
    }
}
