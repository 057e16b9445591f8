use crate::error::Result;

/// One connected end that sends and receives messages of agreed lengths, from and into buffers of its own.
///
/// Both ends call in step: what one sends, the other receives with the same length, in the same order.
pub(crate) trait Pipe {
    /// Sends `len` bytes; returns when the buffer may be used again.
    fn send(&mut self, len: usize) -> Result<()>;

    /// Sends `len` bytes of a stream, whose buffer stays as it is: where the transport can have several messages under way, it has.
    fn post(&mut self, len: usize) -> Result<()> {
        self.send(len)
    }

    /// Waits for a message of `len` bytes.
    fn recv(&mut self, len: usize) -> Result<()>;

    /// Sends `len` bytes and receives as many, without waiting for the one before the other.
    fn exchange(&mut self, len: usize) -> Result<()>;

    /// Puts `len` bytes into the peer's memory, which the peer does not notice.
    ///
    /// Sockets have no such call: theirs is a `send`, and `absorb` is its other half.
    fn write(&mut self, len: usize) -> Result<()> {
        self.send(len)
    }

    /// The passive half of [`write`](Self::write).
    fn absorb(&mut self, len: usize) -> Result<()> {
        self.recv(len)
    }
}

/// Where pipes come from: one end listens, the other knows its address.
pub(crate) trait Port: Sized {
    type Pipe: Pipe;

    /// A listening end.
    fn listen(shape: Shape) -> Result<Self>;

    /// The end that connects to `address`.
    fn dial(shape: Shape, address: &str) -> Result<Self>;

    /// What the other end dials.
    fn address(&self) -> String;

    /// Accepts or connects, whichever this end does.
    fn open(&mut self) -> Result<Self::Pipe>;

    /// Accepts or connects, and is done when both ends have closed again.
    fn knock(&mut self) -> Result<()>;
}

/// How a pipe is to be made.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Shape {
    pub(crate) wait: super::plan::Wait,
    /// Both ends run on one CPU: whoever polls must let the other run.
    pub(crate) yielding: bool,
    /// Longest message.
    pub(crate) bytes_max: usize,
    /// Maximum transfer size of the VI; `None` for the NIC's limit. Sockets have none.
    pub(crate) mtu: Option<u32>,
    /// What VIs run over. Sockets do not ask.
    pub(crate) medium: crate::nic::Medium,
}

/// Connections that take turns, message by message; with one it is that one.
pub(crate) struct Lanes<P> {
    pipes: Vec<P>,
    sending: usize,
    receiving: usize,
}

impl<P: Pipe> Lanes<P> {
    /// `pipes` holds at least one.
    pub(crate) fn new(pipes: Vec<P>) -> Self {
        assert!(!pipes.is_empty());
        Self {
            pipes,
            sending: 0,
            receiving: 0,
        }
    }

    fn next_sending(&mut self) -> &mut P {
        let at = self.sending;
        self.sending = if at + 1 == self.pipes.len() {
            0
        } else {
            at + 1
        };
        &mut self.pipes[at]
    }

    fn next_receiving(&mut self) -> &mut P {
        let at = self.receiving;
        self.receiving = if at + 1 == self.pipes.len() {
            0
        } else {
            at + 1
        };
        &mut self.pipes[at]
    }
}

impl<P: Pipe> Pipe for Lanes<P> {
    #[inline]
    fn send(&mut self, len: usize) -> Result<()> {
        self.next_sending().send(len)
    }

    #[inline]
    fn recv(&mut self, len: usize) -> Result<()> {
        self.next_receiving().recv(len)
    }

    /// Each direction keeps its own turn in `send` and `recv`; here both take the sending one, at both ends alike.
    #[inline]
    fn exchange(&mut self, len: usize) -> Result<()> {
        self.next_sending().exchange(len)
    }

    #[inline]
    fn write(&mut self, len: usize) -> Result<()> {
        self.next_sending().write(len)
    }

    #[inline]
    fn absorb(&mut self, len: usize) -> Result<()> {
        self.next_receiving().absorb(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counts {
        sent: usize,
        received: usize,
    }

    impl Pipe for Counts {
        fn send(&mut self, _: usize) -> Result<()> {
            self.sent += 1;
            Ok(())
        }

        fn recv(&mut self, _: usize) -> Result<()> {
            self.received += 1;
            Ok(())
        }

        fn exchange(&mut self, len: usize) -> Result<()> {
            self.send(len)?;
            self.recv(len)
        }
    }

    #[test]
    fn lanes_take_turns_in_each_direction() {
        let mut lanes = Lanes::new(vec![
            Counts::default(),
            Counts::default(),
            Counts::default(),
        ]);
        for _ in 0..4 {
            lanes.send(1).unwrap();
        }
        lanes.recv(1).unwrap();
        let counts: Vec<_> = lanes.pipes.iter().map(|c| (c.sent, c.received)).collect();
        assert_eq!(counts, [(2, 1), (1, 0), (1, 0)]);
    }
}
