use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::rping::{ask_in_vain, free_port};
use crate::{command, sovia, stdout_of, text};

#[test]
fn the_list_names_the_default_nic() {
    let nics: serde_json::Value = serde_json::from_str(&stdout_of("vi list --json")).expect("JSON");
    let shm = nics
        .as_array()
        .expect("a list")
        .iter()
        .find(|nic| nic["name"] == "shm");
    let shm = shm.expect("a NIC called shm");
    assert!(shm["attributes"]["max_transfer_size"].as_u64() >= Some(65_536));
    assert_eq!(
        shm["attributes"]["reliability"].as_array().map(Vec::len),
        Some(3)
    );
    assert!(stdout_of("vi list").contains("max transfer size"));
}

#[test]
fn ping_starts_both_ends_itself() {
    for arguments in ["", "--blocking", "--size 65536", "--size 1 --count 100"] {
        let stdout = stdout_of(&format!("vi ping {arguments}"));
        let last = stdout.lines().last().unwrap_or_default();
        assert!(
            last.contains("p50") && last.contains("p99"),
            "{arguments}: {stdout}"
        );
        let count = if arguments.contains("--count") {
            100
        } else {
            10
        };
        assert_eq!(stdout.lines().count(), count + 1, "{arguments}");
    }
}

#[test]
fn a_killed_ping_leaves_no_server_behind() {
    let mut ping = command("vi ping --blocking --count 4000000000")
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stderr = ping.stderr.take().expect("it was asked for");
    let mut line = String::new();
    let mut stdout = BufReader::new(ping.stdout.take().expect("it was asked for"));
    stdout.read_line(&mut line).expect("its server answers");
    ping.kill()
        .and_then(|()| ping.wait())
        .expect("it is still there");
    // The server has this end of the pipe, too.
    let (all_ended, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = stderr.read_to_end(&mut Vec::new());
        let _ = all_ended.send(());
    });
    let ended = heard.recv_timeout(PATIENCE);
    let _ = kill_process_group(Pid::from_child(&ping), Signal::KILL);
    assert!(ended.is_ok(), "{line}");
}

/// Ends a test that would wait for ever.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_server_serves_one_client_after_the_other() {
    let meeting = format!("cli-{}", std::process::id());
    let mut server = command(&format!(
        "vi ping --server --blocking --discriminator {meeting}"
    ))
    .stdout(Stdio::piped())
    .spawn()
    .expect("the server starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(server.stdout.take().expect("it was asked for"));
    stdout.read_line(&mut line).expect("its first line");
    assert!(line.contains(&meeting), "{line}");
    let client = format!("vi ping --client --blocking --quiet --discriminator {meeting}");
    let outputs = [sovia(&client), sovia(&client)];
    server
        .kill()
        .and_then(|()| server.wait())
        .expect("the server was still there");
    for output in outputs {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn misuse_is_refused_with_status_2() {
    for arguments in [
        "vi ping --server",
        "vi ping --client",
        "vi ping --server --client --discriminator here",
        "vi ping --count 0",
        "vi ping --size 0",
        "vi ping --size 65537",
        "vi ping --nic carrier-pigeon",
        "vi ping --discriminator longer-than-sixteen-bytes",
        "vi list --yaml",
    ] {
        let output = sovia(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(!output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn the_demo_compares_in_each_line() {
    let stdout = stdout_of("vi demo --quick");
    for expected in [
        "polling",
        "asleep",
        "RDMA write",
        "connect and disconnect",
        "machine: ",
    ] {
        assert!(stdout.contains(expected), "no {expected:?} in\n{stdout}");
    }
    assert!(stdout.matches('×').count() >= 6, "{stdout}");
}

#[test]
fn who_asks_for_something_else_does_not_end_a_server() {
    let port = free_port();
    let mut server = command("vi ping --server --nic iwarp --discriminator lunch")
        .env(iwarp::VARIABLE, format!("127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .spawn()
        .expect("the server starts");
    ask_in_vain(port, b"lunch");
    let pinged = sovia(&format!(
        "vi ping --client --nic iwarp --discriminator lunch --host 127.0.0.1:{port}"
    ));
    server
        .kill()
        .and_then(|()| server.wait())
        .expect("the server was still there");
    assert!(pinged.status.success(), "{}", text(&pinged.stderr));
}
