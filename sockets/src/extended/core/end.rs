//! How operations end, and the connection.

use sys::errno::Errno;
use via::{Done as Head, Fault};

use super::Core;
use crate::extended::work::Op;

impl Core {
    /// All of `unread` and of what is posted is lost.
    pub(in crate::extended) fn lose(&mut self, errno: Errno) {
        if self.gone.is_some() {
            return;
        }
        let rest = if self.stream.heard_fin {
            Errno::SHUTDOWN
        } else {
            Errno::CONNRESET
        };
        self.gone = Some(if errno == Errno::PROTO {
            errno
        } else {
            Errno::CONNRESET
        });
        // What went wrong went wrong with the oldest.
        let mut why = if errno == Errno::CONNRESET {
            rest
        } else {
            errno
        };
        for way in std::mem::take(&mut self.under_way) {
            if let (Some((id, op)), Some(_)) = (way.of, way.last) {
                self.done
                    .push(id, op, Err(std::mem::replace(&mut why, rest)));
            }
        }
        for work in std::mem::take(&mut self.pending) {
            let result = Err(std::mem::replace(&mut why, rest));
            self.done.push(work.id, work.op(), result);
        }
        for receive in std::mem::take(&mut self.receives) {
            self.done.push(receive.id, Op::Recv, Err(rest));
        }
        self.announced = 0;
        self.peer_receives.clear();
        self.to_say.clear();
        self.tell_news();
        // It is over in any case.
        let _ = self.vi.disconnect();
    }

    /// Takes what has left; whether anything has.
    pub(super) fn take_sent(&mut self) -> bool {
        let Ok(Head::Completed(sent)) = self.vi.send_done() else {
            return false;
        };
        let Some(way) = self.under_way.pop_front() else {
            return false;
        };
        if let Some(fault) = sent.status.fault() {
            self.under_way.push_front(way);
            self.lose(errno_of(fault));
            return false;
        }
        self.free.extend(way.slot);
        if let (Some((id, op)), Some(parts)) = (way.of, way.last) {
            self.complete(id, op, parts.len());
        }
        true
    }

    /// An operation has moved so many bytes.
    pub(super) fn complete(&mut self, id: u64, op: Op, bytes: u32) {
        match op {
            Op::Send | Op::Write => self.tally.sent(bytes as usize, true),
            Op::Recv | Op::Read => self.tally.received(bytes as usize, true),
        }
        self.done.push(id, op, Ok(bytes));
    }
}

fn errno_of(fault: Fault) -> Errno {
    match fault {
        Fault::Protection | Fault::Format => Errno::FAULT,
        Fault::RdmaProtection => Errno::ACCESS,
        _ => Errno::CONNRESET,
    }
}
