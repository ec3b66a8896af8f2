//! Files that are no model, or not a whole one: what a loader must refuse with an error; and files with one part changed,
//! which a loader must survive.

mod image;
mod mutate;
mod values;

pub use image::{Content, Encoded, Entry, Image, Info};
pub use mutate::{Case, cases, may_end_the_process};

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{rng::Rng, zoo::Llama};

/// A file that must not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What is wrong with it, as a word for messages.
    pub name: &'static str,
    /// The path to give to a loader.
    pub path: PathBuf,
}

/// Writes one of each kind into `dir` and gives them all. `missing` and `directory` have no file of their own.
pub fn all(dir: &Path) -> io::Result<Vec<Broken>> {
    let model = Llama::target(1);
    let file = |name: &'static str, extension: &str, bytes: &[u8]| {
        let path = dir.join(format!("{name}{extension}"));
        fs::write(&path, bytes)?;
        Ok::<_, io::Error>(Broken { name, path })
    };
    let whole = fs::read(model.cached()?)?;
    let header_end = whole.len() - model.gguf().data_size() as usize;
    let mut noise: Vec<u8> = (0..2048).flat_map(|i| Rng::new(0, "broken", i).bits().to_le_bytes()).collect();
    let mut list = vec![
        Broken { name: "missing", path: dir.join("missing.gguf") },
        Broken { name: "directory", path: dir.to_owned() },
        file("empty", ".gguf", &[])?,
        file("text", ".gguf", "# Not a model\n\nA text with the wrong name.\n".repeat(20).as_bytes())?,
        file("random", ".gguf", &noise)?,
    ];
    // Past the magic and the version a reader believes what it reads, such as counts.
    noise[..8].copy_from_slice(&whole[..8]);
    list.push(file("random-after-magic", ".gguf", &noise)?);
    list.push(file("magic-only", ".gguf", &whole[..4])?);
    list.push(file("truncated-metadata", ".gguf", &whole[..header_end / 3])?);
    list.push(file("truncated-tensor-table", ".gguf", &whole[..header_end - 200])?);
    list.push(file("truncated-data", ".gguf", &whole[..whole.len() / 2])?);
    list.push(file("truncated-last-byte", ".gguf", &whole[..whole.len() - 1])?);
    let mut version = whole.clone();
    version[4..8].copy_from_slice(&99u32.to_le_bytes());
    list.push(file("future-version", ".gguf", &version)?);
    list.push(Broken { name: "split-part-missing", path: split_part_missing(dir)? });
    list.push(Broken { name: "split-second-part", path: split_second_part(dir)? });
    Ok(list)
}

/// Writes a model in three parts without the second, and gives the path of the first.
pub fn split_part_missing(dir: &Path) -> io::Result<PathBuf> {
    let parts = split(dir, "part-missing")?;
    fs::remove_file(&parts[1])?;
    Ok(parts[0].clone())
}

/// Writes a model in three parts, and gives the path of the second, from which no model loads.
pub fn split_second_part(dir: &Path) -> io::Result<PathBuf> {
    Ok(split(dir, "second-part")?[1].clone())
}

/// Writes the start of a model: `bytes` bytes, or all where it has fewer.
pub fn truncated(model: &Llama, path: &Path, bytes: u64) -> io::Result<()> {
    fs::copy(model.cached()?, path)?;
    let file = fs::OpenOptions::new().write(true).open(path)?;
    file.set_len(file.metadata()?.len().min(bytes))
}

fn split(dir: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let dir = dir.join(name);
    fs::create_dir_all(&dir)?;
    Llama::target(1).gguf().write_split(&dir, "model", 3)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::gguf::{Gguf, split_name};

    #[test]
    fn every_kind_is_there_and_no_whole_model() {
        let dir = tempfile::tempdir().unwrap();
        let all = all(dir.path()).unwrap();
        assert_eq!(all.iter().map(|broken| broken.name).collect::<HashSet<_>>().len(), all.len());
        let whole = fs::read(Llama::target(1).cached().unwrap()).unwrap();
        for broken in &all {
            match broken.name {
                "missing" => assert!(!broken.path.exists()),
                "directory" => assert!(broken.path.is_dir()),
                _ => assert!(fs::read(&broken.path).unwrap() != whole, "{}", broken.name),
            }
        }
        assert!(!dir.path().join("part-missing").join(split_name("model", 1, 3)).exists());
        assert!(dir.path().join("second-part").join(split_name("model", 0, 3)).exists());
    }

    #[test]
    fn an_image_is_the_file() {
        let model = Llama::target(1);
        let encoded = Image::of(&model.gguf()).encode();
        assert!(encoded.bytes == fs::read(model.cached().unwrap()).unwrap());
        assert!(encoded.boundaries.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert_eq!(encoded.boundaries.last().unwrap().1, encoded.bytes.len());
    }

    #[test]
    fn cases_differ_from_each_other() {
        let draft = Llama::target(1).eagle3(0.8);
        let (mut names, mut contents) = (HashSet::new(), HashSet::new());
        for case in cases(&crate::zoo::Described::gguf(&draft)) {
            assert!(contents.insert(crate::rng::fnv1a(&case.bytes)), "{} is another case", case.name);
            assert!(names.insert(case.name.clone()), "{} twice", case.name);
        }
        println!("{} cases", names.len());
        assert!(names.len() > 1000, "{}", names.len());
    }

    #[test]
    fn truncations_cut_where_they_say() {
        let dir = tempfile::tempdir().unwrap();
        let all = all(dir.path()).unwrap();
        let size =
            |name: &str| fs::metadata(&all.iter().find(|broken| broken.name == name).unwrap().path).unwrap().len();
        let model = Llama::target(1);
        let header = model.gguf().file_size() - model.gguf().data_size();
        assert!(size("truncated-metadata") < header && size("truncated-tensor-table") < header);
        assert!(size("truncated-data") > header);
        assert_eq!(size("truncated-last-byte"), Gguf::file_size(&model.gguf()) - 1);

        let path = dir.path().join("cut.gguf");
        truncated(&model, &path, 1000).unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(model.cached().unwrap()).unwrap()[..1000]);
    }
}
