//! Reads the headers of GGUF files: metadata and the table of tensors, never the weights.
//!
//! A header is kept as the bytes it has in the file, checked once from front to back, with the positions of its keys and
//! tensors beside it; values are decoded when they are asked for. So it takes little more memory than its size in the
//! file, however many small things it consists of.

mod header;
pub(crate) mod limits;
mod metadata;
mod scan;
mod source;
pub(crate) mod split;
mod tensor;
mod tensor_type;
mod value;

pub(crate) use header::Header;
pub(crate) use scan::Fault;
pub(crate) use source::{DiskFile, Prefix, Source};

pub use metadata::Metadata;
pub(crate) use metadata::until_zero;
pub use tensor::TensorInfo;
pub use tensor_type::TensorType;
pub use value::{Array, ItemType, Value};

#[cfg(test)]
pub(crate) mod made;
#[cfg(test)]
mod tests;
