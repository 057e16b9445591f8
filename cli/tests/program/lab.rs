//! `sovia vi rping` against librdmacm's over Linux siw, in both roles, where there is a lab.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use crate::rping::free_port;
use crate::text;

/// Runs a command in each of the guests with siw, `./sovia` at hand, and what `options` say beside them; what they say. `None` without a lab.
///
/// A guest's command writes to a file: its console is the kernel's, too, and what is under way there when the guest goes need not arrive.
fn lab(parameters: &str, options: &[&str], commands: &[&str]) -> Option<String> {
    let Some(lab) = env::var_os("SOVIA_LAB") else {
        println!("not run: SOVIA_LAB names no lab (see CONTRIBUTING.md)");
        return None;
    };
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let name = format!("sovia-lab-{}-{thread}", std::process::id());
    let share = env::temp_dir().join(name);
    fs::create_dir_all(&share).expect("a folder");
    fs::copy(env!("CARGO_BIN_EXE_sovia"), share.join("sovia")).expect("a copy");
    let mut run = Command::new(PathBuf::from(lab).join("run"));
    run.args(["-t", "280", "-p", parameters, "-s"]).arg(&share);
    let commands = commands
        .iter()
        .map(|command| format!("{{ {command}\n}} > {SAID}.$LAB_ID 2>&1"));
    let output = run.args(options).args(commands.clone()).output();
    let output = output.expect("the lab runs");
    let mut said = text(&output.stdout).to_owned();
    for guest in 0..commands.len() {
        let of_guest = fs::read(share.join(format!("{SAID}.{guest}"))).unwrap_or_default();
        for line in String::from_utf8_lossy(&of_guest).lines() {
            said.push_str(&format!("guest{guest}| {line}\n"));
        }
    }
    said.push_str(text(&output.stderr));
    fs::remove_dir_all(&share).expect("ours");
    println!("{said}");
    Some(said)
}

/// Where a guest's command writes.
const SAID: &str = "said";

#[track_caller]
fn assert_said(said: &str, expected: &[String]) {
    for line in expected {
        assert!(
            said.lines().any(|it| it.ends_with(line.as_str())),
            "no {line:?} in what was said:\n{said}"
        );
    }
}

fn strings(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

/// Below and above a segment of TCP's, odd, and the largest.
const SIZES: [u32; 9] = [26, 27, 64, 999, 1448, 1449, 4096, 29_999, 65_535];

#[test]
fn siws_client_and_our_server() {
    let sizes = SIZES.map(|size| size.to_string()).join(" ");
    let client = format!(
        "barrier up; for s in {sizes}; do
        timeout 20 rping -c -a guest1 -p 7200 -C 5 -V -S $s; echo \"size $s: $?\"; done; barrier down"
    );
    let server =
        "./sovia vi rping -s -P -p 7200 & wait-port localhost 7200; barrier up; barrier down";
    let expected = SIZES.map(|size| format!("size {size}: 0"));
    // With and without checksums, MPA 1 and 2, and with the message that says that the client is ready.
    for parameters in [
        "mpa_crc_required=N",
        "mpa_crc_required=1",
        "mpa_version=1",
        "mpa_version=1,mpa_crc_required=1",
        "peer_to_peer=1,mpa_crc_required=1",
    ] {
        if let Some(said) = lab(parameters, &[], &[&client, server]) {
            assert_said(&said, &expected);
        }
    }
}

#[test]
fn our_client_and_siws_server() {
    let sizes = SIZES.map(|size| size.to_string()).join(" ");
    let client = format!(
        "barrier up; sleep 1; for s in {sizes}; do for crc in '' --no-crc; do
        timeout 20 ./sovia vi rping -c -a guest1 -p 7200 -C 5 -V -S $s $crc; echo \"size $s$crc: $?\"; done; done;
        timeout 20 ./sovia vi rping -c -a guest1 -p 7200 -C 1 --markers; echo \"markers: $?\";
        timeout 20 ./sovia vi rping -c -a guest1 -p 7200 -C 1 --mpa 1; echo \"revision 1: $?\"; barrier down"
    );
    let server = "rping -s -P -S 65535 -p 7200 & sleep 1; barrier up; barrier down";
    let mut expected: Vec<_> = SIZES
        .into_iter()
        .flat_map(|size| [format!("size {size}: 0"), format!("size {size}--no-crc: 0")])
        .collect();
    // siw knows no markers. With revision 1 it takes reads for switched off: what was sent has come, and then rping cannot read.
    expected.extend(strings(&[
        "markers: 255",
        "post send error -1",
        "revision 1: 0",
    ]));
    for parameters in ["mpa_crc_required=N", "mpa_crc_required=1"] {
        if let Some(said) = lab(parameters, &[], &[&client, server]) {
            assert_said(&said, &expected);
        }
    }
}

#[test]
fn nobody_is_there() {
    let ours = "timeout 20 ./sovia vi rping -c -a guest1 -p 7201 -C 1; echo \"nobody: $?\"; barrier again; barrier down";
    // rping does not end by itself then.
    let theirs = "barrier again; timeout 5 rping -c -a guest0 -p 7202; barrier down";
    if let Some(said) = lab("mpa_crc_required=N", &[], &[ours, theirs]) {
        assert_said(
            &said,
            &strings(&["nobody: 255", "guest1| rdma_connect: Connection refused"]),
        );
    }
}

/// A Reply that rejects: siw that is strict, and does not require checksums, takes nobody who asks for them.
#[test]
fn siw_rejects() {
    let client = "barrier up; sleep 1; timeout 20 ./sovia vi rping -c -a guest1 -p 7200 -C 2; echo \"with checksums: $?\";
        timeout 20 ./sovia vi rping -c -a guest1 -p 7200 -C 2 -V --no-crc; echo \"without: $?\"; barrier down";
    let server = "rping -s -P -p 7200 & sleep 1; barrier up; barrier down";
    if let Some(said) = lab("mpa_crc_strict=1", &[], &[client, server]) {
        assert_said(&said, &strings(&["with checksums: 255", "without: 0"]));
    }
}

/// Rsockets put their own into the Request and the Reply; ours is in every Request of ours.
#[test]
fn private_data_of_others_is_no_hindrance() {
    let ours = "./sovia vi rping -s -P -p 7300 & wait-port localhost 7300; barrier up; barrier asked;
        timeout 20 ./sovia vi rping -c -a guest1 -p 7301 -C 1; echo \"to an rsocket: $?\"; barrier down";
    let theirs =
        "barrier up; timeout 10 rstream -s guest0 -p 7300 -S 64 -C 10; wait-port guest0 7300;
        timeout 20 rping -c -a guest0 -p 7300 -C 3 -V; echo \"after an rsocket: $?\";
        timeout 20 rstream -p 7301 -S 64 -C 10 & sleep 1; barrier asked; barrier down";
    if let Some(said) = lab("mpa_crc_required=N", &[], &[ours, theirs]) {
        assert_said(
            &said,
            &strings(&["after an rsocket: 0", "to an rsocket: 255"]),
        );
    }
}

#[test]
fn the_peer_is_killed() {
    let ours = "barrier up; sleep 1; timeout 60 ./sovia vi rping -c -a guest1 -p 7300; echo \"server killed: $?\";
        ./sovia vi rping -s -p 7301 & wait-port localhost 7301; barrier again; wait %1; echo \"client killed: $?\"; barrier down";
    let theirs = "timeout 4 rping -s -p 7300 & barrier up; wait;
        barrier again; timeout 4 rping -c -a guest0 -p 7301; barrier down";
    if let Some(said) = lab("mpa_crc_required=N", &[], &[ours, theirs]) {
        assert_said(&said, &strings(&["server killed: 0", "client killed: 0"]));
    }
}

/// Through a proxy that delivers fast: siw as a responder leaves unread what comes before it is ready, until it is nudged.
#[test]
fn our_client_on_the_host_many_times() {
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_sovia");
    let client = format!(
        "for i in $(seq 20); do timeout 20 {program} vi rping -c -a 127.0.0.1 -p {port} -C 2 -V >/dev/null 2>&1;
        echo \"client $i: $?\"; done"
    );
    let forward = format!("{port}:0:7174");
    let server = "rping -s -P -p 7174 & sleep 1; barrier host; wait";
    let options = ["-f", &forward, "-x", &client];
    if let Some(said) = lab("mpa_crc_required=N", &options, &[server]) {
        let expected: Vec<_> = (1..=20).map(|n| format!("client {n}: 0")).collect();
        assert_said(&said, &expected);
    }
}

/// `bench paper-iwarp` beside siw, in one guest of two processors. Whether the figures are good is not asked here: this program is no release.
#[test]
fn the_paper_beside_siw() {
    let measure = "timeout 250 ./sovia bench paper-iwarp --quick --way spinning,plain --siw $LAB_IP --json paper.json; echo \"measured: $?\";
        grep -o '\"way\": \"siw\"' paper.json";
    if let Some(said) = lab("mpa_crc_required=N", &["-c", "2"], &[measure]) {
        assert_said(&said, &strings(&["measured: 0", "\"way\": \"siw\""]));
        let rows = said.lines().filter(|line| line.contains("/ Linux siw"));
        assert_eq!(rows.count(), 6, "{said}");
        assert!(said.contains("it makes no checksums"), "{said}");
    }
}
