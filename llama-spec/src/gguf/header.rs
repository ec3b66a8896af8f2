//! The header of one file: its bytes, and where things are in them.

use super::limits;
use super::scan::{Fault, Place, Scan, u32_at};
use super::source::Source;
use super::tensor::{self, TensorInfo};
use super::tensor_type::TensorType;
use super::value::{ARRAY, ItemType, Value, text_at};
use std::fmt;

/// A header that was read and checked.
pub(crate) struct Header {
    /// From the magic to the end of the tensor table.
    bytes: Vec<u8>,
    /// Where the entries begin; those of a file of at most [`limits::HEADER_BYTES`], so 32 bits are enough.
    entries: Vec<u32>,
    /// Numbers of entries, in the order of the keys.
    by_key: Vec<u32>,
    /// Where the tensors begin in the table.
    tensors: Vec<u32>,
    /// Numbers of tensors, in the order of the names.
    by_name: Vec<u32>,
    /// Where the table of tensors begins.
    table_start: usize,
    data_start: u64,
    file_bytes: u64,
}

const MAGIC: &[u8; 4] = b"GGUF";
/// The alignment of tensor data where the file names none, in bytes.
const DEFAULT_ALIGNMENT: u32 = 32;
/// Length and one byte of a key, type, and a value of one byte.
const SMALLEST_ENTRY: u64 = 8 + 1 + 4 + 1;
/// Length of a name, count of dimensions, type, offset.
const SMALLEST_TENSOR: u64 = 8 + 4 + 4 + 8;

impl Header {
    pub(crate) fn read(source: &dyn Source) -> Result<Self, Fault> {
        let mut scan = Scan::new(source);
        check_magic(&mut scan)?;
        check_version(&mut scan)?;
        let tensor_count = scan.count("tensors", SMALLEST_TENSOR, limits::TENSORS)?;
        let entry_count = scan.count("metadata entries", SMALLEST_ENTRY, limits::ENTRIES)?;

        let mut entries = Vec::with_capacity(scan.room_for(entry_count, SMALLEST_ENTRY));
        for index in 0..entry_count as usize {
            entries.push(scan.at as u32);
            read_entry(&mut scan, index, entry_count)?;
        }
        let by_key = sorted(&scan.bytes, &entries);
        if let Some((first, second)) = double(&scan.bytes, &entries, &by_key) {
            scan.place = Place::Entry(second, entry_count, Some(range(&scan.bytes, entries[second])));
            return Err(scan.broken(entries[second] as usize, format!("entry {} has the same key", first + 1)));
        }
        scan.place = Place::Start;
        let alignment = alignment(&scan, &entries, &by_key)?;

        let table_start = scan.at;
        let mut tensors = Vec::with_capacity(scan.room_for(tensor_count, SMALLEST_TENSOR));
        let mut expected = 0u64;
        for index in 0..tensor_count as usize {
            tensors.push(scan.at as u32);
            expected = read_tensor(&mut scan, index, tensor_count, alignment, expected)?;
        }
        let by_name = sorted(&scan.bytes, &tensors);
        if let Some((first, second)) = double(&scan.bytes, &tensors, &by_name) {
            scan.place = Place::Tensor(second, tensor_count, Some(range(&scan.bytes, tensors[second])));
            return Err(scan.broken(tensors[second] as usize, format!("tensor {} has the same name", first + 1)));
        }

        let (end, file_bytes) = (scan.at, source.len());
        let data_start = match tensor_count {
            0 => end as u64,
            _ => (end as u64).next_multiple_of(alignment.into()),
        };
        let mut bytes = scan.bytes;
        bytes.truncate(end);
        bytes.shrink_to_fit();
        let header = Self { bytes, entries, by_key, tensors, by_name, table_start, data_start, file_bytes };
        header.check_data()?;
        Ok(header)
    }

    /// The value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<Value<'_>> {
        find(&self.bytes, &self.entries, &self.by_key, key).map(|index| self.entry(index).1)
    }

    /// All entries in the order of the file.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = (&str, Value<'_>)> {
        (0..self.entries.len()).map(|index| self.entry(index))
    }

    /// The number of tensors.
    pub(crate) fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// The tensor of this name, with `part` written into it.
    pub(crate) fn tensor(&self, name: &str, part: usize) -> Option<TensorInfo<'_>> {
        let index = find(&self.bytes, &self.tensors, &self.by_name, name)?;
        Some(self.tensor_at(index, part))
    }

    /// All tensors in the order of the file, with `part` written into them.
    pub(crate) fn tensors(&self, part: usize) -> impl ExactSizeIterator<Item = TensorInfo<'_>> {
        (0..self.tensors.len()).map(move |index| self.tensor_at(index, part))
    }

    /// Bytes of the whole file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes of the header itself.
    pub(crate) fn header_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Where in the file the entry of this key begins.
    pub(crate) fn position(&self, key: &str) -> Option<u64> {
        find(&self.bytes, &self.entries, &self.by_key, key).map(|index| self.entries[index].into())
    }

    /// Where the texts begin that the array of this key holds; empty when it is no array of texts.
    pub(crate) fn text_positions(&self, key: &str) -> Vec<u32> {
        let Some(Value::Array(array)) = self.value(key) else { return Vec::new() };
        let Some(texts) = array.texts() else { return Vec::new() };
        // Key, type, type of the items, count.
        let mut at = self.position(key).unwrap_or_default() as usize + 8 + key.len() + 4 + 4 + 8;
        texts
            .map(|text| {
                let start = at as u32;
                at += 8 + text.len();
                start
            })
            .collect()
    }

    /// The text at one of the positions of [`text_positions`](Self::text_positions).
    pub(crate) fn text(&self, position: u32) -> &[u8] {
        text_at(&self.bytes, position as usize)
    }

    fn entry(&self, index: usize) -> (&str, Value<'_>) {
        let at = self.entries[index] as usize;
        let end = self.entries.get(index + 1).map_or(self.table_start, |&next| next as usize);
        let key = text_at(&self.bytes, at);
        let value = Value::decode(&self.bytes[at + 8 + key.len()..end]);
        (std::str::from_utf8(key).expect("keys were checked when the header was read"), value)
    }

    fn tensor_at(&self, index: usize, part: usize) -> TensorInfo<'_> {
        TensorInfo::decode(&self.bytes, self.tensors[index] as usize, self.data_start, part)
    }

    /// Whether the file is long enough for the data of all tensors.
    fn check_data(&self) -> Result<(), Fault> {
        for (index, tensor) in self.tensors(0).enumerate() {
            let end = tensor.offset.checked_add(tensor.bytes());
            if end.is_none_or(|end| end > self.file_bytes) {
                let why = format!(
                    "its data should be the {} bytes from byte {} on, and the file ends at byte {}: it is not complete",
                    tensor.bytes(),
                    tensor.offset,
                    self.file_bytes
                );
                let place = format!("tensor {} of {}, named {:?}", index + 1, self.tensors.len(), tensor.name);
                return Err(Fault::Broken { offset: self.tensors[index].into(), place, why });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, tensors) = (self.entries.len(), self.tensors.len());
        write!(f, "{} bytes, {entries} entries, {tensors} tensors", self.bytes.len())
    }
}

fn check_magic(scan: &mut Scan<'_>) -> Result<(), Fault> {
    let length = scan.file_bytes().min(4);
    let at = scan.take(length)?;
    let found = &scan.bytes[at..scan.at];
    if found == MAGIC {
        return Ok(());
    }
    Err(Fault::NotGguf(match found {
        [] => "it is empty".to_owned(),
        _ if MAGIC.starts_with(found) => format!("it ends after {} bytes", found.len()),
        _ => format!("it begins with {:?}", String::from_utf8_lossy(found)),
    }))
}

fn check_version(scan: &mut Scan<'_>) -> Result<(), Fault> {
    let at = scan.at;
    let version = scan.u32()?;
    let why = match (version, version.swap_bytes()) {
        (2 | 3, _) => return Ok(()),
        (1, _) => "version 1 of the format, which llama.cpp does not read any more: convert the model again".to_owned(),
        (_, swapped @ 1..=3) => {
            format!(
                "version {swapped} in big-endian byte order: the file was made for other machines, and llama.cpp does \
                 not load it on this one"
            )
        }
        _ => format!("version {version} of the format; 2 and 3 are known"),
    };
    Err(scan.broken(at, why))
}

fn read_entry(scan: &mut Scan<'_>, index: usize, count: u64) -> Result<(), Fault> {
    scan.place = Place::Entry(index, count, None);
    let key = scan.text("its key", limits::KEY_BYTES)?;
    check_name(scan, key, "its key")?;
    if key.0 == key.1 {
        return Err(scan.broken(key.0, "its key is empty"));
    }
    scan.place = Place::Entry(index, count, Some(key));
    let at = scan.at;
    let kind = scan.u32()?;
    if kind != ARRAY {
        return match ItemType::find(kind) {
            Some(ItemType::Text) => scan.text("its text", limits::TEXT_BYTES).map(drop),
            Some(item) => scan.take(item.size() as u64).map(drop),
            None => Err(scan.broken(at, format!("{kind} is not the number of a type"))),
        };
    }
    let at = scan.at;
    let item = match scan.u32()? {
        ARRAY => return Err(scan.broken(at, "an array of arrays, which llama.cpp does not read")),
        kind => ItemType::find(kind)
            .ok_or_else(|| scan.broken(at, format!("{kind} is not the number of a type of items")))?,
    };
    let items = scan.count("items", item.size() as u64, limits::ITEMS)?;
    match item {
        ItemType::Text => (0..items).try_for_each(|_| scan.text("an item", limits::TEXT_BYTES).map(drop)),
        _ => scan.take(items * item.size() as u64).map(drop),
    }
}

/// Reads one tensor's entry, checks it, and gives where the data of the next one must begin: without gaps and overlaps,
/// as llama.cpp wants it.
fn read_tensor(scan: &mut Scan<'_>, index: usize, count: u64, alignment: u32, expected: u64) -> Result<u64, Fault> {
    scan.place = Place::Tensor(index, count, None);
    let name = scan.text("its name", limits::NAME_BYTES)?;
    check_name(scan, name, "its name")?;
    scan.place = Place::Tensor(index, count, Some(name));
    let at = scan.at;
    let dimensions = scan.u32()?;
    if dimensions > limits::DIMENSIONS {
        return Err(scan.broken(at, format!("{dimensions} dimensions are more than {}", limits::DIMENSIONS)));
    }
    let at = scan.at;
    let mut shape = [1; limits::DIMENSIONS as usize];
    for length in shape.iter_mut().take(dimensions as usize) {
        *length = scan.u64()?;
    }
    let shape = &shape[..(dimensions as usize).max(1)];
    let too_large = |scan: &Scan<'_>| scan.broken(at, format!("its shape {shape:?} is too large"));
    if shape.iter().any(|&length| i64::try_from(length).is_err()) {
        return Err(too_large(scan));
    }
    let elements = tensor::elements(shape).ok_or_else(|| too_large(scan))?;
    let kind_at = scan.at;
    let id = scan.u32()?;
    let Some(kind) = TensorType::find(id) else {
        return Err(scan.broken(kind_at, format!("{id} is not the number of a type of weights")));
    };
    if !shape[0].is_multiple_of(kind.block) {
        let why = format!("rows of {} weights are not whole blocks of {} as {} has", shape[0], kind.block, kind.name);
        return Err(scan.broken(at, why));
    }
    let offset_at = scan.at;
    let offset = scan.u64()?;
    if offset != expected {
        let why = match (offset % u64::from(alignment), offset < expected) {
            (0, true) => "it overlaps the data of the tensor before it",
            (0, false) => "there is a gap before it",
            _ => "it is not aligned",
        };
        return Err(scan.broken(offset_at, format!("its data begins at {offset} and not at {expected}: {why}")));
    }
    let end = kind.bytes(elements).and_then(|bytes| offset.checked_add(bytes));
    end.and_then(|end| end.checked_next_multiple_of(alignment.into())).ok_or_else(|| too_large(scan))
}

/// Keys and names are UTF-8 without zero bytes; llama.cpp would read others up to the zero.
fn check_name(scan: &Scan<'_>, (start, end): (usize, usize), what: &str) -> Result<(), Fault> {
    let bytes = &scan.bytes[start..end];
    match std::str::from_utf8(bytes) {
        Err(_) => Err(scan.broken(start, format!("{what} is not UTF-8"))),
        Ok(_) if bytes.contains(&0) => Err(scan.broken(start, format!("{what} has a zero byte inside"))),
        Ok(_) => Ok(()),
    }
}

fn alignment(scan: &Scan<'_>, entries: &[u32], by_key: &[u32]) -> Result<u32, Fault> {
    const KEY: &str = "general.alignment";
    let Some(index) = find(&scan.bytes, entries, by_key, KEY) else { return Ok(DEFAULT_ALIGNMENT) };
    let at = entries[index] as usize;
    let value_at = at + 8 + KEY.len();
    let broken = |why: String| Fault::Broken {
        offset: at as u64,
        place: format!("metadata entry {} of {}, key {KEY:?}", index + 1, entries.len()),
        why,
    };
    match u32_at(&scan.bytes, value_at) {
        4 => match u32_at(&scan.bytes, value_at + 4) {
            bytes if bytes.is_power_of_two() => Ok(bytes),
            bytes => Err(broken(format!("{bytes} is not a power of two"))),
        },
        _ => Err(broken("it must be a u32".to_owned())),
    }
}

/// Where the text at the start of an entry begins and ends.
fn range(bytes: &[u8], at: u32) -> (usize, usize) {
    let start = at as usize + 8;
    (start, start + text_at(bytes, at as usize).len())
}

/// The numbers of entries in the order of the texts that they begin with; equal ones in the order of the file.
fn sorted(bytes: &[u8], entries: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_unstable_by_key(|&index| (text_at(bytes, entries[index as usize] as usize), index));
    order
}

/// Two entries that begin with the same text.
fn double(bytes: &[u8], entries: &[u32], order: &[u32]) -> Option<(usize, usize)> {
    let text = |index: u32| text_at(bytes, entries[index as usize] as usize);
    let pair = order.windows(2).find(|pair| text(pair[0]) == text(pair[1]))?;
    Some((pair[0] as usize, pair[1] as usize))
}

fn find(bytes: &[u8], entries: &[u32], order: &[u32], wanted: &str) -> Option<usize> {
    let text = |&index: &u32| text_at(bytes, entries[index as usize] as usize);
    order.binary_search_by(|index| text(index).cmp(wanted.as_bytes())).ok().map(|place| order[place] as usize)
}
