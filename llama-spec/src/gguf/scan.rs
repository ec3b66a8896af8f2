//! Reads a header from front to back and checks it. Nothing is believed before the file is known to be long enough for it.

use super::limits;
use super::source::Source;
use std::fmt::Write as _;
use std::io;

/// Why a header could not be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file could not be read.
    Io(io::Error),
    /// It is no GGUF file.
    NotGguf(String),
    /// Something in it is wrong.
    Broken {
        /// Bytes from the start of the file.
        offset: u64,
        /// What stands there.
        place: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What is being read, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Start,
    /// Number, count, and where the key is once it was read.
    Entry(usize, u64, Option<(usize, usize)>),
    /// Number, count, and where the name is once it was read.
    Tensor(usize, u64, Option<(usize, usize)>),
}

/// The bytes of a header as far as they were read.
pub(super) struct Scan<'s> {
    source: &'s dyn Source,
    pub(super) bytes: Vec<u8>,
    /// Where the next thing begins.
    pub(super) at: usize,
    pub(super) place: Place,
}

/// How much is read at once, at least: most headers of models without a vocabulary fit.
const CHUNK: u64 = 64 << 10;

impl<'s> Scan<'s> {
    pub(super) fn new(source: &'s dyn Source) -> Self {
        Self { source, bytes: Vec::new(), at: 0, place: Place::Start }
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.source.len()
    }

    /// Passes over `count` bytes and gives where they begin.
    pub(super) fn take(&mut self, count: u64) -> Result<usize, Fault> {
        let start = self.at;
        let end = (start as u64).checked_add(count).filter(|&end| end <= self.file_bytes());
        let Some(end) = end else {
            let left = self.file_bytes().saturating_sub(start as u64);
            return Err(self.broken(start, format!("{count} bytes should follow and the file has {left} more")));
        };
        if end > self.bytes.len() as u64 {
            self.read_to(end)?;
        }
        self.at = end as usize;
        Ok(start)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.take(4).map(|at| u32_at(&self.bytes, at))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.take(8).map(|at| u64_at(&self.bytes, at))
    }

    /// Passes over a text of at most `limit` bytes and gives where its bytes begin and end.
    pub(super) fn text(&mut self, what: &str, limit: u64) -> Result<(usize, usize), Fault> {
        let at = self.at;
        let length = self.u64()?;
        let left = self.file_bytes() - self.at as u64;
        if length > left {
            return Err(self.broken(at, format!("{what} should have {length} bytes and the file has {left} more")));
        }
        if length > limit {
            return Err(self.broken(at, format!("{what} has {length} bytes, more than {limit}")));
        }
        self.take(length).map(|start| (start, self.at))
    }

    /// A count of things of at least `smallest` bytes each, at most `limit` of them.
    pub(super) fn count(&mut self, what: &str, smallest: u64, limit: u64) -> Result<u64, Fault> {
        let at = self.at;
        let count = self.u64()?;
        let left = self.file_bytes() - self.at as u64;
        if count.checked_mul(smallest).is_none_or(|bytes| bytes > left) {
            return Err(self.broken(at, format!("{count} {what} do not fit in the {left} bytes that follow")));
        }
        if count > limit {
            return Err(self.broken(at, format!("{count} {what} are more than {limit}")));
        }
        Ok(count)
    }

    /// How many of `count` things of at least `smallest` bytes each can follow.
    pub(super) fn room_for(&self, count: u64, smallest: u64) -> usize {
        let left = self.source.available().saturating_sub(self.at as u64);
        count.min(left / smallest) as usize
    }

    /// An error about what stands at `at`.
    pub(super) fn broken(&self, at: usize, why: impl Into<String>) -> Fault {
        Fault::Broken { offset: at as u64, place: self.place_text(), why: why.into() }
    }

    fn place_text(&self) -> String {
        let (what, name, (index, count, range)) = match self.place {
            Place::Start => return "the start of the header".to_owned(),
            Place::Entry(index, count, key) => ("metadata entry", "key", (index, count, key)),
            Place::Tensor(index, count, name) => ("tensor", "named", (index, count, name)),
        };
        let mut text = format!("{what} {} of {count}", index + 1);
        if let Some((start, end)) = range {
            let shown: String = String::from_utf8_lossy(&self.bytes[start..end]).chars().take(80).collect();
            // Writing to a string does not fail.
            let _ = write!(text, ", {name} {shown:?}");
        }
        text
    }

    /// Reads on until there are `end` bytes, which the file has.
    fn read_to(&mut self, end: u64) -> Result<(), Fault> {
        if end > limits::HEADER_BYTES {
            let why = format!("the header has more than {} bytes", limits::HEADER_BYTES);
            return Err(self.broken(self.at, why));
        }
        let (have, available) = (self.bytes.len(), self.source.available());
        if end > available {
            return Err(self.broken(self.at, format!("the header goes on behind the {available} bytes that are there")));
        }
        // A quarter more each time: few reads for large headers, and never much more memory than bytes.
        let more = (have as u64 / 4).clamp(CHUNK, 4 << 20);
        let want = end.max(have as u64 + more).min(available) as usize;
        self.bytes.reserve_exact(want - have);
        self.bytes.resize(want, 0);
        let filled = self.source.fill_at(have as u64, &mut self.bytes[have..]).map_err(Fault::Io)?;
        self.bytes.truncate(have + filled);
        if (self.bytes.len() as u64) < end {
            let why = format!("only the first {} bytes of the file could be read", self.bytes.len());
            return Err(self.broken(self.at, why));
        }
        Ok(())
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a range of N bytes is an array of N bytes")
}
