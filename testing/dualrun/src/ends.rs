//! One run of a program: two processes, each natively or with the library preloaded.

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::processes;
use crate::transcript::Transcript;

/// An end of the connection, by who called `connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that connects.
    Client,
    /// The one that accepts.
    Server,
}

impl End {
    /// Both, in the order in which results are kept.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// As on the command line of a program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Which end has the library preloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The client runs under sovia.
    pub client: bool,
    /// The server runs under sovia.
    pub server: bool,
}

impl Combination {
    /// Neither end: what the kernel does, which is right.
    pub const NATIVE: Self = Self {
        client: false,
        server: false,
    };
    /// Both ends.
    pub const SOVIA: Self = Self {
        client: true,
        server: true,
    };
    /// The client alone.
    pub const CLIENT: Self = Self {
        client: true,
        server: false,
    };
    /// The server alone.
    pub const SERVER: Self = Self {
        client: false,
        server: true,
    };
    /// What is compared with [`Self::NATIVE`].
    pub const COMPARED: [Self; 3] = [Self::SOVIA, Self::CLIENT, Self::SERVER];

    fn preloads(self, end: End) -> bool {
        match end {
            End::Client => self.client,
            End::Server => self.server,
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |preloaded| if preloaded { "sovia" } else { "native" };
        write!(f, "{}/{}", name(self.client), name(self.server))
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The program.
    pub binary: PathBuf,
    /// The same, linked statically, for programs that go on as one.
    pub static_twin: Option<PathBuf>,
    /// Whether the connection is upgraded, as far as it can be, before the behaviour under test.
    pub warm: bool,
    /// The end that shows the behaviour, where a program lets one choose.
    pub subject: End,
    /// Which ends are under sovia.
    pub combination: Combination,
    /// The library, if the combination has any.
    pub library: Option<PathBuf>,
    /// A hang is what takes longer.
    pub timeout: Duration,
    /// Once an end has failed, the other has as long only: for what is known to differ.
    pub patience: Option<Duration>,
    /// Variables of both ends.
    pub variables: Vec<(&'static str, String)>,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Client's and server's.
    pub transcripts: [Transcript; 2],
    /// Where all processes were when time was over; `None` if they ended by themselves.
    pub hang: Option<String>,
    /// How many connections each end upgraded, as the library tells.
    pub upgraded: [usize; 2],
    /// How many sockets of type `SOCK_VIA` each end asked for (`programs/via.c`).
    pub vias: [usize; 2],
}

/// What threads report of a run.
enum Event {
    /// A stream of an end came to its end: transcript (0) or complaints (1).
    Text(End, usize, Vec<u8>),
    /// An end is over.
    Over(End, io::Result<ExitStatus>),
}

impl Run {
    /// Starts both ends and waits for them and their children.
    ///
    /// # Errors
    /// An end cannot be started.
    pub fn carry_out(&self) -> io::Result<Outcome> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{count}", process::id());
        let folder = env::temp_dir();
        let trace = |end: End| folder.join(format!("dualrun-{name}-{}", end.name()));

        let (client, server) = UnixStream::pair()?;
        let (sender, events) = mpsc::channel();
        for (end, channel) in End::BOTH.into_iter().zip([client, server]) {
            let started = self.start(end, channel.into(), &name, &trace(end), &sender);
            if let Err(error) = started {
                processes::end(&processes::of_run(&name));
                return Err(error);
            }
        }
        drop(sender);

        let mut gathered = Gathered::default();
        let mut hang = None;
        if !gathered.gather(&events, Instant::now() + self.timeout, self.patience) {
            let left = processes::of_run(&name);
            hang = Some(processes::describe(&left));
            processes::end(&left);
            // What was killed closes its streams at once.
            gathered.gather(&events, Instant::now() + Duration::from_secs(5), None);
        }
        let traces = End::BOTH.map(|end| {
            let path = trace(end);
            let lines = fs::read_to_string(&path).unwrap_or_default();
            // There is none where nothing was upgraded.
            let _ = fs::remove_file(&path);
            lines
        });
        let count = |word| {
            let of = |lines: &String| lines.lines().filter(|l| l.starts_with(word)).count();
            traces.each_ref().map(of)
        };
        Ok(Outcome {
            transcripts: gathered.transcripts(),
            hang,
            upgraded: count("upgraded "),
            vias: count("via"),
        })
    }

    fn start(
        &self,
        end: End,
        channel: OwnedFd,
        name: &str,
        trace: &Path,
        events: &Sender<Event>,
    ) -> io::Result<()> {
        let mut command = Command::new(&self.binary);
        command
            .arg(end.name())
            .env_remove("LD_PRELOAD")
            .env(processes::RUN, name)
            .env("DUAL_WARM", if self.warm { "1" } else { "0" })
            .env("DUAL_SUBJECT", self.subject.name())
            .stdin(Stdio::from(channel))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let variables = self.variables.iter();
        command.envs(variables.map(|(name, value)| (name, value)));
        if let Some(twin) = &self.static_twin {
            command.env("DUAL_STATIC", twin);
        }
        if let Some(library) = &self.library
            && self.combination.preloads(end)
        {
            command
                .env("LD_PRELOAD", library)
                // A cold connection is to leave TCP in the middle of what the program does, if it does enough.
                .envs((!self.warm).then_some(("SOVIA_RULES", "2 dualrun turns=8 bytes=131072")))
                .env("SOVIA_TRACE_UPGRADE", trace);
        }
        let mut child = command.spawn()?;
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|s| Box::new(s) as _),
            child.stderr.take().map(|s| Box::new(s) as _),
        ];
        for (which, stream) in streams.into_iter().enumerate() {
            let Some(mut stream) = stream else { continue };
            let events = events.clone();
            thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Err(error) = stream.read_to_end(&mut bytes) {
                    bytes.extend(format!("dual: reading: {error}").bytes());
                }
                // Nobody listens any more when time is over.
                let _ = events.send(Event::Text(end, which, bytes));
            });
        }
        let events = events.clone();
        thread::spawn(move || {
            let _ = events.send(Event::Over(end, child.wait()));
        });
        Ok(())
    }
}

#[derive(Default)]
struct Gathered {
    texts: [[Option<Vec<u8>>; 2]; 2],
    statuses: [Option<ExitStatus>; 2],
}

impl Gathered {
    /// False if time was over before all had been reported.
    fn gather(
        &mut self,
        events: &Receiver<Event>,
        mut until: Instant,
        patience: Option<Duration>,
    ) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok(Event::Text(end, which, bytes)) => self.texts[end as usize][which] = Some(bytes),
                Ok(Event::Over(end, status)) => {
                    let status = status.ok();
                    if let Some(patience) = patience
                        && !status.is_some_and(|status| status.success())
                    {
                        until = until.min(Instant::now() + patience);
                    }
                    self.statuses[end as usize] = status;
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return true,
                Err(mpsc::RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    fn transcripts(&self) -> [Transcript; 2] {
        End::BOTH.map(|end| {
            let [said, complaints] = &self.texts[end as usize];
            let bytes = |text: &Option<Vec<u8>>| text.clone().unwrap_or_default();
            Transcript::new(
                &bytes(said),
                &bytes(complaints),
                self.statuses[end as usize],
            )
        })
    }
}
