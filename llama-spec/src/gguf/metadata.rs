//! Metadata: values by key.

use super::header::Header;
use super::value::{Array, Value};
use std::sync::Arc;

/// The metadata of a file.
#[derive(Clone, Debug)]
pub struct Metadata {
    header: Arc<Header>,
}

impl Metadata {
    pub(crate) fn new(header: Arc<Header>) -> Self {
        Self { header }
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.header.value(key)
    }

    /// The value of `key` if it is a u32, the only type of integer that llama.cpp takes for most keys.
    pub fn u32(&self, key: &str) -> Option<u32> {
        match self.get(key)? {
            Value::U32(value) => Some(value),
            _ => None,
        }
    }

    /// The value of `key` if it is an integer of any type that fits.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.get(key)?.integer()?.try_into().ok()
    }

    /// The value of `key` if it is an f32.
    pub fn f32(&self, key: &str) -> Option<f32> {
        match self.get(key)? {
            Value::F32(value) => Some(value),
            _ => None,
        }
    }

    /// The value of `key` if it is a truth value.
    pub fn bool(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The value of `key` if it is a text in UTF-8, up to its first zero byte: where llama.cpp ends it.
    pub fn string(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => std::str::from_utf8(until_zero(text)).ok(),
            _ => None,
        }
    }

    /// The value of `key` if it is an array.
    pub fn array(&self, key: &str) -> Option<Array<'_>> {
        match self.get(key)? {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// All entries in the order of the file.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, Value<'_>)> {
        self.header.entries()
    }
}

/// A text as C sees it.
pub(crate) fn until_zero(text: &[u8]) -> &[u8] {
    match text.iter().position(|&byte| byte == 0) {
        Some(end) => &text[..end],
        None => text,
    }
}
