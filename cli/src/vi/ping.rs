use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::time::Instant;

use hdrhistogram::Histogram;
use sys::host;
use via::{Access, Completion, Descriptor, Done, Memory, Nic, Queue, Region, Vi, ViConfig};

use crate::error::{Context, Error, Result};
use crate::nic::{self, ViContext};
use crate::output::complain;
use crate::process::Process;

/// Round trips of one message over a VI
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// NIC to use; see `sovia vi list`
    #[arg(long, value_name = "NAME", default_value = nic::DEFAULT)]
    nic: String,
    /// Answer pings until killed
    #[arg(long, conflicts_with = "client", requires = "discriminator")]
    server: bool,
    /// Ping a server that was started elsewhere
    #[arg(long, requires = "discriminator")]
    client: bool,
    /// Where the two meet: up to 16 bytes
    #[arg(long, value_name = "TEXT", value_parser = discriminator)]
    discriminator: Option<String>,
    /// Where the server is, if its NIC is not this host's: iwarp's ADDRESS[:PORT]
    #[arg(long, value_name = "ADDRESS", requires = "client", value_parser = host)]
    host: Option<SocketAddrV4>,
    /// Messages to send
    #[arg(long, short = 'c', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Bytes a message
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=MTU as i64))]
    size: u32,
    /// Wait with VipRecvWait, which may sleep, instead of polling
    #[arg(long)]
    blocking: bool,
    /// Print the summary only
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Without --server and --client, both are started here, as two processes.

Examples:
  sovia vi ping
  sovia vi ping --count 1000000 --quiet
  sovia vi ping --server --discriminator lunch      (in one terminal)
  sovia vi ping --client --discriminator lunch      (in another)";

fn discriminator(text: &str) -> Result<String, String> {
    match text.len() {
        1..=via::DISCRIMINATOR_MAX => Ok(text.to_owned()),
        _ => Err(format!("1 to {} bytes are wanted", via::DISCRIMINATOR_MAX)),
    }
}

fn host(text: &str) -> Result<SocketAddrV4, String> {
    let whole = text.parse();
    let with_port = || format!("{text}:{}", iwarp::PORT).parse();
    whole
        .or_else(|_| with_port())
        .map_err(|_| "192.0.2.1 or 192.0.2.1:7471 is wanted".to_owned())
}

/// `sovia vi ping`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let both = !options.server && !options.client;
    let nic = if both && options.nic == "iwarp" {
        // At a port of its own, so that it disturbs nobody.
        nic::start(nic::loopback(iwarp::Config::default())?)?
    } else {
        nic::open(&options.nic)?
    };
    match (&options.discriminator, options.server, options.client) {
        (Some(meeting), true, _) => serve(&nic, meeting, options.blocking),
        (Some(meeting), _, true) => ping(&nic, meeting, options),
        (meeting, ..) => {
            let meeting = match meeting {
                Some(meeting) => meeting.clone(),
                None => nic::anonymous()?,
            };
            let mut server = vec!["vi", "ping", "--server", "--discriminator", &meeting];
            server.extend(["--nic", &options.nic]);
            server.extend(options.blocking.then_some("--blocking"));
            let address = iwarp::socket_address(nic.attributes().local_address).to_string();
            let _server = Process::again_with(server, (iwarp::VARIABLE, &address))?;
            ping(&nic, &meeting, options)
        }
    }
}

/// Serves one client after the other.
fn serve(nic: &Nic, meeting: &str, blocking: bool) -> Result<()> {
    writeln!(io::stdout(), "{} waits at {meeting}", nic.attributes().name)
        .context("standard output")?;
    loop {
        let end = End::new(nic, blocking)?;
        let address = nic.address(meeting.as_bytes()).vi("address")?;
        let mut incoming = nic.connect_wait(&address, None).vi("VipConnectWait")?;
        if let Err(source) = incoming.accept(&end.vi) {
            // What one client asks for is nothing to the next.
            complain(Error::Vi {
                call: "VipConnectAccept",
                source,
            });
            continue;
        }
        let ended = loop {
            let message = end.recv();
            if let Err(error) = message.and_then(|(slot, length)| end.echo(slot, length)) {
                break error;
            }
        };
        if !matches!(ended, Error::Closed) {
            complain(ended);
        }
    }
}

fn ping(nic: &Nic, meeting: &str, options: &Options) -> Result<()> {
    let end = End::new(nic, options.blocking)?;
    let mut address = nic.address(meeting.as_bytes()).vi("address")?;
    if let Some(host) = options.host {
        address.host = iwarp::host(host);
    }
    nic::connect(nic, &end.vi, &address, false)?;
    let mut times =
        Histogram::<u64>::new_with_bounds(1, NS_MAX, 3).expect("these bounds are allowed");
    let mut stdout = io::stdout().lock();
    for sequence in 0..options.count {
        let start = Instant::now();
        end.send(options.size)?;
        let (slot, length) = end.recv()?;
        let elapsed = start.elapsed();
        end.post_recv(slot)?;
        if length != options.size {
            return Err(Error::Protocol {
                from: "the server",
                what: format!("{length} bytes for {}", options.size),
            });
        }
        times.saturating_record(elapsed.as_nanos() as u64);
        if !options.quiet {
            let micros = elapsed.as_secs_f64() * 1e6;
            writeln!(
                stdout,
                "{length} bytes from {address}: seq={sequence} time={micros:.2} µs"
            )
            .context("standard output")?;
        }
    }
    end.vi.disconnect().vi("VipDisconnect")?;
    let micros = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    writeln!(
        stdout,
        "{} messages of {} bytes, there and back, {}: min {} p50 {} p99 {} max {} µs",
        times.len(),
        options.size,
        if options.blocking {
            "blocking"
        } else {
            "polling"
        },
        micros(times.min()),
        micros(times.value_at_quantile(0.5)),
        micros(times.value_at_quantile(0.99)),
        micros(times.max()),
    )
    .context("standard output")
}

/// A VI with its memory: one buffer, of which the first part is sent and each other part receives a message.
struct End {
    // Before the region: a VI is destroyed before its memory is deregistered.
    vi: Vi,
    region: Region,
    wait: Wait,
}

enum Wait {
    Sleeping,
    Spinning,
    /// There is one CPU: the other end needs it, too.
    Yielding,
}

impl End {
    fn new(nic: &Nic, blocking: bool) -> Result<Self> {
        let tag = nic.create_ptag().vi("VipCreatePtag")?;
        let memory = Memory::shared(MTU as usize * (SLOTS as usize + 1)).context("memfd")?;
        let wait = match host::affinity().context("sched_getaffinity")?.len() {
            _ if blocking => Wait::Sleeping,
            1 => Wait::Yielding,
            _ => Wait::Spinning,
        };
        let end = Self {
            vi: nic.create_vi(&ViConfig::new(&tag)).vi("VipCreateVi")?,
            region: nic
                .register(memory, &tag, Access::Local)
                .vi("VipRegisterMem")?,
            wait,
        };
        (1..=SLOTS).try_for_each(|slot| end.post_recv(slot))?;
        Ok(end)
    }

    fn post_recv(&self, slot: u32) -> Result<()> {
        let descriptor = Descriptor::recv().segment(&self.region, slot * MTU..(slot + 1) * MTU);
        self.vi
            .post_recv(&descriptor, slot.into())
            .vi("VipPostRecv")
    }

    /// Sends the first `length` bytes of the buffer.
    fn send(&self, length: u32) -> Result<()> {
        self.send_from(0, length)
    }

    /// Sends back what came into `slot`, and makes room there again.
    fn echo(&self, slot: u32, length: u32) -> Result<()> {
        self.send_from(slot * MTU, length)?;
        self.post_recv(slot)
    }

    fn send_from(&self, start: u32, length: u32) -> Result<()> {
        let descriptor = Descriptor::send().segment(&self.region, start..start + length);
        self.vi.post_send(&descriptor, 0).vi("VipPostSend")?;
        self.complete(Queue::Send).map(drop)
    }

    /// The slot of the next message, and its length.
    fn recv(&self) -> Result<(u32, u32)> {
        let completion = self.complete(Queue::Recv)?;
        Ok((completion.token as u32, completion.length))
    }

    fn complete(&self, queue: Queue) -> Result<Completion> {
        let vi = &self.vi;
        let completion = match (&self.wait, queue) {
            (Wait::Sleeping, Queue::Send) => vi.send_wait(None).vi("VipSendWait")?,
            (Wait::Sleeping, Queue::Recv) => vi.recv_wait(None).vi("VipRecvWait")?,
            _ => loop {
                let done = match queue {
                    Queue::Send => vi.send_done().vi("VipSendDone")?,
                    Queue::Recv => vi.recv_done().vi("VipRecvDone")?,
                };
                match (done, &self.wait) {
                    (Done::Completed(completion), _) => break completion,
                    (_, Wait::Yielding) => std::thread::yield_now(),
                    _ => std::hint::spin_loop(),
                }
            },
        };
        completion.ok().map_err(Error::from)
    }
}

/// Bytes a message, at most: the maximum transfer size that a VI has unless it asks for another.
const MTU: u32 = 64 << 10;
const SLOTS: u32 = 8;
/// Longer round trips count as this.
const NS_MAX: u64 = 60_000_000_000;
