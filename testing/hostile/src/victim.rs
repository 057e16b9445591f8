//! The victim and its friend, as processes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::program::Program;

/// One of them, with which one talks in lines. It is killed if it is dropped.
#[derive(Debug)]
pub struct Talker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Talker {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it was compiled");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            child,
            orders,
            answers,
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says a byte to it.
    ///
    /// # Panics
    /// If it has ended.
    pub fn order(&mut self, order: u8) {
        let orders = self.orders.as_mut().expect("not ended");
        orders.write_all(&[order]).expect("it runs");
    }

    /// The next line that it says.
    ///
    /// # Panics
    /// If it has ended instead.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("a pipe");
        if line.is_empty() {
            let status = self.child.wait().expect("it is ours");
            panic!("it ended: {status}, signal {:?}", status.signal());
        }
        line.trim_end().to_owned()
    }

    /// Lets it end by itself.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn end(mut self) {
        self.orders = None;
        let status = self.child.wait().expect("it is ours");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // Not waited for only if something failed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that does nothing wrong, and somebody who is served.
#[derive(Debug)]
pub struct Victim {
    server: Talker,
    friend: Talker,
    port: u16,
    _program: Program,
}

impl Victim {
    /// Starts both under sovia.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start() -> Self {
        let program = Program::compile("victim");
        let mut command = program.preloaded();
        command.arg("serve");
        let mut server = Talker::start(command);
        let port = server.hear().parse().expect("a port");
        let mut command = program.preloaded();
        command.args(["friend", &u16::to_string(&port)]);
        let mut victim = Self {
            server,
            friend: Talker::start(command),
            port,
            _program: program,
        };
        victim.assert_serves();
        victim
    }

    /// Where it listens on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's process.
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// The friend gets what it sends, on each of its connections.
    ///
    /// # Panics
    /// If it does not.
    pub fn assert_serves(&mut self) {
        self.friend.order(b'g');
        assert_eq!(self.friend.hear(), "ok");
    }

    /// Lets those go that keep a broken connection.
    pub fn let_go(&mut self) {
        self.server.order(b'k');
    }

    /// Ends both: all services but `most` must have ended by now, or do so soon.
    ///
    /// An enemy who spoils the memory can leave his own connection without an end that is told: see `docs/limitations.md`.
    ///
    /// # Panics
    /// If it has not.
    pub fn end(self, most: u32) {
        let Self {
            mut server, friend, ..
        } = self;
        friend.end();
        server.order(b'q');
        let line = server.hear();
        println!("services: {line}");
        let left = line.strip_prefix("left ").and_then(|n| n.parse().ok());
        assert!(left.is_some_and(|left: u32| left <= most), "{line}");
        server.end();
    }
}
