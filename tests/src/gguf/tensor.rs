//! Tensors of a GGUF file: name, shape, and weights encoded row by row.

use std::{
    fmt,
    io::{self, Write},
};

use half::{f16, slice::HalfFloatSliceExt as _};

use super::metadata::put_string;

/// How the weights of a tensor are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, reason = "the format's own names")]
pub enum TensorType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// Blocks of 32 weights: a scale, then a signed byte each. 8.5 bits a weight.
    Q8_0,
    /// 32-bit integers, for tables of ids.
    I32,
    /// 64-bit integers, for tables of ids.
    I64,
    /// Blocks of 32 weights: a scale and a minimum, then 4 bits each. 5 bits a weight.
    Q4_1,
}

/// Weights in a block of the quantized types.
const BLOCK: usize = 32;

impl TensorType {
    /// The number of the type in the format.
    pub fn id(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_1 => 3,
            Self::Q8_0 => 8,
            Self::I32 => 26,
            Self::I64 => 27,
        }
    }

    /// The value of `general.file_type` for a model whose matrices have this type.
    pub fn file_type(self) -> u32 {
        match self {
            Self::F32 | Self::I32 | Self::I64 => 0,
            Self::F16 => 1,
            Self::Q4_1 => 3,
            Self::Q8_0 => 7,
        }
    }

    /// The bytes that a row of `length` weights takes. Quantized rows are whole blocks of 32 weights.
    pub fn row_size(self, length: u64) -> u64 {
        match self {
            Self::F32 | Self::I32 => length * 4,
            Self::I64 => length * 8,
            Self::F16 => length * 2,
            Self::Q8_0 => length / BLOCK as u64 * 34,
            Self::Q4_1 => length / BLOCK as u64 * 20,
        }
    }

    fn encode(self, row: &[f32], out: &mut Vec<u8>) {
        match self {
            Self::F32 => out.extend(row.iter().flat_map(|x| x.to_le_bytes())),
            Self::I32 => out.extend(row.iter().flat_map(|x| (*x as i32).to_le_bytes())),
            Self::I64 => out.extend(row.iter().flat_map(|x| (*x as i64).to_le_bytes())),
            Self::F16 => {
                let mut halves = [f16::ZERO; 256];
                for chunk in row.chunks(halves.len()) {
                    let halves = &mut halves[..chunk.len()];
                    halves.convert_from_f32_slice(chunk);
                    out.extend(halves.iter().flat_map(|x| x.to_le_bytes()));
                }
            }
            Self::Q8_0 => row.chunks_exact(BLOCK).for_each(|block| encode_q8_0(block, out)),
            Self::Q4_1 => row.chunks_exact(BLOCK).for_each(|block| encode_q4_1(block, out)),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A tensor of one or two dimensions and the function that makes its rows.
pub struct Tensor<'a> {
    name: String,
    /// Length of a row, then the number of rows where there is a second dimension.
    shape: Vec<u64>,
    kind: TensorType,
    make_row: Box<RowMaker<'a>>,
}

/// Fills row `index` of a tensor.
type RowMaker<'a> = dyn Fn(u64, &mut [f32]) + Send + Sync + 'a;

impl<'a> Tensor<'a> {
    /// A matrix of `rows` rows of `row_length` weights; `make_row(index, row)` fills one. In llama.cpp's terms a
    /// matrix with rows of the input's length, one row an output.
    pub fn matrix(
        name: impl Into<String>,
        kind: TensorType,
        row_length: u64,
        rows: u64,
        make_row: impl Fn(u64, &mut [f32]) + Send + Sync + 'a,
    ) -> Self {
        let quantized = matches!(kind, TensorType::Q8_0 | TensorType::Q4_1);
        assert!(
            !quantized || row_length.is_multiple_of(BLOCK as u64),
            "{kind} needs rows of whole blocks, got {row_length}"
        );
        Self { name: name.into(), shape: vec![row_length, rows], kind, make_row: Box::new(make_row) }
    }

    /// A vector of F32 in which every entry is `value`.
    pub fn constant(name: impl Into<String>, length: u64, value: f32) -> Self {
        let make_row = Box::new(move |_, row: &mut [f32]| row.fill(value));
        Self { name: name.into(), shape: vec![length], kind: TensorType::F32, make_row }
    }

    /// The same weights in another shape with rows of the same length.
    pub fn with_shape(mut self, shape: Vec<u64>) -> Self {
        assert!(shape[0] == self.shape[0] && shape.iter().product::<u64>() == self.elements(), "{shape:?}");
        self.shape = shape;
        self
    }

    /// A vector of integers, `kind` [`I32`](TensorType::I32) or [`I64`](TensorType::I64); below 2^24, since rows are made
    /// of floats.
    pub fn integers(name: impl Into<String>, kind: TensorType, numbers: Vec<u32>) -> Self {
        assert!(matches!(kind, TensorType::I32 | TensorType::I64) && numbers.iter().all(|number| *number < 1 << 24));
        let shape = vec![numbers.len() as u64];
        let make_row = Box::new(move |_, row: &mut [f32]| {
            row.iter_mut().zip(&numbers).for_each(|(x, number)| *x = *number as f32);
        });
        Self { name: name.into(), shape, kind, make_row }
    }

    /// A vector of F32 of which `make` gives the entries.
    pub fn vector(name: impl Into<String>, length: u64, make: impl Fn(&mut [f32]) + Send + Sync + 'a) -> Self {
        let make_row = Box::new(move |_, row: &mut [f32]| make(row));
        Self { name: name.into(), shape: vec![length], kind: TensorType::F32, make_row }
    }

    /// The tensor's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the weights are stored.
    pub fn kind(&self) -> TensorType {
        self.kind
    }

    /// The lengths of all dimensions, that of a row first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The encoded weights, without padding.
    pub fn data(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.size() as usize);
        self.write_data(&mut data).expect("memory takes what is written to it");
        data
    }

    /// The number of weights.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The size of the data in bytes, without padding.
    pub fn size(&self) -> u64 {
        self.kind.row_size(self.row_length()) * self.rows()
    }

    pub(super) fn put_info(&self, out: &mut Vec<u8>, offset: u64) {
        put_string(out, &self.name);
        out.extend_from_slice(&(self.shape.len() as u32).to_le_bytes());
        out.extend(self.shape.iter().flat_map(|n| n.to_le_bytes()));
        out.extend_from_slice(&self.kind.id().to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
    }

    pub(super) fn write_data(&self, out: &mut impl Write) -> io::Result<()> {
        let mut row = vec![0.0; self.row_length() as usize];
        let mut encoded = Vec::with_capacity(self.kind.row_size(self.row_length()) as usize);
        for index in 0..self.rows() {
            (self.make_row)(index, &mut row);
            encoded.clear();
            self.kind.encode(&row, &mut encoded);
            out.write_all(&encoded)?;
        }
        Ok(())
    }

    fn row_length(&self) -> u64 {
        self.shape[0]
    }

    fn rows(&self) -> u64 {
        self.shape[1..].iter().product()
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.name, self.shape, self.kind)
    }
}

fn encode_q8_0(block: &[f32], out: &mut Vec<u8>) {
    let largest = block.iter().fold(0f32, |max, x| max.max(x.abs()));
    let scale = f16::from_f32(largest / 127.0);
    out.extend_from_slice(&scale.to_le_bytes());
    out.extend(block.iter().map(|x| quotient(*x, scale).round().clamp(-127.0, 127.0) as i8 as u8));
}

fn encode_q4_1(block: &[f32], out: &mut Vec<u8>) {
    let (min, max) = block.iter().fold((f32::MAX, f32::MIN), |(min, max), x| (min.min(*x), max.max(*x)));
    let (scale, minimum) = (f16::from_f32((max - min) / 15.0), f16::from_f32(min));
    out.extend_from_slice(&scale.to_le_bytes());
    out.extend_from_slice(&minimum.to_le_bytes());
    let level = |x: f32| quotient(x - minimum.to_f32(), scale).round().clamp(0.0, 15.0) as u8;
    // A byte holds a weight of the first half of the block in its low bits and one of the second half in its high bits.
    let (low, high) = block.split_at(BLOCK / 2);
    out.extend(low.iter().zip(high).map(|(low, high)| level(*low) | level(*high) << 4));
}

/// `x / scale`, or 0 in a block whose scale is 0 (its weights are all equal).
fn quotient(x: f32, scale: f16) -> f32 {
    if scale == f16::ZERO { 0.0 } else { x / scale.to_f32() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(kind: TensorType, row: &[f32]) -> Vec<u8> {
        let mut out = Vec::new();
        kind.encode(row, &mut out);
        assert_eq!(out.len() as u64, kind.row_size(row.len() as u64));
        out
    }

    #[test]
    fn floats_keep_their_values() {
        let row = [0.0, 1.0, -2.5, 65504.0];
        let f32s = encoded(TensorType::F32, &row);
        assert_eq!(f32::from_le_bytes(f32s[8..12].try_into().unwrap()), -2.5);
        let f16s = encoded(TensorType::F16, &row);
        assert_eq!(f16s, [0x00, 0x00, 0x00, 0x3c, 0x00, 0xc1, 0xff, 0x7b]);
    }

    #[test]
    fn quantized_rows_come_back_within_half_a_step() {
        let row: Vec<f32> = (0..BLOCK).map(|i| (i as f32 * 0.7).sin() * 3.0 + 0.4).collect();
        let half_at = |bytes: &[u8], at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32();

        let q8 = encoded(TensorType::Q8_0, &row);
        let scale = half_at(&q8, 0);
        for (x, q) in row.iter().zip(&q8[2..]) {
            assert!((x - f32::from(*q as i8) * scale).abs() <= scale * 0.52, "{x}");
        }

        let q4 = encoded(TensorType::Q4_1, &row);
        let (scale, minimum) = (half_at(&q4, 0), half_at(&q4, 2));
        for (i, x) in row.iter().enumerate() {
            let byte = q4[4 + i % 16];
            let level = if i < 16 { byte & 15 } else { byte >> 4 };
            assert!((x - (f32::from(level) * scale + minimum)).abs() <= scale * 0.52, "{x}");
        }
    }

    #[test]
    fn a_constant_block_has_no_not_a_number() {
        assert_eq!(encoded(TensorType::Q8_0, &[0.0; 32]), vec![0; 34]);
        let q4 = encoded(TensorType::Q4_1, &[1.0; 32]);
        assert_eq!(q4[..4], [0x00, 0x00, 0x00, 0x3c]);
        assert_eq!(q4[4..], [0; 16]);
    }

    #[test]
    #[should_panic(expected = "whole blocks")]
    fn a_quantized_row_of_half_a_block_is_refused() {
        Tensor::matrix("t", TensorType::Q4_1, 48, 1, |_, _| {});
    }
}
