//! Opening a large model: a file of 8 GB, mostly a hole, with a vocabulary of 256k tokens and as many merges.

use criterion::{Criterion, criterion_group, criterion_main};
use llama_spec::ModelFile;
use llama_spec::spec::SpecConfig;
use llama_spec_tests::gguf::{Gguf, Tensor, TensorType};
use std::fs;
use std::path::PathBuf;

const TOKENS: u32 = 256 * 1024;
const LAYERS: u64 = 32;
const WIDTH: u64 = 4096;

fn open_file(criterion: &mut Criterion) {
    let (path, draft_path) = (write(LAYERS), write(2));
    let [file, draft] = [&path, &draft_path].map(|path| ModelFile::open(path).expect("it was just written"));
    let (header, whole) = (file.header_bytes() as f64 / 1e6, file.description().file_bytes as f64 / 1e9);
    assert!(whole > 8.0, "a file of {whole} GB");
    println!("a header of {header:.1} MB in a file of {whole:.1} GB; defects: {:?}", file.description().defects);

    let mut group = criterion.benchmark_group("a header with 256k tokens");
    group.sample_size(30);
    group.bench_function("open", |bencher| bencher.iter(|| ModelFile::open(&path).expect("it was opened before")));
    let tokenizer = file.tokenizer().expect("it has one");
    let again = ModelFile::open(&path).expect("it was opened before");
    let other = again.tokenizer().expect("it has one");
    group.bench_function("compare vocabularies", |bencher| bencher.iter(|| tokenizer.first_difference(other, 0)));
    let config = || SpecConfig::auto(&file, Some(&draft)).expect("the same vocabulary");
    group.bench_function("auto, files open", |bencher| bencher.iter(config));
    group.bench_function("open both, auto", |bencher| {
        bencher.iter(|| {
            let [target, draft] = [&path, &draft_path].map(|path| ModelFile::open(path).expect("it was opened before"));
            SpecConfig::auto(&target, Some(&draft)).expect("the same vocabulary")
        });
    });
    group.finish();

    [path, draft_path].iter().for_each(|path| fs::remove_file(path).expect("it is ours"));
}

/// Writes a file in the system's temporary folder; it takes the room of its header.
fn write(layers: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("llama-spec-bench-{}-{layers}.gguf", std::process::id()));
    let mut made = Gguf::new();
    made.set("general.architecture", "llama")
        .set("llama.context_length", 8192u32)
        .set("llama.embedding_length", WIDTH as u32)
        .set("llama.block_count", layers as u32)
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
    for layer in 0..layers {
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
    path
}

criterion_group!(benches, open_file);
criterion_main!(benches);
