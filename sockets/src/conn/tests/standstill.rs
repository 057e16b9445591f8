//! Two ends that wait for each other.

use std::io::IoSliceMut;

use super::super::standstill::{PATIENCE, PATIENCE_ALONE};
use super::*;
use crate::flow::{RECEIVE, SEND};
use crate::io::Receive;
use crate::ready::{self, Rest, WRITE};

impl Pair {
    /// With what both ends send in the rings.
    pub(super) fn on_rings() -> Self {
        let pair = Self::mapped();
        pair.begin_rings();
        pair
    }

    pub(super) fn begin_rings(&self) {
        for end in [0, 1, 0, 1] {
            self.send(end, b"x").expect("room");
            assert_eq!(self.drain(1 - end), 1);
        }
        for conn in self.conns {
            let flow = conn.flow.take(SEND).expect("rings");
            assert!(flow.sends_on_ring() && flow.receives_on_ring());
        }
    }

    /// Sends for as long as there is room; how much.
    pub(super) fn fill(&self, end: usize) -> usize {
        let chunk = [7; 1 << 16];
        let mut sent = 0;
        loop {
            match self.send(end, &chunk) {
                Ok(n) => sent += n,
                Err(Errno::AGAIN) => return sent,
                Err(errno) => panic!("{errno}"),
            }
        }
    }

    pub(super) fn send(&self, end: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let native = |_| unreachable!("there are rings");
        let fd = self.sockets[end].as_fd();
        io::send(self.conns[end], fd, &[IoSlice::new(bytes)], true, native)
    }

    /// Receives what there is; how much.
    pub(super) fn drain(&self, end: usize) -> usize {
        let mut got = 0;
        loop {
            match self.take(end, 1 << 16) {
                0 => return got,
                n => got += n,
            }
        }
    }

    /// Receives so much at most; how much.
    pub(super) fn take(&self, end: usize, most: usize) -> usize {
        let mut room = vec![0; most];
        let how = Receive {
            dont_wait: true,
            ..Receive::default()
        };
        let native = |_| unreachable!("there are rings");
        let mut into = [IoSliceMut::new(&mut room)];
        let fd = self.sockets[end].as_fd();
        match io::receive(self.conns[end], fd, &mut into, how, native) {
            Ok(n) => n,
            Err(Errno::AGAIN) => 0,
            Err(errno) => panic!("{errno}"),
        }
    }

    fn rest(&self, end: usize) -> Rest {
        ready::rest(self.conns[end], self.sockets[end].as_fd(), WRITE)
    }

    fn end_standstill(&self, end: usize) -> bool {
        io::end_standstill(self.conns[end], self.sockets[end].as_fd())
    }

    /// As if what is noted now had been for so long.
    fn has_been_for(&self, end: usize, time: Duration) {
        let tcp = self.conns[end].tcp(self.sockets[end].as_fd());
        let flow = self.conns[end].flow.take(SEND).expect("rings");
        self.conns[end].note_standstill(&flow, &tcp);
        assert!(self.conns[end].may_stand_still());
        self.conns[end].standstill.has_been_for(time);
    }
}

#[test]
pub(super) fn who_waits_for_one_that_waits_goes_to_tcp() {
    let pair = Pair::on_rings();
    let mut sent = pair.fill(0);
    assert!(matches!(pair.rest(0), Rest::Asleep(bed) if !bed.nap));
    assert!(
        !pair.conns[0].waits_for_one_that_waits(),
        "the other has room"
    );
    let answered = pair.fill(1);
    assert!(matches!(pair.rest(1), Rest::Asleep(bed) if bed.nap));
    assert!(!pair.end_standstill(1), "it may read yet");

    pair.has_been_for(1, PATIENCE);
    assert!(pair.end_standstill(1));
    assert_eq!(pair.conns[1].path(), Path::Tcp(Reason::Standstill));
    assert_eq!(pair.conns[0].path(), Path::Mapped);
    let more = pair.fill(1);
    assert!(more > 0, "TCP has room");

    // The other finds its ring as full as before, and all this unread.
    pair.has_been_for(0, PATIENCE);
    assert!(pair.end_standstill(0));
    sent += pair.fill(0);
    let mut got = [0; 2];
    while got != [answered + more, sent] {
        got[0] += pair.drain(0);
        got[1] += pair.drain(1);
    }
    assert_eq!(pair.drain(0) + pair.drain(1), 0);
    assert!(!pair.end_standstill(0), "it is over");
    pair.conns[1].note_standstill_ended();
    pair.close();
}

#[test]
fn who_reads_at_times_stays() {
    let pair = Pair::on_rings();
    pair.fill(0);
    pair.fill(1);
    pair.rest(0);
    pair.has_been_for(0, PATIENCE);
    let taken = pair.conns[1].flow.take(RECEIVE).map(|flow| {
        let rx = flow.stream().rx();
        rx.take(rx.head(), rx.head() + 1)
    });
    assert!(taken.is_some_and(|(taken, _)| taken));
    assert!(!pair.end_standstill(0));
    assert!(pair.conns[0].may_stand_still(), "from now on");
    pair.drain(0);
    assert!(!pair.end_standstill(0));
    assert!(!pair.conns[0].waits_for_one_that_waits());
    pair.drain(1);
    assert!(!pair.end_standstill(0));
    assert!(!pair.conns[0].may_stand_still());
    assert_eq!(pair.conns[0].path(), Path::Mapped);
    pair.close();
}

#[test]
fn who_writes_to_one_that_does_nothing_goes_to_tcp_later() {
    let pair = Pair::on_rings();
    let sent = pair.fill(0);
    pair.has_been_for(0, PATIENCE);
    assert!(!pair.end_standstill(0));
    pair.has_been_for(0, PATIENCE_ALONE);
    assert!(pair.end_standstill(0));
    let more = pair.fill(0);
    assert!(more > 0, "TCP has room");
    let mut got = 0;
    while got < sent + more {
        got += pair.drain(1);
    }
    assert_eq!(got, sent + more);
    pair.send(1, b"x").expect("room");
    assert_eq!(pair.drain(0), 1);
    pair.close();
}

/// What a send that a handler has come into has copied is published on the ring when the handler has returned.
#[test]
fn who_comes_into_a_send_does_not_go() {
    let pair = Pair::on_rings();
    pair.fill(0);
    pair.has_been_for(0, PATIENCE_ALONE);
    {
        let fd = pair.sockets[0].as_fd();
        let _interrupted = pair.conns[0].turn(fd, SEND).expect("rings");
        assert!(!pair.end_standstill(0));
        let left = ends::leave_ring(pair.conns[0], fd, Reason::Option);
        assert_eq!(left, Err(Errno::AGAIN));
    }
    assert!(pair.end_standstill(0));
    pair.close();
}

#[test]
fn more_than_fits_is_not_waited_for() {
    let pair = Pair::on_rings();
    let sent = pair.fill(0);
    let conn = pair.conns[1];
    conn.low_water.store(u32::MAX, Ordering::Relaxed);
    let mut room = vec![0; 2 * sent];
    let native = |_| unreachable!("there are rings");
    let mut into = [IoSliceMut::new(&mut room)];
    let fd = pair.sockets[1].as_fd();
    // Here a sleep is a panic.
    let got = io::receive(conn, fd, &mut into, Receive::default(), native);
    assert_eq!(got, Ok(sent));
    pair.close();
}
