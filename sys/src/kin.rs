//! How many processes have a socket by fork, as they count themselves.
//!
//! The kernel counts who has an open file and does not tell; [`holders`](crate::holders) looks at all processes of the host, which takes the longer the more there are. But the
//! usual case is a server that forks for each connection and closes its own descriptor, and it and its children can say so: in words of a page that all of a family
//! have. A process that ends, or becomes another program, without a word counts for ever: then it is the kernel that must be asked.

use crate::family::Words;
use crate::sync::mapped::AtomicU64 as SharedU64;
use crate::sync::{AtomicU32, Ordering};

/// The processes that have one socket, or no knowledge of them.
#[derive(Debug, Default)]
pub struct Kin {
    /// Of the count, 0 for none.
    number: AtomicU32,
}

impl Kin {
    /// This process is the only one. Nothing is known if there is no memory for it.
    pub fn begin(&self) {
        let number = counts().map_or(0, |counts| counts.begin());
        self.number.store(number, Ordering::Relaxed);
    }

    /// There is about to be one more, which will have this word, too.
    pub fn add(&self) {
        self.change(|count| count.saturating_add(1));
    }

    /// This process has the socket no more.
    pub fn leave(&self) {
        self.change(|count| count.saturating_sub(1));
        self.forget();
    }

    /// Whether anything was counted, and this process did not forget it.
    pub fn is_counted(&self) -> bool {
        self.number.load(Ordering::Relaxed) != 0
    }

    /// There are others than those that count themselves. This process, which has the socket all the same, counts for ever.
    pub fn forget(&self) {
        if self.number.load(Ordering::Relaxed) != 0 {
            self.number.store(0, Ordering::Relaxed);
        }
    }

    /// Whether this process is the only one; `None` if nothing is known.
    pub fn is_alone(&self) -> Option<bool> {
        match self.number.load(Ordering::Relaxed) {
            0 => None,
            number => counts()?.of(number).map(|count| count == 1),
        }
    }

    fn change(&self, change: impl Fn(u32) -> u32) {
        let number = self.number.load(Ordering::Relaxed);
        if number != 0 && !counts().is_some_and(|counts| counts.change(number, change)) {
            self.forget();
        }
    }
}

/// Each is used for another socket once so many were begun after it: who asks for the former then knows nothing.
#[derive(Clone, Copy)]
struct Counts {
    last: &'static SharedU64,
    /// The number in the upper half.
    words: &'static [SharedU64; LEN],
}

impl Counts {
    fn begin(&self) -> u32 {
        let number = (self.last.fetch_add(1, Ordering::Relaxed) as u32).wrapping_add(1);
        if number != 0 {
            self.word(number)
                .store(joined(number, 1), Ordering::Release);
        }
        number
    }

    fn of(&self, number: u32) -> Option<u32> {
        let word = self.word(number).load(Ordering::Acquire);
        (word >> 32 == u64::from(number)).then_some(word as u32)
    }

    /// False if the word is another socket's by now.
    fn change(&self, number: u32, change: impl Fn(u32) -> u32) -> bool {
        self.word(number)
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                (word >> 32 == u64::from(number)).then(|| joined(number, change(word as u32)))
            })
            .is_ok()
    }

    fn word(&self, number: u32) -> &SharedU64 {
        // The remainder is below the length, which is not 0.
        &self.words[number as usize % LEN]
    }
}

fn joined(number: u32, count: u32) -> u64 {
    u64::from(number) << 32 | u64::from(count)
}

/// Those of the process that began with it, and of its children.
fn counts() -> Option<Counts> {
    static COUNTS: Words<{ 1 + LEN }> = Words::new();
    let [last, words @ ..] = COUNTS.get()?;
    Some(Counts { last, words })
}

/// With the number that is the last, four pages.
const LEN: usize = 2047;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn begun() -> Kin {
        let kin = Kin::default();
        assert_eq!(kin.is_alone(), None);
        kin.begin();
        assert_eq!(kin.is_alone(), Some(true));
        kin
    }

    /// What a child of a fork has.
    fn child(of: &Kin) -> Kin {
        of.add();
        Kin {
            number: AtomicU32::new(of.number.load(Ordering::Relaxed)),
        }
    }

    #[test]
    fn a_server_that_closes_leaves_its_child_alone() {
        let server = begun();
        let session = child(&server);
        assert_eq!(session.is_alone(), Some(false));
        server.leave();
        assert_eq!(server.is_alone(), None);
        assert_eq!(session.is_alone(), Some(true));
    }

    #[test]
    fn each_of_several_counts() {
        let server = begun();
        let sessions = [(); 3].map(|()| child(&server));
        server.leave();
        sessions[0].leave();
        assert_eq!(sessions[1].is_alone(), Some(false));
        sessions[2].leave();
        assert_eq!(sessions[1].is_alone(), Some(true));
    }

    #[test]
    fn who_does_not_know_leaves_the_others_in_doubt() {
        let server = begun();
        let session = child(&server);
        server.forget();
        assert_eq!(session.is_alone(), Some(false));
        assert_eq!(server.is_alone(), None);
    }

    #[test]
    fn a_count_that_another_socket_has_says_nothing() {
        let server = begun();
        let session = child(&server);
        let others: Vec<_> = (0..LEN).map(|_| begun()).collect();
        assert_eq!(session.is_alone(), None);
        server.leave();
        session.leave();
        assert!(others.iter().all(|kin| kin.is_alone() == Some(true)));
    }

    #[test]
    fn a_forked_child_counts_in_the_same_place() {
        let server = begun();
        server.add();
        // SAFETY: the child does nothing but leave and end.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            server.leave();
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        assert!(pid > 0);
        // SAFETY: waits for that child.
        assert_eq!(unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) }, pid);
        assert_eq!(server.is_alone(), Some(true));
    }
}
