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
pub(crate) mod forced;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod params;
pub(crate) mod parent;
pub(crate) mod sampler;
pub(crate) mod speculation;
pub(crate) mod status;
pub(crate) mod vocab;

#[cfg(test)]
mod tests {
    use crate::file::TensorType;
    use llama_sys as sys;

    /// The table of types of weights against what ggml itself says.
    #[test]
    fn types_of_weights_are_those_of_ggml() {
        for id in 0..64 {
            let known = TensorType::find(id);
            if id >= sys::GGML_TYPE_COUNT {
                assert_eq!(known, None, "{id}");
                continue;
            }
            // SAFETY: ggml.h: both are pure functions of any type below GGML_TYPE_COUNT.
            let (bytes, per_weight) = unsafe { (sys::ggml_type_size(id), sys::ggml_type_sizef(id)) };
            match known {
                Some(kind) => {
                    assert_eq!(kind.block_bytes, bytes as u64, "{}", kind.name);
                    assert_eq!(kind.block_bytes as f64 / kind.block as f64, per_weight, "{}", kind.name);
                }
                None => assert_eq!(bytes, 0, "{id}"),
            }
        }
    }
}
