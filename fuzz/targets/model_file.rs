//! Any bytes as the header of a model: it must not panic, and end soon. `cargo xtask fuzz --fuzzer`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use llama_spec::ModelFile;
use llama_spec::compat::{Conditions, Report};
use llama_spec::options::KvType;

fuzz_target!(|bytes: &[u8]| {
    // A file that ends with the header, and one so large that most lengths fit.
    for file_bytes in [bytes.len() as u64, 8 << 30] {
        let Ok(file) = ModelFile::from_header("fuzz.gguf", bytes, file_bytes) else { continue };
        let description = file.description();
        std::hint::black_box(Report::new(&file, Some(&file), None, &Conditions::default()));
        std::hint::black_box(description.context_bytes(u32::MAX, KvType::F16, KvType::Q4_0));
        for (key, value) in file.metadata().entries() {
            assert_eq!(file.metadata().get(key).map(|value| value.type_name()), Some(value.type_name()));
        }
        for tensor in file.tensors() {
            assert_eq!(file.tensor(tensor.name), Some(tensor));
            assert!(tensor.offset + tensor.bytes() <= file_bytes);
        }
        if let Some(tokenizer) = file.tokenizer() {
            assert_eq!(tokenizer.first_difference(tokenizer, 0), None);
        }
    }
});
