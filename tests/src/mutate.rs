//! Changed headers of GGUF files: what a fuzzer would try, and more often in the places that matter.

use crate::rng::Rng;
use std::ops::Range;

/// A header, and where its numbers are: counts, lengths, types, values, offsets.
#[derive(Clone, Debug)]
pub struct Header {
    bytes: Vec<u8>,
    fields: Vec<Range<usize>>,
    /// Those that are values of metadata: a change of them is noticed late.
    values: Vec<Range<usize>>,
}

impl Header {
    /// The header of a right file, without the data behind it.
    ///
    /// # Panics
    /// When it is not right.
    pub fn new(bytes: Vec<u8>) -> Self {
        let mut walk = Walk { bytes: &bytes, at: 0, fields: Vec::new(), values: Vec::new() };
        walk.header();
        let Walk { fields, values, .. } = walk;
        Self { bytes, fields, values }
    }

    /// The header with one to four changes, the same ones for the same number.
    pub fn mutated(&self, number: u64) -> Vec<u8> {
        let mut rng = Rng::new(number, "mutated header", 0);
        let mut bytes = self.bytes.clone();
        let changes = [1, 1, 1, 2, 4][rng.below(5)];
        for _ in 0..changes {
            self.mutate(&mut bytes, &mut rng);
        }
        bytes
    }

    fn mutate(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        let mut below = |limit: usize| rng.below(limit.max(1));
        match below(10) {
            // A number becomes another, often one at an edge.
            kind @ 0..=4 => {
                let fields = if kind < 3 { &self.values } else { &self.fields };
                let field = fields[below(fields.len())].clone();
                let edges = [0, 1, 2, u64::MAX, i64::MAX as u64, 1 << 63, 1 << 31, 1 << 32, 4, 8, 9, 255, 65535];
                let value = match below(3) {
                    0 => edges[below(edges.len())],
                    1 => {
                        let old = field
                            .clone()
                            .rev()
                            .fold(0u64, |number, at| number << 8 | u64::from(bytes.get(at).copied().unwrap_or(0)));
                        [old.wrapping_add(1), old.wrapping_sub(1), old.wrapping_mul(2), old / 2][below(4)]
                    }
                    _ => below(usize::MAX) as u64,
                };
                for (at, byte) in field.zip(value.to_le_bytes()) {
                    if let Some(place) = bytes.get_mut(at) {
                        *place = byte;
                    }
                }
            }
            // One bit.
            5 | 6 if !bytes.is_empty() => {
                let at = below(bytes.len());
                bytes[at] ^= 1 << below(8);
            }
            // The end is missing.
            7 => {
                let length = below(bytes.len() + 1);
                bytes.truncate(length);
            }
            // A piece is missing, or there twice.
            _ => {
                let start = below(bytes.len() + 1);
                let end = (start + below(64)).min(bytes.len());
                let piece: Vec<u8> = bytes[start..end].to_vec();
                if below(2) == 0 {
                    bytes.drain(start..end);
                } else {
                    let at = below(bytes.len() + 1);
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
}

/// Walks through a right header.
struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
    fields: Vec<Range<usize>>,
    values: Vec<Range<usize>>,
}

impl Walk<'_> {
    fn header(&mut self) {
        self.at = 4;
        self.field(4);
        let (tensors, entries) = (self.field(8), self.field(8));
        for _ in 0..entries {
            self.text();
            let kind = self.field(4);
            let known = self.fields.len();
            self.value(kind);
            self.values.extend_from_slice(&self.fields[known..]);
        }
        for _ in 0..tensors {
            self.text();
            for _ in 0..self.field(4) {
                self.field(8);
            }
            self.field(4);
            self.field(8);
        }
        assert_eq!(self.at, self.bytes.len(), "bytes behind the header");
    }

    fn value(&mut self, kind: u64) {
        match kind {
            0 | 1 | 7 => drop(self.field(1)),
            2 | 3 => drop(self.field(2)),
            4..=6 => drop(self.field(4)),
            8 => self.text(),
            9 => {
                let item = self.field(4);
                let count = self.field(8);
                // A few items of a long array stand for all.
                for number in 0..count {
                    let known = self.fields.len();
                    self.value(item);
                    if number >= 8 {
                        self.fields.truncate(known);
                    }
                }
            }
            10..=12 => drop(self.field(8)),
            other => panic!("type {other}"),
        }
    }

    fn text(&mut self) {
        self.at += self.field(8) as usize;
    }

    fn field(&mut self, length: usize) -> u64 {
        let range = self.at..self.at + length;
        self.at = range.end;
        self.fields.push(range.clone());
        range.rev().fold(0, |number, at| number << 8 | u64::from(self.bytes[at]))
    }
}
