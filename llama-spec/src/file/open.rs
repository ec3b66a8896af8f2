//! Opens the file or the files of a model.

use super::ModelFile;
use super::describe::{ReadPart, describe};
use crate::error::{Error, Result};
use crate::gguf::{DiskFile, Fault, Header, Prefix, Source, Value, limits, split};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const COUNT: &str = "split.count";
const NUMBER: &str = "split.no";
const TENSORS: &str = "split.tensors.count";

/// Opens `path` and, if it is the first part of a split model, the others by their names.
pub(super) fn by_path(path: &Path) -> Result<ModelFile> {
    let header = open(path)?;
    let count = part_count(path, &header)?;
    if count <= 1 {
        return finish_on_disk(vec![path.to_owned()], vec![header]);
    }
    check_first(path, &header, count)?;
    let parts = split::siblings(path, 0, count).ok_or_else(|| {
        let why = format!("it is in {count} parts, and this file is not called NAME-00001-of-{count:05}.gguf");
        broken(path, &header, COUNT, why)
    })?;
    join(parts, header, count)
}

/// Opens the parts of a split model.
pub(super) fn by_parts(parts: Vec<PathBuf>) -> Result<ModelFile> {
    let Some(path) = parts.first().filter(|_| parts.len() <= limits::PARTS) else {
        return Err(Error::Setting {
            setting: "parts",
            value: format!("{} files", parts.len()),
            expected: format!("1 to {}", limits::PARTS),
        });
    };
    let header = open(path)?;
    let count = part_count(path, &header)?;
    if usize::from(count.max(1)) != parts.len() {
        let why = format!("it is in {} parts, and {} were given", count.max(1), parts.len());
        return Err(broken(path, &header, COUNT, why));
    }
    if count <= 1 {
        return finish_on_disk(parts, vec![header]);
    }
    check_first(path, &header, count)?;
    join(parts, header, count)
}

/// Reads a header that is in memory.
pub(super) fn by_header(path: PathBuf, bytes: &[u8], file_bytes: u64) -> Result<ModelFile> {
    let source = Prefix { bytes, len: file_bytes.max(bytes.len() as u64) };
    let header = Header::read(&source).map_err(|fault| named(&path, fault))?;
    let count = part_count(&path, &header)?;
    if count > 1 {
        return Err(broken(&path, &header, COUNT, format!("it is in {count} parts, which were not given")));
    }
    let mut read = |_, offset, into: &mut [u8]| fill(&source, offset, into);
    Ok(finish(&[path], vec![header], &mut read))
}

fn open(path: &Path) -> Result<Header> {
    let file = DiskFile::open(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
    Header::read(&file).map_err(|fault| named(path, fault))
}

/// Opens the other parts and checks that they belong together.
fn join(parts: Vec<PathBuf>, header: Header, count: u16) -> Result<ModelFile> {
    let mut headers = vec![header];
    for (number, path) in (0..count).zip(&parts).skip(1) {
        let header = open(path)?;
        match header.value(NUMBER) {
            Some(Value::U16(found)) if found == number => {}
            Some(Value::U16(found)) => {
                let why =
                    format!("it is part {}, and part {} was expected", u32::from(found) + 1, u32::from(number) + 1);
                return Err(broken(path, &header, NUMBER, why));
            }
            Some(value) => {
                let why = format!("of type {}; it must be a u16", value.type_name());
                return Err(broken(path, &header, NUMBER, why));
            }
            None => return Err(broken(path, &header, NUMBER, "missing: it is no part of a split model".into())),
        }
        headers.push(header);
    }
    check_doubles(&parts, &headers)?;
    let found: usize = headers.iter().map(Header::tensor_count).sum();
    match headers[0].value(TENSORS) {
        Some(Value::I32(expected)) if usize::try_from(expected) == Ok(found) => {}
        Some(Value::I32(expected)) => {
            let why = format!("{expected} tensors are expected in all parts, and there are {found}");
            return Err(broken(&parts[0], &headers[0], TENSORS, why));
        }
        Some(value) => {
            let why = format!("of type {}; it must be an i32", value.type_name());
            return Err(broken(&parts[0], &headers[0], TENSORS, why));
        }
        None => return Err(broken(&parts[0], &headers[0], TENSORS, "missing; it must be an i32".into())),
    }
    finish_on_disk(parts, headers)
}

/// No two parts have a tensor of the same name.
fn check_doubles(parts: &[PathBuf], headers: &[Header]) -> Result<()> {
    let tensors = headers.iter().enumerate().flat_map(|(part, header)| header.tensors(part));
    let mut names: Vec<_> = tensors.map(|tensor| (tensor.name, tensor.part)).collect();
    names.sort_unstable();
    let Some(pair) = names.windows(2).find(|pair| pair[0].0 == pair[1].0) else { return Ok(()) };
    let [(name, first), (_, second)] = [pair[0], pair[1]];
    let offset = headers[second].tensor(name, second).map_or(0, |tensor| tensor.offset);
    let why = format!("part {} has a tensor of the same name", first + 1);
    Err(Error::BrokenFile { path: parts[second].clone(), offset, place: format!("tensor {name:?}"), why })
}

fn finish_on_disk(parts: Vec<PathBuf>, headers: Vec<Header>) -> Result<ModelFile> {
    let mut read = |part: usize, offset: u64, into: &mut [u8]| {
        let file = parts.get(part).and_then(|path| DiskFile::open(path).ok());
        file.is_some_and(|file| fill(&file, offset, into))
    };
    Ok(finish(&parts, headers, &mut read))
}

fn finish(parts: &[PathBuf], headers: Vec<Header>, read: &mut ReadPart<'_>) -> ModelFile {
    let headers: Vec<Arc<Header>> = headers.into_iter().map(Arc::new).collect();
    let (description, tokenizer) = describe(parts, &headers, read);
    ModelFile::new(description, headers, tokenizer)
}

fn fill(source: &dyn Source, offset: u64, into: &mut [u8]) -> bool {
    source.fill_at(offset, into).is_ok_and(|filled| filled == into.len())
}

fn part_count(path: &Path, header: &Header) -> Result<u16> {
    match header.value(COUNT) {
        None => Ok(0),
        Some(Value::U16(count)) if usize::from(count) > limits::PARTS => {
            Err(broken(path, header, COUNT, format!("{count} parts are more than {}", limits::PARTS)))
        }
        Some(Value::U16(count)) => Ok(count),
        Some(value) => Err(broken(path, header, COUNT, format!("of type {}; it must be a u16", value.type_name()))),
    }
}

fn check_first(path: &Path, header: &Header, count: u16) -> Result<()> {
    let why = match header.value(NUMBER) {
        Some(Value::U16(0)) => return Ok(()),
        Some(Value::U16(number)) => format!("it is part {} of {count}: open the first part", u32::from(number) + 1),
        Some(value) => format!("of type {}; it must be a u16", value.type_name()),
        None => "missing; it must be a u16".to_owned(),
    };
    Err(broken(path, header, NUMBER, why))
}

fn broken(path: &Path, header: &Header, key: &str, why: String) -> Error {
    let offset = header.position(key).unwrap_or_default();
    Error::BrokenFile { path: path.to_owned(), offset, place: format!("metadata key {key:?}"), why }
}

fn named(path: &Path, fault: Fault) -> Error {
    let path = path.to_owned();
    match fault {
        Fault::Io(source) => Error::File { path, source },
        Fault::NotGguf(found) => Error::NotGguf { path, found },
        Fault::Broken { offset, place, why } => Error::BrokenFile { path, offset, place, why },
    }
}
