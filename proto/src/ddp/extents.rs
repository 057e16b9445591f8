//! Which octets of a message have come.

/// A set of octets, from 0 on; cheap while they come in order, and bounded when they do not.
#[derive(Debug, Clone, Default)]
pub(super) struct Extents {
    /// Everything before this has come.
    prefix: u64,
    /// What has come behind it: apart from each other, in order.
    later: Vec<(u64, u64)>,
}

/// More holes than a sender has any reason to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyHoles;

impl Extents {
    /// These octets have come, perhaps again.
    pub(super) fn insert(&mut self, from: u64, len: u64) -> Result<(), TooManyHoles> {
        let (mut from, mut to) = (from, from + len);
        if from <= self.prefix {
            self.prefix = self.prefix.max(to);
        } else if len > 0 {
            self.later.retain(|&(start, end)| {
                let apart = end < from || start > to;
                if !apart {
                    from = from.min(start);
                    to = to.max(end);
                }
                apart
            });
            if self.later.len() >= HOLES_MAX {
                return Err(TooManyHoles);
            }
            let at = self.later.partition_point(|&(start, _)| start < from);
            self.later.insert(at, (from, to));
        }
        while let Some(&(start, end)) = self.later.first()
            && start <= self.prefix
        {
            self.prefix = self.prefix.max(end);
            self.later.remove(0);
        }
        Ok(())
    }

    /// Whether the first `len` octets have all come.
    pub(super) fn covers(&self, len: u64) -> bool {
        self.prefix >= len
    }

    /// Behind the last octet that has come.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.later.last().map_or(self.prefix, |&(_, end)| end)
    }
}

/// A sender should send in order (RFC 5041 section 5.2), so few are plenty.
pub(super) const HOLES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_knows_what_a_map_of_octets_knows(
            pieces in proptest::collection::vec((0u64..100, 0u64..20), 0..40)
        ) {
            let mut extents = Extents::default();
            let mut map = [false; 128];
            for (from, len) in pieces {
                extents.insert(from, len).unwrap();
                map[from as usize..(from + len) as usize].fill(true);
                let prefix = map.iter().position(|come| !come).unwrap();
                prop_assert!(extents.covers(prefix as u64));
                prop_assert!(!extents.covers(prefix as u64 + 1));
                let end = map.iter().rposition(|come| *come).map_or(0, |last| last + 1);
                prop_assert_eq!(extents.end(), end as u64);
            }
        }
    }

    #[test]
    fn c136_holes_are_bounded() {
        let mut extents = Extents::default();
        let results: Vec<_> = (1..1000).map(|n| extents.insert(2 * n, 1)).collect();
        assert!(results.iter().take(HOLES_MAX).all(Result::is_ok));
        assert!(results.iter().skip(HOLES_MAX).all(Result::is_err));
        assert_eq!(extents.later.len(), HOLES_MAX);
    }
}
