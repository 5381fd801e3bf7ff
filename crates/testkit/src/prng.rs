//! SplitMix64, a small deterministic generator for jitter.

pub(crate) struct Prng(pub(crate) u64);

impl Prng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` up to, not including, `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % high.abs_diff(low).max(1)) as i64
    }

    /// `value` give or take `percent`.
    pub(crate) fn about(&mut self, value: i64, percent: i64) -> i64 {
        value + self.between(-value * percent / 100, value * percent / 100 + 1)
    }

    /// True in `percent` of the cases.
    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.between(0, 100) < percent
    }
}
