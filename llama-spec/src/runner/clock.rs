//! What time it is. In tests of this crate it can be put forward.

use std::time::Instant;

/// Tells the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    #[cfg(test)]
    ahead_ms: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Clock {
    #[cfg(not(test))]
    pub(super) fn now(&self) -> Instant {
        Instant::now()
    }

    #[cfg(test)]
    pub(super) fn now(&self) -> Instant {
        let ahead = self.ahead_ms.load(std::sync::atomic::Ordering::SeqCst);
        Instant::now() + std::time::Duration::from_millis(ahead)
    }

    /// Puts this clock and all its copies forward.
    #[cfg(test)]
    pub(crate) fn put_forward(&self, by: std::time::Duration) {
        self.ahead_ms.fetch_add(by.as_millis() as u64, std::sync::atomic::Ordering::SeqCst);
    }
}
