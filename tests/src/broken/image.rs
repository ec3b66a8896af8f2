//! A file taken apart, so that every part of it can be changed, also into what the writer would never write.

use std::sync::Arc;

use crate::gguf::{Array, Gguf, Value};

/// The parts of a file. [`Image::encode`] puts them together as they are, whether they fit together or not.
#[derive(Clone, Debug)]
pub struct Image {
    /// The first four bytes.
    pub magic: [u8; 4],
    /// The version of the format. Version 1 has shorter counts.
    pub version: u32,
    /// Whether all numbers are big-endian, the weights' too.
    pub big_endian: bool,
    /// What the header says the number of tensors is; `None` for the truth.
    pub tensor_count: Option<u64>,
    /// What the header says the number of metadata entries is; `None` for the truth.
    pub metadata_count: Option<u64>,
    /// The metadata.
    pub metadata: Vec<Entry>,
    /// The table of tensors.
    pub tensors: Vec<Info>,
    /// What the data section is aligned to.
    pub alignment: u64,
    data: Arc<[u8]>,
}

/// A metadata entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key, as bytes.
    pub key: Vec<u8>,
    /// The value.
    pub value: Content,
}

/// What stands in the place of a value.
#[derive(Clone, Debug)]
pub enum Content {
    /// A value as it should be.
    Value(Value),
    /// The number of a type, and bytes that need not be of that type.
    Raw(u32, Vec<u8>),
    /// A string or an array with another count than that of its bytes or items.
    Count(Value, u64),
}

/// A row of the table of tensors.
#[derive(Clone, Debug)]
pub struct Info {
    /// The name.
    pub name: String,
    /// The number of dimensions that is stated; `None` for the truth.
    pub dimensions: Option<u32>,
    /// The lengths of the dimensions.
    pub shape: Vec<u64>,
    /// The number of the type.
    pub kind: u32,
    /// Where the data begins in the data section.
    pub offset: u64,
    /// The bytes of a number in the data, for the other byte order.
    number: usize,
    size: usize,
}

/// A file and where its parts begin.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Each place where a part begins, with its name, in order. The last one is the end of the file.
    pub boundaries: Vec<(String, usize)>,
}

impl Image {
    /// Takes a file apart.
    pub fn of(gguf: &Gguf<'_>) -> Self {
        let alignment = u64::from(gguf.alignment());
        let mut data = Vec::new();
        let mut tensors = Vec::new();
        for tensor in gguf.tensors() {
            let bytes = tensor.data();
            tensors.push(Info {
                name: tensor.name().to_owned(),
                dimensions: None,
                shape: tensor.shape().to_vec(),
                kind: tensor.kind().id(),
                offset: data.len() as u64,
                number: (tensor.kind().row_size(32) / 32) as usize,
                size: bytes.len(),
            });
            data.extend(bytes);
            data.resize(data.len().next_multiple_of(alignment as usize), 0);
        }
        let entry = |(key, value): &(String, Value)| Entry {
            key: key.clone().into_bytes(),
            value: Content::Value(value.clone()),
        };
        Self {
            magic: *b"GGUF",
            version: 3,
            big_endian: false,
            tensor_count: None,
            metadata_count: None,
            metadata: gguf.metadata().iter().map(entry).collect(),
            tensors,
            alignment,
            data: data.into(),
        }
    }

    /// The number of bytes of the data section.
    pub fn data_size(&self) -> u64 {
        self.data.len() as u64
    }

    /// Puts the parts together.
    pub fn encode(&self) -> Encoded {
        let mut out = Out { bytes: Vec::new(), boundaries: Vec::new(), big: self.big_endian, short: self.version == 1 };
        out.mark("magic");
        out.bytes.extend(self.magic);
        out.mark("version");
        out.number(&self.version.to_le_bytes());
        out.mark("number of tensors");
        out.count(self.tensor_count.unwrap_or(self.tensors.len() as u64));
        out.mark("number of metadata entries");
        out.count(self.metadata_count.unwrap_or(self.metadata.len() as u64));
        for entry in &self.metadata {
            let key = String::from_utf8_lossy(&entry.key).chars().take(60).collect::<String>();
            out.mark(&format!("{key}: length of the key"));
            out.count(entry.key.len() as u64);
            out.mark(&format!("{key}: key"));
            out.bytes.extend(&entry.key);
            out.content(&key, &entry.value);
        }
        for info in &self.tensors {
            let name = &info.name;
            out.mark(&format!("{name}: length of the name"));
            out.count(name.len() as u64);
            out.mark(&format!("{name}: name"));
            out.bytes.extend(name.as_bytes());
            out.mark(&format!("{name}: number of dimensions"));
            out.number(&info.dimensions.unwrap_or(info.shape.len() as u32).to_le_bytes());
            out.mark(&format!("{name}: dimensions"));
            info.shape.iter().for_each(|length| out.count(*length));
            out.mark(&format!("{name}: type"));
            out.number(&info.kind.to_le_bytes());
            out.mark(&format!("{name}: offset"));
            out.number(&info.offset.to_le_bytes());
        }
        out.mark("padding before the data");
        let start = out.bytes.len().next_multiple_of(self.alignment.max(1) as usize);
        out.bytes.resize(start, 0);
        let mut place = 0;
        for info in &self.tensors {
            out.boundaries.push((format!("{}: data", info.name), start + place));
            place = (place + info.size).next_multiple_of(self.alignment.max(1) as usize);
        }
        out.bytes.extend_from_slice(&self.data);
        if self.big_endian {
            self.tensors.iter().filter(|info| info.number > 1).for_each(|info| {
                let from = start + info.offset as usize;
                out.bytes[from..from + info.size].chunks_exact_mut(info.number).for_each(<[u8]>::reverse);
            });
        }
        out.mark("end");
        out.boundaries.sort_by_key(|(_, place)| *place);
        Encoded { bytes: out.bytes, boundaries: out.boundaries }
    }
}

struct Out {
    bytes: Vec<u8>,
    boundaries: Vec<(String, usize)>,
    big: bool,
    /// Counts are of 32 bits, as in version 1.
    short: bool,
}

impl Out {
    fn mark(&mut self, name: &str) {
        self.boundaries.push((name.to_owned(), self.bytes.len()));
    }

    /// Writes a number given in little-endian bytes.
    fn number(&mut self, little: &[u8]) {
        let at = self.bytes.len();
        self.bytes.extend(little);
        if self.big {
            self.bytes[at..].reverse();
        }
    }

    fn count(&mut self, count: u64) {
        if self.short { self.number(&(count as u32).to_le_bytes()) } else { self.number(&count.to_le_bytes()) }
    }

    fn content(&mut self, key: &str, content: &Content) {
        let kind = match content {
            Content::Value(value) | Content::Count(value, _) => type_of(value),
            Content::Raw(kind, _) => *kind,
        };
        self.mark(&format!("{key}: type"));
        self.number(&kind.to_le_bytes());
        self.mark(&format!("{key}: value"));
        match content {
            Content::Value(value) => self.value(value, None),
            Content::Count(value, count) => self.value(value, Some(*count)),
            Content::Raw(_, bytes) => self.bytes.extend(bytes),
        }
    }

    fn value(&mut self, value: &Value, count: Option<u64>) {
        match value {
            Value::U8(x) => self.number(&x.to_le_bytes()),
            Value::I8(x) => self.number(&x.to_le_bytes()),
            Value::U16(x) => self.number(&x.to_le_bytes()),
            Value::I16(x) => self.number(&x.to_le_bytes()),
            Value::U32(x) => self.number(&x.to_le_bytes()),
            Value::I32(x) => self.number(&x.to_le_bytes()),
            Value::F32(x) => self.number(&x.to_le_bytes()),
            Value::U64(x) => self.number(&x.to_le_bytes()),
            Value::I64(x) => self.number(&x.to_le_bytes()),
            Value::F64(x) => self.number(&x.to_le_bytes()),
            Value::Bool(x) => self.bytes.push(u8::from(*x)),
            Value::String(text) => self.string(text, count),
            Value::Array(array) => self.array(array, count),
        }
    }

    fn string(&mut self, text: &str, count: Option<u64>) {
        self.count(count.unwrap_or(text.len() as u64));
        self.bytes.extend(text.as_bytes());
    }

    fn array(&mut self, array: &Array, count: Option<u64>) {
        let items = items(array);
        self.number(&type_of_items(array).to_le_bytes());
        self.count(count.unwrap_or(items.len() as u64));
        items.iter().for_each(|item| self.value(item, None));
    }
}

/// The items of an array, each as a value.
pub(super) fn items(array: &Array) -> Vec<Value> {
    match array {
        Array::U8(items) => items.iter().map(|x| Value::U8(*x)).collect(),
        Array::I8(items) => items.iter().map(|x| Value::I8(*x)).collect(),
        Array::U16(items) => items.iter().map(|x| Value::U16(*x)).collect(),
        Array::I16(items) => items.iter().map(|x| Value::I16(*x)).collect(),
        Array::U32(items) => items.iter().map(|x| Value::U32(*x)).collect(),
        Array::I32(items) => items.iter().map(|x| Value::I32(*x)).collect(),
        Array::F32(items) => items.iter().map(|x| Value::F32(*x)).collect(),
        Array::U64(items) => items.iter().map(|x| Value::U64(*x)).collect(),
        Array::I64(items) => items.iter().map(|x| Value::I64(*x)).collect(),
        Array::F64(items) => items.iter().map(|x| Value::F64(*x)).collect(),
        Array::Bool(items) => items.iter().map(|x| Value::Bool(*x)).collect(),
        Array::String(items) => items.iter().map(|x| Value::String(x.clone())).collect(),
    }
}

/// The number that the format gives a type.
pub(super) fn type_of(value: &Value) -> u32 {
    match value {
        Value::U8(_) => 0,
        Value::I8(_) => 1,
        Value::U16(_) => 2,
        Value::I16(_) => 3,
        Value::U32(_) => 4,
        Value::I32(_) => 5,
        Value::F32(_) => 6,
        Value::Bool(_) => 7,
        Value::String(_) => 8,
        Value::Array(_) => 9,
        Value::U64(_) => 10,
        Value::I64(_) => 11,
        Value::F64(_) => 12,
    }
}

fn type_of_items(array: &Array) -> u32 {
    match array {
        Array::U8(_) => 0,
        Array::I8(_) => 1,
        Array::U16(_) => 2,
        Array::I16(_) => 3,
        Array::U32(_) => 4,
        Array::I32(_) => 5,
        Array::F32(_) => 6,
        Array::Bool(_) => 7,
        Array::String(_) => 8,
        Array::U64(_) => 10,
        Array::I64(_) => 11,
        Array::F64(_) => 12,
    }
}
