//! The header reader on very many broken headers: no panic, no long wait, no memory beyond what the header is worth.
//!
//! A part of it runs with every test; `cargo xtask fuzz` runs a million.

use llama_spec::ModelFile;
use llama_spec::compat::{Conditions, Report};
use llama_spec::options::KvType;
use llama_spec_tests::mutate::Header;
use llama_spec_tests::zoo;
use peak_alloc::PeakAlloc;
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a description takes whatever the header's size is: the buffer for reading, the lists of layers, messages.
const CONSTANT: usize = 192 << 10;

#[test]
fn many_mutated_headers() {
    mutate(20_000);
}

#[test]
#[ignore = "takes a minute: `cargo xtask fuzz`"]
fn a_million_mutated_headers() {
    mutate(1_000_000);
}

fn mutate(count: u64) {
    let headers = headers();
    let target = ModelFile::open(zoo::file("target")).expect("a file of the zoo");
    let (mut longest, mut opened, mut sound, mut largest) = (Duration::ZERO, 0, 0, 0.0f64);
    for number in 0..count {
        let (header, file_bytes) = &headers[(number % headers.len() as u64) as usize];
        let bytes = header.mutated(number);
        // Files that end with the header, whole files, and files so large that most lengths fit.
        let file_bytes = match number / headers.len() as u64 % 8 {
            0 => bytes.len() as u64,
            1..=3 => *file_bytes,
            _ => 8 << 30,
        };
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let start = Instant::now();
        let file = ModelFile::from_header("mutated.gguf", &bytes, file_bytes);
        if let Ok(file) = &file {
            opened += 1;
            sound += u64::from(file.description().loads());
            exercise(file);
            inspect(&target, file);
        }
        let took = start.elapsed();
        let peak = MEMORY.peak_usage() - before;
        longest = longest.max(took);
        largest = largest.max(peak.saturating_sub(CONSTANT) as f64 / bytes.len() as f64);
        assert!(took < Duration::from_secs(1), "number {number} took {took:?}");
        assert!(peak <= 2 * bytes.len() + CONSTANT, "number {number}: {peak} bytes for {}", bytes.len());
    }
    println!(
        "{count} headers of {} files: {opened} opened, {sound} without defects; at most {longest:?} for one, and \
         {largest:.2} times its size in memory beyond {CONSTANT} bytes",
        headers.len()
    );
    assert!(opened > count / 10, "mutations that nothing survives test little");
}

/// All that a program can ask for.
fn exercise(file: &ModelFile) {
    let description = file.description();
    for kind in [KvType::F16, KvType::Q8_0] {
        std::hint::black_box(description.context_bytes(u32::MAX, kind, kind));
    }
    for (key, value) in file.metadata().entries() {
        assert_eq!(file.metadata().get(key).map(|value| value.type_name()), Some(value.type_name()));
    }
    for tensor in file.tensors() {
        assert_eq!(file.tensor(tensor.name), Some(tensor));
        std::hint::black_box(tensor.bytes());
    }
    if let Some(tokenizer) = file.tokenizer() {
        assert_eq!(tokenizer.first_difference(tokenizer, 0), None);
        std::hint::black_box(tokenizer.texts().map(<[u8]>::len).sum::<usize>());
    }
}

/// What `inspect` makes of it, as a target and as a draft.
fn inspect(target: &ModelFile, file: &ModelFile) {
    let conditions = Conditions::default();
    for report in [Report::new(file, None, None, &conditions), Report::new(target, Some(file), None, &conditions)] {
        std::hint::black_box(serde_json::to_string(&report).expect("a report can be written").len());
    }
}

/// The headers of the zoo's files, each with the size of its file.
fn headers() -> Vec<(Header, u64)> {
    let small = zoo::named().into_iter().filter(|named| !named.name.starts_with("bench"));
    small
        .map(|named| {
            let path = zoo::file(named.name);
            let file = ModelFile::open(&path).expect("a file of the zoo");
            let mut bytes = Vec::new();
            let whole = File::open(&path).expect("it was opened before");
            whole.take(file.header_bytes()).read_to_end(&mut bytes).expect("it was read before");
            (Header::new(bytes), file.description().file_bytes)
        })
        .collect()
}
