//! Files made by hand for the tests of the reader, right or wrong in any way.

/// A file to be: entries and tensors as they will stand in it.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) version: u32,
    pub(crate) entries: Vec<(String, Raw)>,
    pub(crate) tensors: Vec<MadeTensor>,
    pub(crate) alignment: u64,
}

/// The type and the bytes of a value.
#[derive(Clone, Debug)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

#[derive(Clone, Debug)]
pub(crate) struct MadeTensor {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) shape: Vec<u64>,
    /// Instead of the one behind the tensor before it.
    pub(crate) offset: Option<u64>,
}

impl Made {
    pub(crate) fn new() -> Self {
        Self { version: 3, entries: Vec::new(), tensors: Vec::new(), alignment: 32 }
    }

    /// Sets a key, in the place of an earlier value.
    pub(crate) fn set(mut self, key: &str, value: impl Into<Raw>) -> Self {
        let value = value.into();
        match self.entries.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.entries.push((key.to_owned(), value)),
        }
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.entries.retain(|(key, _)| key != name);
        self.tensors.retain(|tensor| tensor.name != name);
        self
    }

    /// Adds a tensor of f32, or replaces one.
    pub(crate) fn tensor(self, name: &str, shape: &[u64]) -> Self {
        self.tensor_of(name, 0, shape)
    }

    pub(crate) fn tensor_of(mut self, name: &str, kind: u32, shape: &[u64]) -> Self {
        let made = MadeTensor { name: name.to_owned(), kind, shape: shape.to_vec(), offset: None };
        match self.tensors.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = made,
            None => self.tensors.push(made),
        }
        self
    }

    /// The header, and the size of the whole file.
    pub(crate) fn header(&self) -> (Vec<u8>, u64) {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.entries.len() as u64).to_le_bytes());
        for (key, Raw(value)) in &self.entries {
            out.extend(text(key));
            out.extend(value);
        }
        let mut end = 0;
        for tensor in &self.tensors {
            out.extend(text(&tensor.name));
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            out.extend(tensor.shape.iter().flat_map(|length| length.to_le_bytes()));
            out.extend(tensor.kind.to_le_bytes());
            out.extend(tensor.offset.unwrap_or(end).to_le_bytes());
            let (block, bytes) =
                super::TensorType::find(tensor.kind).map_or((1, 4), |kind| (kind.block, kind.block_bytes));
            let elements = tensor.shape.iter().fold(1u64, |product, &length| product.saturating_mul(length));
            let size = (elements / block).saturating_mul(bytes);
            end = end.saturating_add(size.checked_next_multiple_of(self.alignment).unwrap_or(u64::MAX));
        }
        let data = (out.len() as u64).next_multiple_of(self.alignment);
        let size = if self.tensors.is_empty() { out.len() as u64 } else { data.saturating_add(end) };
        (out, size)
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A value of the type with this number.
pub(crate) fn raw(kind: u32, bytes: &[u8]) -> Raw {
    Raw([&kind.to_le_bytes()[..], bytes].concat())
}

/// An array of items of the type with this number.
pub(crate) fn raw_array(kind: u32, count: u64, bytes: &[u8]) -> Raw {
    raw(9, &[&kind.to_le_bytes()[..], &count.to_le_bytes()[..], bytes].concat())
}

macro_rules! numbers {
    ($($number:ty = $kind:literal),*) => {$(
        impl From<$number> for Raw {
            fn from(number: $number) -> Self {
                raw($kind, &number.to_le_bytes())
            }
        }

        impl From<&[$number]> for Raw {
            fn from(numbers: &[$number]) -> Self {
                let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                raw_array($kind, numbers.len() as u64, &bytes)
            }
        }
    )*};
}

numbers!(u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, u64 = 10, i64 = 11, f64 = 12);

impl From<bool> for Raw {
    fn from(flag: bool) -> Self {
        raw(7, &[flag.into()])
    }
}

impl From<&[bool]> for Raw {
    fn from(flags: &[bool]) -> Self {
        let bytes: Vec<u8> = flags.iter().map(|&flag| flag.into()).collect();
        raw_array(7, flags.len() as u64, &bytes)
    }
}

impl From<&str> for Raw {
    fn from(value: &str) -> Self {
        raw(8, &text(value))
    }
}

impl From<&[String]> for Raw {
    fn from(texts: &[String]) -> Self {
        let bytes: Vec<u8> = texts.iter().flat_map(|item| text(item)).collect();
        raw_array(8, texts.len() as u64, &bytes)
    }
}
