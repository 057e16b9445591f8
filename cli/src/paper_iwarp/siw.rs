//! Linux siw, by perftest's programs, which poll as a VI does.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::stream;
use crate::error::{Context, Error, Result};
use crate::steps::{Figure, Step, What, say};

/// Serves each of the steps in turn.
pub(super) fn serve(host: Ipv4Addr, steps: impl Iterator<Item = Step>) -> Result<()> {
    // Somewhere above it there is room: nobody else waits there, and siw's ports are TCP's.
    let (listener, address) = stream::listen(host)?;
    drop(listener);
    let first = parse(&address)?.port();
    say(&address)?;
    for (step, port) in steps.zip(first..) {
        let output = perftest(&step, port).output().context(PACKAGE)?;
        if !output.status.success() {
            return Err(failed(&output.stderr));
        }
    }
    Ok(())
}

/// Takes the steps with the one that serves at `address`.
pub(super) fn ask(address: &str, steps: impl Iterator<Item = Step>) -> Result<Vec<Figure>> {
    let address = parse(address)?;
    let host = address.ip().to_string();
    let steps = steps.zip(address.port()..);
    let figures = steps.map(|(step, port)| {
        let began = Instant::now();
        loop {
            let output = perftest(&step, port).arg(&host).output().context(PACKAGE)?;
            if output.status.success() {
                let said = String::from_utf8_lossy(&output.stdout);
                return figure(&step, &said).ok_or_else(|| failed(&output.stdout));
            }
            // The other end may not have come so far.
            if began.elapsed() > PATIENCE {
                return Err(failed(&output.stderr));
            }
        }
    });
    figures.collect()
}

/// What siw's own settings say of checksums, where it has such: upstream's has none, and makes them only for who asks.
pub(super) fn requires_crc() -> Option<bool> {
    let setting = std::fs::read_to_string("/sys/module/siw/parameters/mpa_crc_required").ok()?;
    Some(setting.trim() == "Y")
}

fn parse(address: &str) -> Result<SocketAddrV4> {
    address.parse().map_err(|_| Error::Protocol {
        from: "a measuring process",
        what: address.to_owned(),
    })
}

fn perftest(step: &Step, port: u16) -> Command {
    let mut command = Command::new(match step.what {
        What::Latency | What::Call => "ib_send_lat",
        What::Bandwidth => "ib_send_bw",
    });
    let messages = (step.count * step.blocks).min(BYTES_MAX / step.bytes);
    // iWARP connects through the RDMA connection manager only; and what the clock of an idle CPU does is not asked here.
    command.args(["-R", "-F"]);
    command.args(["-s", &step.bytes.to_string()]);
    command.args(["-n", &messages.to_string()]);
    command.args(["-p", &port.to_string()]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The line of perftest's table: bytes, messages, and then least, most and median of the times one way in µs,
/// or the peak and mean of MiB a second and millions of messages a second.
fn figure(step: &Step, said: &str) -> Option<Figure> {
    let rows = said.lines().map(|line| {
        let numbers = line.split_whitespace().map(str::parse::<f64>);
        numbers.collect::<Result<Vec<_>, _>>().unwrap_or_default()
    });
    let mut rows = rows.filter(|row| row.first() == Some(&(step.bytes as f64)));
    let row = rows.next()?;
    let ns = match (step.what, &*row) {
        (What::Latency | What::Call, [_, _, _, _, median, ..]) => median * 1e3,
        // Of few long messages the rate has too few digits, of short ones the bytes.
        (What::Bandwidth, [_, _, _, _, rate]) if *rate >= 0.001 => 1e3 / rate,
        (What::Bandwidth, [_, _, _, mean, _]) => step.bytes as f64 / (mean * MIB) * 1e9,
        _ => return None,
    };
    Some(Figure {
        what: step.what,
        bytes: step.bytes,
        ns,
    })
}

fn failed(said: &[u8]) -> Error {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Error::Protocol {
        from: "perftest",
        what: last.unwrap_or("nothing").trim().to_owned(),
    }
}

const PACKAGE: &str = "ib_send_lat and ib_send_bw (Debian's package perftest)";
/// A step is not to take all day on an emulated processor.
const BYTES_MAX: usize = 16 << 20;
const MIB: f64 = 1024.0 * 1024.0;
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perftests_tables() {
        let said = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n \
                    64      1000          15.10          99.01        16.71     \t       17.23        \t2.05\t\t25.11\t\t\t99.01  \n---------\n";
        let step = Step::of(What::Latency, 64, 100, 10);
        assert_eq!(figure(&step, said).expect("a row").ns, 16710.0);
        assert_eq!(figure(&Step::of(What::Latency, 4, 1, 1), said), None);
        let said = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n \
                    1048576          50             61.50              50.00  \t\t   0.000050\n 64         1000             1.00              0.95   \t\t   0.016000\n";
        let step = Step::of(What::Bandwidth, 64, 100, 10);
        assert_eq!(figure(&step, said).expect("a row").ns, 62500.0);
        let step = Step::of(What::Bandwidth, 1 << 20, 5, 10);
        assert_eq!(figure(&step, said).expect("a row").ns, 2e7);
    }
}
