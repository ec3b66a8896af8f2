//! Messages between a worker and who started it, in streams that others write to as well.
//!
//! A frame is a marker with the nonce of the worker, the length of what follows as four bytes, least first, and JSON. The
//! marker cannot be in anything that was written without knowing the nonce.

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
pub(super) struct Nonce(String);

impl Nonce {
    const DIGITS: usize = 32;

    pub(super) fn new() -> Self {
        // The standard library seeds each of these at random.
        let random = || RandomState::new().build_hasher().finish();
        Self(format!("{:016x}{:016x}", random(), random()))
    }

    /// The nonce of this text if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == Self::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn marker(&self) -> Vec<u8> {
        format!("\n<llama-spec {}>", self.0).into_bytes()
    }
}

/// The message as a frame.
///
/// # Errors
/// If it cannot be written as JSON or is too long.
pub(super) fn encode(nonce: &Nonce, message: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    if json.len() > LONGEST {
        return Err(io::Error::other(format!("a message of {} bytes: at most {LONGEST} are allowed", json.len())));
    }
    let mut frame = nonce.marker();
    frame.extend_from_slice(&(json.len() as u32).to_le_bytes());
    frame.extend_from_slice(&json);
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

/// Finds frames between noise. It keeps no more than a frame.
#[derive(Debug)]
pub(super) struct Scanner {
    marker: Vec<u8>,
    /// What may be part of a frame.
    held: Vec<u8>,
}

impl Scanner {
    pub(super) fn new(nonce: &Nonce) -> Self {
        Self { marker: nonce.marker(), held: Vec::new() }
    }

    /// Takes more of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The JSON of the next frame that is complete.
    pub(super) fn next_frame(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(start) = find(&self.held, &self.marker) else {
                // The end may be the beginning of a marker.
                let noise = self.held.len().saturating_sub(self.marker.len() - 1);
                self.held.drain(..noise);
                return None;
            };
            self.held.drain(..start);
            let (length, json) = self.held[self.marker.len()..].split_first_chunk()?;
            let length = u32::from_le_bytes(*length) as usize;
            if length > LONGEST {
                self.held.drain(..self.marker.len());
                continue;
            }
            let json = json.get(..length)?.to_vec();
            self.held.drain(..self.marker.len() + 4 + length);
            return Some(json);
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
