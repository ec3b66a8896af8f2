//! Metadata values, decoded from a header that was checked.

use super::scan::{array_at, u32_at, u64_at};
use std::fmt;

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
#[derive(Clone, Copy, PartialEq)]
pub struct Array<'a> {
    item: ItemType,
    len: usize,
    /// The items, one after the other.
    bytes: &'a [u8],
}

/// The type of a value that is no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the types of the format")]
pub enum ItemType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    U64,
    I64,
    F64,
}

/// The number of the array type in the format.
pub(super) const ARRAY: u32 = 9;

impl ItemType {
    pub(super) fn find(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::Text,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes of an item, and of the length of a text.
    pub(super) fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::Text => 8,
        }
    }

    fn decode(self, bytes: &[u8], at: usize) -> Value<'_> {
        match self {
            Self::U8 => Value::U8(bytes[at]),
            Self::I8 => Value::I8(bytes[at].cast_signed()),
            Self::U16 => Value::U16(u16::from_le_bytes(array_at(bytes, at))),
            Self::I16 => Value::I16(i16::from_le_bytes(array_at(bytes, at))),
            Self::U32 => Value::U32(u32_at(bytes, at)),
            Self::I32 => Value::I32(i32::from_le_bytes(array_at(bytes, at))),
            Self::F32 => Value::F32(f32::from_le_bytes(array_at(bytes, at))),
            Self::Bool => Value::Bool(bytes[at] != 0),
            Self::Text => Value::Text(text_at(bytes, at)),
            Self::U64 => Value::U64(u64_at(bytes, at)),
            Self::I64 => Value::I64(i64::from_le_bytes(array_at(bytes, at))),
            Self::F64 => Value::F64(f64::from_le_bytes(array_at(bytes, at))),
        }
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        })
    }
}

impl<'a> Value<'a> {
    /// The value at the start of `bytes`: its type, then itself.
    pub(super) fn decode(bytes: &'a [u8]) -> Self {
        const CHECKED: &str = "types were checked when the header was read";
        match u32_at(bytes, 0) {
            ARRAY => Self::Array(Array {
                item: ItemType::find(u32_at(bytes, 4)).expect(CHECKED),
                len: u64_at(bytes, 8) as usize,
                bytes: &bytes[16..],
            }),
            id => ItemType::find(id).expect(CHECKED).decode(bytes, 4),
        }
    }

    /// The name of its type, such as `u32` or `array of text`.
    pub fn type_name(&self) -> String {
        match self {
            Self::Array(array) => format!("array of {}", array.item),
            Self::U8(_) => "u8".into(),
            Self::I8(_) => "i8".into(),
            Self::U16(_) => "u16".into(),
            Self::I16(_) => "i16".into(),
            Self::U32(_) => "u32".into(),
            Self::I32(_) => "i32".into(),
            Self::F32(_) => "f32".into(),
            Self::Bool(_) => "bool".into(),
            Self::Text(_) => "text".into(),
            Self::U64(_) => "u64".into(),
            Self::I64(_) => "i64".into(),
            Self::F64(_) => "f64".into(),
        }
    }

    /// The value if it is an integer of any type.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(x) => x.into(),
            Self::I8(x) => x.into(),
            Self::U16(x) => x.into(),
            Self::I16(x) => x.into(),
            Self::U32(x) => x.into(),
            Self::I32(x) => x.into(),
            Self::U64(x) => x.into(),
            Self::I64(x) => x.into(),
            _ => return None,
        })
    }
}

impl<'a> Array<'a> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of the items.
    pub fn item_type(&self) -> ItemType {
        self.item
    }

    /// All items in order.
    pub fn items(&self) -> impl ExactSizeIterator<Item = Value<'a>> + use<'a> {
        let Self { item, len, bytes } = *self;
        let mut at = 0;
        (0..len).map(move |_| {
            let value = item.decode(bytes, at);
            at += match value {
                Value::Text(text) => 8 + text.len(),
                _ => item.size(),
            };
            value
        })
    }

    /// The items if they are integers of any type, or truth values as 0 and 1.
    pub fn integers(&self) -> Option<impl ExactSizeIterator<Item = i128> + use<'a>> {
        let numbers = !matches!(self.item, ItemType::Text | ItemType::F32 | ItemType::F64);
        numbers.then(|| {
            self.items().map(|item| match item {
                Value::Bool(flag) => flag.into(),
                other => other.integer().unwrap_or_default(),
            })
        })
    }

    /// The items if they are texts.
    pub fn texts(&self) -> Option<impl ExactSizeIterator<Item = &'a [u8]> + use<'a>> {
        (self.item == ItemType::Text).then(|| {
            self.items().map(|item| match item {
                Value::Text(text) => text,
                _ => &[],
            })
        })
    }

    /// The bytes of the items as they stand in the file, texts with their lengths.
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.bytes
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}]", self.item, self.len)
    }
}

/// The text at `at`: its length in eight bytes, then its bytes.
pub(super) fn text_at(bytes: &[u8], at: usize) -> &[u8] {
    let length = u64_at(bytes, at) as usize;
    &bytes[at + 8..at + 8 + length]
}
