//! A direction of a connection with rings, at the end that receives.

use super::{Row, table, words};

words! {
    /// Where it stands, as the shared memory has it.
    State {
        /// on TCP
        Before "before"
        /// on TCP up to `to_ring`, then on the ring
        Following "following"
        /// on the ring
        Ring "ring"
        /// on the ring until it is empty, then on TCP behind the doorbells, from `to_tcp` on
        Returning "returning"
        /// on TCP again
        After "after"
    }
}

words! {
    /// What this end does, or sees the other do.
    Event {
        /// the sender goes to the ring, or back to TCP
        Peer "the other end"
        /// a call that receives
        Receive "receive"
        /// before a sleep
        Sleep "sleep"
        /// this end goes back to TCP with both directions
        GoBack "go back"
        /// the last descriptor of this end is closed
        Close "close"
    }
}

/// The transitions.
pub const ROWS: &[Row<State, Event>] = table! {
    State Event
    Peer: Before => Following, "";
    Peer: Ring => Returning, "";

    Receive: Before => Before, "consents; TCP. If `to_ring` appears meanwhile, what was read beyond it were doorbells";
    Receive "not all before `to_ring` is taken": Following => Following, "TCP up to there";
    Receive: Following => Ring, "ring";
    Receive "the sender is back on TCP": Following => Returning, "ring";
    Receive: Ring => Ring, "ring; a sender that waits for room is rung. If it is empty: the end if there is FIN, GONE or TCP's end, else nothing";
    Receive "the ring has bytes, or not all doorbells have come": Returning => Returning, "ring";
    Receive: Returning => After, "doorbells are dropped; TCP";
    Receive: After => After, "TCP";

    Sleep: Before => Before, "arms; sleeps on TCP";
    Sleep: Following => Following, "arms; sleeps unless all before `to_ring` is taken";
    Sleep: Ring => Ring, "takes doorbells off TCP (where others may sleep on them, only once nothing is left of what they rang for), arms, looks again; sleeps on TCP";
    Sleep: Returning => Returning, "takes doorbells off TCP up to `to_tcp`, arms, looks again; sleeps if more is to come before it";
    Sleep: After => After, "sleeps on TCP";

    GoBack: Before => Before, "calls the sender back, and waits for it";
    GoBack "TCP has ended, or the sender has gone or makes no call": Before => After, "all that comes is on TCP";
    GoBack "the sender has not come, or a reset": Following => Following, "calls it back, and waits. Doorbells behind unread bytes nobody could tell apart: a reset";
    GoBack "TCP has ended": Following => Ring, "and on";
    GoBack "the sender is back on TCP": Following => After, "doorbells are dropped";
    GoBack: Ring => Ring, "calls the sender back, a doorbell if it can go, and waits. The bytes of one who has gone nobody can put on TCP: a reset";
    GoBack "TCP has ended, and the ring is empty; or the sender makes no call": Ring => After, "doorbells are dropped";
    GoBack "not all doorbells have come": Returning => Returning, "waits. Had the sender gone by itself with bytes still on the ring: a reset";
    GoBack: Returning => After, "doorbells are dropped";
    GoBack: After => After, "";

    Close: Before => Before, "a reset if bytes were left unread";
    Close "not all before `to_ring` is taken": Following => Following, "a reset if bytes were left unread";
    Close: Following => Ring, "and on";
    Close "the sender is back on TCP": Following => Returning, "and on";
    Close: Ring => Ring, "doorbells are taken off TCP; a reset if bytes were left unread";
    Close: Returning => Returning, "doorbells are taken off TCP up to `to_tcp`; a reset if bytes were left unread";
    Close: After => After, "TCP's own";
};
