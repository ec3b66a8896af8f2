//! Opening a large model: a file of 8 GB, mostly a hole, with a vocabulary of 256k tokens and as many merges.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::ModelFile;
use llama_spec_tests::gguf::{Gguf, Tensor, TensorType};
use std::fs::{self, File};
use std::path::PathBuf;

const TOKENS: u32 = 256 * 1024;
const LAYERS: u64 = 32;
const WIDTH: u64 = 4096;

fn open_file(criterion: &mut Criterion) {
    let path = write();
    let file = ModelFile::open(&path).expect("it was just written");
    let (header, whole) = (file.header_bytes() as f64 / 1e6, file.description().file_bytes as f64 / 1e9);
    println!("a header of {header:.1} MB in a file of {whole:.1} GB; defects: {:?}", file.description().defects);

    let mut group = criterion.benchmark_group("a header with 256k tokens");
    group.sample_size(30);
    group.bench_function("open", |bencher| bencher.iter(|| ModelFile::open(&path).expect("it was opened before")));
    let tokenizer = file.tokenizer().expect("it has one");
    let again = ModelFile::open(&path).expect("it was opened before");
    let other = again.tokenizer().expect("it has one");
    group.bench_function("compare vocabularies", |bencher| bencher.iter(|| tokenizer.first_difference(other, 0)));
    group.finish();

    fs::remove_file(&path).expect("it is ours");
}

/// Writes the file in the system's temporary folder; it takes the room of its header.
fn write() -> PathBuf {
    let path = std::env::temp_dir().join(format!("llama-spec-bench-{}.gguf", std::process::id()));
    let mut made = Gguf::new();
    made.set("general.architecture", "llama")
        .set("llama.context_length", 8192u32)
        .set("llama.embedding_length", WIDTH as u32)
        .set("llama.block_count", LAYERS as u32)
        .set("llama.feed_forward_length", 14336u32)
        .set("llama.attention.head_count", 32u32)
        .set("llama.attention.head_count_kv", 8u32)
        .set("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "llama-bpe")
        .set("tokenizer.ggml.tokens", (0..TOKENS).map(|id| format!("\u{120}tok{id:x}")).collect::<Vec<_>>())
        .set("tokenizer.ggml.token_type", (0..TOKENS).map(|_| 1i32).collect::<Vec<_>>())
        .set("tokenizer.ggml.merges", (0..TOKENS).map(|id| format!("\u{120}t {id:x}")).collect::<Vec<_>>());
    let matrix = |name: String, row, rows| Tensor::matrix(name, TensorType::Q8_0, row, rows, |_, _| {});
    made.add(matrix("token_embd.weight".into(), WIDTH, TOKENS.into()));
    made.add(Tensor::constant("output_norm.weight", WIDTH, 1.0));
    for layer in 0..LAYERS {
        for norm in ["attn_norm", "ffn_norm"] {
            made.add(Tensor::constant(format!("blk.{layer}.{norm}.weight"), WIDTH, 1.0));
        }
        for (name, row, rows) in [
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", WIDTH, 1024),
            ("attn_v", WIDTH, 1024),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", WIDTH, 14336),
            ("ffn_up", WIDTH, 14336),
            ("ffn_down", 14336, WIDTH),
        ] {
            made.add(matrix(format!("blk.{layer}.{name}.weight"), row, rows));
        }
    }
    made.write_sparse(&path).expect("room for the header");
    assert!(File::open(&path).and_then(|file| file.metadata()).is_ok_and(|facts| facts.len() > 8 << 30));
    path
}

criterion_group!(benches, open_file);
criterion_main!(benches);
