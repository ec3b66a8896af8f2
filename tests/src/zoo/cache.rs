//! Files written once: a name that holds a hash of the description and of this crate's source, an atomic rename.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::rng::fnv1a;

/// The directory of the cached files: `zoo` in Cargo's target directory, or in the system's temporary directory where
/// the source tree is gone or cannot be written to.
pub fn directory() -> io::Result<PathBuf> {
    let target = match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
    };
    // A relative CARGO_TARGET_DIR means the directory Cargo was started in, which is not that of a running test.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let zoo = workspace.join(target).join("zoo");
    if workspace.is_dir() && fs::create_dir_all(&zoo).is_ok() {
        return zoo.canonicalize();
    }
    let zoo = env::temp_dir().join("llama-spec-zoo");
    fs::create_dir_all(&zoo)?;
    Ok(zoo)
}

/// Gives the path of a cached file or directory, made by `make(temporary path)` the first time.
///
/// Safe to call from many threads and processes at once: each works on a temporary path of its own, and whoever ends
/// first is kept.
pub(super) fn cached(
    label: &str,
    description: &str,
    extension: &str,
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let dir = directory()?;
    let path = dir.join(format!("{label}-{:016x}{extension}", key(description)));
    if path.exists() {
        return Ok(path);
    }
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!(".{label}-{}-{unique}", process::id()));
    let made = make(&temporary).and_then(|()| match fs::rename(&temporary, &path) {
        // Another process was faster, and the system does not replace a file in use or a directory with files in it.
        Err(_) if path.exists() => Ok(()),
        renamed => renamed,
    });
    if temporary.is_dir() {
        fs::remove_dir_all(&temporary)?;
    } else if temporary.exists() {
        fs::remove_file(&temporary)?;
    }
    made.map(|()| path)
}

/// The source that decides what is in a file: a change to it must not leave old files in use.
const SOURCES: [&str; 34] = [
    include_str!("../gguf.rs"),
    include_str!("../gguf/metadata.rs"),
    include_str!("../gguf/tensor.rs"),
    include_str!("../rng.rs"),
    include_str!("../vocab.rs"),
    include_str!("additions.rs"),
    include_str!("assistant.rs"),
    include_str!("assistant_weights.rs"),
    include_str!("chain.rs"),
    include_str!("chained.rs"),
    include_str!("chained_weights.rs"),
    include_str!("dflash.rs"),
    include_str!("dflash_heads.rs"),
    include_str!("dflash_weights.rs"),
    include_str!("eagle3.rs"),
    include_str!("eagle3_weights.rs"),
    include_str!("encoders.rs"),
    include_str!("huge.rs"),
    include_str!("latches.rs"),
    include_str!("layers.rs"),
    include_str!("linear.rs"),
    include_str!("llama.rs"),
    include_str!("mamba.rs"),
    include_str!("mamba_weights.rs"),
    include_str!("places.rs"),
    include_str!("qwen35.rs"),
    include_str!("qwen35_weights.rs"),
    include_str!("recall.rs"),
    include_str!("rows.rs"),
    include_str!("sample.rs"),
    include_str!("transformer.rs"),
    include_str!("transformer_weights.rs"),
    include_str!("units.rs"),
    include_str!("weights.rs"),
];

fn key(description: &str) -> u64 {
    SOURCES.iter().fold(fnv1a(description.as_bytes()), |key, source| {
        fnv1a(&[key.to_le_bytes(), fnv1a(source.as_bytes()).to_le_bytes()].concat())
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn many_threads_get_one_complete_file() {
        let unique = format!("many threads {}", process::id());
        let make = |path: &Path| fs::write(path, [7; 100_000]);
        let paths: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| cached("selftest", &unique, ".bin", make).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(paths.iter().all(|path| path == &paths[0]));
        assert_eq!(fs::read(&paths[0]).unwrap(), [7; 100_000]);
        fs::remove_file(&paths[0]).unwrap();
        let left = fs::read_dir(directory().unwrap()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(&format!(".selftest-{}-", process::id()))
        });
        assert_eq!(left.count(), 0, "temporary files");
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let failed = cached("selftest", "failure", ".bin", |path| {
            fs::write(path, "half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        let made = cached("selftest", "failure", ".bin", |path| fs::write(path, "whole")).unwrap();
        assert_eq!(fs::read(&made).unwrap(), b"whole");
        fs::remove_file(made).unwrap();
    }

    #[test]
    fn descriptions_have_their_own_files() {
        assert_ne!(key("one"), key("two"));
    }
}
