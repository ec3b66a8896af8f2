//! Metadata: keys and typed values.

/// The metadata of a file.
#[derive(Debug)]
pub struct Metadata {}

/// A metadata value with its type in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the types of the format")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Text; the format wants UTF-8, nobody checks it.
    Text(&'a [u8]),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A metadata array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array<'a> {
    bytes: &'a [u8],
}

impl Metadata {
    /// The value of `key`.
    pub fn get(&self, _key: &str) -> Option<Value<'_>> {
        todo!()
    }

    /// The value of `key` if it is a u32.
    pub fn u32(&self, _key: &str) -> Option<u32> {
        todo!()
    }

    /// The value of `key` if it is an integer of any type that fits.
    pub fn integer(&self, _key: &str) -> Option<i64> {
        todo!()
    }

    /// The value of `key` if it is an f32.
    pub fn f32(&self, _key: &str) -> Option<f32> {
        todo!()
    }

    /// The value of `key` if it is a truth value.
    pub fn bool(&self, _key: &str) -> Option<bool> {
        todo!()
    }

    /// The value of `key` if it is a text in UTF-8, up to its first zero byte: where llama.cpp ends it.
    pub fn string(&self, _key: &str) -> Option<&str> {
        todo!()
    }

    /// The value of `key` if it is an array.
    pub fn array(&self, _key: &str) -> Option<Array<'_>> {
        todo!()
    }

    /// All entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        [].into_iter()
    }
}

impl<'a> Array<'a> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items if they are integers of any type, or truth values.
    pub fn integers(&self) -> Option<impl Iterator<Item = i128> + use<'a>> {
        None::<std::iter::Empty<i128>>
    }

    /// The items if they are texts.
    pub fn texts(&self) -> Option<impl Iterator<Item = &'a [u8]> + use<'a>> {
        None::<std::iter::Empty<&'a [u8]>>
    }
}
