//! Metadata values of a GGUF file: every scalar type, strings, and arrays of each.

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the GGUF type of that name")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A metadata array: one type for all items. (GGUF also knows arrays of arrays; no reader of ours or llama.cpp's
/// supports them.)
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the GGUF type of that name")]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    String(Vec<String>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

const ARRAY: u32 = 9;

impl Value {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(x) => put_one(out, x),
            Self::I8(x) => put_one(out, x),
            Self::U16(x) => put_one(out, x),
            Self::I16(x) => put_one(out, x),
            Self::U32(x) => put_one(out, x),
            Self::I32(x) => put_one(out, x),
            Self::F32(x) => put_one(out, x),
            Self::Bool(x) => put_one(out, x),
            Self::String(x) => put_one(out, x),
            Self::U64(x) => put_one(out, x),
            Self::I64(x) => put_one(out, x),
            Self::F64(x) => put_one(out, x),
            Self::Array(array) => {
                ARRAY.put(out);
                array.put(out);
            }
        }
    }
}

impl Array {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(items) => put_all(out, items),
            Self::I8(items) => put_all(out, items),
            Self::U16(items) => put_all(out, items),
            Self::I16(items) => put_all(out, items),
            Self::U32(items) => put_all(out, items),
            Self::I32(items) => put_all(out, items),
            Self::F32(items) => put_all(out, items),
            Self::Bool(items) => put_all(out, items),
            Self::String(items) => put_all(out, items),
            Self::U64(items) => put_all(out, items),
            Self::I64(items) => put_all(out, items),
            Self::F64(items) => put_all(out, items),
        }
    }
}

/// A string in GGUF's form: length as u64, then the bytes.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_one<T: Item>(out: &mut Vec<u8>, item: &T) {
    T::ID.put(out);
    item.put(out);
}

fn put_all<T: Item>(out: &mut Vec<u8>, items: &[T]) {
    T::ID.put(out);
    (items.len() as u64).put(out);
    for item in items {
        item.put(out);
    }
}

/// A type that a value or an array item can have.
trait Item {
    /// Its number in the format.
    const ID: u32;

    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! number {
    ($($number:ty = $id:literal in $value:ident),*) => {$(
        impl Item for $number {
            const ID: u32 = $id;

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }

        conversions!($number, $value);
    )*};
}

macro_rules! conversions {
    ($item:ty, $value:ident) => {
        impl From<$item> for Value {
            fn from(x: $item) -> Self {
                Self::$value(x)
            }
        }

        impl From<Vec<$item>> for Value {
            fn from(items: Vec<$item>) -> Self {
                Self::Array(Array::$value(items))
            }
        }
    };
}

number! {
    u8 = 0 in U8, i8 = 1 in I8, u16 = 2 in U16, i16 = 3 in I16, u32 = 4 in U32, i32 = 5 in I32, f32 = 6 in F32,
    u64 = 10 in U64, i64 = 11 in I64, f64 = 12 in F64
}
conversions!(bool, Bool);
conversions!(String, String);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl Item for bool {
    const ID: u32 = 7;

    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl Item for String {
    const ID: u32 = 8;

    fn put(&self, out: &mut Vec<u8>) {
        put_string(out, self);
    }
}
