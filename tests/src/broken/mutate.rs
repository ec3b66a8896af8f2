//! Every part of a file changed, one at a time.

use std::collections::HashSet;

use super::{
    image::{Content, Entry, Image},
    values::replacements,
};
use crate::gguf::{Gguf, Value};

/// A changed file. Not every change makes a file wrong: some only make it another one.
#[derive(Clone, Debug)]
pub struct Case {
    /// The part that was changed, and how.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

/// All changes of a file, in an order that is always the same. Each is made when it is asked for.
///
/// Metadata: each entry removed, doubled, and with each value that its type suggests. Tensors: each removed,
/// renamed, of another shape, type and place. Counts, versions, byte orders, alignments. At last the file cut off wherever a
/// part begins.
pub fn cases(gguf: &Gguf<'_>) -> impl Iterator<Item = Case> + use<> {
    let image = Image::of(gguf);
    let whole = image.encode();
    let mut changes = header_changes(&image);
    changes.extend(metadata_changes(&image));
    changes.extend(tensor_changes(&image));
    // Different lists of values meet here and there.
    let mut names = HashSet::new();
    changes.retain(|change| names.insert(change.name.clone()));
    let changed = changes.into_iter().map(move |change| {
        let mut changed = image.clone();
        (change.apply)(&mut changed);
        Case { name: change.name, bytes: changed.encode().bytes }
    });
    changed.chain(truncations(whole.bytes, whole.boundaries))
}

/// Whether the pinned llama.cpp may answer a case with `abort()`, while it loads the file, makes a context or decodes. All
/// other cases of the zoo's files it takes or refuses in order. Known from a survey of the cases of a llama, a mamba, an
/// EAGLE-3, DFlash and DSpark draft, a bert, a t5 and a vocabulary (`survey_of_all` in the integration tests):
///
/// - An alignment below that of the data, or below 8: tensors are mapped at addresses that ggml does not take. Some escape.
/// - A number of layers of 0 or above 512.
/// - A token's text with a zero inside.
/// - An epsilon of a norm that is negative or not a number, at the first token.
/// - No size of blocks in a DSpark draft, when a context is made.
/// - Attention sinks of another type than F32, when a context is made.
pub fn may_end_the_process(name: &str) -> bool {
    let changed = |key: &str, values: &[&str]| {
        name.split_once(": ")
            .is_some_and(|(of, to)| of.ends_with(key) && values.iter().any(|value| to.starts_with(value)))
    };
    ["alignment 1 stated", "alignment 2 stated", "alignment 8 stated"].contains(&name)
        || changed(".block_count", &["U32(0)", "U32(1000)", "U32(1048576)", "U32(2147483648)", "U32(4294967295)"])
        || (changed("tokenizer.ggml.tokens", &[""]) && name.contains(r#"String("a\0b")"#))
        || changed("_epsilon", &["F32(-", "F32(NaN)"])
        || name.starts_with("dflash.block_size: ")
        || changed(".attn_sinks.weight", &["type "])
}

/// The file cut off at each of its boundaries, and before its last byte.
fn truncations(bytes: Vec<u8>, boundaries: Vec<(String, usize)>) -> impl Iterator<Item = Case> {
    let last = ("last byte".to_owned(), bytes.len() - 1);
    let mut places: Vec<(String, usize)> = boundaries.into_iter().chain([last]).collect();
    places.retain(|(_, place)| *place < bytes.len());
    places
        .into_iter()
        .map(move |(part, place)| Case { name: format!("cut off before {part}"), bytes: bytes[..place].to_vec() })
}

/// One change, and its name.
struct Change {
    name: String,
    apply: Box<dyn Fn(&mut Image)>,
}

fn change(name: impl Into<String>, apply: impl Fn(&mut Image) + 'static) -> Change {
    Change { name: name.into(), apply: Box::new(apply) }
}

fn header_changes(image: &Image) -> Vec<Change> {
    let mut changes = vec![
        change("unchanged", |_| {}),
        change("another byte order", |image| image.big_endian = true),
        change("version 2", |image| image.version = 2),
        change("version 2 in the other byte order", |image| (image.version, image.big_endian) = (2, true)),
        change("magic in small letters", |image| image.magic = *b"gguf"),
        change("magic backwards", |image| image.magic = *b"FUGG"),
        change("magic of an older format", |image| image.magic = *b"ggjt"),
        change("no metadata", |image| image.metadata.clear()),
        change("no tensors", |image| image.tensors.clear()),
        change("nothing", |image| {
            image.metadata.clear();
            image.tensors.clear();
        }),
    ];
    for version in [0, 1, 4, 0x0300_0000, u32::MAX] {
        changes.push(change(format!("version {version}"), move |image| image.version = version));
    }
    let (tensors, entries) = (image.tensors.len() as u64, image.metadata.len() as u64);
    let odd = [0, 1, 1 << 31, 1 << 32, 1 << 60, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX];
    for count in odd.into_iter().chain([tensors.saturating_sub(1), tensors + 1, tensors * 2]) {
        changes.push(change(format!("{count} tensors stated"), move |image| image.tensor_count = Some(count)));
    }
    for count in odd.into_iter().chain([entries.saturating_sub(1), entries + 1, entries * 2]) {
        changes.push(change(format!("{count} entries stated"), move |image| image.metadata_count = Some(count)));
    }
    for alignment in [0u32, 1, 2, 7, 8, 24, 64, 4096, 1 << 31, u32::MAX] {
        changes.push(change(format!("alignment {alignment} stated"), move |image| {
            image.metadata.push(entry("general.alignment", alignment));
        }));
    }
    changes.push(change("alignment of another type", |image| image.metadata.push(entry("general.alignment", 32u64))));
    for (name, key) in [("empty", vec![]), ("with a zero", b"a\0b".to_vec()), ("not in UTF-8", vec![0xff, 0xfe])] {
        let key: Vec<u8> = key;
        changes.push(change(format!("a key that is {name}"), move |image| {
            image.metadata.push(Entry { key: key.clone(), value: Content::Value(1u32.into()) });
        }));
    }
    for length in [63, 64, 65_535, 65_536, 1 << 20] {
        changes.push(change(format!("a key of {length} bytes"), move |image| {
            image.metadata.push(Entry { key: vec![b'k'; length], value: Content::Value(1u32.into()) });
        }));
    }
    for (no, count) in [(1u16, 3u16), (0, 3), (0, 0), (0, 1)] {
        changes.push(change(format!("part {no} of {count}"), move |image| {
            image.metadata.push(entry("split.no", no));
            image.metadata.push(entry("split.count", count));
            image.metadata.push(entry("split.tensors.count", 1i32));
        }));
    }
    changes
}

fn entry(key: &str, value: impl Into<Value>) -> Entry {
    Entry { key: key.as_bytes().to_vec(), value: Content::Value(value.into()) }
}

fn metadata_changes(image: &Image) -> Vec<Change> {
    let mut changes = Vec::new();
    for (index, one) in image.metadata.iter().enumerate() {
        let key = String::from_utf8_lossy(&one.key).into_owned();
        changes.push(change(format!("{key}: removed"), move |image| drop(image.metadata.remove(index))));
        changes.push(change(format!("{key}: twice"), move |image| {
            image.metadata.push(image.metadata[index].clone());
        }));
        let Content::Value(value) = &one.value else { continue };
        for (name, content) in replacements(value) {
            changes.push(change(format!("{key}: {name}"), move |image| image.metadata[index].value = content.clone()));
        }
    }
    changes
}

fn tensor_changes(image: &Image) -> Vec<Change> {
    let mut changes = Vec::new();
    let size = image.data_size();
    for (index, info) in image.tensors.iter().enumerate() {
        let mut add = |name: String, apply: Box<dyn Fn(&mut Image)>| {
            changes.push(Change { name: format!("{}: {name}", info.name), apply });
        };
        add("removed".into(), Box::new(move |image| drop(image.tensors.remove(index))));
        add(
            "twice".into(),
            Box::new(move |image| {
                let copy = image.tensors[index].clone();
                image.tensors.push(copy);
            }),
        );
        for (word, name) in [("no name", String::new()), ("another name", "x".into()), ("a long name", "n".repeat(64))]
        {
            add(word.into(), Box::new(move |image| image.tensors[index].name.clone_from(&name)));
        }
        for dimensions in [0, 4, 5, u32::MAX] {
            add(
                format!("{dimensions} dimensions stated"),
                Box::new(move |image| image.tensors[index].dimensions = Some(dimensions)),
            );
        }
        let shape = info.shape.clone();
        let shapes = (0..shape.len()).flat_map(|at| {
            let length = shape[at];
            let lengths = [0, 1, length / 2, length + 1, length * 2, 1 << 40, i64::MAX as u64, u64::MAX];
            let shape = shape.clone();
            lengths.map(move |length| {
                let mut changed = shape.clone();
                changed[at] = length;
                changed
            })
        });
        let more = [
            shape.iter().rev().copied().collect(),
            [&shape[..], &[1, 1, 1, 1, 1]].concat(),
            [&shape[..], &[2]].concat(),
            vec![1 << 31, 1 << 31, 1 << 31, 1 << 31],
        ];
        for changed in shapes.chain(more).filter(|changed| *changed != shape) {
            add(format!("shape {changed:?}"), Box::new(move |image| image.tensors[index].shape.clone_from(&changed)));
        }
        for kind in [0, 1, 2, 4, 8, 27, 39, 200, u32::MAX].into_iter().filter(|kind| *kind != info.kind) {
            add(format!("type {kind}"), Box::new(move |image| image.tensors[index].kind = kind));
        }
        let alignment = image.alignment;
        let offsets =
            [0, info.offset + 1, info.offset + alignment, size, size + alignment, 1 << 40, u64::MAX - 31, u64::MAX];
        for offset in offsets.into_iter().filter(|offset| *offset != info.offset) {
            add(format!("offset {offset}"), Box::new(move |image| image.tensors[index].offset = offset));
        }
    }
    changes
}
