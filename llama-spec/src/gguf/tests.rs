//! Tests of the reader on files made by hand.

use super::made::{Made, Raw, raw, raw_array};
use super::source::Source;
use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::io;

/// The first bytes of a file of `len` bytes; counts what is read.
struct Counting<'a> {
    bytes: &'a [u8],
    len: u64,
    read: Cell<u64>,
    reads: Cell<u64>,
}

impl<'a> Counting<'a> {
    fn new(bytes: &'a [u8], len: u64) -> Self {
        Self { bytes, len, read: Cell::new(0), reads: Cell::new(0) }
    }
}

impl Source for Counting<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    /// Zeros follow the given bytes, as in a file that was extended without writing. At most 1000 bytes come at once.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset).min(1000) as usize;
        let count = into.len().min(left);
        for (at, byte) in (offset..).zip(&mut into[..count]) {
            *byte = self.bytes.get(at as usize).copied().unwrap_or(0);
        }
        self.read.set(self.read.get() + count as u64);
        self.reads.set(self.reads.get() + 1);
        Ok(count)
    }
}

fn read(made: &Made) -> Result<Header, Fault> {
    let (bytes, len) = made.header();
    Header::read(&Prefix { bytes: &bytes, len })
}

/// Where a header is broken, what stands there, and why.
fn fault(result: Result<Header, Fault>) -> (u64, String, String) {
    match result {
        Err(Fault::Broken { offset, place, why }) => (offset, place, why),
        other => panic!("{other:?}"),
    }
}

fn sample() -> Made {
    Made::new()
        .set("general.architecture", "llama")
        .set("a.u8", 1u8)
        .set("a.i8", -1i8)
        .set("a.u16", 2u16)
        .set("a.i16", -2i16)
        .set("a.u32", 3u32)
        .set("a.i32", -3i32)
        .set("a.f32", 0.5f32)
        .set("a.bool", true)
        .set("a.u64", u64::MAX)
        .set("a.i64", i64::MIN)
        .set("a.f64", 0.25f64)
        .set("b.texts", &["one".to_owned(), String::new(), "drei ü".to_owned()][..])
        .set("b.i32", &[-1i32, 2][..])
        .set("b.bool", &[true, false][..])
        .set("b.f64", &[1.5f64][..])
        .tensor("one.weight", &[8, 3])
        .tensor_of("two.weight", 2, &[64])
        .tensor("three", &[])
}

#[test]
fn all_types_come_back() {
    let header = read(&sample()).unwrap();
    let value = |key: &str| header.value(key).unwrap();
    assert_eq!(value("general.architecture"), Value::Text(b"llama"));
    assert_eq!(value("a.u8"), Value::U8(1));
    assert_eq!(value("a.i8"), Value::I8(-1));
    assert_eq!(value("a.u16"), Value::U16(2));
    assert_eq!(value("a.i16"), Value::I16(-2));
    assert_eq!(value("a.u32"), Value::U32(3));
    assert_eq!(value("a.i32"), Value::I32(-3));
    assert_eq!(value("a.f32"), Value::F32(0.5));
    assert_eq!(value("a.bool"), Value::Bool(true));
    assert_eq!(value("a.u64"), Value::U64(u64::MAX));
    assert_eq!(value("a.i64"), Value::I64(i64::MIN));
    assert_eq!(value("a.f64"), Value::F64(0.25));
    let array = |key: &str| match value(key) {
        Value::Array(array) => array,
        other => panic!("{other:?}"),
    };
    let texts: Vec<_> = array("b.texts").texts().unwrap().collect();
    assert_eq!(texts, [&b"one"[..], b"", "drei ü".as_bytes()]);
    assert_eq!(array("b.i32").integers().unwrap().collect::<Vec<_>>(), [-1, 2]);
    assert_eq!(array("b.bool").integers().unwrap().collect::<Vec<_>>(), [1, 0]);
    assert!(array("b.f64").integers().is_none());
    assert_eq!(array("b.f64").items().collect::<Vec<_>>(), [Value::F64(1.5)]);
    assert!(header.value("a").is_none());
    assert_eq!(header.entries().count(), 16);

    let tensors: Vec<_> = header.tensors(7).collect();
    let shapes: Vec<_> =
        tensors.iter().map(|tensor| (tensor.name, tensor.shape(), tensor.bytes(), tensor.part)).collect();
    assert_eq!(
        shapes,
        [("one.weight", &[8, 3][..], 96, 7), ("two.weight", &[64][..], 36, 7), ("three", &[][..], 4, 7)]
    );
    let start = (header.header_bytes() as u64).next_multiple_of(32);
    let offsets: Vec<_> = tensors.iter().map(|tensor| tensor.offset - start).collect();
    assert_eq!(offsets, [0, 96, 160]);
    assert_eq!(header.tensor("two.weight", 0).unwrap().kind.name, "q4_0");
}

#[test]
fn a_header_cut_anywhere_is_refused() {
    let (bytes, len) = sample().header();
    for cut in 0..bytes.len() {
        let short = Header::read(&Prefix { bytes: &bytes[..cut], len: cut as u64 });
        assert!(short.is_err(), "{cut} bytes of {}", bytes.len());
        // The same when the file is said to be long and is not.
        assert!(Header::read(&Prefix { bytes: &bytes[..cut], len }).is_err(), "{cut} bytes of {}", bytes.len());
    }
    // The padding behind the last tensor may be missing.
    let data_end = read(&sample()).unwrap().tensors(0).last().map(|tensor| tensor.offset + tensor.bytes()).unwrap();
    assert!(Header::read(&Prefix { bytes: &bytes, len: data_end }).is_ok());
    for cut in bytes.len() as u64..data_end {
        let (_, place, why) = fault(Header::read(&Prefix { bytes: &bytes, len: cut }));
        assert!(place.starts_with("tensor "), "{place}");
        assert!(why.contains("it is not complete"), "{why}");
    }
    assert!(Header::read(&Prefix { bytes: &bytes, len }).is_ok());
}

#[test]
fn versions_and_byte_orders_are_told_apart() {
    let versioned = |version| Made { version, ..sample() };
    assert!(read(&versioned(2)).is_ok());
    let why = |version: u32| fault(read(&versioned(version))).2;
    assert!(why(1).contains("convert the model again"), "{}", why(1));
    assert!(why(3u32.swap_bytes()).contains("version 3 in big-endian byte order"), "{}", why(3u32.swap_bytes()));
    assert!(why(4).contains("version 4"), "{}", why(4));
    assert!(why(0).contains("version 0"), "{}", why(0));
    let other = |bytes: &[u8]| match Header::read(&Prefix { bytes, len: bytes.len() as u64 }) {
        Err(Fault::NotGguf(found)) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(other(b""), "it is empty");
    assert_eq!(other(b"GG"), "it ends after 2 bytes");
    assert_eq!(other(b"PK\x03\x04 and more"), "it begins with \"PK\\u{3}\\u{4}\"");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let (_, place, why) = fault(read(&sample().set("a.u32", raw(13, &[0; 4]))));
    assert_eq!(
        (place.as_str(), why.as_str()),
        ("metadata entry 6 of 16, key \"a.u32\"", "13 is not the number of a type")
    );
    let nested = raw_array(9, 1, &[0; 12]);
    let (offset, _, why) = fault(read(&Made::new().set("x", nested)));
    assert_eq!((offset, why.as_str()), (24 + 9 + 4, "an array of arrays, which llama.cpp does not read"));

    let mut twice = sample();
    twice.entries.push(("a.u8".into(), 5u32.into()));
    let (_, place, why) = fault(read(&twice));
    assert_eq!((place.as_str(), why.as_str()), ("metadata entry 17 of 17, key \"a.u8\"", "entry 2 has the same key"));

    let mut twice = sample();
    twice.tensors.push(twice.tensors[0].clone());
    let (_, place, why) = fault(read(&twice));
    assert_eq!((place.as_str(), why.as_str()), ("tensor 4 of 4, named \"one.weight\"", "tensor 1 has the same name"));

    let why = |made: Made| fault(read(&made)).2;
    assert!(why(sample().set("", 1u32)).contains("its key is empty"));
    assert!(why(sample().set("a\0b", 1u32)).contains("zero byte"));
    assert!(why(sample().tensor(&"n".repeat(64), &[1])).contains("64 bytes, more than 63"));
    assert!(why(sample().tensor("t", &[1, 1, 1, 1, 1])).contains("5 dimensions"));
    assert!(why(sample().tensor("t", &[u64::MAX])).contains("too large"));
    assert!(why(sample().tensor("t", &[1 << 32, 1 << 31])).contains("too large"));
    assert!(why(sample().tensor_of("t", 4, &[32])).contains("4 is not the number of a type of weights"));
    assert!(why(sample().tensor_of("t", 44, &[32])).contains("44 is not"));
    assert!(why(sample().tensor_of("t", 2, &[48])).contains("not whole blocks of 32 as q4_0 has"));
    assert!(why(sample().set("general.alignment", 24u32)).contains("power of two"));
    assert!(why(sample().set("general.alignment", 32u64)).contains("must be a u32"));
}

#[test]
fn tensors_neither_overlap_nor_leave_gaps() {
    let shifted = |offset| {
        let mut made = sample();
        made.tensors[1].offset = Some(offset);
        fault(read(&made)).2
    };
    assert_eq!(shifted(64), "its data begins at 64 and not at 96: it overlaps the data of the tensor before it");
    assert_eq!(shifted(128), "its data begins at 128 and not at 96: there is a gap before it");
    assert_eq!(shifted(100), "its data begins at 100 and not at 96: it is not aligned");
    assert!(shifted(u64::MAX).contains("not aligned"));
}

#[test]
fn another_alignment_is_followed() {
    let made = Made { alignment: 4096, ..sample() }.set("general.alignment", 4096u32);
    let header = read(&made).unwrap();
    let offsets: Vec<_> = header.tensors(0).map(|tensor| tensor.offset).collect();
    assert_eq!(offsets, [4096, 8192, 12288]);
}

/// Lengths and counts that the file cannot hold are refused before anything is read or reserved for them.
#[test]
fn absurd_lengths_cost_nothing() {
    let absurd = [u64::MAX, i64::MAX as u64, 1 << 40, 1 << 33];
    let length = |length: u64| Raw([&8u32.to_le_bytes()[..], &length.to_le_bytes()].concat());
    for count in absurd {
        let mut cases: Vec<Vec<u8>> = Vec::new();
        for item in [0, 4, 8, 12] {
            cases.push(Made::new().set("x", raw_array(item, count, b"")).header().0);
        }
        cases.push(Made::new().set("x", length(count)).header().0);
        for at in [8, 16] {
            let mut bytes = sample().header().0;
            bytes[at..at + 8].copy_from_slice(&count.to_le_bytes());
            cases.push(bytes);
        }
        for bytes in cases {
            // In a large file the length may fit, and is still too much.
            for len in [bytes.len() as u64, 4 << 30] {
                let source = Counting::new(&bytes, len);
                assert!(Header::read(&source).is_err());
                assert!(source.read.get() <= 64 << 10, "{} bytes were read of {}", source.read.get(), bytes.len());
            }
        }
    }
}

/// Of a large file only the header is read, in one piece or a few.
#[test]
fn weights_are_not_read() {
    let made = sample().tensor("large.weight", &[1 << 16, 1 << 15]);
    let (bytes, len) = made.header();
    assert!(len > 8 << 30);
    let source = Counting::new(&bytes, len);
    Header::read(&source).unwrap();
    assert!(source.read.get() <= 64 << 10);

    let tokens: Vec<String> = (0..100_000).map(|id| format!("token {id}")).collect();
    let (bytes, len) = made.set("tokenizer.ggml.tokens", &tokens[..]).header();
    let source = Counting::new(&bytes, len);
    let header = Header::read(&source).unwrap();
    assert_eq!(header.header_bytes(), bytes.len());
    let extra = source.read.get() - bytes.len() as u64;
    assert!(extra <= bytes.len() as u64 / 4 + (64 << 10), "{extra} bytes too many");
    let positions = header.text_positions("tokenizer.ggml.tokens");
    assert_eq!(positions.len(), tokens.len());
    assert!(positions.iter().zip(&tokens).all(|(&at, token)| header.text(at) == token.as_bytes()));
}

#[test]
fn the_names_of_parts() {
    use std::path::Path;
    let siblings = |name: &str, number, count| split::siblings(Path::new(name), number, count);
    assert_eq!(
        siblings("/a/m-00002-of-00003.gguf", 1, 3).unwrap(),
        ["/a/m-00001-of-00003.gguf", "/a/m-00002-of-00003.gguf", "/a/m-00003-of-00003.gguf"]
            .map(std::path::PathBuf::from)
    );
    for wrong in ["m-00001-of-00003.gguf", "m.gguf", "-00002-of-00003.gguf", "m-2-of-3.gguf", "m-00002-of-00003"] {
        assert!(siblings(wrong, 1, 3).is_none(), "{wrong}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), valid in any::<bool>()) {
        let mut bytes = bytes;
        if valid && bytes.len() >= 24 {
            bytes[..8].copy_from_slice(b"GGUF\x03\0\0\0");
            bytes[9..16].fill(0);
            bytes[17..24].fill(0);
        }
        let len = bytes.len() as u64;
        let _ = Header::read(&Prefix { bytes: &bytes, len });
    }

    /// Whatever one field is changed into: what can be opened can be read to the end.
    #[test]
    fn any_change_of_a_file_is_read_without_a_panic(
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 1..9),
        grow in any::<bool>(),
    ) {
        let (mut bytes, len) = sample().header();
        let at = at.index(bytes.len());
        let end = if grow { at } else { (at + with.len()).min(bytes.len()) };
        bytes.splice(at..end, with);
        if let Ok(header) = Header::read(&Prefix { bytes: &bytes, len: len + 8 }) {
            for (key, value) in header.entries() {
                prop_assert_eq!(header.value(key).map(|value| value.type_name()), Some(value.type_name()));
                if let Value::Array(array) = value {
                    prop_assert_eq!(array.items().count(), array.len());
                }
            }
            for tensor in header.tensors(0) {
                prop_assert!(tensor.offset + tensor.bytes() <= len + 8);
                prop_assert_eq!(header.tensor(tensor.name, 0), Some(tensor));
            }
        }
    }
}
