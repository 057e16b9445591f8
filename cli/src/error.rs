use std::io;
use std::process::ExitCode;

/// What ends a command, by who can do something about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Misuse(String),
    /// The kernel refused a call.
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    /// A file that the caller named.
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
    /// A VI call was answered with one of VIPL's codes.
    #[error("{call}: {source}")]
    Vi {
        call: &'static str,
        source: via::Error,
    },
    /// A descriptor completed, but not well.
    #[error("a descriptor failed: {0:?}")]
    Fault(via::Fault),
    /// The other end of the connection went away in the middle of a message.
    #[error("the other end closed the connection")]
    Closed,
    /// What came from the other process is not what the protocol allows.
    #[error("unexpected answer from {from}: {what}")]
    Protocol { from: &'static str, what: String },
    /// One of the two measuring processes failed; this is its own message.
    #[error("measuring process {side}: {message}")]
    Side { side: usize, message: String },
    /// A program was not run, or could not be run under sovia.
    #[error(transparent)]
    Run(#[from] crate::run::Error),
    /// The user's configuration.
    #[error(transparent)]
    Config(#[from] crate::config::Error),
    /// One of several ways of running the same programs failed.
    #[error("{way}: {source}")]
    Under {
        way: crate::bench::way::Way,
        source: Box<Self>,
    },
    /// So many lines of a report are missing; it says which and why.
    #[error("{0} of the measurements failed")]
    Unmeasured(usize),
    /// A plot could not be drawn.
    #[error("plot: {0}")]
    Plot(String),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// 2 for misuse, as clap does for a command line that it rejects itself, what a shell says of a program that was not run, and
    /// 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Misuse(_) | Self::Config(_) => ExitCode::from(2),
            Self::Run(error) => error.exit_code(),
            _ => ExitCode::FAILURE,
        }
    }

    /// Whoever reads our output has seen enough, which is no failure.
    pub(crate) fn is_enough(&self) -> bool {
        matches!(self, Self::System { what: "standard output", source } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// A side that lost its connection has little to say about why.
    pub(crate) fn is_consequence(&self) -> bool {
        matches!(self, Self::Side { message, .. } if *message == Self::Closed.to_string())
    }
}

impl From<via::Fault> for Error {
    fn from(fault: via::Fault) -> Self {
        match fault {
            // What is queued completes like this when a connection ends.
            via::Fault::Flushed | via::Fault::Transport => Self::Closed,
            _ => Self::Fault(fault),
        }
    }
}

/// Names the call that failed.
pub(crate) trait Context<T> {
    fn context(self, what: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: &'static str) -> Result<T> {
        self.map_err(|source| Error::System {
            what,
            source: source.into(),
        })
    }
}
