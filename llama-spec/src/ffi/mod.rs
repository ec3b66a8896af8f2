//! All unsafe code of the crate. Everything above this module is safe Rust.
//!
//! The charter:
//! 1. A raw handle is owned by exactly one struct here, which frees it when dropped. `Model` is shared by `Arc` above.
//! 2. What C keeps a pointer to is owned by the struct that owns the handle, in a field declared after it: fields drop in
//!    the order of declaration, so the handle goes first.
//! 3. Nobody lends `&mut` of a context whose address C holds; there are narrow methods instead.
//! 4. Every call that can throw goes through the shim of llama-sys, and its status through [`status::call`].
//! 5. A callback never unwinds into C: it catches, keeps the panic, and the caller raises it again afterwards.
//! 6. `Model` is `Send + Sync`; a context and what belongs to it is `Send` and not `Sync`.
#![allow(unsafe_code)]

pub(crate) mod backend;
pub(crate) mod chat;
pub(crate) mod context;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod params;
pub(crate) mod sampler;
pub(crate) mod speculation;
pub(crate) mod status;
pub(crate) mod vocab;
