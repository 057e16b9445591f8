//! Chance, from a seed.

/// SplitMix64: small, and every seed is a good one.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each `name` under one seed.
    pub(crate) fn new(seed: u64, name: u64) -> Self {
        let mut random = Self(seed ^ name.wrapping_mul(STEP));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound`, or 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The bias is beyond what a simulation can see.
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// True so many times in a million.
    pub(crate) fn chance(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_streams_of_their_own() {
        let mut streams = [(1, 0), (1, 1), (2, 0)].map(|(seed, name)| Random::new(seed, name));
        let drawn = streams
            .each_mut()
            .map(|random| [random.next(), random.next()]);
        assert_ne!(drawn[0], drawn[1]);
        assert_ne!(drawn[0], drawn[2]);
        assert_eq!(drawn[0][0], Random::new(1, 0).next());
    }

    #[test]
    fn chances_are_what_they_say() {
        let mut random = Random::new(7, 7);
        let hits = (0..100_000).filter(|_| random.chance(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert!(!(0..1000).any(|_| random.chance(0)));
        assert!((0..1000).all(|_| random.chance(1_000_000)));
    }
}
