//! The bindings: the committed file, or with feature `bindgen` the same made anew.

use crate::source::Source;

/// Copies the committed bindings to where `src/lib.rs` includes them from.
pub(crate) fn committed() {
    println!("cargo:rustc-env=LLAMA_SYS_BINDINGS={}/src/bindings.rs", crate::vars::required("CARGO_MANIFEST_DIR"));
}

#[cfg(not(feature = "bindgen"))]
pub(crate) fn provide(_: &Source) -> Result<(), String> {
    committed();
    Ok(())
}

#[cfg(feature = "bindgen")]
pub(crate) fn provide(source: &Source) -> Result<(), String> {
    let file = std::path::PathBuf::from(crate::vars::required("OUT_DIR")).join("bindings.rs");
    let include = |folder: &str| format!("-I{}", source.root.join(folder).display());
    bindgen::Builder::default()
        .header("shim/bindings.h")
        .clang_args([include("include"), include("ggml/include"), "-Ishim".into()])
        .allowlist_item("(llama|LLAMA|lsys|LSYS|ggml_backend|ggml_type|ggml_log|ggml_abort|ggml_set_abort|ggml_cpu_has|GGML_TYPE).*")
        .allowlist_recursively(true)
        .blocklist_item(".*(FILE|_IO_).*|llama_opt.*|llama_.*_file_ptr")
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .derive_default(true)
        .use_core()
        .layout_tests(false)
        .generate_comments(false)
        .generate()
        .map_err(|why| format!("bindgen: {why}"))?
        .write_to_file(&file)
        .map_err(|why| format!("{}: {why}", file.display()))?;
    println!("cargo:rustc-env=LLAMA_SYS_BINDINGS={}", file.display());
    Ok(())
}
