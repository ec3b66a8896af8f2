//! Opening a model with a large vocabulary: in little time, with little memory.

use cap::Cap;
use llama_spec::ModelFile;
use llama_spec_tests::gguf::{Gguf, Tensor, TensorType};
use std::alloc::System;
use std::time::Instant;

/// Memory with a limit: allocations beyond it fail, which aborts the test.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// The header is kept once, and what is beside it is small. (Where the system cannot let a piece of memory grow in its
/// place, there are two of it for a moment: this test would fail there.)
#[test]
#[cfg(target_os = "linux")]
fn a_large_header_takes_less_than_twice_its_size() {
    let tokens = 256 * 1024;
    let mut made = Gguf::new();
    made.set("general.architecture", "llama")
        .set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "llama-bpe")
        .set("tokenizer.ggml.tokens", (0..tokens).map(|id| format!("tok{id:x}")).collect::<Vec<_>>())
        .set("tokenizer.ggml.token_type", vec![1i32; tokens])
        .set("tokenizer.ggml.merges", (0..tokens).map(|id| format!("t ok{id:x}")).collect::<Vec<_>>());
    made.add(Tensor::matrix("token_embd.weight", TensorType::Q8_0, 32_768, tokens as u64, |_, _| {}));
    let path = std::env::temp_dir().join(format!("llama-spec-large-{}.gguf", std::process::id()));
    made.write_sparse(&path).expect("room for the header");
    drop(made);
    let header = ModelFile::open(&path).expect("it was just written").header_bytes() as usize;

    let before = MEMORY.allocated();
    let start = Instant::now();
    MEMORY.set_limit(before + 2 * header).expect("no more than that is in use");
    let file = ModelFile::open(&path).expect("it was opened before");
    MEMORY.set_limit(usize::MAX).expect("there is no larger limit");
    let (took, kept) = (start.elapsed(), MEMORY.allocated() - before);
    println!("{header} bytes of header in {took:?}; {kept} bytes in the end");
    std::fs::remove_file(&path).expect("it is ours");
    assert!(file.description().file_bytes > 8 << 30);
    assert_eq!(file.tokenizer().map(|tokenizer| tokenizer.size()), Some(tokens as u32));
    assert!(kept < header + header / 4, "{kept} bytes for {header}");
}
