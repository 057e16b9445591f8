//! What calls will touch, asked for before they do, without waiting for it: of thousands of connections none has its lines near.

use sys::mem;
use sys::stream::fetch;
use sys::sync::Ordering;

use super::Conn;
use crate::flow::Flow;
use crate::table;

impl Conn {
    /// Asks for what a look, and what follows it, will touch here, for whoever looks at several connections, one after the other. That is a third of the
    /// lines: there are more than a processor asks for at a time.
    #[inline]
    pub(crate) fn foresee(&self) {
        self.flow.foresee(Flow::TOUCHED);
    }

    /// Asks for what they will touch elsewhere. Reads what [`Conn::foresee`] asks for.
    #[inline]
    pub(crate) fn foresee_elsewhere(&self) {
        mem::fetch_to_write(&self.record.calls);
        fetch(self.watched.load(Ordering::Relaxed));
    }

    /// Asks for what the call that begins, and one that receives what it is answered with, will touch, where that is likely to be far away.
    ///
    /// All are waited for at once, and not one after the other. Where they are near it takes 4 ns. See [decision 47](../../../docs/decisions/0047-asked-for-at-once.md).
    #[inline]
    pub(crate) fn foresee_call(&self) {
        if table::have_been(MANY) {
            self.foresee();
            self.foresee_elsewhere();
        }
    }
}

/// So many connections fill a processor's second cache, of 1 or 2 MiB.
const MANY: usize = 2_000;
