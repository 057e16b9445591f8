//! When to look for an answer.

use super::pause::calibrate;

/// How long to leave a line alone into which a peer is about to write, learned from the answers that have come.
///
/// In a line that both sides write the transfer that brings a message also brings the right to write the answer. A look in between takes that away, and the
/// answer costs a transfer more; one that comes late finds it late. 4 bytes one way through the sockets over a VI take 175 to 215 ns where each side looks again
/// after 20 ns, 140 to 155 with 70 to 90 ns, and 150 to 165 with 110; with what is learned 140 to 145.
///
/// It is for who then looks without a break. Who does other things between his looks, as VIPL's calls do, is the quickest with
/// [half a pause](super::let_answer): 145 ns, and 160 with what he learns.
///
/// So each answer that the first look finds shortens the patience a little, and one that comes soon after a vain look lengthens it by more. What comes later than
/// that has not been missed by being early, and says nothing.
#[derive(Debug)]
pub struct Answer {
    /// [`STEPS`] to a `pause` instruction.
    patience: u32,
    most: u32,
    /// Vain looks since the question; [`SOON`] and more if no answer is awaited.
    looks: u32,
}

impl Answer {
    /// Half a [`pause`](super::pause()), for a beginning.
    pub fn new() -> Self {
        Self::with(*calibrate())
    }

    /// Where so many `pause` instructions are one [`pause`](super::pause()).
    fn with(pauses: u32) -> Self {
        Self {
            patience: (pauses / 2).max(1) * STEPS,
            most: 2 * pauses * STEPS,
            looks: SOON,
        }
    }

    /// Passes the time in which nobody should look: a question has just been sent.
    #[inline]
    pub fn let_come(&mut self) {
        for _ in 0..self.patience / STEPS {
            std::hint::spin_loop();
        }
        self.looks = 0;
    }

    /// There were so many vain looks, and then perhaps one that found something.
    #[inline]
    pub fn looked(&mut self, vain: u32, found: bool) {
        if self.looks >= SOON {
            return;
        }
        self.looks = self.looks.saturating_add(vain);
        if !found {
            return;
        }
        if self.looks == 0 {
            self.patience = self.patience.saturating_sub(1);
        } else if self.looks < SOON {
            self.patience = (self.patience + RISE).min(self.most);
        }
        self.looks = SOON;
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self::new()
    }
}

/// One answer that was there in time shortens the patience by so little...
const STEPS: u32 = 32;
/// ... and one that was not lengthens it by that: a vain look costs a transfer, so it shall be one in seventeen.
const RISE: u32 = STEPS / 2;
/// About 200 ns.
const SOON: u32 = 96;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Asks often of a peer that answers after so many `pause` instructions; how many of the last answers were looked for too early, and the patience then.
    fn ask(answer: &mut Answer, time: u32) -> (usize, u32) {
        let asked = (0..2000).map(|_| {
            let early = time.saturating_sub(answer.patience / STEPS);
            answer.looks = 0;
            answer.looked(4 * early, true);
            early > 0
        });
        let early = asked.skip(1000).filter(|early| *early).count();
        (early, answer.patience / STEPS)
    }

    #[test]
    fn it_learns_how_long_a_peer_takes() {
        let mut answer = Answer::with(5);
        for time in [7, 1, 4, 9] {
            let (early, patience) = ask(&mut answer, time);
            assert!(early < 100, "{early} of 1000 looks");
            assert!(patience.abs_diff(time) <= 1, "{patience} for {time}");
        }
    }

    #[test]
    fn what_takes_long_teaches_nothing() {
        let mut answer = Answer::with(5);
        let before = answer.patience;
        ask(&mut answer, 1000);
        assert_eq!(answer.patience, before);
    }

    #[test]
    fn it_is_bounded() {
        let mut answer = Answer::with(5);
        ask(&mut answer, 20);
        assert_eq!(answer.patience, answer.most);
        ask(&mut answer, 0);
        assert_eq!(answer.patience, 0);
    }

    #[test]
    fn what_nobody_asked_for_teaches_nothing() {
        let mut answer = Answer::with(5);
        let before = answer.patience;
        for found in [true, false, true] {
            answer.looked(3, found);
        }
        assert_eq!(answer.patience, before);
    }
}
