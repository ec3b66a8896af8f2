//! A writer of GGUF v3 files. Tensors are made row by row while they are written, so a file of any size needs the
//! memory of one row.

mod metadata;
#[cfg(test)]
pub(crate) mod reader;
mod tensor;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

pub use metadata::{Array, Value};
pub use tensor::{Tensor, TensorType};

const MAGIC: &[u8; 4] = b"GGUF";
const VERSION: u32 = 3;
/// The alignment that readers assume where `general.alignment` is absent, in bytes.
const DEFAULT_ALIGNMENT: u32 = 32;

/// A GGUF file to be written: metadata and tensors, both in the order they were added.
#[derive(Debug, Default)]
pub struct Gguf<'a> {
    metadata: Vec<(String, Value)>,
    tensors: Vec<Tensor<'a>>,
    alignment: Option<u32>,
}

impl<'a> Gguf<'a> {
    /// A file with no metadata and no tensors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metadata entry. Keys are not checked for doubles, so that wrong files can be written too.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Adds a tensor.
    pub fn add(&mut self, tensor: Tensor<'a>) -> &mut Self {
        self.tensors.push(tensor);
        self
    }

    /// Aligns tensor data to `bytes` (a power of two, at least 8) and says so in `general.alignment`. Default: 32.
    pub fn align(&mut self, bytes: u32) -> &mut Self {
        assert!(bytes.is_power_of_two() && bytes >= 8, "GGUF wants a power of two from 8 on, got {bytes}");
        self.set("general.alignment", bytes);
        self.alignment = Some(bytes);
        self
    }

    /// The metadata added so far.
    pub fn metadata(&self) -> &[(String, Value)] {
        &self.metadata
    }

    /// The alignment of tensor data in bytes.
    pub fn alignment(&self) -> u32 {
        self.alignment.unwrap_or(DEFAULT_ALIGNMENT)
    }

    /// The tensors added so far.
    pub fn tensors(&self) -> &[Tensor<'a>] {
        &self.tensors
    }

    /// The number of weights in all tensors.
    pub fn parameters(&self) -> u64 {
        self.tensors.iter().map(Tensor::elements).sum()
    }

    /// The exact size in bytes of the file that [`write`](Self::write) makes.
    pub fn file_size(&self) -> u64 {
        self.padded(self.whole().header().len() as u64) + self.data_size()
    }

    /// The size in bytes of the part of the file that holds the weights, padding included.
    pub fn data_size(&self) -> u64 {
        self.tensors.iter().map(|tensor| self.padded(tensor.size())).sum()
    }

    /// Writes the file, replacing what is there.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        self.whole().write(path)
    }

    /// Writes header and tensor table, then extends the file to its full size without writing the weights: they read
    /// as zeros, and take no room on most file systems. For checks of large shapes.
    pub fn write_sparse(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&self.whole().header())?;
        file.set_len(self.file_size())
    }

    /// Writes the model as `parts` files `STEM-00001-of-0000N.gguf` in `dir` and gives their paths, the first part
    /// (the one to load) first. As llama.cpp's own splitter does, the first part carries all metadata.
    pub fn write_split(&self, dir: &Path, stem: &str, parts: u16) -> io::Result<Vec<PathBuf>> {
        let count = usize::from(parts);
        assert!((1..=self.tensors.len()).contains(&count), "{count} parts for {} tensors", self.tensors.len());
        (0..parts)
            .map(|no| {
                let part = usize::from(no);
                let range = self.tensors.len() * part / count..self.tensors.len() * (part + 1) / count;
                let path = dir.join(split_name(stem, no, parts));
                let split = [
                    ("split.no".to_owned(), Value::U16(no)),
                    ("split.count".to_owned(), Value::U16(parts)),
                    ("split.tensors.count".to_owned(), Value::I32(self.tensors.len() as i32)),
                ];
                let metadata = if no == 0 { &self.metadata[..] } else { self.alignment_entry() };
                let metadata = metadata.iter().chain(&split).collect();
                Part { gguf: self, metadata, tensors: &self.tensors[range] }.write(&path)?;
                Ok(path)
            })
            .collect()
    }

    fn whole(&self) -> Part<'_, 'a> {
        Part { gguf: self, metadata: self.metadata.iter().collect(), tensors: &self.tensors }
    }

    fn alignment_entry(&self) -> &[(String, Value)] {
        let at = self.metadata.iter().position(|(key, _)| key == "general.alignment");
        at.map_or(&[], |at| &self.metadata[at..=at])
    }

    fn padded(&self, size: u64) -> u64 {
        size.next_multiple_of(u64::from(self.alignment()))
    }
}

/// The file name of part `no` (from 0) of `parts`, in llama.cpp's form.
pub fn split_name(stem: &str, no: u16, parts: u16) -> String {
    format!("{stem}-{:05}-of-{parts:05}.gguf", no + 1)
}

/// One file of a model: the whole of it, or one part of a split.
struct Part<'p, 'a> {
    gguf: &'p Gguf<'a>,
    metadata: Vec<&'p (String, Value)>,
    tensors: &'p [Tensor<'a>],
}

impl Part<'_, '_> {
    fn write(&self, path: &Path) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let header = self.header();
        out.write_all(&header)?;
        pad(&mut out, header.len() as u64, self.gguf.padded(header.len() as u64))?;
        for tensor in self.tensors {
            tensor.write_data(&mut out)?;
            pad(&mut out, tensor.size(), self.gguf.padded(tensor.size()))?;
        }
        out.flush()
    }

    /// Everything before the tensor data, without the padding.
    fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        out.extend_from_slice(&(self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            metadata::put_string(&mut out, key);
            value.put(&mut out);
        }
        let mut offset = 0;
        for tensor in self.tensors {
            tensor.put_info(&mut out, offset);
            offset += self.gguf.padded(tensor.size());
        }
        out
    }
}

fn pad(out: &mut impl Write, from: u64, to: u64) -> io::Result<()> {
    out.write_all(&vec![0; (to - from) as usize])
}

#[cfg(test)]
mod tests;
