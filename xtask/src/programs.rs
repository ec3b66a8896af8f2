//! Builds programs of this repository and finds what Cargo made of them.

use crate::run::{Run, Variables, create_dir};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Programs by name.
#[derive(Debug)]
pub(crate) struct Programs(BTreeMap<String, PathBuf>);

impl Programs {
    pub(crate) fn named(&self, name: &str) -> Result<PathBuf> {
        let file = self.0.get(name).with_context(|| format!("cargo built no program `{name}`"))?;
        Ok(file.clone())
    }

    /// Has the zoo write one of its models and returns the file.
    pub(crate) fn zoo(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        create_dir(folder)?;
        Run::new(self.named("zoo")?).arg("--write").arg(folder).arg(name).run()?;
        let file = folder.join(name).with_extension("gguf");
        ensure!(file.is_file(), "the zoo wrote no {}", file.display());
        Ok(file)
    }
}

/// Builds the programs of the chosen packages in release mode.
pub(crate) fn build(variables: &Variables, packages: &[&str]) -> Result<Programs> {
    let messages = Run::cargo()
        .args(["build", "--release", "--bins", "--message-format=json-render-diagnostics"])
        .args(packages)
        .envs(variables)
        .run_and_read()?;
    Ok(Programs(executables(&messages)))
}

fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let file = message["executable"].as_str()?;
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(file)))
    };
    messages.filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name() {
        let messages = [
            r#"{"reason":"compiler-artifact","target":{"name":"lib"},"executable":null}"#,
            r#"{"reason":"compiler-artifact","target":{"name":"generate"},"executable":"out/generate"}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        let programs = Programs(executables(&messages.join("\n")));
        assert_eq!(programs.named("generate").unwrap(), PathBuf::from("out/generate"));
        assert_eq!(programs.named("lib").unwrap_err().to_string(), "cargo built no program `lib`");
    }
}
