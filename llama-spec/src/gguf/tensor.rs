//! One tensor of a file, decoded from a header that was checked.

use super::limits;
use super::scan::{u32_at, u64_at};
use super::tensor_type::TensorType;
use super::value::text_at;

/// A tensor in the table of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo<'a> {
    /// The name.
    pub name: &'a str,
    /// How its weights are stored.
    pub kind: TensorType,
    /// The part of a split model that holds it, from 0.
    pub part: usize,
    /// Where its data begins in that part, in bytes from the start of the file.
    pub offset: u64,
    shape: [u64; limits::DIMENSIONS as usize],
    dimensions: usize,
}

impl<'a> TensorInfo<'a> {
    /// The tensor whose entry begins at `at`; its data lies behind `data_start`.
    pub(super) fn decode(bytes: &'a [u8], at: usize, data_start: u64, part: usize) -> Self {
        let name = text_at(bytes, at);
        let at = at + 8 + name.len();
        let dimensions = u32_at(bytes, at) as usize;
        let mut shape = [1; limits::DIMENSIONS as usize];
        for (index, length) in shape.iter_mut().take(dimensions).enumerate() {
            *length = u64_at(bytes, at + 4 + 8 * index);
        }
        let at = at + 4 + 8 * dimensions;
        Self {
            name: std::str::from_utf8(name).expect("names were checked when the header was read"),
            kind: TensorType::find(u32_at(bytes, at)).expect("types were checked when the header was read"),
            part,
            offset: data_start + u64_at(bytes, at + 4),
            shape,
            dimensions,
        }
    }

    /// The shape: the length of a row first.
    pub fn shape(&self) -> &[u64] {
        &self.shape[..self.dimensions]
    }

    /// The shape with the dimensions that are not there as 1, as ggml sees it.
    pub(crate) fn full_shape(&self) -> [u64; limits::DIMENSIONS as usize] {
        self.shape
    }

    /// The number of its weights.
    pub fn elements(&self) -> u64 {
        elements(&self.shape).unwrap_or_default()
    }

    /// The bytes of its weights.
    pub fn bytes(&self) -> u64 {
        self.kind.bytes(self.elements()).unwrap_or_default()
    }
}

/// The product of the lengths if it is below 2^63, as ggml wants it.
pub(super) fn elements(shape: &[u64]) -> Option<u64> {
    let product = shape.iter().try_fold(1u64, |product, &length| product.checked_mul(length))?;
    i64::try_from(product).ok().map(i64::unsigned_abs)
}
