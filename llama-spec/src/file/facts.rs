//! Reads what an architecture needs from the metadata, by llama.cpp's rules for types, and notes what is wrong.

use super::description::{Defect, Outcome};
use crate::gguf::{Array, Header, ItemType, TensorInfo, Value, until_zero};
use std::sync::Arc;

/// The headers of a model, and the defects found so far.
#[derive(Debug)]
pub(super) struct Facts<'m> {
    headers: &'m [Arc<Header>],
    architecture: String,
    pub(super) defects: Vec<Defect>,
}

/// Whether llama.cpp insists on a key or a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Optional,
}

/// The most defects that are noted: a broken table of tensors has one for each tensor.
const MOST_DEFECTS: usize = 32;

impl<'m> Facts<'m> {
    pub(super) fn new(headers: &'m [Arc<Header>], architecture: &str) -> Self {
        Self { headers, architecture: architecture.to_owned(), defects: Vec::new() }
    }

    /// The whole key of the architecture's own `suffix`.
    pub(super) fn key(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.architecture)
    }

    pub(super) fn value(&self, key: &str) -> Option<Value<'m>> {
        self.headers.first()?.value(key)
    }

    /// The tensor of this name, in any part.
    pub(super) fn tensor(&self, name: &str) -> Option<TensorInfo<'m>> {
        self.headers.iter().enumerate().find_map(|(part, header)| header.tensor(name, part))
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = TensorInfo<'m>> + use<'m> {
        self.headers.iter().enumerate().flat_map(|(part, header)| header.tensors(part))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensor(name).is_some()
    }

    pub(super) fn refused(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.defect(place.into(), why.into(), Outcome::Refused);
    }

    pub(super) fn aborts(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.defect(place.into(), why.into(), Outcome::Aborts);
    }

    /// The u32 of a whole key; no other integer will do.
    pub(super) fn u32(&mut self, key: &str, need: Need) -> Option<u32> {
        self.typed(key, need, "u32", |value| match value {
            Value::U32(number) => Some(number),
            _ => None,
        })
    }

    pub(super) fn f32(&mut self, key: &str, need: Need) -> Option<f32> {
        self.typed(key, need, "f32", |value| match value {
            Value::F32(number) => Some(number),
            _ => None,
        })
    }

    pub(super) fn bool(&mut self, key: &str, need: Need) -> Option<bool> {
        self.typed(key, need, "bool", |value| match value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        })
    }

    /// The text of a whole key, up to its first zero byte.
    pub(super) fn text(&mut self, key: &str, need: Need) -> Option<String> {
        self.typed(key, need, "text", |value| match value {
            Value::Text(text) => Some(String::from_utf8_lossy(until_zero(text)).into_owned()),
            _ => None,
        })
    }

    /// An array of integers or truth values for a whole key, at most `longest` of them.
    pub(super) fn integers(&mut self, key: &str, need: Need, longest: usize) -> Option<Vec<i64>> {
        let array = match self.value(key) {
            Some(Value::Array(array)) => array,
            _ if need == Need::Optional => return None,
            _ => {
                self.refused(key, "missing; it must be an array of u32 or i32");
                return None;
            }
        };
        self.small_integers(key, array, longest)
    }

    /// One number for each of `count` layers: an array of just that length, or one number for all.
    pub(super) fn per_layer(&mut self, suffix: &str, count: u32, need: Need) -> Option<Vec<u32>> {
        let key = self.key(suffix);
        let Some(Value::Array(array)) = self.value(&key) else {
            return self.u32(&key, need).map(|number| vec![number; count as usize]);
        };
        if array.len() != count as usize {
            self.refused(key, format!("{} items; one for each of the {count} blocks is expected", array.len()));
            return None;
        }
        // Negative numbers are taken as the large numbers of the same bits.
        let numbers = self.small_integers(&key, array, count as usize)?;
        Some(numbers.into_iter().map(|number| number as u32).collect())
    }

    fn small_integers(&mut self, key: &str, array: Array<'m>, longest: usize) -> Option<Vec<i64>> {
        if !matches!(array.item_type(), ItemType::U32 | ItemType::I32 | ItemType::Bool) {
            self.refused(key, format!("an array of {}; u32 or i32 is expected", array.item_type()));
            return None;
        }
        if array.len() > longest {
            self.refused(key, format!("{} items; at most {longest} are expected", array.len()));
            return None;
        }
        Some(array.integers()?.map(|number| number as i64).collect())
    }

    fn typed<T>(
        &mut self,
        key: &str,
        need: Need,
        wanted: &str,
        convert: impl FnOnce(Value<'m>) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.value(key) else {
            if need == Need::Required {
                self.refused(key, format!("missing; it must be a {wanted}"));
            }
            return None;
        };
        let converted = convert(value);
        if converted.is_none() {
            self.refused(key, format!("of type {}; it must be a {wanted}", value.type_name()));
        }
        converted
    }

    fn defect(&mut self, place: String, why: String, outcome: Outcome) {
        if self.defects.len() < MOST_DEFECTS && !self.defects.iter().any(|known| known.place == place) {
            self.defects.push(Defect { place, why, outcome });
        }
    }
}
