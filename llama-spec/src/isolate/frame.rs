//! Messages between a worker and who started it, in streams that others write to as well.
//!
//! A frame is a marker with the nonce of the worker, the length of what follows as four bytes, least first, and the message: JSON
//! for most jobs, whatever both sides agree on for those that go on talking. The marker cannot be in anything that was written
//! without knowing the nonce.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read};

/// The longest message, in bytes. What says it is longer is not read.
const LONGEST: usize = 64 << 20;

/// What is said about a job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// The version of this library. Jobs of another version are not understood.
    pub(super) version: String,
    /// The job. It is read after the version was looked at.
    pub(super) job: Value,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reply {
    /// That it is one.
    Begun,
    /// The answer.
    Done(Value),
    /// Why there is none.
    Failed(String),
}

/// A value that was not there before, made for one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(String);

impl Nonce {
    const DIGITS: usize = 32;

    pub(crate) fn new() -> Self {
        // The standard library seeds each of these at random.
        let random = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", random(), random()))
    }

    /// The nonce of this text if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == Self::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn marker(&self) -> Vec<u8> {
        format!("\n<llama-spec {}>", self.0).into_bytes()
    }
}

/// The message as a frame of JSON.
///
/// # Errors
/// If it cannot be written as JSON or is too long.
pub(super) fn encode(nonce: &Nonce, message: &impl Serialize) -> io::Result<Vec<u8>> {
    wrap(nonce, &serde_json::to_vec(message)?)
}

/// A frame around these bytes.
///
/// # Errors
/// If they are too many.
pub(crate) fn wrap(nonce: &Nonce, message: &[u8]) -> io::Result<Vec<u8>> {
    if message.len() > LONGEST {
        return Err(io::Error::other(format!("a message of {} bytes: at most {LONGEST} are allowed", message.len())));
    }
    let mut frame = nonce.marker();
    frame.extend_from_slice(&(message.len() as u32).to_le_bytes());
    frame.extend_from_slice(message);
    Ok(frame)
}

/// Reads a frame that the stream begins with; nothing if it begins with something else.
///
/// # Errors
/// When it cannot be read to its end.
pub(super) fn read(nonce: &Nonce, mut from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let marker = nonce.marker();
    let mut first = vec![0; marker.len()];
    from.read_exact(&mut first)?;
    if first != marker {
        return Ok(None);
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    let mut json = Vec::new();
    if length > LONGEST || from.take(length as u64).read_to_end(&mut json)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(json))
}

/// Finds frames between noise, in a time that grows with the length of the stream alone. It keeps no more than a frame and
/// what was pushed last.
#[derive(Debug)]
pub(crate) struct Scanner {
    marker: Vec<u8>,
    /// What may be part of a frame, from `start` on.
    held: Vec<u8>,
    start: usize,
}

impl Scanner {
    pub(crate) fn new(nonce: &Nonce) -> Self {
        Self { marker: nonce.marker(), held: Vec::new(), start: 0 }
    }

    /// Takes more of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // Here and not with each frame: many short ones can come at once.
        self.held.drain(..self.start);
        self.start = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The message of the next frame that is complete.
    pub(crate) fn next_frame(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.held[self.start..];
            let Some(found) = find(rest, &self.marker) else {
                // The end may be the beginning of a marker.
                self.start += rest.len().saturating_sub(self.marker.len() - 1);
                return None;
            };
            self.start += found;
            let (length, message) = rest[found + self.marker.len()..].split_first_chunk()?;
            let length = u32::from_le_bytes(*length) as usize;
            if length > LONGEST {
                self.start += self.marker.len();
                continue;
            }
            let message = message.get(..length)?.to_vec();
            self.start += self.marker.len() + 4 + length;
            return Some(message);
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noise() -> impl Strategy<Value = Vec<u8>> {
        let nonce = Nonce::new();
        let others = encode(&nonce, &"of another worker").unwrap();
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..50),
            Just(b"\n<llama-spec ".to_vec()),
            Just(others),
            Just(vec![b'\n'; 60]),
        ]
    }

    proptest! {
        /// Messages come out whole and in order, whatever is written between them and however the stream is cut.
        #[test]
        fn frames_are_found(
            parts in proptest::collection::vec((noise(), ".{0,40}"), 0..8),
            end in noise(),
            cut in 1usize..40,
        ) {
            let nonce = Nonce::new();
            let mut stream = Vec::new();
            for (noise, message) in &parts {
                stream.extend_from_slice(noise);
                stream.extend(encode(&nonce, message).unwrap());
            }
            stream.extend(end);
            let (mut scanner, mut found) = (Scanner::new(&nonce), Vec::new());
            for piece in stream.chunks(cut) {
                scanner.push(piece);
                while let Some(json) = scanner.next_frame() {
                    found.push(serde_json::from_slice::<String>(&json).unwrap());
                }
            }
            prop_assert_eq!(found, parts.into_iter().map(|(_, message)| message).collect::<Vec<_>>());
            scanner.push(&[]);
            prop_assert!(scanner.held.len() < scanner.marker.len());
        }
    }

    #[test]
    fn nonces_differ_and_are_read_back() {
        let (first, second) = (Nonce::new(), Nonce::new());
        assert_ne!(first, second);
        assert_eq!(Nonce::parse(first.as_str()), Some(first));
        assert_eq!((Nonce::parse(""), Nonce::parse(&"g".repeat(32)), Nonce::parse("1")), (None, None, None));
    }

    #[test]
    fn a_frame_is_read_from_the_beginning_only() {
        let nonce = Nonce::new();
        let frame = encode(&nonce, &7).unwrap();
        assert_eq!(read(&nonce, frame.as_slice()).unwrap().as_deref(), Some(b"7".as_slice()));
        let others = encode(&Nonce::new(), &7).unwrap();
        assert_eq!(read(&nonce, others.as_slice()).unwrap(), None);
        for length in 0..frame.len() {
            assert!(read(&nonce, &frame[..length]).is_err(), "{length}");
        }
    }

    /// Nothing is moved or searched again for each of many frames in one piece, or for each piece of one frame: with that, this
    /// would take hours.
    #[test]
    fn long_streams_are_read() {
        let nonce = Nonce::new();
        let mut scanner = Scanner::new(&nonce);
        let short = wrap(&nonce, b"!").unwrap();
        scanner.push(&short.repeat(400_000));
        assert_eq!((0..400_000).filter(|_| scanner.next_frame().as_deref() == Some(b"!")).count(), 400_000);
        assert_eq!(scanner.next_frame(), None);
        let long = wrap(&nonce, &vec![b'\n'; 32 << 20]).unwrap();
        let mut found = Vec::new();
        for piece in long.chunks(64) {
            scanner.push(piece);
            found.extend(scanner.next_frame());
        }
        assert!(found.len() == 1 && found[0].len() == 32 << 20);
        assert!(wrap(&nonce, &vec![0; LONGEST + 1]).is_err());
    }

    #[test]
    fn an_impossible_length_is_noise() {
        let nonce = Nonce::new();
        let mut scanner = Scanner::new(&nonce);
        scanner.push(&nonce.marker());
        scanner.push(&[0xff; 4]);
        scanner.push(&encode(&nonce, &1).unwrap());
        assert_eq!(scanner.next_frame().as_deref(), Some(b"1".as_slice()));
    }
}
