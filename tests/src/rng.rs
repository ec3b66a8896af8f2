//! A seeded generator whose numbers are the same on every platform: integer steps and exact float operations only.

/// SplitMix64: one 64-bit state, one addition and three mixing steps a number.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for one purpose: equal `seed`, `purpose` and `index` give equal numbers, others independent ones.
    pub fn new(seed: u64, purpose: &str, index: u64) -> Self {
        let purpose = fnv1a(purpose.as_bytes());
        Self(mix(mix(seed ^ 0x5851_f42d_4c95_7f2d).wrapping_add(purpose)) ^ mix(index.wrapping_mul(GAMMA)))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number in `0..bound` (the bias of at most `bound / 2^64` does not matter here).
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Fills `out` with uniform numbers of mean 0 and standard deviation `deviation`.
    pub fn fill_uniform(&mut self, deviation: f32, out: &mut [f32]) {
        // 16 bits a number; half a step added, so that the range is symmetric
        let scale = deviation * 3f32.sqrt() / 32768.0;
        for four in out.chunks_mut(4) {
            let mut bits = self.bits();
            for x in four {
                *x = (f32::from(bits as u16 as i16) + 0.5) * scale;
                bits >>= 16;
            }
        }
    }

    /// Fills `out` with random signs: each entry is `magnitude` or its negative.
    pub fn fill_signs(&mut self, magnitude: f32, out: &mut [f32]) {
        for chunk in out.chunks_mut(64) {
            let mut bits = self.bits();
            for x in chunk {
                *x = if bits & 1 == 0 { magnitude } else { -magnitude };
                bits >>= 1;
            }
        }
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The 64-bit FNV-1a hash, for names and file keys.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The odd number nearest to 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_fixed_for_all_time() {
        // The cached files and the expected statistics of other tests depend on these numbers.
        let mut rng = Rng(0);
        assert_eq!([rng.bits(), rng.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let first = |seed, purpose, index| Rng::new(seed, purpose, index).bits();
        let base = first(1, "a", 0);
        assert_eq!(base, first(1, "a", 0));
        for other in [first(2, "a", 0), first(1, "b", 0), first(1, "a", 1)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn uniform_has_the_stated_deviation() {
        let mut numbers = vec![0.0; 100_001];
        Rng::new(3, "uniform", 0).fill_uniform(0.5, &mut numbers);
        let n = numbers.len() as f32;
        let mean = numbers.iter().sum::<f32>() / n;
        let deviation = (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n).sqrt();
        assert!(mean.abs() < 0.01, "mean {mean}");
        assert!((deviation - 0.5).abs() < 0.01, "deviation {deviation}");
    }

    #[test]
    fn shuffle_keeps_all_items() {
        let mut items: Vec<_> = (0..100).collect();
        Rng::new(4, "shuffle", 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
