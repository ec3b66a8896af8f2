//! The real model that some benches need.

use std::path::PathBuf;

/// The default model, as `cargo xtask bench` fetches it; nothing, and a word about it, if it is not here.
pub fn smollm2() -> Option<PathBuf> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    let path = std::env::var_os("LLAMA_SPEC_SMOLLM2").map_or_else(|| PathBuf::from(fetched), PathBuf::from);
    if !path.is_file() {
        println!("{} is missing: `cargo xtask bench` fetches it; what needs it is left out", path.display());
        return None;
    }
    Some(path)
}
