//! Finds the source of llama.cpp: a checkout that was named, the vendored copy, or the pinned package in Cargo's cache.

use crate::vars;
use std::path::{Path, PathBuf};

/// The version that the committed bindings and the shim are written for.
const PINNED: &str = "0.8.0";

pub(crate) fn find() -> Result<PathBuf, String> {
    let here = PathBuf::from(vars::required("CARGO_MANIFEST_DIR"));
    // In the published crate; in the repository, as `cargo xtask vendor` leaves it.
    let mut vendored = ["llama.cpp", "../vendor/llama.cpp"].into_iter().map(|folder| here.join(folder));
    let root =
        match vars::get(vars::SOURCE_DIR).map(PathBuf::from).or_else(|| vendored.find(|it| version(it).is_some())) {
            Some(root) => root,
            None => pinned_package(&here.join("../vendor/Cargo.toml"))?,
        };
    println!("cargo:rerun-if-changed={}", root.join("CMakeLists.txt").display());
    let version = version(&root).ok_or_else(|| format!("{} is not a source tree of llama.cpp", root.display()))?;
    if version != PINNED {
        println!(
            "cargo:warning=building llama.cpp {version}; bindings and shim are for {PINNED}: run llama-sys' tests"
        );
    }
    Ok(root)
}

/// `major.minor.patch` from the top CMakeLists.txt.
fn version(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("CMakeLists.txt")).ok()?;
    let part = |name| text.split(&format!("set(LLAMA_VERSION_{name} ")).nth(1)?.split(')').next();
    Some(format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?))
}

/// Lets Cargo fetch and locate the package, so that its cache, mirrors, checksums and offline rules apply. Only what this
/// host would compile is fetched: that leaves out half of the package's own dependencies.
fn pinned_package(manifest: &Path) -> Result<PathBuf, String> {
    println!("cargo:rerun-if-changed={}", manifest.display());
    let mut cargo = std::process::Command::new(vars::required("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version=1", "--filter-platform", &vars::required("HOST")]);
    let output = cargo.arg("--manifest-path").arg(manifest).output().map_err(|why| format!("cargo metadata: {why}"))?;
    let packages: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let packages = packages["packages"].as_array().into_iter().flatten().filter_map(|it| it["manifest_path"].as_str());
    let root = packages.map(|path| Path::new(path).with_file_name("llama.cpp")).find(|root| version(root).is_some());
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    root.ok_or(format!(
        "Cargo cannot get the source of llama.cpp; build once with a network, or set {}: {said}",
        vars::SOURCE_DIR
    ))
}
