//! Finds the source of llama.cpp: a checkout that was named, the vendored copy, or the pinned package in Cargo's cache.

use crate::vars;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of llama.cpp that the committed bindings and the shim are written for.
const PINNED: &str = "0.8.0";

pub(crate) struct Source {
    pub(crate) root: PathBuf,
}

pub(crate) fn find() -> Result<Source, String> {
    let crate_dir = PathBuf::from(vars::required("CARGO_MANIFEST_DIR"));
    let root = match vars::get(vars::SOURCE_DIR) {
        Some(dir) => PathBuf::from(dir),
        // Inside the published crate; in the repository, as `cargo xtask vendor` left it; else through Cargo.
        None => match ["llama.cpp", "../vendor/llama.cpp"]
            .map(|dir| crate_dir.join(dir))
            .into_iter()
            .find(|dir| dir.join("CMakeLists.txt").is_file())
        {
            Some(dir) => dir,
            None => pinned_package(&crate_dir.join("../vendor/Cargo.toml"))?,
        },
    };
    println!("cargo:rerun-if-changed={}", root.join("CMakeLists.txt").display());
    let version = version(&root).ok_or_else(|| {
        format!("{} is not a source tree of llama.cpp (its CMakeLists.txt sets no LLAMA_VERSION_MAJOR)", root.display())
    })?;
    if version != PINNED {
        println!(
            "cargo:warning=llama.cpp {version} is being built, but the bindings and the shim are for {PINNED}: run the tests of llama-sys before you rely on it"
        );
    }
    Ok(Source { root })
}

/// `major.minor.patch` from the top CMakeLists.txt.
fn version(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("CMakeLists.txt")).ok()?;
    let part = |name: &str| {
        Some(text.split_once(&format!("set(LLAMA_VERSION_{name} "))?.1.split_once(')')?.0.trim().to_owned())
    };
    Some(format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?))
}

/// Lets Cargo fetch and locate the package, so that its cache, mirrors, checksums and offline rules apply.
fn pinned_package(manifest: &Path) -> Result<PathBuf, String> {
    println!("cargo:rerun-if-changed={}", manifest.display());
    if !manifest.is_file() {
        return Err(format!(
            "no source of llama.cpp: {} does not exist; set {} to a checkout",
            manifest.display(),
            vars::SOURCE_DIR
        ));
    }
    let cargo = |arguments: &[&str]| -> Result<Vec<u8>, String> {
        let output = Command::new(vars::required("CARGO"))
            .args(arguments)
            .arg("--locked")
            .arg("--manifest-path")
            .arg(manifest)
            .output();
        let output = output.map_err(|why| format!("cannot run cargo to fetch llama.cpp: {why}"))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(format!(
                "cargo {} could not get the pinned source of llama.cpp: {}",
                arguments[0],
                String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ")
            )),
        }
    };
    // Only what this host would compile is fetched: that leaves out half of the package's own dependencies.
    let host = vars::required("HOST");
    let fetched = cargo(&["fetch", "--offline", "--target", &host]).or_else(|_| cargo(&["fetch", "--target", &host]));
    let metadata =
        fetched.and_then(|_| cargo(&["metadata", "--offline", "--format-version=1", "--filter-platform", &host]))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata).map_err(|why| format!("cargo metadata: {why}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let pin = |key: &str| packages.clone().find_map(|package| package["metadata"]["llama"][key].as_str());
    let (name, folder) = pin("package").zip(pin("folder")).ok_or("vendor/Cargo.toml names no package and folder")?;
    let package =
        packages.clone().find(|package| package["name"] == name).and_then(|package| package["manifest_path"].as_str());
    let package = package.ok_or_else(|| format!("{name} is not among the dependencies of vendor/Cargo.toml"))?;
    Ok(Path::new(package).with_file_name(folder))
}
