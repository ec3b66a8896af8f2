//! What a metadata value is replaced by.

use std::collections::HashSet;

use super::image::{Content, items, type_of};
use crate::gguf::{Array, Value};

/// The replacements of a value: others of its type, the same number in other types, and what is no value at all.
pub(super) fn replacements(value: &Value) -> Vec<(String, Content)> {
    let mut list: Vec<(String, Content)> = Vec::new();
    let mut put = |value: Value| list.push((short(&value), Content::Value(value)));
    match value {
        Value::U8(x) => numbers(u64::from(*x), u8::MAX.into(), |x| Value::U8(x as u8)).for_each(&mut put),
        Value::U16(x) => numbers(u64::from(*x), u16::MAX.into(), |x| Value::U16(x as u16)).for_each(&mut put),
        Value::U32(x) => numbers(u64::from(*x), u32::MAX.into(), |x| Value::U32(x as u32)).for_each(&mut put),
        Value::U64(x) => numbers(*x, u64::MAX, Value::U64).for_each(&mut put),
        Value::I32(x) => numbers(*x as u64, i32::MAX as u64, |x| Value::I32(x as i32)).for_each(&mut put),
        Value::I64(x) => numbers(*x as u64, i64::MAX as u64, |x| Value::I64(x as i64)).for_each(&mut put),
        Value::F32(x) => {
            [0.0, -1.0, x * 2.0, -x, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, f32::NAN]
                .map(Value::F32)
                .into_iter()
                .for_each(&mut put);
        }
        Value::Bool(x) => put(Value::Bool(!x)),
        Value::String(text) => {
            let long = "long ".repeat(200_000);
            [String::new(), "x".into(), format!("{text}\0x"), format!("{text}{text}"), long]
                .map(Value::String)
                .into_iter()
                .for_each(&mut put);
        }
        Value::Array(array) => array_changes(array).into_iter().for_each(&mut put),
        _ => {}
    }
    for other in of_other_types(value) {
        list.push((format!("of another type, {}", short(&other)), Content::Value(other)));
    }
    if matches!(value, Value::String(_) | Value::Array(_)) {
        let right = match value {
            Value::Array(array) => items(array).len() as u64,
            Value::String(text) => text.len() as u64,
            _ => 0,
        };
        let counts = [right + 1, right.saturating_sub(1), 1 << 20, 1 << 32, 1 << 61, i64::MAX as u64, u64::MAX];
        for count in counts.into_iter().filter(|count| *count != right) {
            list.push((format!("a length of {count} stated"), Content::Count(value.clone(), count)));
        }
    }
    for (name, kind, bytes) in [
        ("type 13", 13, vec![0; 8]),
        ("type 4294967295", u32::MAX, vec![0; 8]),
        ("a boolean of 2", 7, vec![2]),
        ("an array of arrays", 9, [9u32.to_le_bytes().to_vec(), vec![0; 8]].concat()),
        (
            "an array of arrays of arrays",
            9,
            [9, 1, 0, 9, 1, 0, 4, 0, 0u32].iter().flat_map(|x| x.to_le_bytes()).collect(),
        ),
        ("an array of type 99", 9, [99u32.to_le_bytes().to_vec(), vec![0; 8]].concat()),
        ("text that is not UTF-8", 8, [2u64.to_le_bytes().to_vec(), vec![0xff, 0xfe]].concat()),
    ] {
        list.push((name.to_owned(), Content::Raw(kind, bytes)));
    }
    let mut seen = HashSet::from([format!("{:?}", Content::Value(value.clone()))]);
    list.retain(|(_, content)| seen.insert(format!("{content:?}")));
    list
}

/// Interesting values of an integer, without the one that is there.
fn numbers(x: u64, max: u64, make: impl Fn(u64) -> Value) -> impl Iterator<Item = Value> {
    let mut list = vec![
        0,
        1,
        2,
        3,
        7,
        x / 2,
        x.wrapping_sub(1),
        x.wrapping_add(1),
        x.wrapping_mul(2),
        1000,
        1 << 20,
        max,
        max / 2 + 1,
    ];
    list.retain(|other| *other != x && *other <= max);
    list.sort_unstable();
    list.dedup();
    list.into_iter().map(make)
}

/// The same, as far as it can be said, in other types.
fn of_other_types(value: &Value) -> Vec<Value> {
    let number = match value {
        Value::U8(x) => f64::from(*x),
        Value::U16(x) => f64::from(*x),
        Value::U32(x) => f64::from(*x),
        Value::I32(x) => f64::from(*x),
        Value::U64(x) => *x as f64,
        Value::I64(x) => *x as f64,
        Value::F32(x) => f64::from(*x),
        Value::Bool(x) => f64::from(u8::from(*x)),
        _ => 1.0,
    };
    let all = [
        Value::U8(number as u8),
        Value::U16(number as u16),
        Value::I16(number as i16),
        Value::U32(number as u32),
        Value::I32(number as i32),
        Value::U64(number as u64),
        Value::I64(number as i64),
        Value::I32(-1),
        Value::F32(number as f32),
        Value::F64(number),
        Value::Bool(number != 0.0),
        Value::String(number.to_string()),
        Value::Array(Array::U32(vec![number as u32])),
        Value::Array(Array::I32(vec![number as i32; 4])),
        Value::Array(Array::F32(vec![number as f32])),
        Value::Array(Array::String(vec!["x".to_owned()])),
        Value::Array(Array::U32(vec![])),
    ];
    all.into_iter().filter(|other| type_of(other) != type_of(value) || type_of(value) == 9).collect()
}

/// Arrays of the same type: shorter, longer, empty, and with the first and the last item changed.
fn array_changes(array: &Array) -> Vec<Value> {
    macro_rules! changes {
        ($items:ident, $variant:ident, $odd:expr) => {{
            let odd = $odd;
            let mut list = vec![
                vec![],
                $items[..1.min($items.len())].to_vec(),
                $items[..$items.len().saturating_sub(1)].to_vec(),
                [&$items[..], &$items[..]].concat(),
                [&$items[..], &odd[..1]].concat(),
            ];
            for odd in odd {
                for at in [0, $items.len().saturating_sub(1)] {
                    let mut changed = $items.clone();
                    if let Some(item) = changed.get_mut(at) {
                        *item = odd.clone();
                        list.push(changed);
                    }
                }
            }
            list.retain(|changed| changed != $items);
            list.into_iter().map(|items| Value::Array(Array::$variant(items))).collect()
        }};
    }
    match array {
        Array::I32(items) => changes!(items, I32, [0, -1, i32::MAX, i32::MIN]),
        Array::U32(items) => changes!(items, U32, [0, u32::MAX]),
        Array::F32(items) => changes!(items, F32, [0.0, f32::NAN, f32::INFINITY]),
        Array::String(items) => changes!(items, String, [String::new(), "a\0b".to_owned(), "w".repeat(100_000)]),
        _ => vec![],
    }
}

/// A value in a few words.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() > 40 => format!("a text of {} bytes", text.len()),
        Value::Array(array) => {
            let items = items(array);
            match items.len() {
                0..=4 => format!("{items:?}"),
                n => format!("{n} items from {} to {}", short(&items[0]), short(&items[n - 1])),
            }
        }
        _ => format!("{value:?}"),
    }
}
