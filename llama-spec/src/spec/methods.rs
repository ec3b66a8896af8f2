//! Sets of methods.

use super::Method;

/// A set of methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Methods(u32);

impl Methods {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn of(methods: &[Method]) -> Self {
        methods.iter().fold(Self::NONE, |set, method| Self(set.0 | 1 << *method as u32))
    }

    pub(crate) fn contains(self, method: Method) -> bool {
        self.0 & (1 << method as u32) != 0
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those of this kind.
    pub(crate) fn only(self, kind: fn(Method) -> bool) -> Self {
        self.iter().filter(|method| kind(*method)).fold(Self::NONE, |set, method| Self(set.0 | 1 << method as u32))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Method> {
        Method::ALL.into_iter().filter(move |method| self.contains(*method))
    }

    /// As the shim takes it: a bit for each type of llama.cpp.
    pub(crate) fn bits(self) -> u32 {
        self.iter().filter_map(Method::raw).fold(0, |bits, raw| bits | 1 << raw)
    }
}
