//! Making calls of llama.cpp fail on purpose, in tests of this crate only.

use crate::error::{DecodeError, Error, Failure};

/// The calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), allow(dead_code, reason = "names of calls that only tests look at"))]
pub(crate) enum Call {
    Decode,
    /// Decoding what was decoded before: kept tokens, or the last one of what is left after a cut.
    Replay,
    Follow,
    /// After the drafters were shown the batch.
    Followed,
    Begin,
    Extend,
    Draft,
    /// After the draft was made, before its tokens are taken out of the draft's memory.
    Drafted,
    Accept,
    CopyDrafters,
    CopyMemory,
    Checkpoint,
    GoBack,
    RemoveTarget,
    RemoveDraft,
    ClearSlot,
    ClearDraft,
    ClearAll,
    Save,
    RestoreTarget,
    RestoreDraft,
    Seed,
    Verify,
    /// Rejected tokens stay in the draft's memory, and nobody says so.
    LeaveRejected,
    /// The same of drafted tokens.
    LeaveDrafted,
}

#[cfg(test)]
impl Call {
    pub(super) const ALL: [Self; 25] = [
        Self::Decode,
        Self::Replay,
        Self::Follow,
        Self::Followed,
        Self::Begin,
        Self::Extend,
        Self::Draft,
        Self::Drafted,
        Self::Accept,
        Self::CopyDrafters,
        Self::CopyMemory,
        Self::Checkpoint,
        Self::GoBack,
        Self::RemoveTarget,
        Self::RemoveDraft,
        Self::ClearSlot,
        Self::ClearDraft,
        Self::ClearAll,
        Self::Save,
        Self::RestoreTarget,
        Self::RestoreDraft,
        Self::Seed,
        Self::Verify,
        Self::LeaveRejected,
        Self::LeaveDrafted,
    ];

    /// Whether it decodes on the target, which can fail in several ways.
    pub(super) fn decodes(self) -> bool {
        matches!(self, Self::Decode | Self::Replay)
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "made by tests only"))]
pub(crate) enum Fault {
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
    /// A decode was made to break off: as with a real one, the next is refused until all memories are emptied.
    #[cfg(test)]
    broken_off: bool,
}

impl Faults {
    #[cfg(test)]
    pub(crate) fn new(hook: impl Fn(Call) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self { hook: Some(std::sync::Arc::new(hook)), broken_off: false }
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

    pub(super) fn decode(&mut self, call: Call) -> Result<(), DecodeError> {
        #[cfg(test)]
        if self.broken_off {
            return Err(DecodeError::Poisoned);
        }
        let fault = self.at(call);
        #[cfg(test)]
        {
            self.broken_off = matches!(fault, Some(Fault::Aborted | Fault::Fatal));
        }
        match fault {
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

    pub(super) fn state(&self, call: Call) -> Result<(), Error> {
        self.at(call).map_or(Ok(()), |_| Err(Error::State { reason: injected().to_string() }))
    }

    /// Whether this is left out, without an error.
    pub(super) fn leaves_out(&self, call: Call) -> bool {
        self.at(call).is_some()
    }

    pub(super) fn sampling(&self) -> Result<(), Error> {
        self.at(Call::Verify).map_or(Ok(()), |_| Err(Error::Sample { failure: injected() }))
    }

    /// All memories were emptied.
    #[inline]
    pub(super) fn cleared(&mut self) {
        #[cfg(test)]
        {
            self.broken_off = false;
        }
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
