//! The machine the library is built for, which need not be the one that builds.

use crate::vars::required;

pub(crate) fn os() -> String {
    required("CARGO_CFG_TARGET_OS")
}

pub(crate) fn is_msvc() -> bool {
    std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "msvc")
}

pub(crate) fn is_apple() -> bool {
    std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple")
}
