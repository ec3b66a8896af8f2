//! Model files before they are loaded: what they are, and whether llama.cpp can load them.
//!
//! [`ModelFile::open`] reads the header of a GGUF file, never the weights: a file of 10 GB is described in milliseconds.

mod classify;
mod describe;
mod description;
mod facts;
mod hyper;
mod identity;
mod kind;
mod layers;
mod open;
mod quantization;
mod shapes;
mod size;
mod tokenizer;
mod vocabulary;

pub use crate::gguf::{Array, ItemType, Metadata, TensorInfo, TensorType, Value};
pub use description::{Defect, Description, DraftVocabulary, LayerKind, Outcome};
pub use kind::Kind;
pub use tokenizer::{Tokenizer, TokenizerSummary, VocabularyType};

use crate::error::{Error, Result};
use crate::gguf::Header;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The header of a model file. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct ModelFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    description: Description,
    /// One for each part.
    headers: Vec<Arc<Header>>,
    metadata: Metadata,
    tokenizer: Option<Tokenizer>,
}

impl ModelFile {
    /// Reads the header of `path`, and of the other parts if it is the first part of a split model.
    ///
    /// # Errors
    /// [`Error::File`] when a file cannot be read, [`Error::NotGguf`] when it is
    /// something else, [`Error::BrokenFile`] when its header is wrong or data is missing. A file
    /// that llama.cpp would not load for what its header says is opened, and the reasons are in
    /// [`Description::defects`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        open::by_path(path.as_ref())
    }

    /// Reads the headers of the parts of a split model, whatever the names of the files.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_parts(parts: &[impl AsRef<Path>]) -> Result<Self> {
        open::by_parts(parts.iter().map(|part| part.as_ref().to_owned()).collect())
    }

    /// Reads the header from the first bytes of a file of `file_bytes` bytes, for instance from those that a server gave.
    /// `path` is what messages call it. Split models cannot be read in this way.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_header(path: impl Into<PathBuf>, header: &[u8], file_bytes: u64) -> Result<Self> {
        open::by_header(path.into(), header, file_bytes)
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

    /// That llama.cpp loads it as a model, as far as the header tells.
    ///
    /// # Errors
    /// [`Error::NotLoadable`] with what it is instead, or what is wrong with it.
    pub fn require_loadable(&self) -> Result<()> {
        let description = self.description();
        match description.loads() {
            true => Ok(()),
            false => Err(self.not_loadable(description.defects.clone())),
        }
    }

    pub(crate) fn not_loadable(&self, defects: Vec<Defect>) -> Error {
        Error::NotLoadable { path: self.path().to_owned(), kind: self.kind(), defects }
    }

    /// The metadata; that of the first part in a split model.
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The tensor with this name, in whichever part it is.
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        self.0.headers.iter().enumerate().find_map(|(part, header)| header.tensor(name, part))
    }

    /// All tensors, part by part in the order of the files.
    pub fn tensors(&self) -> impl Iterator<Item = TensorInfo<'_>> {
        self.0.headers.iter().enumerate().flat_map(|(part, header)| header.tensors(part))
    }

    /// Bytes of the headers of all parts.
    pub fn header_bytes(&self) -> u64 {
        self.0.headers.iter().map(|header| header.header_bytes() as u64).sum()
    }

    /// The tokenizer, if there is one that llama.cpp can read.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        self.0.tokenizer.as_ref()
    }

    /// Whether any of its weights are stored in blocks that share a scale. Such weights are computed by kernels that change
    /// with the number of rows.
    pub fn is_quantized(&self) -> bool {
        self.tensors().any(|tensor| tensor.kind.is_quantized())
    }

    /// Whether both are the same file on disk, by whatever paths they were opened.
    pub fn is_same_file(&self, other: &Self) -> bool {
        same_file(self.path(), other.path())
    }

    fn new(description: Description, headers: Vec<Arc<Header>>, tokenizer: Option<Tokenizer>) -> Self {
        let metadata = Metadata::new(headers[0].clone());
        Self(Arc::new(Inner { description, headers, metadata, tokenizer }))
    }
}

/// The same node of the file system, or the same path after all links.
fn same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests;
