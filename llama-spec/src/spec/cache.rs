//! Lookup caches of `ngram-cache`: read to their end before llama.cpp does, which aborts on whatever is wrong with them.
//!
//! A file is a row of n-grams: four tokens as 32-bit integers, filled up with -1, then the number of tokens that followed,
//! then each of these with its count (`common/ngram-cache.cpp`).

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

/// Counts are turned into percentages, which must not overflow.
const MAX_COUNT: i32 = i32::MAX / 100;

/// Whether `path` is a lookup cache for a vocabulary of this size, or is missing and may be.
///
/// # Errors
/// What is wrong, as the end of a sentence about the file.
pub(crate) fn check_cache(path: &Path, must_exist: bool, vocabulary: u32) -> Result<(), String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == ErrorKind::NotFound && !must_exist => {
            // It is written at the end, so its folder must be there.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return folder
                .is_dir()
                .then_some(())
                .ok_or_else(|| "is to be written to a folder that does not exist".into());
        }
        Err(why) => return Err(format!("cannot be read: {why}")),
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => check(BufReader::new(file), vocabulary),
        Ok(_) => Err("is not a file".into()),
        Err(why) => Err(format!("cannot be read: {why}")),
    }
}

fn check(mut from: impl Read, vocabulary: u32) -> Result<(), String> {
    let known = |token: i32| u32::try_from(token).is_ok_and(|token| token < vocabulary);
    while let Some(first) = number(&mut from, true)? {
        let mut n_gram = [first, -1, -1, -1];
        for token in &mut n_gram[1..] {
            *token = next(&mut from)?;
        }
        if !n_gram.into_iter().all(|token| token == -1 || known(token)) {
            return Err(format!("has the n-gram {n_gram:?}, which is not of a vocabulary of {vocabulary} tokens"));
        }
        let followers = next(&mut from)?;
        if followers <= 0 || !known(followers - 1) {
            return Err(format!("has an n-gram that {followers} tokens follow"));
        }
        for _ in 0..followers {
            let (token, count) = (next(&mut from)?, next(&mut from)?);
            if !known(token) {
                return Err(format!("names token {token}, which is not of a vocabulary of {vocabulary} tokens"));
            }
            if !(1..=MAX_COUNT).contains(&count) {
                return Err(format!("counts token {token} {count} times"));
            }
        }
    }
    Ok(())
}

fn next(from: &mut impl Read) -> Result<i32, String> {
    number(from, false)?.ok_or_else(|| "ends within an n-gram".into())
}

/// The next integer, in this machine's order as llama.cpp writes it; nothing at the end of the file.
fn number(from: &mut impl Read, may_end: bool) -> Result<Option<i32>, String> {
    let mut bytes = [0; 4];
    let mut had = 0;
    while had < bytes.len() {
        match from.read(&mut bytes[had..]) {
            Ok(0) if had == 0 && may_end => return Ok(None),
            Ok(0) => return Err("ends within an n-gram".into()),
            Ok(count) => had += count,
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(format!("cannot be read: {why}")),
        }
    }
    Ok(Some(i32::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(numbers: &[i32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    #[test]
    fn what_llama_cpp_writes_is_read() {
        assert_eq!(check(&[][..], 10), Ok(()));
        let good = bytes(&[1, 2, -1, -1, 2, 3, 5, 9, 1, 4, -1, -1, -1, 1, 0, 7]);
        assert_eq!(check(&good[..], 10), Ok(()));
        assert!(check(&good[..], 9).unwrap_err().contains("token 9"));
        for end in (1..good.len()).filter(|end| *end != 36) {
            assert!(check(&good[..end], 10).unwrap_err().contains("ends within"), "{end}");
        }
    }

    #[test]
    fn what_makes_it_abort_is_refused() {
        for (numbers, why) in [
            (vec![10, -1, -1, -1, 1, 0, 1], "n-gram [10"),
            (vec![1, -1, -1, -1, 0], "0 tokens follow"),
            (vec![1, -1, -1, -1, i32::MIN], "tokens follow"),
            (vec![1, -1, -1, -1, 11], "11 tokens follow"),
            (vec![1, -1, -1, -1, 1, -5, 1], "names token -5"),
            (vec![1, -1, -1, -1, 1, 5, 0], "0 times"),
            (vec![1, -1, -1, -1, 1, 5, i32::MAX], "times"),
        ] {
            let found = check(&bytes(&numbers)[..], 10).unwrap_err();
            assert!(found.contains(why), "{numbers:?}: {found}");
        }
    }

    #[test]
    fn a_missing_file_is_fine_only_where_it_is_written() {
        let folder = std::env::temp_dir();
        let missing = folder.join("no such lookup cache");
        assert_eq!(check_cache(&missing, false, 10), Ok(()));
        assert!(check_cache(&missing, true, 10).is_err());
        assert!(check_cache(&missing.join("deeper"), false, 10).unwrap_err().contains("folder"));
        assert!(check_cache(&folder, false, 10).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..200), vocabulary in 0u32..300) {
            let _ = check(&bytes[..], vocabulary);
        }
    }
}
