//! What a lost slice says, and one that was not.

use super::{
    BAR_FACTOR, BAR_MAX_NS, Bar, CROWD_AGAIN_NS, CROWD_BAR_FACTOR, CROWD_BAR_MAX_NS, Clock,
    LOSING_NS, Spinner, keeping,
};
use crate::sync::Ordering;

impl<C: Clock> Spinner<C> {
    /// Whether a hog bars yielding at `now_ns`.
    pub(super) fn barred(&self, now_ns: u64) -> bool {
        self.barred_until_ns.load(Ordering::Relaxed) > now_ns
    }

    /// Whether `lost_ns` that were lost until `now_ns` bar yielding.
    pub(super) fn bar(&self, now_ns: u64, lost_ns: u64) -> bool {
        let own = self.own_bar();
        // Who has met none yet, of many, shall not begin anew.
        let last = if own == Bar::default() {
            self.clock.last_bar()
        } else {
            own
        };
        let crowded = self.crowd.is_here();
        let (factor, max_ns) = if crowded {
            (CROWD_BAR_FACTOR, CROWD_BAR_MAX_NS)
        } else {
            (BAR_FACTOR, BAR_MAX_NS)
        };
        if !last.stays(now_ns) && !self.is_hog(now_ns, crowded) {
            return false;
        }
        let next = last.next(now_ns, lost_ns, factor, max_ns);
        self.set_bar(next);
        self.clock.note_bar(next);
        true
    }

    fn own_bar(&self) -> Bar {
        Bar {
            until_ns: self.barred_until_ns.load(Ordering::Relaxed),
            len_ns: self.barred_for_ns.load(Ordering::Relaxed),
        }
    }

    /// Whether it must be a hog that has had the slice that was lost until `now_ns`. Where others of this process begin, or a crowd is, one alone says nothing.
    fn is_hog(&self, now_ns: u64, crowded: bool) -> bool {
        if crowded {
            let before_ns = self.lost_ns.swap(now_ns, Ordering::Relaxed);
            now_ns.saturating_sub(before_ns) <= CROWD_AGAIN_NS
        } else {
            let since_ns = self.clock.losing_since_ns(now_ns);
            now_ns.saturating_sub(since_ns) >= LOSING_NS
        }
    }

    pub(super) fn set_bar(&self, bar: Bar) {
        self.handing.end();
        self.barred_until_ns.store(bar.until_ns, Ordering::Relaxed);
        self.barred_for_ns.store(bar.len_ns, Ordering::Relaxed);
    }

    /// A yield, over at `now_ns`, has lost no slice, and let somebody else run if it `was_used`.
    #[inline]
    pub(super) fn kept(&self, now_ns: u64, was_used: bool) {
        self.clock.note_kept();
        if self.barred(now_ns) {
            // Others may be barred beside a hog on another CPU.
            if self.clock.last_bar() == self.own_bar() {
                self.clock.note_bar(Bar::default());
            }
            self.set_bar(Bar::default());
        }
        self.crowd.note_yield(was_used);
    }

    /// Whether this thread has [kept its CPU](super::keeping) for long enough.
    #[inline]
    pub(super) fn has_kept_it(&self, now_ns: u64, is_barred: bool) -> bool {
        if !self.limits.yields_after_pauses() {
            return false;
        }
        let last = self.clock.last_turn(keeping::turn(now_ns));
        let is_barred = || is_barred || self.clock.last_bar().until_ns > now_ns;
        keeping::is_over(last, now_ns, is_barred)
    }
}
