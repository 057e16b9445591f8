//! The words in memory that say where the bytes of a direction go, and that no more than one of the two ends writes.

use super::Flow;

impl Flow {
    /// What this end sends goes to the ring, after `written` bytes on TCP.
    #[inline]
    pub(super) fn go_to_ring(&self, written: u64) {
        self.stream.tx().set_to_ring(written);
        self.moved();
    }

    /// What this end sends goes to TCP again, after `written` bytes on it.
    #[inline]
    pub(super) fn go_to_tcp(&self, written: u64) {
        // A signal handler may have come into a write.
        self.stream.tx().break_off();
        self.stream.tx().set_to_tcp(written);
        self.moved();
    }

    /// What this end receives comes from where the phase says.
    #[inline]
    pub(super) fn follow_to(&self, phase: u32) {
        self.stream.rx().set_phase(phase);
        self.moved();
    }

    /// Has tests look the change up in the [tables](crate::states).
    #[inline]
    fn moved(&self) {
        #[cfg(all(test, not(loom)))]
        self.watch.look(self);
    }
}
