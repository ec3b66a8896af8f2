//! A store in a file.

use super::shelf::Segments;
use crate::checksum::{FIRST, checksum};
use crate::token::Token;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// What every file begins with.
const MAGIC: &[u8; 8] = b"llmlook\0";

/// The version of the form; another one is refused.
const VERSION: u32 = 1;

/// Why a store could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file could not be read or written.
    #[error("cannot use {} for a lookup store: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is something else.
    #[error("this file is no lookup store")]
    NotAStore,
    /// The file was written by another version of the library.
    #[error("the lookup store is of version {found}, and this is version {VERSION}: begin a new one")]
    Version {
        /// The version of the file.
        found: u32,
    },
    /// The bytes are not those that were written.
    #[error("the lookup store is damaged or cut short: begin a new one")]
    Damaged,
    /// It was written for another model or vocabulary.
    #[error("the lookup store was saved for another model: begin a new one, or name the file after the model")]
    Fingerprint,
}

/// The texts of one tenant, and what each segment has saved.
#[derive(Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) tenant: String,
    pub(super) segments: Vec<(Vec<Token>, u64)>,
}

/// All numbers are little-endian and each list comes after its length: the fingerprint, then the tenants, each with its name
/// and its segments, each with what it saved and its tokens; a checksum of everything at the end.
pub(super) fn encode<'a>(shelves: impl Iterator<Item = (&'a str, Segments)>, fingerprint: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    put(&mut bytes, fingerprint);
    let shelves: Vec<_> = shelves.filter(|(_, segments)| !segments.is_empty()).collect();
    bytes.extend_from_slice(&(shelves.len() as u64).to_le_bytes());
    for (tenant, segments) in shelves {
        put(&mut bytes, tenant.as_bytes());
        bytes.extend_from_slice(&(segments.len() as u64).to_le_bytes());
        for segment in segments.iter() {
            bytes.extend_from_slice(&segment.saved().to_le_bytes());
            bytes.extend_from_slice(&(segment.tokens().len() as u64).to_le_bytes());
            segment.tokens().iter().for_each(|token| bytes.extend_from_slice(&token.id().to_le_bytes()));
        }
    }
    let sum = checksum(FIRST, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

pub(super) fn decode(bytes: &[u8], fingerprint: &[u8]) -> Result<Vec<Kept>, StoreError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(StoreError::NotAStore)?;
    let (version, rest) = rest.split_first_chunk().ok_or(StoreError::Damaged)?;
    let found = u32::from_le_bytes(*version);
    if found != VERSION {
        return Err(StoreError::Version { found });
    }
    let (_, sum) = rest.split_last_chunk().ok_or(StoreError::Damaged)?;
    let summed = bytes.split_last_chunk::<8>().map(|(summed, _)| checksum(FIRST, summed));
    if summed != Some(u64::from_le_bytes(*sum)) {
        return Err(StoreError::Damaged);
    }
    let mut rest = Rest(rest);
    if rest.bytes().ok_or(StoreError::Damaged)? != fingerprint {
        return Err(StoreError::Fingerprint);
    }
    rest.shelves().ok_or(StoreError::Damaged)
}

/// What is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn shelves(&mut self) -> Option<Vec<Kept>> {
        let shelves = self.number()?;
        (0..shelves).map(|_| self.shelf()).collect()
    }

    fn shelf(&mut self) -> Option<Kept> {
        let tenant = std::str::from_utf8(self.bytes()?).ok()?.to_owned();
        let segments = self.number()?;
        let segments = (0..segments).map(|_| self.segment()).collect::<Option<_>>()?;
        Some(Kept { tenant, segments })
    }

    fn segment(&mut self) -> Option<(Vec<Token>, u64)> {
        let saved = self.number()?;
        let length = usize::try_from(self.number()?).ok()?;
        let (tokens, _) = self.take(length.checked_mul(4)?)?.as_chunks::<4>();
        Some((tokens.iter().map(|token| Token::new(i32::from_le_bytes(*token))).collect(), saved))
    }
}

fn put(bytes: &mut Vec<u8>, more: &[u8]) {
    bytes.extend_from_slice(&(more.len() as u64).to_le_bytes());
    bytes.extend_from_slice(more);
}

/// What is something else is not read to its end: it may be long.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = |source| StoreError::File { path: path.into(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    (&file).take(MAGIC.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes != MAGIC {
        return Err(StoreError::NotAStore);
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Under another name first, so that there is never half a file, whatever happens.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.unfinished", std::process::id()));
    let unfinished = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // What users wrote is in it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&unfinished)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        StoreError::File { path: path.into(), source }
    })
}
