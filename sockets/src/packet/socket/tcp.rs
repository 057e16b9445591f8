//! What a socket's state is called where TCP's are told.

use proto::packet::State;

use super::{Life, Socket};

impl Socket {
    /// The number of its state in TCP's table, and the bytes of its largest packets.
    pub(in crate::packet) fn state_of_tcp(&self) -> (u8, u32) {
        let Ok(stream) = self.stream() else {
            let state = match &*self.lock() {
                Life::Listening(_) => TCP_LISTEN,
                Life::Connecting(_) => TCP_SYN_SENT,
                Life::Fresh(_) | Life::Connected(..) => TCP_CLOSE,
            };
            return (state, 0);
        };
        let state = match stream.state_now() {
            State::Closed => TCP_CLOSE,
            State::CloseWait => TCP_CLOSE_WAIT,
            State::Closing => TCP_CLOSING,
            State::FinWait1 => TCP_FIN_WAIT1,
            State::FinWait2 => TCP_FIN_WAIT2,
            State::LastAck => TCP_LAST_ACK,
            State::Listen => TCP_LISTEN,
            State::Normal => TCP_ESTABLISHED,
        };
        (state, stream.largest())
    }
}

// `linux/tcp.h`.
const TCP_ESTABLISHED: u8 = 1;
const TCP_SYN_SENT: u8 = 2;
const TCP_FIN_WAIT1: u8 = 4;
const TCP_FIN_WAIT2: u8 = 5;
const TCP_CLOSE: u8 = 7;
const TCP_CLOSE_WAIT: u8 = 8;
const TCP_LAST_ACK: u8 = 9;
const TCP_LISTEN: u8 = 10;
const TCP_CLOSING: u8 = 11;
