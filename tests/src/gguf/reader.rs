//! A reader for the tests of the writer. It shares no code or table with it, so that an error in one shows.

use std::{collections::BTreeMap, fs, path::Path};

/// A parsed file: all metadata as text, all tensors, and where the data section begins.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) tensors: Vec<Info>,
    data_start: usize,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) kind: u32,
    offset: usize,
    size: usize,
}

impl Parsed {
    /// Reads `path` and checks the structure: magic, version, alignment of every tensor, no gap beyond padding, no
    /// overlap, and that the file ends where the last tensor's padding ends.
    pub(crate) fn open(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let mut at = Cursor { bytes: &bytes, at: 0 };
        assert_eq!(at.take(4), b"GGUF");
        assert_eq!(at.u32(), 3, "version");
        let (tensor_count, metadata_count) = (at.u64(), at.u64());
        let mut metadata = BTreeMap::new();
        for _ in 0..metadata_count {
            let key = at.string();
            let kind = at.u32();
            let value = at.value(kind);
            assert!(metadata.insert(key.clone(), value).is_none(), "{key} twice");
        }
        let tensors: Vec<Info> = (0..tensor_count).map(|_| at.info()).collect();
        let header_end = at.at;

        let alignment: usize = metadata.get("general.alignment").map_or(32, |text| text.parse().unwrap());
        let padded = |size: usize| size.div_ceil(alignment) * alignment;
        let data_start = padded(header_end);
        let mut expected = 0;
        for tensor in &tensors {
            assert_eq!(tensor.offset, expected, "{}", tensor.name);
            expected += padded(tensor.size);
        }
        assert_eq!(bytes.len(), data_start + expected, "size of the file");
        Self { metadata, tensors, data_start, bytes }
    }

    /// The bytes of a tensor.
    pub(crate) fn data(&self, name: &str) -> &[u8] {
        let tensor = self.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        &self.bytes[self.data_start + tensor.offset..][..tensor.size]
    }

    /// The weights of an F32 tensor.
    pub(crate) fn floats(&self, name: &str) -> Vec<f32> {
        self.data(name).chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    }
}

struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    fn take(&mut self, n: usize) -> &'b [u8] {
        let taken = &self.bytes[self.at..self.at + n];
        self.at += n;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn string(&mut self) -> String {
        let n = self.u64() as usize;
        String::from_utf8(self.take(n).to_vec()).unwrap()
    }

    fn value(&mut self, kind: u32) -> String {
        let number = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(wide)
        };
        match kind {
            0 => self.take(1)[0].to_string(),
            1 => (self.take(1)[0] as i8).to_string(),
            2 => number(self.take(2)).to_string(),
            3 => (number(self.take(2)) as i16).to_string(),
            4 => number(self.take(4)).to_string(),
            5 => (number(self.take(4)) as i32).to_string(),
            6 => f32::from_bits(number(self.take(4)) as u32).to_string(),
            7 => match self.take(1)[0] {
                0 => "false".to_owned(),
                1 => "true".to_owned(),
                other => panic!("{other} as a boolean"),
            },
            8 => self.string(),
            9 => {
                let kind = self.u32();
                assert_ne!(kind, 9, "array of arrays");
                let n = self.u64();
                let items: Vec<_> = (0..n).map(|_| self.value(kind)).collect();
                format!("[{}]", items.join(","))
            }
            10 => number(self.take(8)).to_string(),
            11 => (number(self.take(8)) as i64).to_string(),
            12 => f64::from_bits(number(self.take(8))).to_string(),
            other => panic!("metadata type {other}"),
        }
    }

    fn info(&mut self) -> Info {
        let name = self.string();
        let dimensions = self.u32();
        assert!((1..=4).contains(&dimensions), "{name}: {dimensions} dimensions");
        let shape: Vec<u64> = (0..dimensions).map(|_| self.u64()).collect();
        let kind = self.u32();
        let offset = self.u64() as usize;
        let (block, bytes) = match kind {
            0 => (1, 4),
            1 => (1, 2),
            3 => (32, 20),
            8 => (32, 34),
            26 => (1, 4),
            27 => (1, 8),
            other => panic!("{name}: tensor type {other}"),
        };
        assert_eq!(shape[0] % block, 0, "{name}: rows of whole blocks");
        let size = (shape.iter().product::<u64>() / block * bytes) as usize;
        Info { name, shape, kind, offset, size }
    }
}
