//! Who answers: of several who could, the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The right to answer something. Cloning it shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct Claim(Arc<AtomicBool>);

impl Claim {
    /// Takes it; false when somebody else has.
    pub(super) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
