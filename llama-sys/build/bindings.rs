//! The bindings: the committed file, or with feature `bindgen` the same made anew.

#[cfg(not(feature = "bindgen"))]
pub(crate) fn provide() -> Result<(), String> {
    println!("cargo:rustc-env=LLAMA_SYS_BINDINGS={}/src/bindings.rs", crate::vars::required("CARGO_MANIFEST_DIR"));
    Ok(())
}

#[cfg(feature = "bindgen")]
pub(crate) fn provide() -> Result<(), String> {
    let (source, file) = (crate::source::find()?, format!("{}/bindings.rs", crate::vars::required("OUT_DIR")));
    println!("cargo:rustc-env=LLAMA_SYS_BINDINGS={file}");
    let items = "(llama|LLAMA|lsys|LSYS|ggml_(backend|type|log|abort|set_abort|cpu_has)|GGML_TYPE).*";
    let headers = ["include", "ggml/include"].map(|folder| format!("-I{}", source.join(folder).display()));
    let input = bindgen::Builder::default().header("shim/bindings.h").clang_args(headers).allowlist_item(items);
    let input = input.blocklist_item(".*(FILE|_IO_).*|llama_opt.*|llama_.*_file_ptr").generate_comments(false);
    let style = input.default_enum_style(bindgen::EnumVariation::Consts).prepend_enum_name(false).layout_tests(false);
    let bindings = style.derive_default(true).use_core().generate().map_err(|why| why.to_string())?;
    bindings.write_to_file(&file).map_err(|why| why.to_string())
}
