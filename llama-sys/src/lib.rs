#![doc = include_str!("../README.md")]
#![no_std]

#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::use_self,
    reason = "generated from C headers"
)]
mod bindings {
    include!(env!("LLAMA_SYS_BINDINGS"));
}
#[cfg(llama_sys_unbuilt)]
mod unbuilt;

pub use bindings::*;

/// The version of llama.cpp for which the bindings were made.
pub const LLAMA_CPP_VERSION: &str = "0.8.0";
/// The build number of llama.cpp for which the bindings were made.
pub const LLAMA_CPP_BUILD: u32 = 12032;
