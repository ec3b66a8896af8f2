//! What a header may hold at most: far above what models have, and low enough that nothing in a broken file makes the
//! reader busy for long. Every length is also checked against the size of the file before it is believed.

/// Bytes of the header. The largest known ones, with a whole `tokenizer.json` inside, have about 60 MB.
pub(crate) const HEADER_BYTES: u64 = 256 << 20;
/// Metadata entries. Models have dozens.
pub(crate) const ENTRIES: u64 = 1 << 16;
/// Bytes of a key; the format's own limit.
pub(crate) const KEY_BYTES: u64 = (1 << 16) - 1;
/// Bytes of one text.
pub(crate) const TEXT_BYTES: u64 = 128 << 20;
/// Items of an array.
pub(crate) const ITEMS: u64 = 1 << 26;
/// Tensors of one file. Models have hundreds, large mixtures of experts some thousands.
pub(crate) const TENSORS: u64 = 1 << 20;
/// Bytes of the name of a tensor; ggml's limit without the zero at the end.
pub(crate) const NAME_BYTES: u64 = 63;
/// Dimensions of a tensor; ggml's limit.
pub(crate) const DIMENSIONS: u32 = 4;
/// Parts of a split model. Models have dozens.
pub(crate) const PARTS: usize = 1024;
