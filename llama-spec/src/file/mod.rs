//! Model files before they are loaded: what they are, and whether llama.cpp can load them.
//!
//! [`ModelFile::open`] reads the header of a GGUF file, never the weights: a file of 10 GB is described in milliseconds.

mod description;
mod kind;
mod tokenizer;

pub use crate::gguf::{Array, Metadata, TensorInfo, TensorType, Value};
pub use description::{Defect, Description, DraftVocabulary, LayerKind, Outcome};
pub use kind::Kind;
pub use tokenizer::{Tokenizer, TokenizerSummary, VocabularyType};

use crate::error::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The header of a model file. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct ModelFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    description: Description,
    metadata: Metadata,
    tokenizer: Option<Tokenizer>,
}

impl ModelFile {
    /// Reads the header of `path`, and of the other parts if it is the first part of a split model.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) when a file cannot be read, [`Error::NotGguf`](crate::Error::NotGguf) when it is
    /// something else, [`Error::BrokenFile`](crate::Error::BrokenFile) when its header is wrong or data is missing. A file
    /// that llama.cpp would not load for what its header says is opened, and the reasons are in
    /// [`Description::defects`].
    pub fn open(_path: impl AsRef<Path>) -> Result<Self> {
        todo!()
    }

    /// Reads the headers of the parts of a split model, whatever the names of the files.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_parts(_parts: &[impl AsRef<Path>]) -> Result<Self> {
        todo!()
    }

    /// Reads the header from the first bytes of a file of `file_bytes` bytes, for instance from those that a server gave.
    /// `path` is what messages call it. Split models cannot be read in this way.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_header(_path: impl Into<PathBuf>, _header: &[u8], _file_bytes: u64) -> Result<Self> {
        todo!()
    }

    /// The file, or the first part of a split model.
    pub fn path(&self) -> &Path {
        &self.0.description.path
    }

    /// The parts in order; one for a file that is not split.
    pub fn parts(&self) -> &[PathBuf] {
        &self.0.description.parts
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.0.description.kind
    }

    /// The facts.
    pub fn description(&self) -> &Description {
        &self.0.description
    }

    /// The metadata; that of the first part in a split model.
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The tensor with this name, in whichever part it is.
    pub fn tensor(&self, _name: &str) -> Option<TensorInfo<'_>> {
        todo!()
    }

    /// All tensors, part by part in the order of the files.
    pub fn tensors(&self) -> impl Iterator<Item = TensorInfo<'_>> {
        [].into_iter()
    }

    /// The tokenizer, if there is one that llama.cpp can read.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        self.0.tokenizer.as_ref()
    }

    /// Whether both are the same file on disk, by whatever paths they were opened.
    pub fn is_same_file(&self, _other: &Self) -> bool {
        todo!()
    }
}
