//! Making calls of llama.cpp fail on purpose, in tests of this crate only.

use crate::error::{DecodeError, Error, Failure};

/// The calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), allow(dead_code, reason = "names of calls that only tests look at"))]
pub(super) enum Call {
    Decode,
    Follow,
    /// After the drafters were shown the batch.
    Followed,
    Begin,
    Extend,
    Draft,
    /// After the draft was made.
    Drafted,
    Accept,
    CopyDrafters,
    CopyMemory,
    Checkpoint,
    GoBack,
    RemoveTarget,
    RemoveDraft,
    Seed,
    Verify,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "made by tests only"))]
pub(super) enum Fault {
    /// In the way of this call.
    Fails,
    /// Decoding finds no room.
    NoRoom,
    /// Decoding is aborted.
    Aborted,
    /// The backend breaks down.
    Fatal,
}

#[cfg(test)]
type Hook = Option<std::sync::Arc<dyn Fn(Call) -> Option<Fault> + Send + Sync>>;

/// Decides which calls fail; none outside of tests.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    #[cfg(test)]
    hook: Hook,
}

impl Faults {
    #[cfg(test)]
    pub(super) fn new(hook: impl Fn(Call) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { hook: Some(std::sync::Arc::new(hook)) }
    }

    #[cfg(test)]
    fn at(&self, call: Call) -> Option<Fault> {
        self.hook.as_ref().and_then(|hook| hook(call))
    }

    #[cfg(not(test))]
    #[inline]
    fn at(&self, _: Call) -> Option<Fault> {
        None
    }

    pub(super) fn decode(&self) -> Result<(), DecodeError> {
        match self.at(Call::Decode) {
            None => Ok(()),
            Some(Fault::NoRoom) => Err(DecodeError::NoRoom { entries: 0 }),
            Some(Fault::Aborted) => Err(DecodeError::Aborted),
            Some(Fault::Fatal) => Err(DecodeError::Fatal { failure: injected() }),
            Some(Fault::Fails) => Err(DecodeError::Refused { failure: injected() }),
        }
    }

    pub(super) fn drafters(&self, call: Call) -> Result<(), Failure> {
        self.at(call).map_or(Ok(()), |_| Err(injected()))
    }

    pub(super) fn memory(&self, call: Call) -> Result<(), Error> {
        self.at(call).map_or(Ok(()), |_| Err(Error::Memory { reason: injected().to_string() }))
    }

    pub(super) fn sampling(&self) -> Result<(), Error> {
        self.at(Call::Verify).map_or(Ok(()), |_| Err(Error::Sample { failure: injected() }))
    }
}

fn injected() -> Failure {
    Failure::new("made to fail by a test")
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faults")
    }
}
