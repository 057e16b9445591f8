//! A connection in one process.

use super::{Row, table, words};

words! {
    /// Where a connection stands.
    State {
        /// there is none at this place
        Closed "closed"
        /// over TCP: too little has been exchanged
        Young "young"
        /// over TCP, while the ends look for each other; a step is taken in the program's own calls, and nothing waits
        Meeting "meeting"
        /// each direction as below
        Mapped "mapped"
        /// each direction as below, both on their way to TCP or there, or the one in which this end sends
        Back "back"
        /// over TCP, for good
        Tcp "TCP"
    }
}

words! {
    /// What moves it.
    Event {
        /// `connect` or `accept` has succeeded, or it is found among the descriptors
        Open "open"
        /// its rings are found among the descriptors: the program before this one, or that started it, had them
        Resume "resume"
        /// enough has been exchanged
        Enough "enough"
        /// it may not leave TCP, or cannot
        Refuse "refuse"
        /// both ends have the stream
        Meet "meet"
        /// the ends missed each other, because a process forked or became another program
        Miss "miss"
        /// the meeting ends without the other end
        Over "over"
        /// the program does, or is about to do, what cannot be followed, or it forks in the middle of the meeting
        Stay "stay"
        /// this end goes back to TCP, because its program does what cannot be followed
        GoBack "go back"
        /// the program waits for room to send, and nobody reads
        Standstill "standstill"
        /// the other end goes back to TCP, as a call finds that sends, or does what is due
        CalledBack "called back"
        /// the memory says what cannot be
        Spoilt "spoilt"
        /// the rings are given up
        Drop "drop"
        /// its last descriptor of this process goes
        Close "close"
    }
}

/// Where `event` leads from `state`, if that is anywhere.
#[must_use]
pub fn next(state: State, event: Event) -> Option<State> {
    NEXT[state as usize][event as usize]
}

/// The row of `event` in `state`.
#[must_use]
pub fn row(state: State, event: Event) -> Option<&'static Row<State, Event>> {
    ROWS.iter().find(|row| row.from == state && row.on == event)
}

const NEXT: [[Option<State>; Event::ALL.len()]; State::ALL.len()] = {
    let mut next = [[None; Event::ALL.len()]; State::ALL.len()];
    let mut at = 0;
    while at < ROWS.len() {
        let place = &mut next[ROWS[at].from as usize][ROWS[at].on as usize];
        assert!(place.is_none(), "two rows for one event in one state");
        *place = Some(ROWS[at].to);
        at += 1;
    }
    next
};

/// The transitions.
pub const ROWS: &[Row<State, Event>] = table! {
    State Event
    Open: Closed => Young, "";
    Resume: Young => Mapped, "each direction goes on where it was";
    Enough: Young => Meeting, "goes to the meeting";
    Refuse: Young => Tcp, "" [NotLocal ToItself NotConnected NotTcp SharedWithStranger IoUring Option Filtered Sets Silent Descriptors Memory NoProof Refused NoNic ConfiguredOff RuleNever];
    Stay: Young => Tcp, "" [GaveUp Stdio HandedOver IoUring Urgent Option RawCalls NotTcp Filtered Sets Descriptors];
    Close: Young => Closed, "";
    Meet: Meeting => Mapped, "maps the memory";
    Miss: Meeting => Young, "after eight times as much has been exchanged it goes to the meeting again, three times at most";
    Over: Meeting => Tcp, "" [NotLocal NotConnected NobodyCame GaveUp FalseProof Silent Garbage Disturbed Version Layout BadMemory Declined PeerGaveUp PeerLeft Descriptors Memory NoProof Refused];
    Stay: Meeting => Tcp, "leaves the meeting" [GaveUp Stdio HandedOver IoUring Urgent Option RawCalls NotTcp Filtered Sets Descriptors];
    Close: Meeting => Closed, "leaves the meeting";
    GoBack: Mapped => Back, "calls both directions back" [NotTcp Stdio HandedOver IoUring Option RawCalls Filtered Sets Descriptors];
    Standstill: Mapped => Back, "goes to TCP with what it sends" [Standstill];
    CalledBack: Mapped => Back, "" [PeerWentBack];
    Spoilt: Mapped => Back, "resets the connection; the memory is left to the peer" [Corrupt];
    Close: Mapped => Closed, "leaves both directions";
    GoBack: Back => Back, "goes on with it; the first reason stays" [NotTcp Stdio HandedOver IoUring Option RawCalls Filtered Sets Descriptors];
    Standstill: Back => Back, "goes to TCP with what it sends; the first reason stays" [Standstill];
    Spoilt: Back => Back, "resets the connection; the memory is left to the peer" [Corrupt];
    Drop: Back => Tcp, "";
    Close: Back => Closed, "leaves both directions";
    Stay: Tcp => Tcp, "the later reason is shown" [GaveUp Stdio HandedOver IoUring Urgent Option RawCalls NotTcp Filtered Sets Descriptors];
    Close: Tcp => Closed, "";
};
