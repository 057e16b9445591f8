//! Table I: a file from memory to memory.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::file;
use super::stage::{Side, Stage, missing, program};
use super::way::Way;
use crate::bench::free_port;
use crate::error::{Context, Error, Result};
use crate::folder::make_within;
use crate::process::{Process, Said, myself};
use crate::steps::{SILENCE_MAX, line};

/// What moves the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum By {
    /// vsftpd and tnftp.
    Ftp,
    /// Our own programs.
    Own,
    /// One process that copies it: the bound.
    Copy,
}

/// A file moved, in one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Transfer {
    pub(super) by: By,
    pub(super) way: Way,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// All rows of the table. FTP first, for it is what the others are compared with.
pub(super) const ROWS: [(By, Way); 6] = [
    (By::Ftp, Way::Tcp),
    (By::Ftp, Way::Ring),
    (By::Own, Way::Tcp),
    (By::Own, Way::Combine),
    (By::Own, Way::Ring),
    (By::Copy, Way::Native),
];

/// The paper's two files.
pub(super) const FILES: [u64; 2] = [19_090_223, 145_864_380];

pub(super) fn name(by: By, way: Way) -> String {
    match (by, way) {
        (By::Copy, _) => "local copy".to_owned(),
        (By::Ftp, way) => format!("FTP, {}", way.title()),
        (By::Own, Way::Combine) => "own transfer, packets".to_owned(),
        (By::Own, way) => format!("own transfer, {}", way.title()),
    }
}

/// What keeps FTP from being measured.
pub(super) fn obstacle() -> Option<String> {
    missing("Table I (FTP)", &[("vsftpd", "vsftpd"), ("tnftp", "tnftp")])
}

/// Makes the files.
pub(super) fn prepare(stage: &Stage) -> Result<()> {
    let site = stage.folder().join("site");
    make_within(&site)?;
    make_within(&stage.folder().join("empty"))?;
    for bytes in FILES {
        let mut file = File::create(site.join(bytes.to_string())).context("a file to send")?;
        let mut left = bytes;
        let block: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
        while left > 0 {
            let part = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
            file.write_all(block.get(..part).unwrap_or_default())
                .context("a file to send")?;
            left -= part as u64;
        }
    }
    Ok(())
}

/// One row once, each file some times: the medians.
pub(super) fn measure(stage: &Stage, by: By, way: Way, times: u32) -> Result<Vec<Transfer>> {
    let mut transfers = Vec::new();
    let seconds = match by {
        By::Ftp => ftp(stage, way, times)?,
        By::Own => own(stage, way, times)?,
        By::Copy => copy(stage, times)?,
    };
    for bytes in FILES {
        let of = seconds.iter().filter(|(of, _)| *of == bytes);
        let mut seconds: Vec<f64> = of.map(|(_, seconds)| *seconds).collect();
        seconds.sort_by(f64::total_cmp);
        if let Some(&seconds) = seconds.get(seconds.len() / 2) {
            transfers.push(Transfer {
                by,
                way,
                bytes,
                seconds,
            });
        }
    }
    Ok(transfers)
}

/// By vsftpd and tnftp, as the client reports it.
fn ftp(stage: &Stage, way: Way, times: u32) -> Result<Vec<(u64, f64)>> {
    let port = free_port()?;
    let _server = serve(stage, way, port)?;
    let taken = stage.folder().join("taken");
    make_within(&taken)?;
    let mut orders = "user anonymous nobody\nbinary\n".to_owned();
    for time in 0..times {
        for bytes in FILES {
            // To a new file each time: giving the pages of an old one back takes as long as the transfer.
            orders += &format!("get {bytes} {}/{bytes}.{time}\n", taken.display());
        }
    }
    orders += "quit\n";
    let mut command = program("tnftp").ok_or(Error::Closed)?;
    command
        .args(["-n", "-i", "-v", "127.0.0.1", &port.to_string()])
        .env("HOME", stage.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut client = stage.start(&mut command, Side::Client, way)?;
    let (mut stdin, stdout) = client.pipes().ok_or(Error::Closed)?;
    stdin.write_all(orders.as_bytes()).context("tnftp")?;
    drop(stdin);
    let mut said = String::new();
    Said::new(stdout, SILENCE_MAX)?
        .read_to_string(&mut said)
        .context("tnftp's output")?;
    client.wait()?;
    let came = (0..times).all(|time| {
        FILES.iter().all(|bytes| {
            let file = taken.join(format!("{bytes}.{time}"));
            fs::metadata(file).is_ok_and(|file| file.len() == *bytes)
        })
    });
    fs::remove_dir_all(&taken).context("what the client took")?;
    let transfers: Vec<_> = said.lines().filter_map(reported).collect();
    if !came || transfers.len() != FILES.len() * times as usize {
        return Err(Error::Protocol {
            from: "tnftp",
            what: said,
        });
    }
    Ok(transfers)
}

/// As whoever we are and where we are: Debian's defaults give up the view of `/proc`, without which no connection leaves TCP.
fn serve(stage: &Stage, way: Way, port: u16) -> Result<Process> {
    let folder = stage.folder();
    let lines = format!(
        "listen=YES\nlisten_port={port}\nlisten_address=127.0.0.1\nbackground=NO\n\
         anonymous_enable=YES\nno_anon_password=YES\nanon_world_readable_only=NO\nanon_root={}\n\
         local_enable=NO\nxferlog_enable=NO\nsecure_chroot_dir={}\n\
         run_as_launching_user=YES\nseccomp_sandbox=NO\n",
        folder.join("site").display(),
        folder.join("empty").display()
    );
    let configuration = folder.join("vsftpd.conf");
    fs::write(&configuration, lines).context("vsftpd's configuration")?;
    let mut command = program("vsftpd").ok_or(Error::Closed)?;
    command.arg(&configuration).stdin(Stdio::null());
    let mut server = stage.start(&mut command, Side::Server, way)?;
    let start = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if server.ended()? || start.elapsed() > SILENCE_MAX {
            return Err(Error::Protocol {
                from: "vsftpd",
                what: "it does not listen".to_owned(),
            });
        }
        thread::sleep(LOOK_AGAIN);
    }
    Ok(server)
}

/// From a line such as `145864380 bytes received in 00:00 (1.90 GiB/s)`.
pub(crate) fn reported(line: &str) -> Option<(u64, f64)> {
    let (bytes, rest) = line.split_once(" bytes received in ")?;
    let (_, rate) = rest.split_once('(')?;
    let mut words = rate.trim_end_matches(')').split(' ');
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "GiB/s" => 30,
        "MiB/s" => 20,
        "KiB/s" => 10,
        _ => return None,
    };
    let bytes: u64 = bytes.trim().parse().ok()?;
    (number > 0.0).then(|| (bytes, bytes as f64 / (number * f64::from(1 << unit))))
}

/// By two processes of ours.
fn own(stage: &Stage, way: Way, times: u32) -> Result<Vec<(u64, f64)>> {
    let mut all = Vec::new();
    for bytes in FILES {
        let start = |side: Side, file: &Path, dial: Option<&str>| {
            let mut command = myself();
            command.args([file::COMMAND, "--way", way.word()]);
            command.args(["--cpu", &stage.cpu(side).to_string()]);
            command.args(["--times", &times.to_string(), "--file"]);
            command.arg(file);
            command.args(dial.map(|at| ["--dial", at]).iter().flatten());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            stage.start(&mut command, side, way)
        };
        let site = stage.folder().join("site");
        let mut server = start(Side::Server, &site.join(bytes.to_string()), None)?;
        let address = line(&mut server)?;
        let taken = stage.folder().join("taken");
        let mut client = start(Side::Client, &taken, Some(&address))?;
        let said = line(&mut client)?;
        client.wait()?;
        let length = fs::metadata(&taken).context("what the client took")?.len();
        fs::remove_file(&taken).context("what the client took")?;
        let seconds: Vec<f64> = match serde_json::from_str(&said) {
            Ok(seconds) if length == bytes => seconds,
            _ => {
                return Err(Error::Protocol {
                    from: "a measuring process",
                    what: said,
                });
            }
        };
        all.extend(seconds.into_iter().map(|seconds| (bytes, seconds)));
    }
    Ok(all)
}

/// By this process, without any connection.
fn copy(stage: &Stage, times: u32) -> Result<Vec<(u64, f64)>> {
    let taken = stage.folder().join("taken");
    let mut all = Vec::new();
    for _ in 0..times {
        for bytes in FILES {
            let from = stage.folder().join("site").join(bytes.to_string());
            let seconds = stage.on(Side::Client, || {
                let start = Instant::now();
                fs::copy(&from, &taken).context("copying")?;
                Ok(start.elapsed().as_secs_f64())
            })?;
            fs::remove_file(&taken).context("the copy")?;
            all.push((bytes, seconds));
        }
    }
    Ok(all)
}

const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tnftp_reports_is_understood() {
        let line = "145864380 bytes received in 00:00 (2.00 GiB/s)";
        let (bytes, seconds) = reported(line).expect("a report");
        assert_eq!(bytes, 145_864_380);
        assert!((seconds - 0.0679).abs() < 1e-4, "{seconds}");
        assert_eq!(reported("226 Transfer complete."), None);
        assert_eq!(reported("5 bytes received in 00:00 (0.00 KiB/s)"), None);
    }
}
