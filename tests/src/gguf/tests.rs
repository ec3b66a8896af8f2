//! The writer's files, read back by [`reader`].

use std::fs;

use super::{reader::Parsed, *};

fn sample<'a>() -> Gguf<'a> {
    let mut gguf = Gguf::new();
    gguf.set("u8", 200u8)
        .set("i8", -100i8)
        .set("u16", 60_000u16)
        .set("i16", -30_000i16)
        .set("u32", 4_000_000_000u32)
        .set("i32", -2_000_000_000i32)
        .set("f32", 0.25f32)
        .set("bool", true)
        .set("string", "zoo ü")
        .set("u64", u64::MAX)
        .set("i64", i64::MIN)
        .set("f64", -0.125f64)
        .set("empty", Vec::<String>::new())
        .set("strings", vec!["a".to_owned(), String::new()])
        .set("bools", vec![true, false])
        .set("i32s", vec![-1i32, 2])
        .set("f32s", vec![0.5f32]);
    for i in 0..5 {
        gguf.add(Tensor::matrix(format!("m{i}"), TensorType::F32, 3, 2, move |row, out| {
            out.copy_from_slice(&[i as f32, row as f32, 7.0]);
        }));
    }
    gguf.add(Tensor::constant("ones", 9, 1.0));
    gguf.add(Tensor::matrix("half", TensorType::F16, 3, 3, |_, out| out.fill(1.0)));
    gguf.add(Tensor::matrix("q8", TensorType::Q8_0, 64, 3, |_, out| out.fill(1.0)));
    gguf.add(Tensor::matrix("q4", TensorType::Q4_1, 32, 3, |_, out| out.fill(1.0)));
    gguf.add(Tensor::matrices("three", TensorType::F32, [2, 3, 2], |row, out| out.fill(row as f32)));
    gguf
}

#[test]
fn every_type_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.gguf");
    sample().write(&path).unwrap();
    let parsed = Parsed::open(&path);
    let expected = [
        ("u8", "200"),
        ("i8", "-100"),
        ("u16", "60000"),
        ("i16", "-30000"),
        ("u32", "4000000000"),
        ("i32", "-2000000000"),
        ("f32", "0.25"),
        ("bool", "true"),
        ("string", "zoo ü"),
        ("u64", "18446744073709551615"),
        ("i64", "-9223372036854775808"),
        ("f64", "-0.125"),
        ("empty", "[]"),
        ("strings", "[a,]"),
        ("bools", "[true,false]"),
        ("i32s", "[-1,2]"),
        ("f32s", "[0.5]"),
    ];
    assert_eq!(parsed.metadata.len(), expected.len());
    for (key, value) in expected {
        assert_eq!(parsed.metadata[key], value, "{key}");
    }
    assert_eq!(parsed.tensors.len(), 10);
    assert_eq!(parsed.tensors[4].shape, [3, 2]);
    assert_eq!(parsed.floats("m4"), [4.0, 0.0, 7.0, 4.0, 1.0, 7.0]);
    assert_eq!(parsed.floats("ones"), [1.0; 9]);
    assert_eq!(parsed.tensors[6].kind, 1);
    assert_eq!(parsed.tensors[9].shape, [2, 3, 2]);
    assert_eq!(parsed.floats("three"), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]);
    assert_eq!(fs::metadata(&path).unwrap().len(), sample().file_size());
}

#[test]
fn alignment_is_kept_and_stated() {
    let dir = tempfile::tempdir().unwrap();
    for alignment in [8, 32, 256] {
        let path = dir.path().join(format!("{alignment}.gguf"));
        let mut gguf = sample();
        gguf.align(alignment).write(&path).unwrap();
        let parsed = Parsed::open(&path);
        assert_eq!(parsed.metadata["general.alignment"], alignment.to_string());
        assert_eq!(fs::metadata(&path).unwrap().len(), gguf.file_size());
    }
}

#[test]
fn a_split_holds_every_tensor_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut gguf = sample();
    gguf.align(64);
    let paths = gguf.write_split(dir.path(), "model", 3).unwrap();
    assert_eq!(paths[1], dir.path().join("model-00002-of-00003.gguf"));
    let mut names = Vec::new();
    for (no, path) in paths.iter().enumerate() {
        let part = Parsed::open(path);
        assert_eq!(part.metadata["split.no"], no.to_string());
        assert_eq!(part.metadata["split.count"], "3");
        assert_eq!(part.metadata["split.tensors.count"], "10");
        assert_eq!(part.metadata.contains_key("string"), no == 0);
        assert!(!part.tensors.is_empty());
        names.extend(part.tensors.into_iter().map(|tensor| tensor.name));
    }
    assert_eq!(names, ["m0", "m1", "m2", "m3", "m4", "ones", "half", "q8", "q4", "three"]);
}

#[test]
fn a_sparse_file_has_the_structure_of_the_full_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.gguf");
    sample().write_sparse(&path).unwrap();
    let parsed = Parsed::open(&path);
    assert_eq!(parsed.tensors.len(), 10);
    assert_eq!(parsed.floats("ones"), [0.0; 9]);
}
