//! Builds llama.cpp and the shim, links them, and provides the bindings. This file is the list of decisions.

mod bindings;
mod link;
mod native;
mod source;
mod tools;
mod vars;

fn main() {
    println!("cargo:rerun-if-changed=build\ncargo:rerun-if-changed=shim\ncargo:rustc-check-cfg=cfg(llama_sys_unbuilt)");
    let skip = [vars::DOCS_RS, vars::SKIP_NATIVE].map(vars::get) != [None, None];
    if let Err(why) = bindings::provide().and_then(|()| if skip { Ok(()) } else { library() }) {
        println!("cargo:error={why}");
        std::process::exit(1);
    }
}

fn library() -> Result<(), String> {
    if let Err(missing) = tools::check() {
        // Checking and documenting need no library; `src/unbuilt.rs` stops what would link it, with this message.
        println!("cargo:rustc-cfg=llama_sys_unbuilt\ncargo:rustc-env=LLAMA_SYS_UNBUILT={missing}");
        // A file that never exists makes Cargo run this script again, so an installed tool is noticed.
        println!("cargo:warning={missing}\ncargo:rerun-if-changed=build/never");
        return Ok(());
    }
    let source = source::find()?;
    let built = if vars::feature("DYNAMIC") { None } else { Some(native::library(&source)) };
    native::shim(&source);
    link::all(built.as_deref());
    Ok(())
}
