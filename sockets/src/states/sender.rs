//! A direction of a connection with rings, at the end that sends.

use super::{Row, table, words};

words! {
    /// Where it stands, as the shared memory has it.
    State {
        /// on TCP
        Before "before"
        /// on TCP, and the receiver consents to the ring
        Invited "invited"
        /// on TCP, and the receiver calls the direction back
        Called "called"
        /// on the ring
        Ring "ring"
        /// on the ring, and the receiver calls the direction back
        Recalled "recalled"
        /// on TCP again, behind what the receiver had not read on the ring, which is being moved there
        Serving "serving"
        /// on TCP again
        After "after"
    }
}

words! {
    /// What this end does, or sees the other do.
    Event {
        /// the receiver consents, or calls the direction back
        Peer "the other end"
        /// a call that sends
        Send "send"
        /// a call that has found the direction called back does what is due
        Serve "serve"
        /// after a receive: a sender that waits for room is to be rung
        Bell "doorbell"
        /// this end goes back to TCP with what it sends: for urgent data, or with both directions
        GoBack "go back"
        /// `shutdown(SHUT_WR)`
        Shutdown "shutdown"
        /// the last descriptor of this end is closed
        Close "close"
    }
}

/// The transitions.
pub const ROWS: &[Row<State, Event>] = table! {
    State Event
    Peer: Before => Invited, "it has been seen receiving through us since the rings exist, and no thread of it is inside a kernel call that could take bytes past us";
    Peer: Before => Called, "";
    Peer: Invited => Called, "";
    Peer: Ring => Recalled, "";

    Send: Before => Before, "TCP";
    Send: Invited => Ring, "`to_ring := written`; ring";
    Send "TCP has ended": Invited => Invited, "TCP, which answers";
    Send: Called => Recalled, "`to_ring := written`, and on";
    Send "TCP has ended": Called => Called, "TCP, which answers";
    Send: Ring => Ring, "ring; a doorbell if the receiver is armed";
    Send "bytes are unread": Recalled => Serving, "ring; then `to_tcp := written`, and what is unread moves to TCP";
    Send "it never was on the ring": Recalled => After, "`to_tcp := written`; TCP";
    Send "nothing goes to the ring": Recalled => Recalled, "";
    Send "TCP has no room for all": Serving => Serving, "what is being moved goes first";
    Send "TCP has room": Serving => After, "what is being moved, then TCP";
    Send: After => After, "TCP";

    Serve: Before => Before, "";
    Serve: Invited => Invited, "";
    Serve: Called => Recalled, "`to_ring := written`, and on: it goes there and back, for the receiver waits for the second step";
    Serve "TCP has ended": Called => Called, "";
    Serve: Ring => Ring, "";
    Serve "bytes are unread": Recalled => Serving, "`to_tcp := written`, and what is unread moves to TCP";
    Serve "all is read": Recalled => After, "`to_tcp := written`";
    Serve "TCP has ended": Recalled => Recalled, "";
    Serve "TCP has no room for all": Serving => Serving, "";
    Serve "TCP has room": Serving => After, "a FIN that was said in memory is repeated on TCP";
    Serve: After => After, "";

    Bell: Before => Before, "it is owed: a doorbell can go only where no data goes";
    Bell: Invited => Ring, "`to_ring := written`; a doorbell";
    Bell "TCP has ended": Invited => Invited, "it is owed, and nobody waits for it";
    Bell: Called => Called, "it is owed";
    Bell: Ring => Ring, "a doorbell";
    Bell: Recalled => Recalled, "a doorbell";
    Bell: Serving => Serving, "none: the sender knows that nobody rings";
    Bell: After => After, "none: the sender knows that nobody rings";

    GoBack: Before => Ring, "`to_ring := written`, and on";
    GoBack "TCP has ended": Before => Before, "what has ended there goes nowhere else";
    GoBack: Invited => Ring, "`to_ring := written`, and on; a doorbell first if the other direction is called back";
    GoBack "TCP has ended": Invited => Invited, "";
    GoBack: Called => Recalled, "`to_ring := written`, and on";
    GoBack "TCP has ended": Called => Called, "";
    GoBack: Ring => After, "whoever sleeps for room is rung, for nobody can ring later; `to_tcp := written`, doorbells too. What is on the ring is read there";
    GoBack "TCP has ended": Ring => Ring, "";
    GoBack "bytes are unread": Recalled => Serving, "`to_tcp := written`, and what is unread moves to TCP";
    GoBack "all is read": Recalled => After, "`to_tcp := written`";
    GoBack "TCP has ended": Recalled => Recalled, "";
    GoBack "TCP has no room for all": Serving => Serving, "";
    GoBack "TCP has room": Serving => After, "";
    GoBack: After => After, "";

    Shutdown: Before => Before, "TCP's FIN";
    Shutdown: Invited => Ring, "`to_ring := written`; FIN in memory";
    Shutdown "TCP has ended": Invited => Invited, "TCP's FIN";
    Shutdown: Called => Called, "TCP's FIN";
    Shutdown: Ring => Ring, "FIN in memory; TCP stays open for doorbells, unless this end receives no more either: then it is deaf, and TCP's FIN follows";
    Shutdown: Recalled => Recalled, "FIN in memory";
    Shutdown "TCP has no room for all": Serving => Serving, "FIN in memory, repeated on TCP behind what is being moved";
    Shutdown "TCP has room": Serving => After, "TCP's FIN, behind what is being moved";
    Shutdown: After => After, "TCP's FIN";

    Close: Before => Before, "TCP's FIN";
    Close: Invited => Ring, "`to_ring := written`; GONE in memory, TCP's FIN";
    Close "bytes are unread, or TCP has ended": Invited => Invited, "TCP's reset or FIN";
    Close: Called => Recalled, "`to_ring := written`, and on";
    Close "TCP has ended": Called => Called, "TCP's FIN";
    Close: Ring => Ring, "GONE in memory, TCP's FIN";
    Close "bytes are unread": Recalled => Serving, "`to_tcp := written`, and what is unread moves to TCP";
    Close "all is read": Recalled => After, "`to_tcp := written`; TCP's FIN";
    Close "TCP has ended": Recalled => Recalled, "GONE in memory";
    Close "TCP has no room for all": Serving => Serving, "a reset, after five seconds";
    Close "TCP has room": Serving => After, "TCP's FIN, behind what was moved";
    Close: After => After, "TCP's FIN";
};
