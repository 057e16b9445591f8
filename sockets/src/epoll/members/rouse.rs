//! Whom to look at after a sleep.
//!
//! Everybody is armed while one sleeps, and each doorbell costs its sender a system call though we are awake by then. So who was busy
//! just before is looked at again at once. Where many connections are used in turn, nobody is busy for long, and all of them ring, so that we
//! have slept again before the next has rung: from time to time all that had news lately are roused, and as long as that brings more than it
//! costs it is done after each sleep.

use super::super::member::What;
use super::Members;

/// Whether it pays to rouse many.
#[derive(Debug)]
pub(super) struct Muster {
    /// Sleeps so far.
    pub(super) sleeps: u32,
    /// After how many sleeps it is done, and how many are left.
    every: u32,
    left: u32,
    /// How many were roused the last time, if it is not known yet what that brought.
    roused: Option<u32>,
    /// How many of them have had news since.
    pub(super) told: u32,
}

impl Default for Muster {
    fn default() -> Self {
        Self {
            sleeps: 0,
            every: EVERY_FIRST,
            left: EVERY_FIRST,
            roused: None,
            told: 0,
        }
    }
}

impl Muster {
    /// After a sleep: whether many are to be roused.
    fn is_due(&mut self) -> bool {
        self.sleeps = self.sleeps.wrapping_add(1);
        if let Some(roused) = self.roused.take() {
            let paid = self.told >= (roused / WORTH).max(1);
            self.every = if paid {
                1
            } else {
                (self.every * 2).clamp(EVERY_FIRST, EVERY_LAST)
            };
            self.left = self.every;
        }
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Whether that was not more than so many sleeps ago.
    pub(super) fn is_within(&self, sleeps: u32, then: Option<u32>) -> bool {
        then.is_some_and(|then| self.sleeps.wrapping_sub(then) <= sleeps)
    }

    fn begin(&mut self, roused: u32) {
        self.left = self.every;
        self.roused = Some(roused);
        self.told = 0;
    }
}

impl Members {
    /// After a sleep, when nobody else sleeps on the set.
    pub(in crate::epoll) fn rouse(&mut self) {
        while let Some(index) = self.warm.pop() {
            self.rouse_one(index);
        }
        if self.muster.is_due() && !self.shared && self.patience.is_full() {
            let mut roused = 0;
            for index in 0..self.list.len() {
                if roused == ROUSED_MAX {
                    break;
                }
                let lately = self.list.get(index).is_some_and(|member| {
                    member.hot.is_none()
                        && !member.noted
                        && matches!(member.what, What::Connection { .. })
                        && self.muster.is_within(LATELY, member.told_in())
                });
                if lately && let Some(at) = self.rouse_one(index as u32) {
                    roused += 1;
                    if let Some(hot) = self.hot.get_mut(at as usize) {
                        hot.on_trial = true;
                    }
                }
            }
            self.muster.begin(roused);
        }
    }

    /// Where it is among the hot ones then.
    fn rouse_one(&mut self, index: u32) -> Option<u32> {
        // Whatever it is by now.
        let member = self.list.get(index as usize)?;
        if self.shared || member.captured.is_none() {
            return None;
        }
        member.rouse();
        self.heat(index);
        self.list.get(index as usize)?.hot
    }
}

/// One that is roused, and armed again for the next sleep, costs so much less than a doorbell.
const WORTH: u32 = 16;
const EVERY_FIRST: u32 = 16;
const EVERY_LAST: u32 = 1024;
/// Who had news within so many sleeps.
const LATELY: u32 = 1024;
/// More would take longer than a sleeper's wake-up.
const ROUSED_MAX: u32 = 16384;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps after which many were roused, each of which then told `told` events before the next sleep.
    fn musters(told: u32, sleeps: u32) -> Vec<u32> {
        let mut muster = Muster::default();
        let mut at = Vec::new();
        for sleep in 1..=sleeps {
            if muster.is_due() {
                muster.begin(160);
                at.push(sleep);
            }
            muster.told += told;
        }
        at
    }

    #[test]
    fn what_pays_is_done_after_each_sleep() {
        assert_eq!(musters(160 / WORTH, 20), [16, 17, 18, 19, 20]);
    }

    #[test]
    fn where_nobody_is_roused_it_is_tried_less_and_less() {
        let mut muster = Muster::default();
        let tried = (0..5000).filter(|_| {
            let due = muster.is_due();
            if due {
                muster.begin(0);
            }
            due
        });
        assert_eq!(tried.count(), 9);
    }

    #[test]
    fn what_does_not_pay_is_tried_less_and_less() {
        let at = musters(160 / WORTH - 1, 5000);
        let gaps: Vec<_> = at.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(gaps, [32, 64, 128, 256, 512, 1024, 1024, 1024]);
    }
}
