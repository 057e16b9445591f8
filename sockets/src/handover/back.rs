//! The way back to TCP, for who is about to do with a socket what cannot be followed.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::conn::{Conn, Way};
use crate::epoll;
use crate::flow::{RECEIVE, SEND, Stop};
use crate::host::host;
use crate::reason::Reason;

/// Has all bytes of a connection go over TCP from now on, so that system calls that we do not see are right.
///
/// A young connection stays there, at once. Of one with rings the peer is asked, and woken if he sleeps, to put on TCP what has not been read. One who does
/// nothing with the connection finds that out in his next call: until then nothing comes. Where this cannot be (urgent data, a doorbell behind bytes that were
/// not read, or that nobody can ring) and he does nothing for five seconds, it is reset, for a reset is an error and a wrong byte is not. False says
/// that it was.
pub fn go_back(conn: &Conn, fd: BorrowedFd<'_>, reason: Reason) -> bool {
    conn.stay_on_tcp(reason);
    if !conn.is_mapped() || is_back(conn) {
        return true;
    }
    conn.note_back(reason);
    let back = walk(conn, fd).is_ok();
    if back {
        conn.restore_options(fd);
        // The peer rings for room no more. A signal handler that came into a turn of its thread leaves that to the next call.
        if !sys::turn::is_in_turn() {
            epoll::moved(fd.as_raw_fd(), conn);
        }
    } else {
        // Or the peer, with nothing left to read, might take the reset for an orderly end.
        if let Some(flow) = conn.flow.take(SEND) {
            flow.stream().set_deaf();
        }
        sys::socket::reset_now(fd);
    }
    back
}

/// Whether a connection with rings uses them no more.
pub(crate) fn is_back(conn: &Conn) -> bool {
    conn.flow
        .take(RECEIVE)
        .is_some_and(|flow| flow.is_back_on_tcp())
}

fn walk(conn: &Conn, fd: BorrowedFd<'_>) -> Result<(), Stop> {
    let tcp = conn.tcp(fd);
    let begun = Instant::now();
    // Nobody else of this end receives or sends meanwhile, in whatever process.
    let (Some(receive), Some(send)) = (conn.turn(fd, RECEIVE), conn.turn(fd, SEND)) else {
        return Ok(());
    };
    receive.call_back(&tcp, conn.is_quiet(Way::Out))?;
    let mut rung = None;
    let (mut came, mut renounced) = (false, false);
    loop {
        let waited = begun.elapsed();
        if !came {
            came = match receive.came_back(&tcp) {
                // TCP has ended: nothing comes any more, and nothing is lost if all was read.
                Err(Stop::End) if receive.available() == Ok(0) => true,
                came => came?,
            };
        }
        let quiet = conn.is_quiet(Way::Out);
        let alone = !came && waited > company(receive.available() == Ok(0));
        if alone && rung.is_none() {
            rung = Some(receive.call_again(&tcp, quiet)?);
        }
        if (came || alone) && !renounced && (send.sends_on_ring() || quiet) {
            send.renounce_ring(&tcp)?;
            renounced = true;
        }
        if alone && renounced {
            came = receive.go_alone(&tcp, rung == Some(true))?;
        }
        let served = send.serve_back(&tcp)?;
        if came && served && renounced {
            return Ok(());
        }
        if waited > PATIENCE {
            return Err(Stop::Again);
        }
        if waited < SHORT {
            std::thread::yield_now();
        } else {
            pause(fd);
        }
    }
}

/// Before the last descriptor is closed: puts on TCP what the peer, which is going back there, has not taken. Its kernel takes what it has room for,
/// and the rest as the peer reads. After a close the kernel would go on sending, and we cannot: who takes nothing for five seconds is reset. True if
/// nothing is owed then.
pub(crate) fn finish_serving(conn: &Conn, fd: BorrowedFd<'_>) -> bool {
    let begun = Instant::now();
    loop {
        let Some(send) = conn.turn(fd, SEND) else {
            return true;
        };
        let is_last = send.stream().holders().count() <= 1;
        if !is_last || !send.owes_back() {
            return true;
        }
        match send.serve_back(&conn.tcp(fd)) {
            Ok(false) if begun.elapsed() < PATIENCE => {}
            served => return served == Ok(true),
        }
        drop(send);
        pause(fd);
    }
}

/// A millisecond.
fn pause(fd: BorrowedFd<'_>) {
    match host().map(|host| host.poll(fd, 0, 1)) {
        Some(Ok(0)) => {}
        // A signal, or a connection that is gone and shows it at once.
        _ => std::thread::sleep(Duration::from_millis(1)),
    }
}

/// How long the peer is waited for where it need not come. One that sleeps in a call comes at once, or as soon as it is given a processor: where bytes
/// that this end could read a moment ago wait for it, it is given the time for that.
fn company(nothing_waits: bool) -> Duration {
    Duration::from_millis(if nothing_waits { 50 } else { 1000 })
}

const SHORT: Duration = Duration::from_micros(200);
/// How long the peer is waited for where it must come.
const PATIENCE: Duration = Duration::from_secs(5);
