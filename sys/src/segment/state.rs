use crate::sync::{Ordering, Word, mapped};

/// How one side is, in a word of its own: 0 is open, everything else the reason why not.
#[derive(Debug)]
pub(crate) struct State<'a, W: Word = mapped::AtomicU32>(&'a W);

impl<'a, W: Word> State<'a, W> {
    #[inline]
    pub(crate) fn new(word: &'a W) -> Self {
        Self(word)
    }

    /// Whatever was written before is visible to who sees it.
    pub(crate) fn set(&self, state: u32) {
        // Release pairs with the acquire in `get`.
        self.0.store(state, Ordering::Release);
    }

    /// Look at the ring after this: what the other side sent before it closed still counts.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::bell::{Bell, FUTEX};
    use crate::sync::AtomicU32;

    /// As the NIC over shared memory says it: whoever sleeps is woken, armed or not, and finds it.
    #[test]
    fn loom_one_that_sleeps_is_told_of_a_goodbye() {
        loom::model(|| {
            let words = Arc::new(<[AtomicU32; 3]>::default());
            let other = {
                let words = words.clone();
                thread::spawn(move || {
                    let [state, armed, word] = &*words;
                    State::new(state).set(7);
                    Bell::new(armed, word).wake();
                })
            };
            let [state, armed, word] = &*words;
            while State::new(state).get() == 0 {
                let bell = Bell::new(armed, word);
                let seen = bell.arm(FUTEX);
                if State::new(state).get() == 0 {
                    // Ends only if the other changes the word.
                    bell.sleep(seen, None);
                }
            }
            assert_eq!(State::new(state).get(), 7);
            other.join().expect("no panic");
        });
    }
}
