//! Telling copies of datagrams from news.

/// Which of the last 64 datagrams have come.
#[derive(Default)]
pub(crate) struct Seen {
    /// One past the newest.
    next: u32,
    /// Bit `n` stands for `next - 1 - n`.
    map: u64,
}

impl Seen {
    /// Whether number `seq` has not come before; what is too old to tell has.
    pub(crate) fn is_new(&mut self, seq: u32) -> bool {
        let ahead = seq.wrapping_sub(self.next);
        if ahead < u32::MAX / 2 {
            self.next = seq.wrapping_add(1);
            self.map = self.map.checked_shl(ahead + 1).unwrap_or(0) | 1;
            return true;
        }
        let behind = self.next.wrapping_sub(seq) - 1;
        let bit = 1_u64.checked_shl(behind).unwrap_or(0);
        let new = bit != 0 && self.map & bit == 0;
        self.map |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_number_is_new_twice_and_recent_ones_are_once(
            start: u32,
            steps in prop::collection::vec(-70_i64..10, 1..200),
        ) {
            let mut seen = Seen { next: start, map: 0 };
            let (mut came, mut newest) = (BTreeSet::new(), -1_i64);
            for step in steps {
                let at = (newest + step).max(0);
                let new = seen.is_new(start.wrapping_add(at as u32));
                prop_assert!(!new || !came.contains(&at));
                if at > newest - 64 && !came.contains(&at) {
                    prop_assert!(new, "{} with newest {}", at, newest);
                }
                came.insert(at);
                newest = newest.max(at);
            }
        }
    }
}
