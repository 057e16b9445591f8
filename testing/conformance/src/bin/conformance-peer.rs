//! The other process of a conversation: `conformance-peer [iwarp ADDRESS] ROLE ARGUMENTS`, over shared memory unless told otherwise. It ends when its standard input does.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conformance::hostile;
use via::{Access, Descriptor, Memory, Nic, Reliability, ViConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (nic, arguments) = match arguments.as_slice() {
        ["iwarp", address, rest @ ..] => {
            let config = iwarp::Config {
                address: address.parse()?,
                ..iwarp::Config::default()
            };
            (Nic::open(&iwarp::IwarpDriver::new(config)?)?, rest)
        }
        rest => (Nic::open(&shm::DRIVER)?, rest),
    };
    match arguments {
        ["register"] => register(&nic),
        ["connect", name, level] => connect(&nic, name, level),
        ["wait-vi", ms] => wait(ms, |timeout| {
            let tag = nic.create_ptag()?;
            let vi = nic.create_vi(&ViConfig::new(&tag))?;
            vi.post_recv(&Descriptor::recv(), 0)?;
            vi.recv_wait(Some(timeout)).map(drop)
        }),
        ["wait-cq", ms] => {
            let cq = nic.create_cq(8)?;
            wait(ms, |timeout| cq.wait(Some(timeout)).map(drop))
        }
        ["wait-connect", ms] => {
            let nobody = nic.address(format!("w{}", std::process::id()).as_bytes())?;
            wait(ms, |timeout| {
                nic.connect_wait(&nobody, Some(timeout)).map(drop)
            })
        }
        ["wait-peer", ms] => wait(ms, |timeout| {
            let tag = nic.create_ptag()?;
            let vi = nic.create_vi(&ViConfig::new(&tag))?;
            let nobody = nic.address(format!("w{}", std::process::id()).as_bytes())?;
            vi.ops().peer_request(&nobody, &nobody, Some(timeout))?;
            vi.ops().peer_wait().map(drop)
        }),
        ["wait-send", name, ms] => wait_send(&nic, name, ms),
        ["request", name, ms] => request(&nic, name, ms),
        ["garbage", control, steps] => {
            hostile::write_garbage(control, steps.parse()?);
            Ok(())
        }
        ["pester", door] => pester(door),
        ["churn", name, connects] => {
            hostile::connect_over_and_over(&nic, name, connects.parse()?);
            Ok(())
        }
        _ => Err("unknown role".into()),
    }
}

/// Registers memory and tells where.
fn register(nic: &Nic) -> Result<(), Box<dyn Error>> {
    let tag = nic.create_ptag()?;
    let region = nic.register(Memory::shared(4096)?, &tag, Access::ReadWrite)?;
    say(&format!("{} {}", region.addr(), region.handle().0))?;
    until_told()
}

/// Connects to the waiter `name` and stays so.
fn connect(nic: &Nic, name: &str, level: &str) -> Result<(), Box<dyn Error>> {
    let tag = nic.create_ptag()?;
    let level = Reliability::from_bits(level.parse()?).ok_or("no such level")?;
    let vi = nic.create_vi(&ViConfig::new(&tag).reliability(level))?;
    let to = nic.address(name.as_bytes())?;
    let began = Instant::now();
    while let Err(error) = vi.connect(&to, &to, Some(PATIENCE)) {
        if error != via::Error::NoMatch || began.elapsed() > PATIENCE {
            return Err(error.into());
        }
        std::thread::yield_now();
    }
    say("connected")?;
    until_told()
}

/// Accepts a connection at `name`, and sends to it when told to.
fn wait_send(nic: &Nic, name: &str, ms: &str) -> Result<(), Box<dyn Error>> {
    let tag = nic.create_ptag()?;
    let config = ViConfig::new(&tag).reliability(Reliability::ReliableReception);
    let vi = nic.create_vi(&config)?;
    let at = nic.address(name.as_bytes())?;
    nic.connect_wait(&at, Some(PATIENCE))?.accept(&vi)?;
    say("connected")?;
    std::io::stdin().read_exact(&mut [0])?;
    wait(ms, |timeout| {
        vi.post_send(&Descriptor::send(), 0)?;
        vi.send_wait(Some(timeout)).map(drop)
    })
}

/// Asks for a connection at `name`, where somebody will be waiting.
fn request(nic: &Nic, name: &str, ms: &str) -> Result<(), Box<dyn Error>> {
    let tag = nic.create_ptag()?;
    let vi = nic.create_vi(&ViConfig::new(&tag))?;
    let to = nic.address(name.as_bytes())?;
    wait(ms, |timeout| {
        let began = Instant::now();
        loop {
            match vi.connect(&to, &to, Some(timeout)) {
                Err(via::Error::NoMatch) if began.elapsed() < PATIENCE => std::thread::yield_now(),
                outcome => return outcome.map(drop),
            }
        }
    })
}

/// Says how a wait for something that does not come ends.
fn wait(
    ms: &str,
    call: impl FnOnce(Duration) -> Result<(), via::Error>,
) -> Result<(), Box<dyn Error>> {
    let timeout = Duration::from_millis(ms.parse()?);
    say("waiting")?;
    let began = Instant::now();
    match call(timeout) {
        Err(via::Error::Timeout) if began.elapsed() >= timeout => say("timeout")?,
        other => say(&format!("{other:?} after {:?}", began.elapsed()))?,
    }
    until_told()
}

/// Says nonsense until told to end.
fn pester(door: &str) -> Result<(), Box<dyn Error>> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| hostile::pester(door, &over));
        let told = until_told();
        over.store(true, Ordering::Release);
        told
    })
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn until_told() -> Result<(), Box<dyn Error>> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(20);
