//! Writes the headers of the zoo's files, the seeds of the fuzz target `model_file`: `seeds DIR`.

use anyhow::{Context as _, Result};
use llama_spec::ModelFile;
use llama_spec_tests::zoo;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("where to? `seeds DIR`")?);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for named in zoo::named().iter().filter(|named| !named.name.starts_with("bench")) {
        let path = zoo::file(named.name);
        let mut header = Vec::new();
        File::open(&path)?.take(ModelFile::open(&path)?.header_bytes()).read_to_end(&mut header)?;
        fs::write(folder.join(named.name), header)?;
    }
    Ok(())
}
