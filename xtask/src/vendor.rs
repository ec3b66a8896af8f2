//! Puts the part of the pinned llama.cpp source that the build needs into the repository, so that it builds without
//! Cargo's cache and `cargo package -p llama-sys` carries it. Git ignores all of it.

use crate::run::{Run, create_dir, remove, root, say};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the build needs of the top folder.
const NEEDED: [&str; 8] = ["CMakeLists.txt", "LICENSE", "cmake", "common", "ggml", "include", "src", "vendor"];
/// The backends of ggml for which `llama-sys` has a feature, or that have no feature because they are always on.
const BACKENDS: [&str; 7] = ["ggml-blas", "ggml-cpu", "ggml-cuda", "ggml-hip", "ggml-metal", "ggml-rpc", "ggml-vulkan"];
/// Large headers for images and sound that only the left-out tools include.
const UNUSED: [&str; 2] = ["vendor/miniaudio/miniaudio.h", "vendor/stb/stb_image.h"];

/// Copies the source, or removes the copy.
pub(crate) fn vendor(undo: bool) -> Result<()> {
    let copy = root().join("vendor").join("llama.cpp");
    // Cargo leaves out folders below which it finds another package, so the crate needs an entry of its own.
    let link = root().join("llama-sys").join("llama.cpp");
    remove(&link)?;
    if undo {
        remove(&copy)?;
        say("the copy is removed: the next build takes the source from Cargo's cache again");
        return Ok(());
    }
    let (source, version) = pinned()?;
    let partial = copy.with_extension("cpp.partial");
    remove(&partial)?;
    let (mut files, mut bytes) = (0, 0);
    for name in NEEDED {
        copy_tree(&source, Path::new(name), &partial, &mut |size| {
            files += 1;
            bytes += size;
        })?;
    }
    remove(&copy)?;
    std::fs::rename(&partial, &copy).with_context(|| format!("cannot move the copy to {}", copy.display()))?;
    link_folder(&copy, &link)?;
    say(format!("llama.cpp {version}: {files} files, {:.1} MB, in {}", bytes as f64 / 1e6, copy.display()));
    say("builds take it from there now; `cargo xtask vendor --remove` undoes it");
    Ok(())
}

/// The folder of the pinned source in Cargo's cache, and its version.
pub(crate) fn pinned() -> Result<(PathBuf, String)> {
    let manifest = root().join("vendor").join("Cargo.toml");
    // Cargo downloads what is missing; naming the host spares it the packages for other systems.
    let metadata = Run::cargo()
        .args(["metadata", "--locked", "--format-version=1", "--filter-platform", &host()?, "--manifest-path"])
        .arg(&manifest)
        .cure("the pinned source comes through Cargo: is the network reachable?")
        .run_and_read()?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed something else than JSON")?;
    locate(&metadata)
}

fn locate(metadata: &Value) -> Result<(PathBuf, String)> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let pin = |key: &str| {
        let value = packages.iter().find_map(|package| package["metadata"]["llama"][key].as_str());
        value.with_context(|| format!("vendor/Cargo.toml has no {key} in [package.metadata.llama]"))
    };
    let (name, folder, version) = (pin("package")?, pin("folder")?, pin("version")?);
    let package = packages.iter().find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.with_context(|| format!("{name} is not among the dependencies of vendor/Cargo.toml"))?;
    Ok((Path::new(manifest).with_file_name(folder), version.to_owned()))
}

/// The triple of this machine.
pub(crate) fn host() -> Result<String> {
    let about = Run::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").read()?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn copy_tree(from: &Path, path: &Path, to: &Path, copied: &mut dyn FnMut(u64)) -> Result<()> {
    if !wanted(path) {
        return Ok(());
    }
    let (source, copy) = (from.join(path), to.join(path));
    ensure!(source.exists(), "{} is missing: the pinned package is laid out differently now", source.display());
    if !source.is_dir() {
        create_dir(copy.parent().unwrap_or(to))?;
        copied(std::fs::copy(&source, &copy).with_context(|| format!("cannot copy {}", source.display()))?);
        return Ok(());
    }
    let entries = std::fs::read_dir(&source).with_context(|| format!("cannot read {}", source.display()))?;
    for entry in entries {
        copy_tree(from, &path.join(entry.context("cannot read a folder")?.file_name()), to, copied)?;
    }
    Ok(())
}

/// Whether the build needs a path of the source tree.
fn wanted(path: &Path) -> bool {
    if UNUSED.iter().any(|unused| path == Path::new(unused)) {
        return false;
    }
    // Folders directly below ggml/src are backends; files there are ggml itself.
    match path.strip_prefix("ggml/src").map(|rest| rest.iter().next()) {
        Ok(Some(name)) => name.to_str().is_some_and(|name| name.contains('.') || BACKENDS.contains(&name)),
        _ => true,
    }
}

#[cfg(unix)]
fn link_folder(folder: &Path, link: &Path) -> Result<()> {
    let relative = Path::new("..").join("vendor").join(folder.file_name().unwrap_or_default());
    std::os::unix::fs::symlink(relative, link).with_context(|| format!("cannot create the link {}", link.display()))
}

/// Links need a privilege on Windows: copy once more.
#[cfg(not(unix))]
fn link_folder(folder: &Path, link: &Path) -> Result<()> {
    NEEDED.iter().try_for_each(|name| copy_tree(folder, Path::new(name), link, &mut |_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_backends_with_a_feature_are_copied() {
        for path in ["ggml/src", "ggml/src/ggml.c", "ggml/src/ggml-backend-reg.cpp", "ggml/src/ggml-cuda/argmax.cu"] {
            assert!(wanted(Path::new(path)), "{path}");
        }
        for path in ["ggml/src/ggml-sycl", "ggml/src/ggml-opencl/kernels/add.cl", "vendor/stb/stb_image.h"] {
            assert!(!wanted(Path::new(path)), "{path}");
        }
        assert!(wanted(Path::new("vendor/stb/CMakeLists.txt")));
    }

    #[test]
    fn the_source_is_found_beside_the_manifest_of_the_pinned_package() {
        let pin =
            json!({ "name": "pin", "metadata": { "llama": { "package": "p", "folder": "f", "version": "1.2" } } });
        let package = json!({ "name": "p", "manifest_path": "cache/p-1/Cargo.toml", "metadata": null });
        let found = locate(&json!({ "packages": [pin.clone(), package] })).unwrap();
        assert_eq!(found, (PathBuf::from("cache/p-1/f"), "1.2".to_owned()));
        let error = locate(&json!({ "packages": [pin] })).unwrap_err().to_string();
        assert_eq!(error, "p is not among the dependencies of vendor/Cargo.toml");
    }
}
