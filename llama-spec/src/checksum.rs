//! A sum over bytes that is the same in all versions and on all machines: against accidents, not against forgery.

/// The sum of nothing.
pub(crate) const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds bytes to a sum: FNV-1a (draft-eastlake-fnv).
pub(crate) fn checksum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the draft's appendix.
    #[test]
    fn known_sums() {
        assert_eq!(checksum(FIRST, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(checksum(FIRST, b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(checksum(checksum(FIRST, b"foo"), b"bar"), checksum(FIRST, b"foobar"));
    }
}
