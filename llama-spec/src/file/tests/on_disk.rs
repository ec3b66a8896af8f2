//! Files on disk: those of the zoo, split ones, broken ones.

use super::*;
use crate::error::Error;
use llama_spec_tests::zoo::{self, Llama};
use llama_spec_tests::{broken, gguf};
use std::fs;
use std::time::Duration;

/// A directory that is removed with its files.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("llama-spec-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn models_of_the_zoo_are_without_defects() {
    let mut wrong = Vec::new();
    // Some are wrong on purpose, and their names say so.
    let right = |name: &str| !name.starts_with("bench") && !name.contains("-no-block-size");
    for named in zoo::named().into_iter().filter(|named| right(named.name)) {
        let file = ModelFile::open(zoo::file(named.name)).unwrap();
        let description = file.description();
        let loads = !matches!(description.kind, Kind::VocabularyOnly | Kind::Unknown);
        if loads && !description.defects.is_empty() {
            wrong.push((named.name, description.kind, description.defects.clone()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_model_of_the_zoo_is_described() {
    let model = Llama::target(1);
    let path = model.cached().unwrap();
    let file = ModelFile::open(&path).unwrap();
    let description = file.description();
    assert_eq!(description.kind, Kind::Generative);
    assert_eq!(description.architecture.as_deref(), Some("llama"));
    assert_eq!(description.file_bytes, fs::metadata(&path).unwrap().len());
    assert_eq!(description.parameters, model.gguf().parameters());
    assert_eq!((description.layers, description.width, description.trained_context), (3, Some(128), Some(4096)));
    assert_eq!((description.heads.as_slice(), description.kv_heads.as_slice()), (&[4, 4, 4][..], &[2, 2, 2][..]));
    let tokenizer = file.tokenizer().unwrap();
    let vocabulary = model.vocabulary();
    assert_eq!(tokenizer.size(), vocabulary.size());
    for id in 0..vocabulary.size() {
        assert_eq!(tokenizer.text(id), Some(vocabulary.text(id).as_bytes()));
    }
    assert_eq!(tokenizer.summary().add_bos, vocabulary.adds_bos());
    assert_eq!(file.tensors().count(), model.gguf().tensors().len());
    assert!(file.is_same_file(&file.clone()));
    assert!(!file.is_same_file(&ModelFile::open(Llama::target(1).draft(0.8).cached().unwrap()).unwrap()));
    #[cfg(unix)]
    {
        let folder = Folder::new("links");
        let link = folder.0.join("link.gguf");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(file.is_same_file(&ModelFile::open(link).unwrap()));
    }
}

#[test]
fn parts_are_found_and_joined() {
    let model = Llama::target(1);
    let (whole, parts) = (ModelFile::open(model.cached().unwrap()).unwrap(), model.cached_split(3).unwrap());
    let split = ModelFile::open(&parts[0]).unwrap();
    assert_eq!(split.parts(), parts);
    assert_eq!(split.description().defects, []);
    assert_eq!(split.description().parameters, whole.description().parameters);
    let names = |file: &ModelFile| file.tensors().map(|tensor| tensor.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&split), names(&whole));
    assert!(split.tensors().any(|tensor| tensor.part == 2));
    let last = names(&whole).pop().unwrap();
    assert_eq!(split.tensor(&last).unwrap().part, 2);

    let place = |result: Result<ModelFile>| match result {
        Err(Error::BrokenFile { place, why, .. }) => format!("{place}: {why}"),
        other => panic!("{other:?}"),
    };
    let second = place(ModelFile::open(&parts[1]));
    assert_eq!(second, "metadata key \"split.no\": it is part 2 of 3: open the first part");
    assert_eq!(ModelFile::open_parts(&parts).unwrap().parts(), parts);
    assert!(place(ModelFile::open_parts(&parts[..2])).contains("3 parts, and 2 were given"));
    let swapped = [&parts[0], &parts[2], &parts[1]];
    assert!(place(ModelFile::open_parts(&swapped)).contains("it is part 3, and part 2 was expected"));
    let double = [&parts[0], &parts[1], &parts[1]];
    assert!(place(ModelFile::open_parts(&double)).contains("part 3 was expected"));
    assert!(matches!(ModelFile::open_parts(&parts[..0]), Err(Error::Setting { .. })));

    let folder = Folder::new("renamed");
    let renamed: Vec<PathBuf> = (0..3).map(|number| folder.0.join(format!("part-{number}"))).collect();
    for (from, to) in parts.iter().zip(&renamed) {
        fs::copy(from, to).unwrap();
    }
    assert!(place(ModelFile::open(&renamed[0])).contains("NAME-00001-of-00003.gguf"));
    assert_eq!(ModelFile::open_parts(&renamed).unwrap().tensors().count(), whole.tensors().count());
}

#[test]
fn broken_files_are_refused_with_a_reason() {
    let folder = Folder::new("broken");
    for broken in broken::all(&folder.0).unwrap() {
        let error = ModelFile::open(&broken.path).expect_err(broken.name);
        let text = error.to_string();
        match broken.name {
            "missing" | "directory" | "split-part-missing" => assert!(matches!(error, Error::File { .. }), "{text}"),
            "empty" | "text" | "random" => assert!(matches!(error, Error::NotGguf { .. }), "{text}"),
            "truncated-data" | "truncated-last-byte" => assert!(text.contains("it is not complete"), "{text}"),
            _ => assert!(matches!(error, Error::BrokenFile { .. }), "{}: {text}", broken.name),
        }
    }
}

#[test]
fn vocabularies_are_told_apart_by_a_sum() {
    let sum = |name: &str| ModelFile::open(zoo::file(name)).unwrap().tokenizer().unwrap().fingerprint();
    assert_eq!(sum("target"), sum("target-f16"));
    assert_ne!(sum("target"), sum("draft-other-vocabulary"));
    assert_ne!(sum("target"), sum("draft-other-tokenizer"));
}

/// What another program writes comes back: the zoo's writer shares no code with the reader.
mod round_trip {
    use super::*;
    use gguf::{Array as Items, Gguf, Tensor, TensorType, Value as Written};
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Written> {
        prop_oneof![
            any::<u32>().prop_map(Written::U32),
            any::<i64>().prop_map(Written::I64),
            any::<bool>().prop_map(Written::Bool),
            (-1e9f64..1e9).prop_map(Written::F64),
            ".{0,20}".prop_map(Written::String),
            prop::collection::vec(any::<i16>(), 0..9).prop_map(|items| Written::Array(Items::I16(items))),
            prop::collection::vec(".{0,9}", 0..9).prop_map(|items| Written::Array(Items::String(items))),
        ]
    }

    fn same(written: &Written, read: Value<'_>) -> bool {
        match (written, read) {
            (Written::U32(one), Value::U32(other)) => *one == other,
            (Written::I64(one), Value::I64(other)) => *one == other,
            (Written::Bool(one), Value::Bool(other)) => *one == other,
            (Written::F64(one), Value::F64(other)) => *one == other,
            (Written::String(one), Value::Text(other)) => one.as_bytes() == other,
            (Written::Array(Items::I16(one)), Value::Array(other)) => {
                other.integers().unwrap().eq(one.iter().map(|&item| item.into()))
            }
            (Written::Array(Items::String(one)), Value::Array(other)) => {
                other.texts().unwrap().eq(one.iter().map(String::as_bytes))
            }
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn of_metadata_and_tensors(
            values in prop::collection::vec(value(), 0..12),
            rows in prop::collection::vec((1u64..5, 1u64..70), 0..6),
        ) {
            let folder = Folder::new("round-trip");
            let path = folder.0.join("file.gguf");
            let mut made = Gguf::new();
            for (number, value) in values.iter().enumerate() {
                made.set(format!("key.{number}"), value.clone());
            }
            for (number, &(blocks, rows)) in rows.iter().enumerate() {
                made.add(Tensor::matrix(format!("tensor.{number}"), TensorType::Q8_0, blocks * 32, rows, |_, _| {}));
            }
            made.write_sparse(&path).unwrap();
            let file = ModelFile::open(&path).unwrap();
            prop_assert_eq!(file.metadata().entries().len(), values.len());
            for (number, value) in values.iter().enumerate() {
                let found = file.metadata().get(&format!("key.{number}")).unwrap();
                prop_assert!(same(value, found), "{:?} {:?}", value, found);
            }
            for (number, &(blocks, rows)) in rows.iter().enumerate() {
                let tensor = file.tensor(&format!("tensor.{number}")).unwrap();
                prop_assert_eq!(tensor.shape(), [blocks * 32, rows]);
                prop_assert_eq!(tensor.bytes(), blocks * rows * 34);
            }
        }
    }
}

#[test]
fn a_file_that_was_replaced_is_another() {
    let folder = Folder::new("replaced");
    let path = folder.0.join("model.gguf");
    fs::copy(zoo::file("target"), &path).unwrap();
    let file = ModelFile::open(&path).unwrap();
    let (before, content) = (file.identity().unwrap(), file.content().unwrap());
    assert_eq!(ModelFile::open(&path).unwrap().identity().unwrap(), before);
    // Written anew with the same beginning: it can have other weights further on.
    let later = fs::metadata(&path).unwrap().modified().unwrap() + Duration::from_secs(1);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    assert_ne!(file.identity().unwrap(), before);
    assert_eq!(file.content().unwrap(), content);
    fs::copy(zoo::file("chat"), &path).unwrap();
    assert_ne!(ModelFile::open(&path).unwrap().content().unwrap(), content);
    fs::remove_file(&path).unwrap();
    assert!(file.identity().is_err());
}
