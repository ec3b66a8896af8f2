//! Tensors of which most entries are zero.

use crate::gguf::{Tensor, TensorType};

/// A matrix whose rows are zero where `make_row` does not write.
pub(super) fn matrix<'a>(
    name: impl Into<String>,
    kind: TensorType,
    row_length: usize,
    rows: usize,
    make_row: impl Fn(usize, &mut [f32]) + Send + Sync + 'a,
) -> Tensor<'a> {
    Tensor::matrix(name, kind, row_length as u64, rows as u64, move |index, row| {
        row.fill(0.0);
        make_row(index as usize, row);
    })
}
