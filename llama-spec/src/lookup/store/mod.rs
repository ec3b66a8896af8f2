//! Texts that are kept over requests.

mod file;
mod segment;
mod shelf;
mod writer;

pub use file::StoreError;
pub use shelf::Shelf;

pub(super) use segment::Segment;

use crate::token::Token;
use serde::{Deserialize, Serialize};
use shelf::Shared;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use writer::Writer;

/// The settings of a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreSettings {
    /// Bytes that all texts and their indexes may take. Handles that are in use keep what was dropped meanwhile until they are
    /// asked the next time.
    pub bytes: usize,
}

impl Default for StoreSettings {
    /// 64 MiB, enough for some three million tokens.
    fn default() -> Self {
        Self { bytes: 64 << 20 }
    }
}

impl StoreSettings {
    /// With so many bytes.
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes }
    }
}

/// What a [`Store`] holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreStats {
    /// Bytes of all texts and their indexes.
    pub bytes: usize,
    /// Tokens of all texts.
    pub tokens: usize,
    /// Parts in which they are kept and dropped.
    pub segments: usize,
    /// Tenants that have texts.
    pub tenants: usize,
    /// Tokens that were right because of the store. Old ones count less and less.
    pub saved: u64,
}

/// Texts of earlier requests, from which the texts of later ones are guessed. One can be shared by several engines with the
/// same vocabulary; clones are handles to the same store.
///
/// Each tenant has a [shelf](Store::shelf) of its own, and nothing of one is ever seen by another, not even in a guess.
#[derive(Clone, Debug)]
pub struct Store(Arc<Mutex<Writer>>);

impl Store {
    /// An empty one.
    pub fn new(settings: StoreSettings) -> Self {
        Self(Arc::new(Mutex::new(Writer::new(settings))))
    }

    /// The texts of one tenant. Any name will do; those with the same name share their texts.
    pub fn shelf(&self, tenant: &str) -> Shelf {
        Shelf::new(self.clone(), tenant, self.writer().shelf(tenant))
    }

    /// What it holds now.
    pub fn stats(&self) -> StoreStats {
        self.writer().stats()
    }

    /// Writes all texts to a file, which is replaced at once or not at all. `fingerprint` says what the numbers of the tokens
    /// mean: that of the [vocabulary](crate::file::Tokenizer::fingerprint), or of the model.
    ///
    /// # Errors
    /// [`StoreError::File`] when it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>, fingerprint: &[u8]) -> Result<(), StoreError> {
        let bytes = file::encode(self.writer().all(), fingerprint);
        file::write(path.as_ref(), &bytes)
    }

    /// From a file written by [`Store::save`]. What goes beyond the budget is dropped.
    ///
    /// Whoever can do without what was kept begins anew: `Store::load(..).unwrap_or_else(|_| Store::new(settings))`.
    ///
    /// # Errors
    /// [`StoreError`], which says whether the file could not be read, is something else, of another version or fingerprint, or
    /// damaged.
    pub fn load(path: impl AsRef<Path>, fingerprint: &[u8], settings: StoreSettings) -> Result<Self, StoreError> {
        let bytes = file::read(path.as_ref())?;
        let mut writer = Writer::new(settings);
        for shelf in file::decode(&bytes, fingerprint)? {
            let shared = writer.shelf(&shelf.tenant);
            for (tokens, saved) in shelf.segments {
                writer.restore(&shared, &tokens, saved);
            }
        }
        Ok(Self(Arc::new(Mutex::new(writer))))
    }

    fn add(&self, shelf: &Arc<Shared>, text: &[Token]) {
        self.writer().add(shelf, text);
    }

    /// What a panic left behind is whole: lists are replaced, never changed.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
