//! Reads the headers of GGUF files: metadata and the table of tensors, never the weights.

mod tensor;
mod value;

pub use tensor::{TensorInfo, TensorType};
pub use value::{Array, Metadata, Value};
