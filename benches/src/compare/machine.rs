//! What the figures were measured on.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::Path;
use std::process::Command;

/// The machine and the programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// The processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Threads of each server.
    pub threads: u32,
    /// The operating system and the instruction set.
    pub system: String,
    /// The name of the model's file.
    pub model: String,
    /// The name of the draft's file.
    pub draft: Option<String>,
    /// The version of this project.
    pub ours: String,
    /// The build of llama.cpp that ours uses.
    pub our_llama_cpp: u32,
    /// What llama-server says of itself.
    pub theirs: String,
}

impl Facts {
    /// Looks around.
    ///
    /// # Errors
    /// When llama-server cannot be started.
    pub fn gather(llama_server: &Path, model: &Path, draft: Option<&Path>, threads: u32) -> Result<Self> {
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self {
            cpu: cpu(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            processors: std::thread::available_parallelism().map_or(1, Into::into),
            threads,
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            model: name(model),
            draft: draft.map(name),
            ours: env!("CARGO_PKG_VERSION").to_owned(),
            our_llama_cpp: llama_spec::sys::LLAMA_CPP_BUILD,
            theirs: version(llama_server)?,
        })
    }
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "{} --version failed ({}): {text}", program.display(), output.status);
    let line = text.lines().find(|line| line.starts_with("version")).or(text.lines().next());
    Ok(line.unwrap_or("unknown").trim().to_owned())
}

/// The name of the first processor.
fn cpu(info: &str) -> String {
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_where_the_system_tells() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n"), "Some CPU @ 2 GHz");
        assert_eq!(cpu(""), "unknown");
    }

    #[test]
    fn a_missing_llama_server_is_named() {
        let error = version(Path::new("no-such-server")).unwrap_err().to_string();
        assert_eq!(error, "cannot start no-such-server");
    }
}
