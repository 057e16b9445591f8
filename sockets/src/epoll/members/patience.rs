//! How often in a row a hot member is looked at in vain before it is armed.
//!
//! A look costs a few nanoseconds as long as the lines of all hot members lie in a near cache, and tens where there are thousands; a doorbell costs its
//! sender and us some microseconds, however many there are. So where thousands are used in turn it is cheaper to be rung for each, and looking at
//! all of them cost two thirds of a server's time. What the looks bring is compared with what they cost, from time to time, and patience halves or doubles.

/// How patient the looks at a set's hot members are.
#[derive(Debug)]
pub(super) struct Patience {
    /// What arming costs in the end.
    price_ns: u32,
    least: u32,
    /// Looks in vain, in a row.
    most: u32,
    /// It is judged after so many waits, at the latest.
    window: u32,
    /// Since it was last judged: waits, what the looks have cost, and how many found something.
    waits: u32,
    cost_ns: u32,
    found: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(BELL_NS, LEAST, u32::MAX)
    }
}

impl Patience {
    /// With members that are armed so that what comes is noted on a board.
    pub(super) fn with_notes() -> Self {
        Self::new(NOTE_NS, 0, NOTE_WAITS)
    }

    fn new(price_ns: u32, least: u32, window: u32) -> Self {
        Self {
            price_ns,
            least,
            most: MOST,
            window,
            waits: 0,
            cost_ns: 0,
            found: 0,
        }
    }

    /// After so many looks in vain a member is armed.
    #[inline]
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    /// Whether looking at all that may have something has paid lately.
    pub(super) fn is_full(&self) -> bool {
        self.most == MOST
    }

    /// Whether so many looks in vain, at one of `count` members, cost less than arming it.
    #[inline]
    pub(super) fn is_worth(&self, looks: u32, count: usize) -> bool {
        looks.saturating_mul(each_ns(count) as u32) <= self.price_ns
    }

    /// All `looks` members have been looked at, and `found` of them had news.
    #[inline]
    pub(super) fn note(&mut self, looks: usize, found: usize) {
        let cost_ns = looks.saturating_mul(each_ns(looks)) as u32;
        self.cost_ns = self.cost_ns.saturating_add(cost_ns);
        self.found = self.found.saturating_add(found as u32);
        self.waits = self.waits.saturating_add(1);
        if self.cost_ns >= WINDOW_NS || self.waits >= self.window {
            self.judge();
        }
    }

    /// As [`Patience::note`], of a look that cost nothing: it teaches only that looks pay, where it would have paid.
    #[inline]
    pub(super) fn note_in_passing(&mut self, looks: usize, found: usize) {
        let cost_ns = looks.saturating_mul(each_ns(looks)) as u32;
        if (found as u32).saturating_mul(self.price_ns) >= cost_ns {
            self.found = self.found.saturating_add(found as u32);
        }
    }

    #[cold]
    fn judge(&mut self) {
        let paid = self.found > 0 && self.found.saturating_mul(self.price_ns) >= self.cost_ns;
        let most = if paid {
            (self.most * 2).max(1)
        } else {
            self.most / 2
        };
        self.most = most.clamp(self.least, MOST);
        self.waits = 0;
        self.cost_ns = 0;
        self.found = 0;
    }
}

/// What a look at one of `count` members costs.
#[inline]
fn each_ns(count: usize) -> usize {
    (NEAR_NS + count / MEMBERS_PER_NS).min(FAR_NS)
}

/// With few members, looks in vain that have cost as much as a doorbell will.
const MOST: u32 = 2048;
/// Who answers at once is still hot then.
const LEAST: u32 = 16;
/// What the doorbell costs that a look saves: of both ends' time, for either may be what the other waits for.
const BELL_NS: u32 = 10_000;
/// What a note costs that a look saves: noting, and taking the note. With 100, a hundred used in turn, 16 at a time, take 306 ns a message in place of 236.
const NOTE_NS: u32 = 30;
/// A look at one of few whose peers write, and of thousands; measured with 100, 1,000 and 9,000.
const NEAR_NS: usize = 6;
const FAR_NS: usize = 20;
const MEMBERS_PER_NS: usize = 64;
/// Judged so often, in time that went into looks.
const WINDOW_NS: u32 = 1_000_000;
/// And where what comes is noted, so often in waits: the fewer members are looked at the less do looks cost, and a million waits would pass until there are none.
const NOTE_WAITS: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// How patient it is where `busy` members are used in turn, sixteen at a time, and all that are roused or rung for are hot.
    fn after(busy: usize) -> u32 {
        settled(Patience::default(), busy)
    }

    fn settled(mut patience: Patience, busy: usize) -> u32 {
        for _ in 0..200_000 {
            // Between two messages of a member all the others have theirs.
            let looks = busy / 16;
            let stays = looks <= patience.most() as usize;
            if stays {
                patience.note(busy, 16);
            } else {
                patience.note(16 * patience.most() as usize, 0);
            }
        }
        patience.most()
    }

    #[test]
    fn some_hundreds_in_turn_are_worth_a_look_each() {
        assert_eq!([1, 16, 100, 1000, 3000].map(after), [MOST; 5]);
    }

    #[test]
    fn of_thousands_each_had_better_ring() {
        assert!([9000, 50_000].map(after).iter().all(|most| *most <= 32));
    }

    #[test]
    fn a_note_is_cheaper_than_looks_at_a_hundred() {
        let settled = |busy| settled(Patience::with_notes(), busy);
        assert_eq!([1, 16, 48].map(settled), [MOST; 3]);
        assert_eq!([100, 300, 1000, 9000, 50_000].map(settled), [0; 5]);
    }

    #[test]
    fn whose_answer_comes_while_the_time_is_passed_is_looked_at() {
        let mut patience = Patience::with_notes();
        for _ in 0..100 * NOTE_WAITS {
            patience.note(1, 0);
            patience.note_in_passing(1, 1);
        }
        assert!(patience.is_full());
        for _ in 0..100 * NOTE_WAITS {
            patience.note(300, 0);
            patience.note_in_passing(300, 16);
        }
        assert_eq!(patience.most(), 0);
        // After a wait without a look it comes while the next one passes its time.
        assert!(patience.is_worth(1, 1) && !patience.is_worth(6, 100));
        patience.note(0, 0);
        for _ in 0..100 * NOTE_WAITS {
            patience.note(1, 0);
            patience.note_in_passing(1, 1);
        }
        assert!(patience.is_full());
    }

    #[test]
    fn a_quiet_set_of_few_learns_nothing_bad_from_being_used_seldom() {
        let mut patience = Patience::default();
        for _ in 0..1000 {
            patience.note(50, 0);
            patience.note(50, 1);
        }
        assert!(patience.is_full());
    }
}
