use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use rustix::process::Signal;

use super::super::registry::Need;
use super::{Recipe, Stage};
use crate::error::{Context, Result};
use crate::folder::make_within;
use crate::paper::reported;

/// vsftpd and tnftp, which is what `ftp` is in Debian: a file of 145 MB, on a RAM disk.
pub(super) const BY_TNFTP: Recipe = Recipe {
    needs: &[
        VSFTPD,
        Need {
            program: "tnftp",
            package: "tnftp",
        },
    ],
    client: |stage, _| {
        let mut command = stage.command("tnftp");
        command
            .env("HOME", &stage.folder)
            .args(["-v", "-o"])
            .arg(fresh(stage))
            .arg(address(stage));
        command
    },
    rate: |said| {
        let (bytes, seconds) = said.lines().find_map(reported)?;
        Some(bytes as f64 / seconds)
    },
    ..BY_CURL
};

/// The same with curl, which writes what has come in smaller pieces.
pub(super) const BY_CURL: Recipe = Recipe {
    needs: &[
        VSFTPD,
        Need {
            program: "curl",
            package: "curl",
        },
    ],
    // It tells addresses and ports.
    not_unix: Some("FTP"),
    user: None,
    stop: Signal::TERM,
    prepare,
    server: |stage| {
        let mut command = stage.command("vsftpd");
        command.arg(stage.folder.join(CONFIGURATION));
        command
    },
    fill: |_| None,
    client: |stage, _| {
        let mut command = stage.command("curl");
        command
            .args(["--silent", "--write-out", "%{speed_download}", "--output"])
            .arg(fresh(stage))
            .arg(address(stage));
        command
    },
    rate: |said| said.trim().parse().ok(),
};

const VSFTPD: Need = Need {
    program: "vsftpd",
    package: "vsftpd",
};

/// Where the file is to go. A new one each time: to give the pages of an old one back is work of the next transfer.
fn fresh(stage: &Stage) -> PathBuf {
    let taken = stage.memory.join("taken");
    let _ = fs::remove_file(&taken);
    taken
}

fn address(stage: &Stage) -> String {
    format!("ftp://127.0.0.1:{}/file", stage.port)
}

fn prepare(stage: &Stage) -> Result<()> {
    let site = stage.memory.join("site");
    let empty = stage.folder.join("empty");
    make_within(&site)?;
    make_within(&empty)?;
    let mut file = File::create(site.join("file")).context("a file for vsftpd")?;
    for megabyte in 0..MEGABYTES {
        let bytes = vec![megabyte; 1_000_000];
        file.write_all(&bytes).context("a file for vsftpd")?;
    }
    // Debian's default changes the user and forbids system calls, and then nothing can be done for it.
    let lines = format!(
        "listen=YES\nlisten_port={}\nlisten_address=127.0.0.1\nbackground=NO\n\
         anonymous_enable=YES\nno_anon_password=YES\nanon_world_readable_only=NO\nanon_root={}\n\
         local_enable=NO\nxferlog_enable=NO\nsecure_chroot_dir={}\n\
         run_as_launching_user=YES\nseccomp_sandbox=NO\n",
        stage.port,
        site.display(),
        empty.display()
    );
    fs::write(stage.folder.join(CONFIGURATION), lines).context("vsftpd's configuration")
}

const CONFIGURATION: &str = "vsftpd.conf";
/// As in the SOVIA paper's Table I.
const MEGABYTES: u8 = 145;
