//! Where bytes come from: a file on disk, or the first bytes of one in memory.

use std::fs::File;
use std::io;
use std::path::Path;

/// Bytes that can be read from any position.
pub(crate) trait Source {
    /// The size of the file in bytes.
    fn len(&self) -> u64;

    /// How many bytes of it can be read, from the start.
    fn available(&self) -> u64 {
        self.len()
    }

    /// Reads from `offset` on, and gives how many bytes were read: 0 where there are no more.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Reads until `into` is full or there are no more bytes, and gives how many were read.
    fn fill_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.read_at(offset + filled as u64, &mut into[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// A file on disk. It is read and not mapped: a mapped file that gets shorter kills the process.
#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    len: u64,
}

impl DiskFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if facts.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        Ok(Self { file, len: facts.len() })
    }
}

impl Source for DiskFile {
    fn len(&self) -> u64 {
        self.len
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, into, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, into, offset)
    }

    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read(into)
    }
}

/// The first bytes of a file that has `len` bytes.
#[derive(Debug)]
pub(crate) struct Prefix<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) len: u64,
}

impl Source for Prefix<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn available(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let read = into.len().min(self.bytes.len() - from);
        into[..read].copy_from_slice(&self.bytes[from..from + read]);
        Ok(read)
    }
}
