//! Builds llama.cpp and the shim, links them, and provides the bindings.
//!
//! This file is the list of decisions; each step is a module of its own.

mod bindings;
mod link;
mod native;
mod source;
mod target;
mod tools;
mod vars;

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rustc-check-cfg=cfg(llama_sys_unbuilt)");
    let docs_only = vars::is_set(vars::DOCS_RS) || vars::is_set(vars::SKIP_NATIVE);
    if docs_only && !cfg!(feature = "bindgen") {
        return bindings::committed();
    }
    let source = source::find().unwrap_or_else(|why| fail(&why));
    println!("cargo:root={}", source.root.display());
    println!("cargo:include={}", source.root.join("include").display());
    bindings::provide(&source).unwrap_or_else(|why| fail(&why));
    if docs_only {
        return;
    }
    // A missing tool is reported when code is generated, not here: `cargo check` and `cargo doc` need no C++ at all.
    if let Err(missing) = tools::check() {
        return unbuilt(&missing);
    }
    let out = PathBuf::from(vars::required("OUT_DIR"));
    let built = native::library(&source, &out);
    native::shim(&source, built.as_deref());
    link::all(built.as_deref());
}

/// Leaves the message for `src/unbuilt.rs`, which turns it into a compile error of whatever needs the library.
fn unbuilt(message: &str) {
    println!("cargo:rustc-cfg=llama_sys_unbuilt");
    println!("cargo:rustc-env=LLAMA_SYS_UNBUILT={message}");
    println!("cargo:warning={message}");
    // A file that never exists makes Cargo run this script again, so an installed tool is noticed.
    println!("cargo:rerun-if-changed=build/never");
}

fn fail(why: &str) -> ! {
    println!("cargo:error={why}");
    std::process::exit(1);
}
